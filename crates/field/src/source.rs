//! Source text of a field's arithmetic, for kernels to stand on.
//!
//! This module is for authors of kernels, and exempt from semantic versioning.
//!
//! In both languages a kernel sees the type `F` and functions on values in [0, p). They are `f_zero`, `f_one`,
//! `f_is_zero`, `f_add`, `f_sub` and `f_mul`, and in CUDA `f_inverse`. WGSL cannot pass on pointers to buffers. So a
//! binding `x` of elements has `x_load(i)` and `x_store(i, value)` there, and a workgroup array `tile_load(i)` and
//! `tile_store(i, value)`.
//!
//! Products in WGSL are Montgomery's, in rows that add a multiple of one factor and a multiple of p limb by limb. This
//! is "finely integrated operand scanning" of Koç, Acar and Kaliski ("Analyzing and comparing Montgomery multiplication
//! algorithms", IEEE Micro 16, 1996). The sources in CUDA name their own.

use std::{
    any::TypeId,
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use ark_ff::{BigInteger, PrimeField};
use evariste_backend::author::{Access, Binding, BindingType};

use crate::field::{
    DeviceField,
    arithmetic::{Arithmetic, Kind},
    constants::Constants,
};

mod chains;
mod extension;
mod inverse;
pub mod iterations;
mod limbs29;
mod wgsl;

pub use wgsl::F_MAC;
use wgsl::Wgsl;

/// Renders the arithmetic of `F` in CUDA C++: constants, then `field/words.cuh` and the files after it,
/// `field/inverse.cuh`, and `field/extension.cuh` for each extension. The text is kept for the next kernel over `F`.
pub fn cuda<F: DeviceField>() -> String {
    // Rendering takes a millisecond, and every kernel over the field starts with it.
    static RENDERED: Mutex<BTreeMap<TypeId, Arc<str>>> = Mutex::new(BTreeMap::new());
    let rendered = || RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = rendered().get(&TypeId::of::<F>()).map(Arc::clone);
    match known {
        Some(text) => text.to_string(),
        None => {
            let text = cuda_level(&F::arithmetic(), 0, false);
            rendered().insert(TypeId::of::<F>(), text.as_str().into());
            text
        }
    }
}

/// Returns whether CUDA computes with values in [0, 2p): whether `F_LAZY` of `field/words.cuh` holds.
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
/// In an extension of it that is `paired`, i² is −1.
fn cuda_level(field: &Arithmetic, level: usize, paired: bool) -> String {
    match &field.0 {
        Kind::Prime { limbs, constants } => renamed(&cuda_prime(*limbs, constants, paired), &[('F', name(level))]),
        Kind::Extension(extended) => {
            let text = extension::cuda(extended, level);
            let own = renamed(&text, &[('F', name(level)), ('B', name(level + 1))]);
            cuda_level(&extended.base, level + 1, extension::is_imaginary(extended)) + &own
        }
    }
}

fn cuda_prime(limbs: usize, constants: &Constants, paired: bool) -> String {
    format!(
        "#define F_LIMBS {limbs}\n#define F_FULL {}\n#define F_ROOM {}\n#define F_MODULUS {{ {} }}\n#define F_TOP {:#010x}u\n\
         #define F_COMPLEMENT {{ {} }}\n#define F_ONE {{ {} }}\n#define F_SHIFT {{ {} }}\n#define F_N0 {:#010x}u\n\
         #define F_SQUARE {{ {} }}\n#define F_INVERSION_EXPONENT {{ {} }}\n{}{}{}{}",
        u8::from(constants.full),
        u8::from(has_room(constants)),
        cuda_words(&constants.modulus),
        constants.modulus[limbs - 1],
        cuda_words(&constants.complement()),
        cuda_words(&constants.one),
        cuda_words(&constants.shift),
        constants.n0,
        cuda_words(&constants.square),
        cuda_words(&constants.inversion_exponent),
        evariste_cuda::FIELD_WORDS,
        if limbs > 1 && !constants.full { chains::cuda(constants, has_room(constants), paired) } else { String::new() },
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

/// Names a field in variants of kernels and in messages, such as `255 bits 7a31fc80` or `31 bits 5b1f22de, degree 4`.
/// The name has the bits of the prime, digits of a hash, and the degree.
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

/// Returns the first digits of the hash of these bytes, as a name.
pub fn digits_of(bytes: &[u8]) -> String {
    digits(blake3::hash(bytes).as_bytes())
}

/// Returns the first digits of this hash, as a name.
pub fn digits(hash: &[u8; 32]) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the type of the words of a buffer of elements of `F` in WGSL.
pub const fn binding_type<F: DeviceField>() -> BindingType {
    BindingType::of(4 * F::LIMBS)
}

/// Renders the arithmetic of `F` in WGSL, with 64-bit integers or without, with the same results.
///
/// With 64-bit integers, factors of many limbs are cut into parts of 29 bits, whose products are added without carries.
/// Multiplication keeps its outer loop. The pass over the limbs is straight-line text on named scalars, with the
/// modulus as literals. The first operand is rotated, so that nothing is indexed. Every compiler for WGSL turns this
/// style into fast code in short time.
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

/// Renders arithmetic on unreduced sums in WGSL with 64-bit integers, for butterflies, if a field has it. The type is
/// `FParts`. `f_parts` and `f_joined` convert from and to `F`. Operations are `f_parts_mul`, `f_parts_add`,
/// `f_parts_sub`, `f_parts_sub_sums` (of sums of two), `f_parts_carried` and `f_parts_reduce`. Elements in `F` are
/// below 2.2 p then, and [`wgsl_lazy_factor`] scales factors.
pub fn wgsl_lazy<F: DeviceField>() -> Option<String> {
    match &F::arithmetic().0 {
        Kind::Prime { constants, .. } => limbs29::Lazy::new(constants).map(|lazy| lazy.render()),
        Kind::Extension(_) => None,
    }
}

/// Returns the scale of factors in lazy arithmetic, if a field has it. A factor multiplied by it before `f_parts` can
/// be the second factor of `f_parts_mul`.
pub fn wgsl_lazy_factor<F: DeviceField>() -> Option<F> {
    match &F::arithmetic().0 {
        Kind::Prime { constants, .. } => limbs29::Lazy::new(constants).map(|lazy| F::from(1u64 << lazy.shift())),
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

/// Renders `tile_load` and `tile_store` in WGSL, over workgroup memory for `len` elements of `F`. Each word has an
/// array, so that neighbours lie next to each other.
pub fn wgsl_tile<F: DeviceField>(len: u32) -> String {
    let words = F::LIMBS / lanes::<F>();
    let kind = word_type::<F>();
    let mut text = format!("var<workgroup> tile: array<{kind}, {}>;\n", len as usize * words);
    let at = |word: usize| format!("tile[i + {}u]", word * len as usize);
    text += &load_function::<F>("tile_load", at);
    text += &store_function::<F>("tile_store", |word, value| format!("{} = {value};", at(word)));
    text
}

/// Bytes of workgroup memory that every device has: WebGPU's default limit.
pub const LEAST_BYTES: u32 = 16 << 10;

/// Returns the threads of a workgroup for [`cuda_group_inverse`] and [`wgsl_group_inverse`], and the bytes of their
/// tree. There are at most `most`, and the tree fits the workgroup memory of every device.
pub fn group_inverse_threads<F: DeviceField>(most: u32) -> (u32, u32) {
    let threads = most.min(1 << (LEAST_BYTES / tile_bytes::<F>(2)).max(1).ilog2());
    (threads, tile_bytes::<F>(2 * threads))
}

/// Threads of a workgroup that invert, at most: a warp of them takes as long as one.
const ROOTS: u32 = 32;

/// Renders `group_inverse` in CUDA for workgroups of `threads` threads.
pub fn cuda_group_inverse(threads: u32) -> String {
    let roots = threads.min(ROOTS);
    format!("#define THREADS {threads}u\n#define ROOTS {roots}u\n{}", evariste_cuda::vector::GROUP_INVERSE)
}

/// Renders `group_inverse` in WGSL for workgroups of `threads` threads.
pub fn wgsl_group_inverse<F: DeviceField>(threads: u32) -> String {
    let (inverse, tile, roots) = (wgsl_inverse(&F::arithmetic(), 0), wgsl_tile::<F>(2 * threads), threads.min(ROOTS));
    format!("{inverse}{tile}const ROOTS = {roots}u;\n{}", evariste_shaders::vector::GROUP_INVERSE)
}

/// Counts the bytes of workgroup memory of `len` elements, with [`wgsl_tile`] and in the tiles of CUDA kernels.
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

/// Renders constants in CUDA as a list of words.
pub fn cuda_words(words: &[u32]) -> String {
    list(words.len(), |i| format!("{:#010x}u", words[i]))
}

/// Renders constants in WGSL as a list of words.
pub fn wgsl_words(words: &[u32]) -> String {
    list(words.len(), |i| format!("{}u", words[i]))
}

/// Renders a list of `count` items.
pub fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ark_bls12_381::{Fq, Fq2, Fq6, Fq12};
    use ark_ff::{AdditiveGroup, MontBackend, MontConfig, MontFp};

    use super::*;
    use crate::extension::{Extension, ExtensionConfig};

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
