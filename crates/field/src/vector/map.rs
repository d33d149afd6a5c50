//! Operations on each element of one vector.

use bytemuck::{Pod, Zeroable};
use evariste_backend::{Arg, Binding, Buffer, CpuArg, KernelSpec, Language, Result, Word};

use super::{THREADS, Vector, assign_define, for_each_run, in_and_out, variant, wgsl_kernel};
use crate::{
    DeviceField, Mont,
    ifma::{self, Factor},
    source::{self, word},
};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Params {
    len: u32,
    /// Where in the output the first element goes.
    out_at: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct PowParams {
    len: u32,
    /// Of the exponent, without leading zeros.
    bits: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Map {
    Copy,
    Negate,
    Square,
    Scale,
}

impl Map {
    pub(super) const ALL: [Self; 4] = [Map::Copy, Map::Negate, Map::Square, Map::Scale];

    /// Whether it is done in place, both ways where it may be.
    pub(super) fn places(self) -> impl Iterator<Item = bool> {
        [false, true].into_iter().take(if matches!(self, Map::Copy) { 1 } else { 2 })
    }

    /// The operation on `x`, with `factor` a function of the language that gives the factor.
    fn expression(self, factor: &str) -> String {
        match self {
            Map::Copy => "x".into(),
            Map::Negate => "f_sub(f_zero(), x)".into(),
            Map::Square => "f_mul(x, x)".into(),
            Map::Scale => format!("f_mul(x, {factor})"),
        }
    }

    fn apply<F: DeviceField>(self, x: F, factor: F) -> F {
        match self {
            Map::Copy => x,
            Map::Negate => -x,
            Map::Square => x.square(),
            Map::Scale => x * factor,
        }
    }
}

impl<F: DeviceField> Vector<F> {
    /// `out[i] = −a[i]`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn neg(&self, a: &Buffer<Mont<F>>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        self.map(Map::Negate, a, None, out)
    }

    /// `a[i] = −a[i]`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn neg_assign(&self, a: &mut Buffer<Mont<F>>) -> Result<()> {
        self.map_assign(Map::Negate, a, None)
    }

    /// `out[i] = a[i]²`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn square(&self, a: &Buffer<Mont<F>>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        self.map(Map::Square, a, None, out)
    }

    /// `a[i] = a[i]²`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn square_assign(&self, a: &mut Buffer<Mont<F>>) -> Result<()> {
        self.map_assign(Map::Square, a, None)
    }

    /// `out[i] = factor · a[i]`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn scale(&self, a: &Buffer<Mont<F>>, factor: F, out: &mut Buffer<Mont<F>>) -> Result<()> {
        self.map(Map::Scale, a, Some(factor), out)
    }

    /// `a[i] *= factor`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn scale_assign(&self, a: &mut Buffer<Mont<F>>, factor: F) -> Result<()> {
        self.map_assign(Map::Scale, a, Some(factor))
    }

    /// `out[i] = a[i]^exponent`, for an exponent of 64-bit words, the lowest first; 0⁰ is 1.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn pow(&self, a: &Buffer<Mont<F>>, exponent: impl AsRef<[u64]>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        out.expect_len("the output", a.len())?;
        self.launch_pow(exponent.as_ref(), a.len(), false, vec![Arg::read(a), Arg::write(out)])
    }

    /// `a[i] = a[i]^exponent`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn pow_assign(&self, a: &mut Buffer<Mont<F>>, exponent: impl AsRef<[u64]>) -> Result<()> {
        self.launch_pow(exponent.as_ref(), a.len(), true, vec![Arg::write(a)])
    }

    /// `out[out_at + i] = a[i]`.
    pub(super) fn place(&self, a: &Buffer<Mont<F>>, out: &mut Buffer<Mont<F>>, out_at: u32) -> Result<()> {
        let len = self.checked_len(a.len())?;
        self.checked_len(out.len())?;
        let args = vec![Arg::read(a), Arg::write(out)];
        self.launch_map(Map::Copy, false, Params { len, out_at }, None, args)
    }

    fn map(&self, map: Map, a: &Buffer<Mont<F>>, factor: Option<F>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        self.launch_map(map, false, Params { len, out_at: 0 }, factor, vec![Arg::read(a), Arg::write(out)])
    }

    fn map_assign(&self, map: Map, a: &mut Buffer<Mont<F>>, factor: Option<F>) -> Result<()> {
        let len = self.checked_len(a.len())?;
        self.launch_map(map, true, Params { len, out_at: 0 }, factor, vec![Arg::write(a)])
    }

    /// `args` are the input and the output, of `len` elements from `out_at` on, or both in one.
    fn launch_map(&self, map: Map, assign: bool, params: Params, factor: Option<F>, args: Vec<Arg<'_>>) -> Result<()> {
        let kernel = self.kernel(&self.map[map as usize][usize::from(assign)], || spec::<F>(map, assign))?;
        let factor = factor.map(|factor| self.device.upload::<Mont<F>>(&[factor])).transpose()?;
        let mut args = args;
        args.extend(factor.iter().map(Arg::read));
        // SAFETY: the buffers have the elements that the caller says, and threads touch only those below `len`.
        unsafe { kernel.launch(None, params.len.div_ceil(THREADS).into(), &params, &mut args) }
    }

    fn launch_pow(&self, exponent: &[u64], len: usize, assign: bool, args: Vec<Arg<'_>>) -> Result<()> {
        let len = self.checked_len(len)?;
        let mut words: Vec<u32> = exponent.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        let bits = words.last().map_or(0, |top| 32 * words.len() as u32 - top.leading_zeros());
        // A kernel binds no empty buffer.
        words.resize(words.len().max(1), 0);
        let words = self.device.upload::<u32>(&words)?;
        let kernel = self.kernel(&self.pow[usize::from(assign)], || pow_spec::<F>(assign))?;
        let mut args = args;
        args.push(Arg::read(&words));
        // SAFETY: the buffers have `len` elements, threads touch only those below it, and the exponent has its bits.
        unsafe { kernel.launch(None, len.div_ceil(THREADS).into(), &PowParams { len, bits }, &mut args) }
    }
}

/// Runs `f` on each element, from `a` into `out` or in place.
fn for_each<F: DeviceField>(args: &mut [CpuArg<'_>], assign: bool, len: u32, out_at: u32, f: impl Fn(F) -> F + Sync) {
    let (limbs, skip) = (len as usize * F::LIMBS, out_at as usize * F::LIMBS);
    match (assign, args) {
        (true, [a, ..]) => for_each_run::<F>(&mut a.write()[..limbs], &|_, a| {
            a.chunks_exact_mut(F::LIMBS).for_each(|a| f(F::load(a)).store(a));
        }),
        (false, [a, out, ..]) => {
            let a = a.read::<u32>();
            for_each_run::<F>(&mut out.write()[skip..skip + limbs], &|at, out| {
                let a = a[at..].chunks_exact(F::LIMBS);
                out.chunks_exact_mut(F::LIMBS).zip(a).for_each(|(out, a)| f(F::load(a)).store(out));
            });
        }
        _ => unreachable!("the launch checks the number of buffers"),
    }
}

pub(super) fn spec<F: DeviceField>(map: Map, assign: bool) -> KernelSpec {
    let (mut bindings, store) = in_and_out::<F>(assign);
    if matches!(map, Map::Scale) {
        bindings.push(Binding::read("factor", word::<F>()));
    }
    let seen = bindings.clone();
    let source = move |language| match language {
        Language::Cuda => format!(
            "{}#define OP(x) {}\n{}{}{}",
            source::cuda::<F>(),
            map.expression("factor[0]"),
            if matches!(map, Map::Scale) { "#define FACTOR\n" } else { "" },
            assign_define(assign),
            evariste_cuda::MAP
        ),
        Language::Wgsl { int64 } => {
            let op = format!("fn op(x: F) -> F {{ return {}; }}\n", map.expression("factor_load(0u)"));
            wgsl_kernel::<F>(int64, &seen, &(op + store), evariste_shaders::MAP)
        }
    };
    let lanes = if matches!(map, Map::Square | Map::Scale) { ifma::Field::of::<F>() } else { None };
    let body = move |params: &Params, args: &mut [CpuArg<'_>]| {
        if let Some(lanes) = &lanes {
            return multiply::<F>(lanes, matches!(map, Map::Scale), assign, params, args);
        }
        let factor = match (map, args.last()) {
            (Map::Scale, Some(factor)) => F::load(factor.read()),
            _ => F::ONE,
        };
        for_each(args, assign, params.len, params.out_at, |x| map.apply(x, factor));
    };
    let variant = variant::<F>(&format!("{map:?}{}", if assign { " in place" } else { "" }));
    KernelSpec::new("map", variant, bindings, body, source).threads(THREADS)
}

/// Multiplies each element by the factor, if there is one, else by itself.
fn multiply<F: DeviceField>(lanes: &ifma::Field, scale: bool, assign: bool, params: &Params, args: &mut [CpuArg<'_>]) {
    let (elements, factor) = args.split_at_mut(if assign { 1 } else { 2 });
    let factor = match factor {
        [factor] if scale => Factor::One(&factor.read()[..F::LIMBS]),
        _ => Factor::Itself,
    };
    let (limbs, skip) = (params.len as usize * F::LIMBS, params.out_at as usize * F::LIMBS);
    match elements {
        [a] => lanes.mul_assign(&mut a.write()[..limbs], factor),
        [a, out] => lanes.mul(&a.read()[..limbs], factor, &mut out.write()[skip..skip + limbs]),
        _ => unreachable!("the launch checks the number of buffers"),
    }
}

pub(super) fn pow_spec<F: DeviceField>(assign: bool) -> KernelSpec {
    let (elements, store) = in_and_out::<F>(assign);
    let bindings = [elements.clone(), vec![Binding::read("exponent", Word::U32)]].concat();
    let source = move |language| match language {
        Language::Cuda => format!("{}{}{}", source::cuda::<F>(), assign_define(assign), evariste_cuda::EXPONENTIATE),
        Language::Wgsl { int64 } => wgsl_kernel::<F>(int64, &elements, store, evariste_shaders::EXPONENTIATE),
    };
    let body = move |params: &PowParams, args: &mut [CpuArg<'_>]| {
        let exponent: Vec<u64> = match args.last() {
            Some(words) => words.read::<u32>().chunks(2).map(join).collect(),
            None => unreachable!("the launch checks the number of buffers"),
        };
        let exponent = if params.bits == 0 { &[] } else { exponent.as_slice() };
        for_each(args, assign, params.len, 0, |x: F| x.pow(exponent));
    };
    let variant = variant::<F>(if assign { "powers in place" } else { "powers" });
    KernelSpec::new("exponentiate", variant, bindings, body, source).threads(THREADS)
}

fn join(words: &[u32]) -> u64 {
    words.iter().rev().fold(0, |value, word| value << 32 | u64::from(*word))
}
