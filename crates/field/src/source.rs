//! Source text of a field's arithmetic, for kernels to stand on.
//!
//! In both languages a kernel sees the type `F` and the functions `f_zero`, `f_one`, `f_is_zero`, `f_add`, `f_sub` and
//! `f_mul` on values in [0, p), and in CUDA `f_inverse`. In WGSL, where pointers to buffers cannot be passed on, a
//! binding `x` of elements is read by `x_load(i)` and written by `x_store(i, value)`, and a workgroup array by
//! `tile_load(i)` and `tile_store(i, value)`.
//!
//! Products in WGSL are Montgomery's, in rows that add a multiple of one factor and a multiple of p limb by limb: "finely
//! integrated operand scanning" of Koç, Acar and Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", IEEE
//! Micro 16 (1996). The sources in CUDA name their own.

use std::{
    any::TypeId,
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use ark_ff::{BigInteger, PrimeField};
use evariste_backend::{Access, Binding, BindingType};

use crate::{Arithmetic, DeviceField, arithmetic::Kind, constants::Constants};

mod chains;
mod extension;
mod inverse;
mod parts;
pub mod turns;

/// Renders the arithmetic of `F` in CUDA C++: constants, then `field/words.cuh` and what follows it, and `field/inverse.cuh`, then
/// `field/extension.cuh` for each extension. The text is kept for the next kernel over `F`.
pub fn cuda<F: DeviceField>() -> String {
    // Rendering takes a millisecond, and every kernel over the field starts with it.
    static RENDERED: Mutex<BTreeMap<TypeId, Arc<str>>> = Mutex::new(BTreeMap::new());
    let rendered = || RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = rendered().get(&TypeId::of::<F>()).map(Arc::clone);
    match known {
        Some(text) => text.to_string(),
        None => {
            let text = cuda_level(&F::arithmetic(), 0);
            rendered().insert(TypeId::of::<F>(), text.as_str().into());
            text
        }
    }
}

/// Tells whether CUDA computes with values in [0, 2p): whether `F_LAZY` of `field/words.cuh` holds.
pub fn cuda_is_lazy<F: DeviceField>() -> bool {
    match &F::arithmetic().0 {
        Kind::Prime { constants, .. } => has_room(constants),
        Kind::Extension(_) => false,
    }
}

/// Values in [0, 2p) can be computed with: the limbs are an even number, at least 4, and 2p leaves room above.
fn has_room(constants: &Constants) -> bool {
    let limbs = constants.modulus.len();
    !constants.full && limbs.is_multiple_of(2) && limbs >= 4 && constants.modulus[limbs - 1] < 0x7fff_fff0
}

/// The field number `level` of a tower, counted from the top, under the names of that level.
fn cuda_level(field: &Arithmetic, level: usize) -> String {
    match &field.0 {
        Kind::Prime { limbs, constants } => renamed(&cuda_prime(*limbs, constants), &[('F', name(level))]),
        Kind::Extension(extended) => {
            let text = extension::cuda(extended, level);
            let own = renamed(&text, &[('F', name(level)), ('B', name(level + 1))]);
            cuda_level(&extended.base, level + 1) + &own
        }
    }
}

fn cuda_prime(limbs: usize, constants: &Constants) -> String {
    let list = |limbs: &[u32]| limbs.iter().map(|limb| format!("{limb:#010x}u")).collect::<Vec<_>>().join(", ");
    format!(
        "#define F_LIMBS {limbs}\n#define F_FULL {}\n#define F_ROOM {}\n#define F_MODULUS {{ {} }}\n#define F_TOP {:#010x}u\n\
         #define F_COMPLEMENT {{ {} }}\n#define F_ONE {{ {} }}\n#define F_SHIFT {{ {} }}\n#define F_N0 {:#010x}u\n\
         #define F_SQUARE {{ {} }}\n#define F_INVERSION_EXPONENT {{ {} }}\n{}{}{}{}",
        u8::from(constants.full),
        u8::from(has_room(constants)),
        list(&constants.modulus),
        constants.modulus[limbs - 1],
        list(&constants.complement()),
        list(&constants.one),
        list(&constants.shift),
        constants.n0,
        list(&constants.square),
        list(&constants.inversion_exponent),
        evariste_cuda::FIELD_WORDS,
        if limbs > 1 && !constants.full { chains::cuda(constants, has_room(constants)) } else { String::new() },
        evariste_cuda::FIELD,
        evariste_cuda::field::INVERSE,
    )
}

/// The type of the field number `level` of a tower; the names of its functions and constants start with it.
fn name(level: usize) -> String {
    match level {
        0 => "F".into(),
        1 => "B".into(),
        _ => format!("B{level}"),
    }
}

/// `text` with the names of some fields replaced: `F` and all that start with `F_`, `f_` or `FWord`, for a field `F`.
fn renamed(text: &str, names: &[(char, String)]) -> String {
    if names.iter().all(|(from, to)| to.len() == 1 && to.starts_with(*from)) {
        return text.to_owned();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut renamed = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        renamed.push_str(&rest[..start]);
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        rest = after;
        let tail = &word[1..];
        let ours = |from: char| {
            let upper = word.starts_with(from) && (tail.is_empty() || tail.starts_with('_') || tail == "Word");
            upper || word.starts_with(from.to_ascii_lowercase()) && tail.starts_with('_')
        };
        match names.iter().find(|(from, _)| ours(*from)) {
            Some((from, to)) if word.starts_with(*from) => renamed.push_str(to),
            Some((_, to)) => renamed.push_str(&to.to_ascii_lowercase()),
            None => renamed.push_str(&word[..1]),
        }
        renamed.push_str(tail);
    }
    renamed + rest
}

/// Names a field in variants of kernels and in messages, such as `255 bits 7a31fc80` or `31 bits 5b1f22de, degree 4`: by the bits of
/// its prime and its degree, with digits that tell it from other fields of that size.
pub fn label<F: DeviceField>() -> String {
    let bits = <F::BasePrimeField as PrimeField>::MODULUS_BIT_SIZE;
    let mut bytes = <F::BasePrimeField as PrimeField>::MODULUS.to_bytes_le();
    bytes.extend(F::tower().iter().flatten().flat_map(|x| x.into_bigint().to_bytes_le()));
    let digits = digits_of(&bytes);
    match F::extension_degree() {
        1 => format!("{bits} bits {digits}"),
        degree => format!("{bits} bits {digits}, degree {degree}"),
    }
}

/// Names these bytes by the first digits of their hash.
pub fn digits_of(bytes: &[u8]) -> String {
    digits(blake3::hash(bytes).as_bytes())
}

/// Names what has this hash by its first digits.
pub fn digits(hash: &[u8; 32]) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tells the type of the words by which WGSL sees a buffer of elements of `F`.
pub const fn binding_type<F: DeviceField>() -> BindingType {
    BindingType::of(4 * F::LIMBS)
}

/// Renders the arithmetic of `F` in WGSL, with 64-bit integers or without, with the same results.
///
/// With 64-bit integers, factors of many limbs are cut into parts of 29 bits, whose products are added without carries.
/// Multiplication keeps its outer loop and writes the pass over the limbs straight-line on named scalars, with the
/// modulus as literals, and rotates the first operand, so that nothing is indexed: the one style that every compiler
/// for WGSL turns into fast code in short time.
pub fn wgsl<F: DeviceField>(int64: bool) -> String {
    wgsl_level(&F::arithmetic(), 0, int64)
}

fn wgsl_level(field: &Arithmetic, level: usize, int64: bool) -> String {
    match &field.0 {
        Kind::Prime { limbs, constants } => {
            let constants = constants.clone();
            renamed(&Wgsl { constants, limbs: *limbs, int64 }.render(), &[('F', name(level))])
        }
        Kind::Extension(extended) => {
            let own = renamed(&extension::wgsl(extended, level), &[('F', name(level)), ('B', name(level + 1))]);
            wgsl_level(&extended.base, level + 1, int64) + &own
        }
    }
}

/// Arithmetic in WGSL with 64-bit integers for butterflies whose elements are sums that are not reduced, where a field has any: a
/// type
/// `FParts`, `f_parts` and `f_joined` from and to `F`, `f_parts_mul`, `f_parts_add`, `f_parts_sub`, `f_parts_sub_sums` (of sums of
/// two), `f_parts_carried`, `f_parts_reduce`. Elements in `F` are below 2.2 p then, and [`wgsl_lazy_factor`] tells what factors are.
pub fn wgsl_lazy<F: DeviceField>() -> Option<String> {
    match &F::arithmetic().0 {
        Kind::Prime { constants, .. } => parts::Lazy::new(constants).map(|lazy| lazy.render()),
        Kind::Extension(_) => None,
    }
}

/// What a factor is multiplied by before `f_parts` makes it the second one of `f_parts_mul`, where a field has such products.
pub fn wgsl_lazy_factor<F: DeviceField>() -> Option<F> {
    match &F::arithmetic().0 {
        Kind::Prime { constants, .. } => parts::Lazy::new(constants).map(|lazy| F::from(1u64 << lazy.shift())),
        Kind::Extension(_) => None,
    }
}

/// `f_inverse` in WGSL, for the field and those below it.
fn wgsl_inverse(field: &Arithmetic, level: usize) -> String {
    match &field.0 {
        Kind::Prime { limbs, constants } => renamed(&inverse::wgsl(constants, *limbs), &[('F', name(level))]),
        Kind::Extension(extended) => {
            let names = [('F', name(level)), ('B', name(level + 1))];
            wgsl_inverse(&extended.base, level + 1) + &renamed(&extension::wgsl_inverse(extended), &names)
        }
    }
}

/// Where limb `i` of an element lies in its WGSL struct, such as `c1.l3`.
fn limb_path(field: &Arithmetic, i: usize) -> String {
    match &field.0 {
        Kind::Prime { .. } => format!("l{i}"),
        Kind::Extension(extended) => {
            let limbs = extended.base.limbs();
            format!("c{}.{}", i / limbs, limb_path(&extended.base, i % limbs))
        }
    }
}

/// An element of the field number `level` of a tower in WGSL, of limbs given from number `first` on.
fn constructor(field: &Arithmetic, level: usize, first: usize, limb: &dyn Fn(usize) -> String) -> String {
    let parts = match &field.0 {
        Kind::Prime { limbs, .. } => list(*limbs, |i| limb(first + i)),
        Kind::Extension(extended) => {
            let limbs = extended.base.limbs();
            list(extended.reduction.len(), |i| constructor(&extended.base, level + 1, first + i * limbs, limb))
        }
    };
    format!("{}({parts})", name(level))
}

/// Renders `x_load` and `x_store` in WGSL for a binding called `x` of elements of `F`.
pub fn wgsl_accessors<F: DeviceField>(binding: &Binding) -> String {
    let name = binding.name;
    let mut text = load_function::<F>(&format!("{name}_load"), |word| match F::LIMBS / lanes::<F>() {
        1 => format!("{name}_get(i)"),
        words => format!("{name}_get(i * {words}u + {word}u)"),
    });
    if binding.access == Access::Write {
        text += &store_function::<F>(&format!("{name}_store"), |word, value| match F::LIMBS / lanes::<F>() {
            1 => format!("{name}_set(i, {value});"),
            words => format!("{name}_set(i * {words}u + {word}u, {value});"),
        });
    }
    text
}

/// Renders `tile_load` and `tile_store` in WGSL, over workgroup memory for `len` elements of `F`: one array for each
/// word, so that neighbours lie next to each other.
pub fn wgsl_tile<F: DeviceField>(len: u32) -> String {
    let words = F::LIMBS / lanes::<F>();
    let kind = word_type::<F>();
    let mut text = format!("var<workgroup> tile: array<{kind}, {}>;\n", len as usize * words);
    let at = |word: usize| format!("tile[i + {}u]", word * len as usize);
    text += &load_function::<F>("tile_load", at);
    text += &store_function::<F>("tile_store", |word, value| format!("{} = {value};", at(word)));
    text
}

/// Bytes of workgroup memory that every device has.
const LEAST_BYTES: u32 = 16 << 10;

/// Gives the threads of a workgroup for [`cuda_group_inverse`] and [`wgsl_group_inverse`], at most `most` and so few
/// that their tree fits the workgroup memory of every device, and the bytes that it takes.
pub fn group_inverse_threads<F: DeviceField>(most: u32) -> (u32, u32) {
    let threads = most.min(1 << (LEAST_BYTES / tile_bytes::<F>(2)).max(1).ilog2());
    (threads, tile_bytes::<F>(2 * threads))
}

/// Threads of a workgroup that invert, where it has as many: a warp's take as long as one.
const ROOTS: u32 = 32;

/// Renders `group_inverse` in CUDA for workgroups of so many threads.
pub fn cuda_group_inverse(threads: u32) -> String {
    let roots = threads.min(ROOTS);
    format!("#define THREADS {threads}u\n#define ROOTS {roots}u\n{}", evariste_cuda::vector::GROUP_INVERSE)
}

/// Renders `group_inverse` in WGSL for workgroups of so many threads.
pub fn wgsl_group_inverse<F: DeviceField>(threads: u32) -> String {
    let (inverse, tile, roots) = (wgsl_inverse(&F::arithmetic(), 0), wgsl_tile::<F>(2 * threads), threads.min(ROOTS));
    format!("{inverse}{tile}const ROOTS = {roots}u;\n{}", evariste_shaders::vector::GROUP_INVERSE)
}

/// Counts the bytes of workgroup memory that `len` elements take, with [`wgsl_tile`] and in the tiles of CUDA kernels.
pub const fn tile_bytes<F: DeviceField>(len: u32) -> u32 {
    len * 4 * F::LIMBS as u32
}

/// Limbs in a word.
const fn lanes<F: DeviceField>() -> usize {
    binding_type::<F>().bytes() as usize / 4
}

fn word_type<F: DeviceField>() -> &'static str {
    match binding_type::<F>() {
        BindingType::U32 | BindingType::Atomic => "u32",
        BindingType::Vec2 => "vec2<u32>",
        BindingType::Vec4 | BindingType::Bytes => "vec4<u32>",
    }
}

fn load_function<F: DeviceField>(name: &str, word: impl Fn(usize) -> String) -> String {
    let lanes = lanes::<F>();
    let mut text = format!("fn {name}(i: u32) -> F {{\n");
    for w in 0..F::LIMBS / lanes {
        let _ = writeln!(text, "  let w{w} = {};", word(w));
    }
    let limb = |i: usize| match lanes {
        1 => format!("w{i}"),
        _ => format!("w{}.{}", i / lanes, ["x", "y", "z", "w"][i % lanes]),
    };
    let _ = writeln!(text, "  return {};\n}}", constructor(&F::arithmetic(), 0, 0, &limb));
    text
}

fn store_function<F: DeviceField>(name: &str, set: impl Fn(usize, String) -> String) -> String {
    let lanes = lanes::<F>();
    let field = F::arithmetic();
    let limb = |i: usize| format!("v.{}", limb_path(&field, i));
    let mut text = format!("fn {name}(i: u32, v: F) {{\n");
    for w in 0..F::LIMBS / lanes {
        let value = match lanes {
            1 => limb(w),
            _ => format!("{}({})", word_type::<F>(), list(lanes, |lane| limb(w * lanes + lane))),
        };
        let _ = writeln!(text, "  {}", set(w, value));
    }
    text + "}\n"
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

struct Wgsl {
    constants: Constants,
    limbs: usize,
    int64: bool,
}

impl Wgsl {
    fn render(&self) -> String {
        let n = self.limbs;
        let one = &self.constants.one;
        let mut text = format!("struct F {{ {} }}\n", list(n, |i| format!("l{i}: u32")));
        text += &format!("fn f_zero() -> F {{ return F({}); }}\n", list(n, |_| "0u".into()));
        text += &format!("fn f_one() -> F {{ return F({}); }}\n", list(n, |i| format!("{}u", one[i])));
        let any = (0..n).map(|i| format!("a.l{i}")).collect::<Vec<_>>().join(" | ");
        text += &format!("fn f_is_zero(a: F) -> bool {{ return ({any}) == 0u; }}\n");
        text += &self.reduce();
        text += &self.add();
        text += &self.sub();
        text += &match (self.int64, parts::count(n)) {
            (true, Some(parts)) => parts::mul(&self.constants, parts),
            (true, None) => self.mul_u64(),
            (false, _) => self.mul_u32(),
        };
        text
    }

    /// `d0… = x0… − p` and `borrow`, for scalars `x0…` named by `x`.
    fn subtract_modulus(&self, x: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for (i, p) in self.constants.modulus.iter().enumerate() {
            let x = x(i);
            if i == 0 {
                let _ = writeln!(text, "  let d0 = {x} - {p}u;\n  var borrow = u32({x} < {p}u);");
            } else {
                let _ = writeln!(text, "  let e{i} = {x} - {p}u;\n  let d{i} = e{i} - borrow;");
                let _ = writeln!(text, "  borrow = u32({x} < {p}u) | u32(e{i} < borrow);");
            }
        }
        text
    }

    /// `f_reduce(a, carry)`: carry · 2^(32 limbs) + a, less p if that is not negative.
    fn reduce(&self) -> String {
        let limbs = list(self.limbs, |i| format!("select(d{i}, a.l{i}, keep)"));
        format!(
            "fn f_reduce(a: F, carry: u32) -> F {{\n{}  let keep = borrow > carry;\n  return F({limbs});\n}}\n",
            self.subtract_modulus(|i| format!("a.l{i}")),
        )
    }

    fn add(&self) -> String {
        let mut text =
            String::from("fn f_add(a: F, b: F) -> F {\n  let s0 = a.l0 + b.l0;\n  var carry = u32(s0 < a.l0);\n");
        for i in 1..self.limbs {
            let _ = writeln!(text, "  let t{i} = a.l{i} + b.l{i};\n  let s{i} = t{i} + carry;");
            let _ = writeln!(text, "  carry = u32(t{i} < a.l{i}) | u32(s{i} < carry);");
        }
        let _ = writeln!(text, "  return f_reduce(F({}), carry);\n}}", list(self.limbs, |i| format!("s{i}")));
        text
    }

    fn sub(&self) -> String {
        let mut text =
            String::from("fn f_sub(a: F, b: F) -> F {\n  let s0 = a.l0 - b.l0;\n  var borrow = u32(a.l0 < b.l0);\n");
        for i in 1..self.limbs {
            let _ = writeln!(text, "  let t{i} = a.l{i} - b.l{i};\n  let s{i} = t{i} - borrow;");
            let _ = writeln!(text, "  borrow = u32(a.l{i} < b.l{i}) | u32(t{i} < borrow);");
        }
        text += "  let mask = 0u - borrow;\n";
        for (i, p) in self.constants.modulus.iter().enumerate() {
            if i == 0 {
                let _ = writeln!(text, "  let r0 = s0 + ({p}u & mask);\n  var carry = u32(r0 < s0);");
            } else {
                let _ = writeln!(text, "  let u{i} = s{i} + ({p}u & mask);\n  let r{i} = u{i} + carry;");
                let _ = writeln!(text, "  carry = u32(u{i} < s{i}) | u32(r{i} < carry);");
            }
        }
        let _ = writeln!(text, "  return F({});\n}}", list(self.limbs, |i| format!("r{i}")));
        text
    }

    /// The frame of multiplication around `row`, which adds a0 · b to t and reduces one limb.
    fn mul(&self, row: &str) -> String {
        let n = self.limbs;
        let mut text = String::from("fn f_mul(a: F, b: F) -> F {\n");
        for i in 0..n {
            let _ = writeln!(text, "  var a{i} = a.l{i};\n  var t{i} = 0u;");
        }
        let rotate = (1..n).map(|i| format!("a{} = a{i};", i - 1)).collect::<Vec<_>>().join(" ");
        let limbs = list(n, |i| format!("t{i}"));
        let _ = write!(
            text,
            "  var top = 0u;\n  for (var i = 0u; i < {n}u; i++) {{\n{row}    {rotate}\n  }}\n\
             \x20 return f_reduce(F({limbs}), top);\n}}\n"
        );
        text
    }

    /// Whether limb i of the modulus times m = −s needs no product, s the limb that is made zero: where p0 = 1, m p0 + s is
    /// 2^32 unless s = 0, and where p1 = 2^32 − 1 as well, the words of m p1 = 2^32 m − m are s and ¬s, unless s = 0.
    fn is_known(&self, i: usize) -> bool {
        self.constants.modulus[0] == 1 && (i == 0 || i == 1 && self.constants.modulus[1] == u32::MAX)
    }

    fn mul_u64(&self) -> String {
        let n = self.limbs;
        let (p, n0) = (&self.constants.modulus, self.constants.n0);
        let low = match self.is_known(0) {
            true => "u64(u32(s != 0u))".to_owned(),
            false => format!("(m * u64({}u) + u64(s)) >> 32u", p[0]),
        };
        let mut row = format!(
            "    let ai = u64(a0);\n    var r = ai * u64(b.l0) + u64(t0);\n    var c = r >> 32u;\n\
             \x20   let s = u32(r);\n    let m = u64(s * {n0}u);\n    var d = {low};\n    var q = 0lu;\n",
        );
        for (i, &limb) in p.iter().enumerate().skip(1) {
            let product = match self.is_known(i) {
                true => "((u64(select(0u, ~s, s != 0u)) << 32u) | u64(s))".to_owned(),
                false => format!("m * u64({limb}u)"),
            };
            let _ = write!(
                row,
                "    r = ai * u64(b.l{i}) + u64(t{i}) + c; c = r >> 32u;\n\
                 \x20   q = {product} + u64(u32(r)) + d; d = q >> 32u; t{} = u32(q);\n",
                i - 1,
            );
        }
        row += &if self.constants.full {
            format!("    let h = c + d + u64(top); t{} = u32(h); top = u32(h >> 32u);\n", n - 1)
        } else {
            format!("    t{} = u32(c) + u32(d);\n", n - 1)
        };
        self.mul(&row)
    }

    fn mul_u32(&self) -> String {
        let n = self.limbs;
        let (p, n0) = (&self.constants.modulus, self.constants.n0);
        let mut row = format!(
            "    var r = f_mac(a0, b.l0, t0, 0u);\n    var c = r.y;\n    let m = r.x * {n0}u;\n\
             \x20   var q = f_mac(m, {}u, r.x, 0u);\n    var d = q.y;\n",
            p[0],
        );
        for (i, p) in p.iter().enumerate().skip(1) {
            let _ = write!(
                row,
                "    r = f_mac(a0, b.l{i}, t{i}, c); c = r.y;\n    q = f_mac(m, {}u, r.x, d); d = q.y; t{} = q.x;\n",
                p,
                i - 1,
            );
        }
        row += &if self.constants.full {
            format!("    let h = c + d; let g = h + top; t{} = g; top = u32(h < c) + u32(g < h);\n", n - 1)
        } else {
            format!("    t{} = c + d;\n", n - 1)
        };
        F_MAC.to_owned() + &self.mul(&row)
    }
}

/// `f_mac(a, b, c, d)` in WGSL without 64-bit integers: a · b + c + d as (low, high) by halves of 16 bits; the sum is below 2^64.
pub const F_MAC: &str = "\
fn f_mac(a: u32, b: u32, c: u32, d: u32) -> vec2<u32> {
  let al = a & 0xffffu; let ah = a >> 16u;
  let bl = b & 0xffffu; let bh = b >> 16u;
  let ll = al * bl; let lh = al * bh; let hl = ah * bl;
  let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
  let high = ah * bh + (lh >> 16u) + (hl >> 16u) + (mid >> 16u);
  let low = (ll & 0xffffu) | (mid << 16u);
  let s = low + c;
  let t = s + d;
  return vec2<u32>(t, high + u32(s < c) + u32(t < d));
}
";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ark_bls12_381::{Fq, Fq2, Fq6, Fq12};
    use ark_ff::{AdditiveGroup, MontBackend, MontConfig, MontFp};

    use super::*;
    use crate::{Extension, ExtensionConfig};

    type Fp64<C> = ark_ff::Fp64<MontBackend<C, 1>>;

    #[derive(MontConfig)]
    #[modulus = "23"]
    #[generator = "5"]
    struct C23;

    #[derive(MontConfig)]
    #[modulus = "29"]
    #[generator = "2"]
    struct C29;

    /// x² = 2, where arkworks has x² = −1.
    struct OtherFq2;

    impl ExtensionConfig<2> for OtherFq2 {
        type BaseField = Fq;
        const REDUCTION: [Fq; 2] = [MontFp!("2"), Fq::ZERO];
    }

    #[test]
    fn towers_are_told_by_their_polynomials() {
        assert_eq!(Fq::tower(), Vec::<Vec<Fq>>::new());
        assert_eq!(Fq2::tower(), [[-Fq::from(1), Fq::ZERO]]);
        assert_eq!(Extension::<OtherFq2, 2>::tower(), [[Fq::from(2), Fq::ZERO]]);
        // Over 1 + u, and over v.
        let [zero, one] = [Fq::ZERO, Fq::from(1)];
        let third = vec![one, one, zero, zero, zero, zero];
        assert_eq!(Fq6::tower(), [vec![-one, zero], third.clone()]);
        let mut last = vec![zero; 12];
        last[2] = one;
        assert_eq!(Fq12::tower(), [vec![-one, zero], third, last]);
    }

    /// Constants of the cubic level of a tower of three have coefficients in the field two levels below.
    #[test]
    fn constants_of_towers_have_the_names_of_their_levels() {
        assert!(wgsl::<Fq6>(true).contains("b_mul(x, B(B2("));
        let text = wgsl::<Fq12>(true);
        assert!(text.contains("b2_mul(x, B2(B3(") && !text.contains("B2(B2("));
        assert!(["struct F ", "struct B ", "struct B2 ", "struct B3 "].iter().all(|name| text.contains(name)));
        assert!(["F f_mul(", "B b_mul(", "B2 b2_mul(", "B3 b3_mul("].iter().all(|name| cuda::<Fq12>().contains(name)));
    }

    #[test]
    fn only_the_names_of_a_field_are_replaced() {
        let names = [('F', "B".to_owned()), ('B', "B2".to_owned())];
        let text = "struct F { B c; }; FWord f_mul(F fa, B b_x); F_LIMBS 0xFu if (Foo) add_cc(f, b);";
        let expected = "struct B { B2 c; }; BWord b_mul(B fa, B2 b2_x); B_LIMBS 0xFu if (Foo) add_cc(f, b);";
        assert_eq!(renamed(text, &names), expected);
    }

    #[test]
    fn labels_tell_fields_apart() {
        // Of the same size, two of them with the same prime.
        let labels = [label::<Fp64<C23>>(), label::<Fp64<C29>>(), label::<Fq2>(), label::<Extension<OtherFq2, 2>>()];
        assert!(labels[..2].iter().all(|label| label.starts_with("5 bits ")), "{labels:?}");
        let of_degree_2 = |label: &String| label.starts_with("381 bits ") && label.ends_with(", degree 2");
        assert!(labels[2..].iter().all(of_degree_2), "{labels:?}");
        assert_eq!(labels.iter().collect::<HashSet<_>>().len(), 4);
        assert_eq!(label::<Fq>(), label::<Fq>());
    }
}
