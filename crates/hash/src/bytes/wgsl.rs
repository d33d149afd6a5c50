//! Hash functions in WGSL: straight-line text on named words, since arrays that are indexed by variables are slow.

use std::fmt::Write;

use super::function::HashFunction;
use crate::blake::{PLACES, SIGMA, blake3_orders};

/// Where SHA-256, BLAKE2s and BLAKE3 start.
const IV: [&str; 8] = [
    "0x6a09e667u",
    "0xbb67ae85u",
    "0x3c6ef372u",
    "0xa54ff53au",
    "0x510e527fu",
    "0x9b05688cu",
    "0x1f83d9abu",
    "0x5be0cd19u",
];

/// The rotation of each lane of Keccak.
const ROTATIONS: [u32; 25] =
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

/// Bit r of number j is bit 2^j − 1 of the constant of Keccak's round r.
const ROUND_BITS: [u32; 7] = round_bits();

/// The text of a function, before a kernel.
pub(super) fn function(function: HashFunction) -> String {
    let own = match function {
        HashFunction::Keccak256 | HashFunction::Sha3_256 => keccak(),
        HashFunction::Sha256 => sha_256(),
        HashFunction::Blake2s256 => blake2s(),
        HashFunction::Blake3 => blake3(),
    };
    [evariste_shaders::hash::BYTES, &load_block(function.block() as usize / 4), &own].concat()
}

fn block(words: usize) -> String {
    format!("struct Block {{ {} }}\n", list(words, |i| format!("m{i}: u32")))
}

/// `load_block`, the twin of `add_block` in CUDA.
fn load_block(words: usize) -> String {
    let mut text = block(words);
    let _ = write!(
        text,
        "fn load_block(at: u32, rest: i32, pad: u32) -> Block {{\n  let start = at / 4u;\n  let within = at % 4u;\n\
         \x20 if (rest >= {} && at % 16u == 0u) {{\n    let place = start / 4u;\n",
        4 * words
    );
    for i in 0..words.div_ceil(4) {
        let _ = writeln!(text, "    let q{i} = x_get(place + {i}u);");
    }
    let aligned = list(words, |i| format!("q{}.{}", i / 4, ["x", "y", "z", "w"][i % 4]));
    let _ = write!(
        text,
        "    return Block({aligned});\n  }}\n  // Words that have a byte of the message, and no other.\n\
         \x20 var end = 0;\n  if (rest > 0) {{ end = rest + i32(within); }}\n"
    );
    for i in 0..=words {
        let _ = writeln!(text, "  let w{i} = fetch(start + {i}u, {} < end);", 4 * i);
    }
    let taken = list(words, |i| format!("take(w{i}, w{}, within, rest - {}, pad)", i + 1, 4 * i));
    let _ = write!(text, "  return Block({taken});\n}}\nconst BLOCK = {}u;\n", 4 * words);
    text
}

fn state(words: usize) -> String {
    format!("struct State {{ {} }}\n", list(words, |i| format!("h{i}: u32")))
}

/// The head of `absorb`.
const ABSORB: &str = "fn absorb(s: State, m: Block, last: bool, rest: i32, bytes: u32) -> State {\n";

fn keccak() -> String {
    let mut text = state(50);
    let _ = write!(
        text,
        "fn start() -> State {{ return State({}); }}\nfn is_last(rest: i32) -> bool {{ return rest < i32(BLOCK); }}\n\
         fn finish(s: State) -> Digest {{\n\
         \x20 return Digest(vec4<u32>(s.h0, s.h1, s.h2, s.h3), vec4<u32>(s.h4, s.h5, s.h6, s.h7));\n}}\n\
         fn keccak_round(s: State, round: u32) -> State {{\n",
        list(50, |_| "0u".to_owned())
    );
    for i in 0..10 {
        let sum = (1..5).fold(format!("s.h{i}"), |sum, y| format!("{sum} ^ s.h{}", i + 10 * y));
        let _ = writeln!(text, "  let p{i} = {sum};");
    }
    for x in 0..5 {
        let (low, high) = (2 * x, 2 * x + 1);
        let _ = writeln!(text, "  let t{low} = (p{low} << 1u) | (p{high} >> 31u);");
        let _ = writeln!(text, "  let t{high} = (p{high} << 1u) | (p{low} >> 31u);");
    }
    for (i, rotation) in ROTATIONS.into_iter().enumerate() {
        // Lane x + 5 y goes to y + 5 (2 x + 3 y).
        let (x, y) = (i % 5, i / 5);
        let to = y + 5 * ((2 * x + 3 * y) % 5);
        let (before, after) = (2 * ((x + 4) % 5), 2 * ((x + 1) % 5));
        for half in 0..2 {
            let _ = writeln!(text, "  let a{} = s.h{0} ^ p{} ^ t{};", 2 * i + half, before + half, after + half);
        }
        for half in 0..2 {
            // The word that a rotation by less than 32 starts from, and the other one.
            let [own, other] = if (rotation < 32) == (half == 0) { [2 * i, 2 * i + 1] } else { [2 * i + 1, 2 * i] };
            let _ = match rotation % 32 {
                0 => writeln!(text, "  let b{} = a{own};", 2 * to + half),
                n => writeln!(text, "  let b{} = (a{own} << {n}u) | (a{other} >> {}u);", 2 * to + half, 32 - n),
            };
        }
    }
    let constant = |bits: &[usize]| {
        let terms = bits.iter().map(|j| {
            let shift = ((1 << j) - 1) % 32;
            format!("(((0x{:x}u >> round) & 1u) << {shift}u)", ROUND_BITS[*j])
        });
        terms.collect::<Vec<_>>().join(" | ")
    };
    let _ = writeln!(text, "  let low = {};\n  let high = {};", constant(&[0, 1, 2, 3, 4, 5]), constant(&[6]));
    let row = list(50, |i| {
        let (lane, half) = (i / 2, i % 2);
        let next = |by: usize| 2 * (lane / 5 * 5 + (lane + by) % 5) + half;
        let constant = ["low ^ ", "high ^ "].get(i).unwrap_or(&"");
        format!("{constant}b{i} ^ (~b{} & b{})", next(1), next(2))
    });
    let _ = writeln!(text, "  return State({row});\n}}");
    let taken = list(50, |i| match i {
        33 => "s.h33 ^ m.m33 ^ select(0u, 0x80000000u, last)".to_owned(),
        0..33 => format!("s.h{i} ^ m.m{i}"),
        _ => format!("s.h{i}"),
    });
    text + ABSORB
        + &format!(
            "  var a = State({taken});\n  for (var round = 0u; round < 24u; round++) {{ a = keccak_round(a, round); }}\n\
             \x20 return a;\n}}\n"
        )
}

const fn round_bits() -> [u32; 7] {
    let (mut bits, mut register, mut round) = ([0; 7], 1u8, 0);
    while round < 24 {
        let mut j = 0;
        while j < 7 {
            bits[j] |= ((register & 1) as u32) << round;
            register = register << 1 ^ if register >> 7 == 1 { 0x71 } else { 0 };
            j += 1;
        }
        round += 1;
    }
    bits
}

/// State, start and end of a function of 8 words.
fn eight(first: &str, word: impl Fn(usize) -> String) -> String {
    let start = list(8, |i| if i == 0 { first.to_owned() } else { IV[i].to_owned() });
    let half = |from: usize| list(4, |i| word(from + i));
    format!(
        "{}fn start() -> State {{ return State({start}); }}\n\
         fn finish(s: State) -> Digest {{ return Digest(vec4<u32>({}), vec4<u32>({})); }}\n",
        state(8),
        half(0),
        half(4)
    )
}

fn sha_256() -> String {
    let mut text = eight(IV[0], |i| format!("swap_bytes(s.h{i})"));
    text += "fn is_last(rest: i32) -> bool { return rest <= i32(BLOCK) - 9; }\n\
             fn sum(x: u32, a: u32, b: u32, c: u32) -> u32 {\n\
             \x20 return rotate_right(x, a) ^ rotate_right(x, b) ^ rotate_right(x, c);\n}\n\
             fn more(x: u32, a: u32, b: u32, c: u32) -> u32 {\n\
             \x20 return rotate_right(x, a) ^ rotate_right(x, b) ^ (x >> c);\n}\n";
    text += ABSORB;
    for i in 0..16 {
        let _ = writeln!(text, "  var w{i} = swap_bytes(m.m{i});");
    }
    text += "  if (last) {\n    w14 = bytes >> 29u;\n    w15 = bytes << 3u;\n  }\n";
    for i in 0..8 {
        let _ = writeln!(text, "  var v{i} = s.h{i};");
    }
    for (t, constant) in ROUND_CONSTANTS.into_iter().enumerate() {
        let own = t % 16;
        if t >= 16 {
            let [a, b, c] = [1, 14, 9].map(|by| (t + by) % 16);
            let _ = writeln!(text, "  w{own} += more(w{a}, 7u, 18u, 3u) + w{c} + more(w{b}, 17u, 19u, 10u);");
        }
        let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| format!("v{}", (64 + i - t) % 8));
        let _ = writeln!(
            text,
            "  {h} += sum({e}, 6u, 11u, 25u) + ({g} ^ ({e} & ({f} ^ {g}))) + 0x{constant:08x}u + w{own};\n\
             \x20 {d} += {h};\n  {h} += sum({a}, 2u, 13u, 22u) + (({a} & {b}) | ({c} & ({a} | {b})));"
        );
    }
    text + &format!("  return State({});\n}}\n", list(8, |i| format!("s.h{i} + v{i}")))
}

/// A round of BLAKE2s and BLAKE3, with the words of a block in this order.
fn round(text: &mut String, order: &[usize; 16]) {
    for ([a, b, c, d], words) in PLACES.into_iter().zip(order.chunks_exact(2)) {
        for (word, [first, second]) in words.iter().zip([[16, 12], [8, 7]]) {
            let _ = writeln!(
                text,
                "  v{a} += v{b} + m.m{word};\n  v{d} = rotate_right(v{d} ^ v{a}, {first}u);\n  v{c} += v{d};\n\
                 \x20 v{b} = rotate_right(v{b} ^ v{c}, {second}u);"
            );
        }
    }
}

fn blake2s() -> String {
    let mut text = eight("0x6b08e647u", |i| format!("s.h{i}"));
    text += "fn is_last(rest: i32) -> bool { return rest <= i32(BLOCK); }\n";
    text += ABSORB;
    for i in 0..16 {
        let value = match i {
            0..8 => format!("s.h{i}"),
            12 => format!("{} ^ select(bytes - u32(rest) + BLOCK, bytes, last)", IV[4]),
            14 => format!("select({0}, ~{0}, last)", IV[6]),
            _ => IV[i - 8].to_owned(),
        };
        let _ = writeln!(text, "  var v{i} = {value};");
    }
    SIGMA.iter().for_each(|order| round(&mut text, order));
    text + &format!("  return State({});\n}}\n", list(8, |i| format!("s.h{i} ^ v{i} ^ v{}", i + 8)))
}

fn blake3() -> String {
    let mut text = eight(IV[0], |i| format!("s.h{i}"));
    text += "fn compress(s: State, m: Block, number: u32, len: u32, flags: u32) -> State {\n";
    for i in 0..16 {
        let value = match i {
            0..8 => format!("s.h{i}"),
            8..12 => IV[i - 8].to_owned(),
            _ => ["number", "0u", "len", "flags"][i - 12].to_owned(),
        };
        let _ = writeln!(text, "  var v{i} = {value};");
    }
    blake3_orders().iter().for_each(|order| round(&mut text, order));
    text + &format!("  return State({});\n}}\n", list(8, |i| format!("v{i} ^ v{}", i + 8)))
}

/// The constants of SHA-256's rounds.
const ROUND_CONSTANTS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}
