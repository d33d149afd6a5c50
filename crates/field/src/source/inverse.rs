//! Inversion in a prime field in WGSL: `f_inverse`.

use std::fmt::Write;

use evariste_backend::author::loop_iterations;

use super::list;
use crate::field::constants::Constants;

/// Bits of a chunk: with 14, sums of products of chunks with the factors of 14 steps fit 32 bits.
const CHUNK: usize = 14;

const MASK: u32 = (1 << CHUNK) - 1;

/// Limbs up to which a power is as fast.
const SHORT: usize = 2;

/// 1/a, and 0 of 0.
pub(super) fn wgsl(constants: &Constants, limbs: usize) -> String {
    if limbs <= SHORT { power(constants, limbs) } else { division_steps(constants, limbs) }
}

/// Iterations of the loops of `f_inverse` at most. Division steps of this kind number (45907 b + 26313) / 19929 for b
/// bits (P. Wuille, "The safegcd implementation in libsecp256k1 explained").
pub(super) fn iterations(limbs: usize) -> u64 {
    let bits = 32 * limbs as u64;
    if limbs <= SHORT {
        return loop_iterations(bits, 2 * loop_iterations(limbs as u64, 0));
    }
    let steps = (45_907 * bits + 26_313) / 19_929;
    loop_iterations(steps.div_ceil(CHUNK as u64), loop_iterations(CHUNK as u64, 0)) + loop_iterations(2, 0)
}

/// a^(p − 2), left to right.
fn power(constants: &Constants, limbs: usize) -> String {
    let mut text = String::from("fn f_inversion_exponent(i: u32) -> u32 {\n  switch i {\n");
    for (i, limb) in constants.inversion_exponent.iter().enumerate().skip(1) {
        let _ = writeln!(text, "    case {i}u: {{ return {limb}u; }}");
    }
    let _ = writeln!(text, "    default: {{ return {}u; }}\n  }}\n}}", constants.inversion_exponent[0]);
    text + &POWER.replace("BITS", &(32 * limbs).to_string())
}

const POWER: &str = "\
fn f_inverse(a: F) -> F {
  var r = f_one();
  for (var i = BITSu; i > 0u; i--) {
    r = f_mul(r, r);
    if (((f_inversion_exponent((i - 1u) / 32u) >> ((i - 1u) % 32u)) & 1u) == 1u) {
      r = f_mul(r, a);
    }
  }
  return r;
}
";

/// The greatest common divisor of p and a by division steps: see `cuda/field/inverse.cuh`, which does the same with
/// longer chunks. What is written out here for each chunk is on named scalars, as all arithmetic in WGSL.
fn division_steps(constants: &Constants, limbs: usize) -> String {
    let count = (32 * limbs + 1 + CHUNK) / CHUNK;
    let top = count - 1;
    let modulus: Vec<u32> = (0..count).map(|i| chunk(&constants.modulus, i)).collect();
    let inverse = constants.n0.wrapping_neg() & MASK;

    let mut text = String::from("fn f_inverse(a: F) -> F {\n");
    for (i, p) in modulus.iter().enumerate() {
        let square = chunk(&constants.square, i);
        let a = chunk_of_limbs(limbs, i);
        let _ = writeln!(text, "  var f{i} = {p}; var g{i} = {a}; var d{i} = 0; var e{i} = {square};");
    }
    let any = (0..count).map(|i| format!("g{i}")).collect::<Vec<_>>().join(" | ");
    let _ = write!(
        text,
        "  var zeta = -1;\n  while (({any}) != 0) {{\n\
         \x20   var u = 1; var v = 0; var q = 0; var r = 1; var x = f0; var y = g0;\n\
         \x20   for (var i = 0; i < {CHUNK}; i++) {{\n\
         \x20     let odd = y & 1; let swap = select(0, odd, zeta < 0); let times = odd - 2 * swap;\n\
         \x20     y += x * times; q += u * times; r += v * times;\n\
         \x20     x += y * swap; u = 2 * (u + q * swap); v = 2 * (v + r * swap);\n\
         \x20     y >>= 1u; zeta = (zeta ^ -swap) - 1;\n    }}\n\
         \x20   let d_sign = d{top} >> 31u; let e_sign = e{top} >> 31u;\n\
         \x20   var d_times = (u & d_sign) + (v & e_sign); var e_times = (q & d_sign) + (r & e_sign);\n\
         \x20   d_times -= ((u * d0 + v * e0) * {inverse} + d_times) & {MASK};\n\
         \x20   e_times -= ((q * d0 + r * e0) * {inverse} + e_times) & {MASK};\n\
         \x20   var f_sum = 0; var g_sum = 0; var d_sum = 0; var e_sum = 0;\n",
    );
    for (i, p) in modulus.iter().enumerate() {
        let _ = write!(
            text,
            "    f_sum = (f_sum >> {CHUNK}u) + u * f{i} + v * g{i}; g_sum = (g_sum >> {CHUNK}u) + q * f{i} + r * g{i};\n\
             \x20   d_sum = (d_sum >> {CHUNK}u) + u * d{i} + v * e{i} + d_times * {p};\n\
             \x20   e_sum = (e_sum >> {CHUNK}u) + q * d{i} + r * e{i} + e_times * {p};\n",
        );
        if let Some(below) = i.checked_sub(1) {
            let stores = ["f", "g", "d", "e"].map(|name| format!("{name}{below} = {name}_sum & {MASK};"));
            let _ = writeln!(text, "    {}", stores.join(" "));
        }
    }
    let stores = ["f", "g", "d", "e"].map(|name| format!("{name}{top} = {name}_sum >> {CHUNK}u;"));
    let _ = write!(
        text,
        "    {}\n  }}\n  var flip = f{top} >> 31u;\n  for (var i = 0; i < 2; i++) {{\n\
         \x20   let negative = d{top} >> 31u; var sum = 0;\n",
        stores.join(" "),
    );
    for (i, p) in modulus.iter().enumerate() {
        let stored = if i < top { format!("sum & {MASK}") } else { "sum".into() };
        let _ =
            writeln!(text, "    sum = (sum >> {CHUNK}u) + ((d{i} + ({p} & negative)) ^ flip) - flip; d{i} = {stored};");
    }
    let limbs = list(limbs, |limb| {
        let first = 32 * limb / CHUNK;
        let parts = (first..count).map_while(|i| match (CHUNK * i).checked_sub(32 * limb) {
            None => Some(format!("(u32(d{i}) >> {}u)", 32 * limb - CHUNK * i)),
            Some(shift) if shift < 32 => Some(format!("(u32(d{i}) << {shift}u)")),
            Some(_) => None,
        });
        parts.collect::<Vec<_>>().join(" | ")
    });
    text + &format!("    flip = 0;\n  }}\n  return F({limbs});\n}}\n")
}

/// Chunk `i` of the number with these limbs.
fn chunk(limbs: &[u32], i: usize) -> u32 {
    let (limb, shift) = (CHUNK * i / 32, CHUNK * i % 32);
    let word = |i: usize| u64::from(limbs.get(i).copied().unwrap_or(0));
    ((word(limb) | word(limb + 1) << 32) >> shift) as u32 & MASK
}

/// Chunk `i` of `a`, an expression.
fn chunk_of_limbs(limbs: usize, i: usize) -> String {
    let (limb, shift) = (CHUNK * i / 32, CHUNK * i % 32);
    let mut parts = Vec::new();
    if limb < limbs {
        parts.push(format!("(a.l{limb} >> {shift}u)"));
    }
    if shift + CHUNK > 32 && limb + 1 < limbs {
        parts.push(format!("(a.l{} << {}u)", limb + 1, 32 - shift));
    }
    match parts.as_slice() {
        [] => "0".into(),
        _ => format!("i32(({}) & {MASK}u)", parts.join(" | ")),
    }
}
