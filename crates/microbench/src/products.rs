use std::marker::PhantomData;

use evariste_backend::{
    Buffer, Device, Error, Result,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language},
    constants, parallel, params,
};

use evariste_field::{
    DeviceField, Mont,
    source::{self, binding_type, iterations},
};

constants! {
    /// The values of PLACE in the sources: [`Place`].
    mod places {
        PLACE_GLOBAL = Place::Global as u32,
        PLACE_PRIVATE = Place::Private as u32,
        PLACE_SHARED = Place::Shared as u32,
        PLACE_KEPT = Place::Kept as u32,
    }
}

/// Where factors and products are while they are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the device's memory.
    Global,
    /// In registers: all of a round are loaded first.
    Private,
    /// In the memory of a workgroup.
    Shared,
    /// In registers, where products stay: only those that are zero are written, so that all are computed and hardly any
    /// copied.
    Kept,
}

impl Place {
    /// All of them, in the order of their numbers in the sources.
    pub const ALL: [Self; 4] = [Place::Global, Place::Private, Place::Shared, Place::Kept];

    /// Whether a product is written.
    pub fn writes<F: DeviceField>(self, product: &F) -> bool {
        self != Place::Kept || product.is_zero()
    }
}

/// How many threads share the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// One thread does all of them.
    Serial,
    /// Each thread does one.
    Parallel,
}

impl Sharing {
    /// Both.
    pub const ALL: [Self; 2] = [Sharing::Serial, Sharing::Parallel];

    /// Products of a thread in a round.
    fn round(self) -> u32 {
        match self {
            Sharing::Serial => 4,
            Sharing::Parallel => 1,
        }
    }

    fn threads(self) -> u32 {
        match self {
            Sharing::Serial => 1,
            Sharing::Parallel => 128,
        }
    }
}

/// Products of vectors as one compares places of memory by: elsewhere use [`evariste_field::Vector::mul`]. On a CPU
/// places differ in nothing.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_microbench::{Place, Products, Sharing};
///
/// let device = Device::best()?;
/// let [a, b] = [[2, 3], [5, 7]].map(|x| device.upload::<Mont<Fr>>(&x.map(Fr::from)));
/// let mut out = device.alloc(2)?;
/// Products::new(&device, Place::Shared, Sharing::Serial)?.run(&a?, &b?, &mut out)?;
/// assert_eq!(out.to_vec()?, [10, 21].map(Fr::from));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Products<F> {
    kernel: Kernel<Params>,
    sharing: Sharing,
    field: PhantomData<fn() -> F>,
}

params! {
    struct Params {
        first: u32,
        end: u32,
    }
}

impl<F: DeviceField> Products<F> {
    /// Compiles the kernel for `device`.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Unavailable`] where the compiler is missing, [`Error::TooLarge`] where a workgroup
    /// has too little memory.
    pub fn new(device: &Device, place: Place, sharing: Sharing) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, Self::kernel(place, sharing))?, sharing, field: PhantomData })
    }

    /// The kernel, for compiling it ahead.
    pub fn kernel(place: Place, sharing: Sharing) -> KernelSpec {
        let word = binding_type::<F>();
        let bindings = [Binding::read("a", word), Binding::read("b", word), Binding::write("out", word)];
        let (seen, round, threads) = (bindings, sharing.round(), sharing.threads());
        // WGSL has one text for all places, which names the tile: elsewhere it has one element.
        let shared = if place == Place::Shared { 2 * round * threads } else { 1 };
        let source = move |language| match language {
            Language::Cuda => {
                let serial =
                    if sharing == Sharing::Serial { format!("#define SERIAL {round}\n") } else { String::new() };
                let constants = format!("#define PLACE {}\n{serial}", place as u32);
                [&source::cuda::<F>(), &constants, evariste_cuda::vector::PRODUCTS].concat()
            }
            Language::Wgsl { int64 } => {
                let accessors: String = seen.iter().map(source::wgsl_accessors::<F>).collect();
                let (serial, place) = (sharing == Sharing::Serial, place as u32);
                let constants = format!("const PLACE = {place}u;\nconst SERIAL = {serial};\nconst ROUND = {round}u;\n");
                let tile = source::wgsl_tile::<F>(shared);
                [&source::wgsl::<F>(int64), &accessors, &tile, &constants, evariste_shaders::vector::PRODUCTS].concat()
            }
        };
        let body = move |params: &Params, [a, b, out]: &mut [CpuArg<'_>; 3]| {
            let n = F::LIMBS;
            let limbs = params.first as usize * n..params.end as usize * n;
            let (a, b) = (&a.read::<u32>()[limbs.clone()], &b.read::<u32>()[limbs.clone()]);
            let out = &mut out.write::<u32>()[limbs];
            let each = match sharing {
                Sharing::Serial => out.len().max(1),
                Sharing::Parallel => threads as usize * n,
            };
            parallel::chunks(out, each, &|run, out| {
                let factors = a[run * each..].chunks_exact(n).zip(b[run * each..].chunks_exact(n));
                out.chunks_exact_mut(n).zip(factors).for_each(|(out, (a, b))| {
                    let product = F::load(a) * F::load(b);
                    if place.writes(&product) {
                        product.store(out);
                    }
                });
            });
        };
        let variant = format!("{place:?}, {sharing:?} over {}", source::label::<F>());
        let mul = iterations::mul::<F>();
        let iterations = move |params: &Params| {
            let (all, copy) = (u64::from(params.end - params.first), iterations::repeat(round.into(), 0));
            let rounds = if sharing == Sharing::Serial { all.div_ceil(round.into()) } else { 1 };
            iterations::repeat(rounds, 2 * copy + iterations::repeat(round.into(), mul))
        };
        KernelSpec::new("products", variant, bindings, body, source)
            .constants(places::ALL)
            .threads(threads)
            .shared_bytes(source::tile_bytes::<F>(shared))
            .iterations(iterations)
    }

    /// Writes `a[i] * b[i]` to `out[i]`, with [`Place::Kept`] only where it is zero. A single thread does all in one
    /// launch. If its loops may take fewer iterations
    /// ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)), the work takes the fewest launches
    /// that fit.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`], [`Error::WrongDevice`], [`Error::Driver`], [`Error::Lost`].
    pub fn run(&self, a: &Buffer<Mont<F>>, b: &Buffer<Mont<F>>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        b.expect_len("the second factor", a.len())?;
        out.expect_len("the output", a.len())?;
        let len = u32::try_from(a.len()).map_err(|_| Error::TooLarge {
            what: "vector",
            device: a.device().info().id,
            expected: u32::MAX.into(),
            actual: a.len() as u64,
        })?;
        let mut count = len.max(1);
        while count > 1 && !self.kernel.fits(&Params { first: 0, end: count }) {
            count = count.div_ceil(2);
        }
        for first in (0..len).step_by(count as usize) {
            let end = len.min(first.saturating_add(count));
            let groups = match self.sharing {
                Sharing::Serial => 1,
                Sharing::Parallel => (end - first).div_ceil(self.sharing.threads()).into(),
            };
            let args = &mut [Arg::read(a), Arg::read(b), Arg::write(&mut *out)];
            // SAFETY: all vectors have `len` elements, and threads touch only those below `end`.
            unsafe { self.kernel.launch(&a.device().default_queue(), groups, &Params { first, end }, args) }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::UniformRand;
    use ark_std::test_rng;
    use evariste_field::small::Goldilocks3;

    use super::*;

    fn expect_products<F: DeviceField + UniformRand>(device: &Device) {
        let mut rng = test_rng();
        for len in [0, 1, 3, 4, 127, 129, 1001] {
            let mut random = || (0..len).map(|_| F::rand(&mut rng)).collect::<Vec<F>>();
            let (mut x, y, before) = (random(), random(), random());
            x.iter_mut().step_by(3).for_each(|x| *x = F::ZERO);
            let (a, b) = (device.upload::<Mont<F>>(&x).unwrap(), device.upload(&y).unwrap());
            for (place, sharing) in
                Place::ALL.into_iter().flat_map(|place| Sharing::ALL.map(|sharing| (place, sharing)))
            {
                let product = |i: usize| x[i] * y[i];
                let expected: Vec<F> =
                    (0..len).map(|i| if place.writes(&product(i)) { product(i) } else { before[i] }).collect();
                let mut out = device.upload(&before).unwrap();
                Products::new(device, place, sharing).unwrap().run(&a, &b, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), expected, "{place:?}, {sharing:?}, {len}");
            }
        }
    }

    #[test]
    fn products_are_arkworks() {
        expect_products::<Fr>(&Device::cpu());
        expect_products::<Goldilocks3>(&Device::cpu());
    }
}
