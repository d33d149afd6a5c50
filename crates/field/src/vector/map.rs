//! Operations on each element of one vector.

use evariste_backend::{
    Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingList, BindingType, CpuArg, Kernel, KernelSpec, Language},
    params,
};

use super::{Output, THREADS, Vector, for_each_run, in_and_out, secrecy_of, variant, wgsl_kernel};
use crate::{
    element::{Canonical, Mont},
    field::{DeviceField, DevicePrimeField},
    ifma::{self, Factor},
    native::Native,
    source::{self, binding_type, iterations},
};

params! {
    pub(super) struct Params {
        len: u32,
    }

    pub(super) struct PowParams {
        len: u32,
        /// Of the exponent, without leading zeros.
        bits: u32,
    }
}

/// Binary digits of an exponent that are taken at once where a device allows threads few iterations of loops.
const PART_BITS: u32 = 63;

#[derive(Clone, Copy, Debug)]
pub(super) enum Map {
    Negate,
    Square,
    Scale,
}

impl Map {
    pub(super) const ALL: [Self; 3] = [Map::Negate, Map::Square, Map::Scale];

    /// The operation on `x`, with `factor` a function of the language that gives the factor.
    fn expression(self, factor: &str) -> String {
        match self {
            Map::Negate => "f_sub(f_zero(), x)".into(),
            Map::Square => "f_mul(x, x)".into(),
            Map::Scale => format!("f_mul(x, {factor})"),
        }
    }

    fn apply<F: DeviceField>(self, x: F, factor: F) -> F {
        match self {
            Map::Negate => -x,
            Map::Square => x.native_square(),
            Map::Scale => x.native_mul(&factor),
        }
    }
}

impl<F: DeviceField> Vector<F> {
    /// `out[i] = −a[i]`.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length; and those [of every
    /// operation](Vector#errors).
    pub fn neg<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.map(Map::Negate, a.into(), None, out.into())
    }

    /// `a[i] = −a[i]`.
    ///
    /// # Errors
    /// Those [of every operation](Vector#errors).
    pub fn neg_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.map_assign(Map::Negate, a.into(), None)
    }

    /// `out[i] = a[i]²`.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length; and those [of every
    /// operation](Vector#errors).
    pub fn square<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.map(Map::Square, a.into(), None, out.into())
    }

    /// `a[i] = a[i]²`.
    ///
    /// # Errors
    /// Those [of every operation](Vector#errors).
    pub fn square_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.map_assign(Map::Square, a.into(), None)
    }

    /// `out[i] = factor · a[i]`.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for one more element,
    ///   the factor.
    /// - The errors [of every operation](Vector#errors).
    pub fn scale<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        factor: F,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.map(Map::Scale, a.into(), Some(factor), out.into())
    }

    /// `a[i] *= factor`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for one more element, the
    /// factor; and those [of every operation](Vector#errors).
    pub fn scale_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, factor: F) -> Result<()> {
        self.map_assign(Map::Scale, a.into(), Some(factor))
    }

    /// `out[i]` is the integer below p that `a[i]` is: from Montgomery to canonical form, with one multiplication each.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length; and those [of every
    /// operation](Vector#errors).
    pub fn to_canonical<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Canonical<F>>>,
    ) -> Result<()>
    where
        F: DevicePrimeField,
    {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        self.launch_map(Map::Scale, Output::Apart, len, Some(inverse_radix()), vec![Arg::read(a), Arg::write(out)])
    }

    /// `out[i]` is the element that the integer `a[i]` below p stands for: from canonical to Montgomery form, with one
    /// multiplication each.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length; and those [of every
    /// operation](Vector#errors).
    pub fn from_canonical<'a>(
        &self,
        a: impl Into<View<'a, Canonical<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()>
    where
        F: DevicePrimeField,
    {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        let radix = inverse_radix::<F>().inverse().unwrap_or(F::ONE);
        self.launch_map(Map::Scale, Output::Apart, len, Some(radix), vec![Arg::read(a), Arg::write(out)])
    }

    /// `out[i] = a[i]^exponent`, for an exponent of 64-bit words, the lowest first; 0⁰ is 1.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - The errors [of every operation](Vector#errors).
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the exponent. If
    ///   its limit on the loops of a thread divides the exponent into parts, one more vector of this length needs room
    ///   too.
    pub fn pow<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        exponent: impl AsRef<[u64]>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        let exponent = Exponent::new(exponent.as_ref());
        let len = self.checked_len(a.len())?;
        if self.pow_kernel(Output::Apart)?.fits(&PowParams { len, bits: exponent.bits }) {
            return self.launch_pow(&exponent, len, Output::Apart, vec![Arg::read(a), Arg::write(out)]);
        }
        self.pow_in_parts(&exponent, a, out)
    }

    /// `a[i] = a[i]^exponent`.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the exponent. If it
    ///   takes the exponent in parts as in [`Vector::pow`], two more vectors of this length need room too.
    /// - The errors [of every operation](Vector#errors).
    pub fn pow_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, exponent: impl AsRef<[u64]>) -> Result<()> {
        let a = a.into();
        let exponent = Exponent::new(exponent.as_ref());
        let len = self.checked_len(a.len())?;
        if self.pow_kernel(Output::InPlace)?.fits(&PowParams { len, bits: exponent.bits }) {
            return self.launch_pow(&exponent, len, Output::InPlace, vec![Arg::write(a)]);
        }
        self.expect_queue()?;
        self.pow_in_parts(&exponent, self.queue().duplicate(&a)?.as_view(), a)
    }

    /// [`Vector::pow`] by parts of the exponent from the highest down, each in launches of its own. The power so far is
    /// raised by the part's digits, and multiplied by the part's power of `a`.
    fn pow_in_parts(&self, exponent: &Exponent, a: View<'_, Mont<F>>, mut out: ViewMut<'_, Mont<F>>) -> Result<()> {
        let (len, secrecy) = (self.checked_len(a.len())?, secrecy_of([a, out.as_view()]));
        let kernel = self.pow_kernel(Output::InPlace)?;
        let mut bits = PART_BITS;
        while bits > 1 && !kernel.fits(&PowParams { len, bits: bits + 1 }) {
            bits /= 2;
        }
        kernel.expect_fits(&PowParams { len, bits: bits + 1 })?;
        let raised = Exponent::new(&[1 << bits]);
        let mut power = self.device.alloc_with(a.len(), secrecy)?;
        let parts = exponent.bits.div_ceil(bits);
        for number in (0..parts).rev() {
            let part = Exponent::new(&[exponent.part(number * bits, bits)]);
            if number + 1 == parts {
                self.launch_pow(&part, len, Output::Apart, vec![Arg::read(a), Arg::write(&mut out)])?;
                continue;
            }
            self.launch_pow(&raised, len, Output::InPlace, vec![Arg::write(&mut out)])?;
            self.launch_pow(&part, len, Output::Apart, vec![Arg::read(a), Arg::write(&mut power)])?;
            self.mul_assign(&mut out, &power)?;
        }
        Ok(())
    }

    fn map(&self, map: Map, a: View<'_, Mont<F>>, factor: Option<F>, out: ViewMut<'_, Mont<F>>) -> Result<()> {
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        self.launch_map(map, Output::Apart, len, factor, vec![Arg::read(a), Arg::write(out)])
    }

    fn map_assign(&self, map: Map, a: ViewMut<'_, Mont<F>>, factor: Option<F>) -> Result<()> {
        let len = self.checked_len(a.len())?;
        self.launch_map(map, Output::InPlace, len, factor, vec![Arg::write(a)])
    }

    /// `args` are the input and the output, of `len` elements, or both in one.
    fn launch_map(&self, map: Map, output: Output, len: u32, factor: Option<F>, args: Vec<Arg<'_>>) -> Result<()> {
        let kernel = self.kernels.map[map as usize][output as usize].get(&self.device, || spec::<F>(map, output))?;
        let secrecy = Secrecy::of(args.iter().map(Arg::secrecy));
        let factor = factor.map(|factor| self.upload::<Mont<F>>(&[factor], secrecy)).transpose()?;
        let mut args = args;
        args.extend(factor.iter().map(Arg::read));
        // SAFETY: the buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &Params { len }, &mut args) }
    }

    fn pow_kernel(&self, output: Output) -> Result<&Kernel<PowParams>> {
        self.kernels.pow[output as usize].get(&self.device, || pow_spec::<F>(output))
    }

    /// `args` are the input and the output of `len` elements, or both in one.
    fn launch_pow(&self, exponent: &Exponent, len: u32, output: Output, args: Vec<Arg<'_>>) -> Result<()> {
        let secrecy = Secrecy::of(args.iter().map(Arg::secrecy));
        let words = self.upload::<u32>(&exponent.words, secrecy)?;
        let mut args = args;
        args.push(Arg::read(&words));
        let params = PowParams { len, bits: exponent.bits };
        // SAFETY: the buffers have `len` elements, threads touch only those below it, and the exponent has its bits.
        unsafe { self.pow_kernel(output)?.launch(self.queue(), len.div_ceil(THREADS).into(), &params, &mut args) }
    }
}

/// The element whose device form is the integer 1: 1/R. The device form of x/R is the integer x, and what the integer x
/// is the device form of is x/R.
fn inverse_radix<F: DevicePrimeField>() -> F {
    let mut one = vec![0; F::LIMBS];
    one[0] = 1;
    F::load(&one)
}

/// An exponent as kernels get it.
struct Exponent {
    /// From the lowest on, without leading zeros but for a single one: a kernel binds no empty buffer.
    words: Vec<u32>,
    bits: u32,
}

impl Exponent {
    fn new(exponent: &[u64]) -> Self {
        let mut words: Vec<u32> = exponent.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        let bits = words.last().map_or(0, |top| 32 * words.len() as u32 - top.leading_zeros());
        words.resize(words.len().max(1), 0);
        Self { words, bits }
    }

    /// `count` binary digits from number `first` on, at most 63.
    fn part(&self, first: u32, count: u32) -> u64 {
        let digit = |i: u32| self.words.get(i as usize / 32).map_or(0, |word| u64::from(word >> (i % 32) & 1));
        (0..count).fold(0, |part, i| part | digit(first + i) << i)
    }
}

/// `a` and `out`, as [`in_and_out`] declares them.
type InAndOut<'a, 'm> = (&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>);

/// Runs `f` on each element, from `a` into `out` or in place.
fn for_each<F: DeviceField>((a, out): InAndOut<'_, '_>, len: u32, f: impl Fn(F) -> F + Sync) {
    let limbs = len as usize * F::LIMBS;
    match out {
        None => for_each_run::<F>(&mut a.write()[..limbs], &|_, a| {
            a.chunks_exact_mut(F::LIMBS).for_each(|a| f(F::load(a)).store(a));
        }),
        Some(out) => {
            let a = a.read::<u32>();
            for_each_run::<F>(&mut out.write()[..limbs], &|at, out| {
                let a = a[at..].chunks_exact(F::LIMBS);
                out.chunks_exact_mut(F::LIMBS).zip(a).for_each(|(out, a)| f(F::load(a)).store(out));
            });
        }
    }
}

pub(super) fn spec<F: DeviceField>(map: Map, output: Output) -> KernelSpec {
    let (data, store) = in_and_out::<F>(output);
    let bindings = (data, matches!(map, Map::Scale).then(|| Binding::read("factor", binding_type::<F>())));
    let seen = bindings.list();
    let source = move |language| match language {
        Language::Cuda => format!(
            "{}#define OP(x) {}\n{}{}{}",
            source::cuda::<F>(),
            map.expression("factor[0]"),
            if matches!(map, Map::Scale) { "#define FACTOR\n" } else { "" },
            output.define(),
            evariste_cuda::vector::MAP
        ),
        Language::Wgsl { int64 } => {
            let op = format!("fn op(x: F) -> F {{ return {}; }}\n", map.expression("factor_load(0u)"));
            wgsl_kernel::<F>(int64, &seen, &(op + store), evariste_shaders::vector::MAP)
        }
    };
    let lanes = if matches!(map, Map::Square | Map::Scale) { ifma::Montgomery52::of::<F>() } else { None };
    let body = move |params: &Params, (data, factor): (InAndOut<'_, '_>, Option<&mut CpuArg<'_>>)| {
        if let Some(lanes) = &lanes {
            return multiply::<F>(lanes, params, data, factor);
        }
        let factor = factor.map_or(F::ONE, |factor| F::load(factor.read()));
        for_each(data, params.len, |x| map.apply(x, factor));
    };
    let variant = variant::<F>(&format!("{map:?}{}", output.label()));
    let mul = iterations::mul::<F>();
    KernelSpec::new("map", variant, bindings, body, source).threads(THREADS).iterations(move |_: &Params| mul)
}

/// Scales each element by the factor, or squares it where there is none.
fn multiply<F: DeviceField>(
    lanes: &ifma::Montgomery52,
    params: &Params,
    (a, out): InAndOut<'_, '_>,
    factor: Option<&mut CpuArg<'_>>,
) {
    let factor = factor.map_or(Factor::Itself, |factor| Factor::One(&factor.read()[..F::LIMBS]));
    let limbs = params.len as usize * F::LIMBS;
    match out {
        None => lanes.mul_assign(&mut a.write()[..limbs], factor),
        Some(out) => lanes.mul(&a.read()[..limbs], factor, &mut out.write()[..limbs]),
    }
}

pub(super) fn pow_spec<F: DeviceField>(output: Output) -> KernelSpec {
    let (data, store) = in_and_out::<F>(output);
    let (elements, bindings) = (data.list(), (data, Binding::read("exponent", BindingType::U32)));
    let source = move |language| match language {
        Language::Cuda => format!("{}{}{}", source::cuda::<F>(), output.define(), evariste_cuda::vector::EXPONENTIATE),
        Language::Wgsl { int64 } => wgsl_kernel::<F>(int64, &elements, store, evariste_shaders::vector::EXPONENTIATE),
    };
    let body = |params: &PowParams, (data, exponent): (InAndOut<'_, '_>, &mut CpuArg<'_>)| {
        let exponent: Vec<u64> = exponent.read::<u32>().chunks(2).map(join).collect();
        let exponent = if params.bits == 0 { &[] } else { exponent.as_slice() };
        for_each(data, params.len, |x: F| Native(x).pow(exponent).0);
    };
    let variant = variant::<F>(&format!("powers{}", output.label()));
    let mul = iterations::mul::<F>();
    KernelSpec::new("exponentiate", variant, bindings, body, source)
        .threads(THREADS)
        .iterations(move |params: &PowParams| iterations::repeat(params.bits.into(), 2 * mul))
}

fn join(words: &[u32]) -> u64 {
    words.iter().rev().fold(0, |value, word| value << 32 | u64::from(*word))
}
