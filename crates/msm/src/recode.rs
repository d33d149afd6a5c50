//! Scalars to signed digits.

use std::marker::PhantomData;

use ark_ff::BigInteger;
use evariste_backend::{
    Buffer, Device, Element, Queue, Result, View,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language},
    constants, parallel, params,
};
use evariste_field::{
    DevicePrimeField,
    source::{self, binding_type, cuda_words, iterations, label, wgsl_words},
};

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Scalars that a CPU thread takes at a time.
const GRAIN: usize = 1 << 12;

/// What scalars are on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarForm {
    /// Integers.
    Plain,
    /// Montgomery forms.
    Montgomery,
    /// Integers to be taken modulo the order.
    Reduced,
}

constants! {
    /// What scalars are: [`ScalarForm`].
    mod forms {
        PLAIN = ScalarForm::Plain as u32,
        MONTGOMERY = ScalarForm::Montgomery as u32,
        REDUCED = ScalarForm::Reduced as u32,
    }
}

/// The scalars of a launch, and the buckets and points of their digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recoding {
    /// Scalars.
    pub(crate) len: usize,
    /// Scalars of one sum.
    pub(crate) count: usize,
    /// Bases of all sums.
    pub(crate) points: usize,
    /// The base of the first scalar.
    pub(crate) first: usize,
    /// Bits of a digit.
    pub(crate) bits: u32,
    /// Digits of a scalar.
    pub(crate) digits: u32,
    /// Windows of one sum that have buckets of their own.
    pub(crate) windows: u32,
    /// Bases between those of one table and of the next.
    pub(crate) table: usize,
    /// The key of digits that are zero.
    pub(crate) sentinel: u32,
    pub(crate) form: ScalarForm,
    /// Whether scalars above half the order are replaced by their opposites.
    pub(crate) halve: bool,
    /// Tables of odd digits, or 0, and rows of each class of them: see `msm/recode.cu`.
    pub(crate) doublings: u32,
    pub(crate) rows: u32,
}

params! {
    struct Params {
        len: u32,
        count: u32,
        points: u32,
        first: u32,
        bits: u32,
        digits: u32,
        windows: u32,
        table: u32,
        sentinel: u32,
        form: u32,
        /// Whether scalars above r / 2 are replaced by their opposites.
        halve: u32,
        /// Tables of odd digits, or 0, and rows of each class of them.
        doublings: u32,
        rows: u32,
    }
}

#[derive(Debug)]
pub(crate) struct Recode<F> {
    kernel: Kernel<Params>,
    field: PhantomData<fn() -> F>,
}

impl<F: DevicePrimeField> Recode<F> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, Self::spec())?, field: PhantomData })
    }

    pub(crate) fn spec() -> KernelSpec {
        let seen = [
            Binding::read("scalars", binding_type::<F>()),
            Binding::write("keys", BindingType::U32),
            Binding::write("values", BindingType::U32),
        ];
        let source = move |language| match language {
            Language::Cuda => {
                let half = cuda_words(&half::<F>());
                format!("{}#define S_HALF {{ {half} }}\n{}", source::cuda::<F>(), evariste_cuda::msm::RECODE)
            }
            Language::Wgsl { int64 } => {
                let accessors = source::wgsl_accessors::<F>(&seen[0]);
                [&source::wgsl::<F>(int64), &accessors, &wgsl_integers::<F>(), evariste_shaders::msm::RECODE].concat()
            }
        };
        KernelSpec::new("msm_recode", label::<F>(), seen, run::<F>, source)
            .constants(forms::ALL)
            .threads(THREADS)
            .iterations(recode_iterations::<F>)
    }

    /// Writes a key and a value for each digit of each scalar: see `msm/recode.cu`.
    pub(crate) fn run<S: Element>(
        &self,
        queue: &Queue,
        recoding: &Recoding,
        scalars: View<'_, S>,
        keys: &mut Buffer<u32>,
        values: &mut Buffer<u32>,
    ) -> Result<()> {
        let r = recoding;
        assert_eq!(S::BYTES, 4 * F::LIMBS, "scalars of this field");
        scalars.expect_len("the scalars", r.len)?;
        keys.expect_len("the keys of digits", r.len * r.digits as usize)?;
        values.expect_len("the values of digits", keys.len())?;
        assert!((1..32).contains(&r.bits) && r.count > 0 && r.points > 0 && r.windows > 0, "{r:?}");
        let params = Params {
            len: r.len as u32,
            count: r.count as u32,
            points: r.points as u32,
            first: r.first as u32,
            bits: r.bits,
            digits: r.digits,
            windows: r.windows,
            table: r.table as u32,
            sentinel: r.sentinel,
            form: r.form as u32,
            halve: r.halve.into(),
            doublings: r.doublings,
            rows: r.rows,
        };
        let args = &mut [Arg::read(scalars), Arg::write(keys), Arg::write(values)];
        // SAFETY: there are `len` scalars, and a key and a value for each digit of them.
        unsafe { self.kernel.launch(queue, r.len.div_ceil(THREADS as usize) as u64, &params, args) }
    }
}

fn recode_iterations<F: DevicePrimeField>(params: &Params) -> u64 {
    let halvings = if params.doublings > 0 { iterations::repeat(params.bits.into(), 0) } else { 0 };
    iterations::repeat(2, iterations::mul::<F>()) + iterations::repeat(params.digits.into(), halvings)
}

/// (r − 1) / 2.
fn half<F: DevicePrimeField>() -> Vec<u32> {
    let limbs = F::MODULUS_MINUS_ONE_DIV_TWO;
    (0..F::LIMBS).map(|i| (limbs.as_ref()[i / 2] >> (32 * (i % 2))) as u32).collect()
}

/// `s_square`, `s_unit`, `s_above` and `s_shift`.
fn wgsl_integers<F: DevicePrimeField>() -> String {
    let mut square = vec![0; F::LIMBS];
    F::from(2u8).pow([32 * F::LIMBS as u64]).store(&mut square);
    let mut unit = vec![0; F::LIMBS];
    unit[0] = 1;
    let mut text = format!("fn s_square() -> F {{ return F({}); }}\n", wgsl_words(&square));
    text += &format!("fn s_unit() -> F {{ return F({}); }}\n", wgsl_words(&unit));
    text += "fn s_above(s: F) -> bool {\n  var above = false;\n";
    for (i, limb) in half::<F>().iter().enumerate() {
        text += &format!("  above = s.l{i} > {limb}u || (s.l{i} == {limb}u && above);\n");
    }
    text += "  return above;\n}\n";
    let shifted = (0..F::LIMBS).map(|i| match i + 1 < F::LIMBS {
        true => format!("(s.l{i} >> bits) | (s.l{} << (32u - bits))", i + 1),
        false => format!("s.l{i} >> bits"),
    });
    let shifted = shifted.collect::<Vec<_>>().join(", ");
    text + &format!("fn s_shift(s: F, bits: u32) -> F {{ return F({shifted}); }}\n")
}

/// The integer that a scalar of the device stands for.
fn integer<F: DevicePrimeField>(form: u32, limbs: &[u32]) -> F::BigInt {
    if form == forms::MONTGOMERY {
        return F::load(limbs).into_bigint();
    }
    let mut value = F::BigInt::default();
    for (i, limb) in limbs.iter().enumerate() {
        value.as_mut()[i / 2] |= u64::from(*limb) << (32 * (i % 2));
    }
    if form == forms::REDUCED && value >= F::MODULUS {
        reduce::<F>(&mut value);
    }
    value
}

/// Takes an integer modulo the order, on the stack: it may be secret.
fn reduce<F: DevicePrimeField>(value: &mut F::BigInt) {
    // PrecomputedTable by powers of two, from the largest that the words of a scalar hold on.
    for shift in (0..=32 * F::LIMBS as u32 - F::MODULUS_BIT_SIZE).rev() {
        let mut multiple = F::MODULUS;
        multiple <<= shift;
        if *value >= multiple {
            value.sub_with_borrow(&multiple);
        }
    }
}

/// `bits` bits of an integer from `at` on.
fn bits_at(limbs: &[u64], at: usize, bits: u32) -> u32 {
    let limb = |i: usize| limbs.get(i).copied().unwrap_or(0);
    let (word, shift) = (at / 64, at % 64);
    let low = limb(word) >> shift;
    let high = if shift == 0 { 0 } else { limb(word + 1) << (64 - shift) };
    ((low | high) & ((1 << bits) - 1)) as u32
}

/// The bucket of a digit that is an odd number times a power of two, and its table.
fn odd(size: u32, row: u32, params: &Params, doublings: u32) -> (u32, u32) {
    let exponent = size.trailing_zeros();
    let log = |class: u32| (params.bits - 2).saturating_sub(class * doublings);
    let class = exponent / doublings;
    let start: u32 = (0..class).map(|class| params.rows << log(class)).sum();
    (start + (row << log(class)) + (size >> exponent) / 2, exponent % doublings)
}

/// The body for the CPU.
fn run<F: DevicePrimeField>(params: &Params, [scalars, keys, values]: &mut [CpuArg<'_>; 3]) {
    let (len, digits) = (params.len as usize, params.digits as usize);
    let scalars = &scalars.read::<u32>()[..len * F::LIMBS];
    let buckets = 1u32 << (params.bits - 1);
    // Grain by grain, all digits of a few scalars to the same number of places.
    let mut rows: Vec<[Vec<&mut [u32]>; 2]> = Vec::new();
    rows.resize_with(len.div_ceil(GRAIN), Default::default);
    let keys = keys.write::<u32>()[..len * digits].chunks_exact_mut(len);
    for (keys, values) in keys.zip(values.write::<u32>()[..len * digits].chunks_exact_mut(len)) {
        let pieces = keys.chunks_mut(GRAIN).zip(values.chunks_mut(GRAIN));
        for ((keys, values), row) in pieces.zip(&mut rows) {
            row[0].push(keys);
            row[1].push(values);
        }
    }
    parallel::chunks(&mut rows, 1, &|grain, rows| {
        let [keys, values] = &mut rows[0];
        for at in 0..GRAIN.min(len - grain * GRAIN) {
            let i = grain * GRAIN + at;
            let mut s = integer::<F>(params.form, &scalars[i * F::LIMBS..][..F::LIMBS]);
            let negated = params.halve == 1 && s > F::MODULUS_MINUS_ONE_DIV_TWO;
            if negated {
                let mut opposite = F::MODULUS;
                opposite.sub_with_borrow(&s);
                s = opposite;
            }
            let base = (i as u32) / params.count * params.windows;
            let point = params.first + (i as u32) % params.points;
            let mut carry = 0;
            for w in 0..digits {
                let digit = bits_at(s.as_ref(), w * params.bits as usize, params.bits) + carry;
                carry = u32::from(digit > buckets);
                let size = if carry == 1 { 2 * buckets - digit } else { digit };
                let row = base + w as u32 % params.windows;
                let (bucket, table) = match params.doublings {
                    _ if size == 0 => (params.sentinel, 0),
                    0 => (row * buckets + size - 1, w as u32 / params.windows),
                    doublings => odd(size, row, params, doublings),
                };
                keys[w][at] = bucket;
                values[w][at] = 2 * (point + table * params.table) + (carry ^ u32::from(negated));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{Fp64, MontBackend, MontConfig, UniformRand};

    #[derive(MontConfig)]
    #[modulus = "3"]
    #[generator = "2"]
    struct ThreeConfig;

    fn check<F: DevicePrimeField>() {
        let mut rng = ark_std::test_rng();
        for i in 0..100 {
            let mut integer = F::BigInt::default();
            for (k, word) in integer.as_mut().iter_mut().enumerate() {
                let random = if i == 0 { u64::MAX } else { u64::rand(&mut rng) };
                *word = if 2 * k + 1 < F::LIMBS { random } else { random & u64::from(u32::MAX) };
            }
            let expected = F::from_le_bytes_mod_order(&integer.to_bytes_le()).into_bigint();
            reduce::<F>(&mut integer);
            assert_eq!(integer, expected);
        }
    }

    #[test]
    fn integers_are_reduced_without_a_heap() {
        check::<ark_bls12_381::Fr>();
        check::<ark_bn254::Fr>();
        check::<evariste_field::small::BabyBear>();
        check::<Fp64<MontBackend<ThreeConfig, 1>>>();
    }
}
