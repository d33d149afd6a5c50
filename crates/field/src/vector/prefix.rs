//! Prefix sums and products, and division by x − z, which is the same with a weight.
//!
//! There are three steps. Tiles are reduced. The tiles' results are turned into the states before each tile, by this
//! very scheme, in place. Each tile is then gone through from its state on.
//!
//! A thread goes through a run of neighbouring elements twice. The first time gives the run's result, which a scan over
//! the workgroup turns into the state before the run. The second time writes. An element costs 3 additions or
//! multiplications, and 12/8 more for the scan of a run of 8. It costs 3 accesses to memory, or 2 if there is one tile.
//! There is one launch up to 2^11 elements, there are 3 up to 2^22, then 5.

use evariste_backend::{
    Buffer, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingList, CpuArg, KernelSpec, Language, Wiped},
    parallel, params,
};

use super::{
    Output, Vector, in_and_out,
    reduce::{self, Combine, Reduction},
    secrecy_of, tile_threads, variant, wgsl_kernel,
};
use crate::{
    element::Mont,
    field::DeviceField,
    source::{self, binding_type, iterations},
};

/// log₂ of the elements that one thread goes through.
const LOG_RUN: u32 = 3;

/// Says whether element i of a prefix sum or product has a share in result i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Result i is that of the elements 0 to i.
    Inclusive,
    /// Result i is that of the elements 0 to i − 1: result 0 is the empty sum or product.
    Exclusive,
}

params! {
    pub(super) struct Params {
        len: u32,
        tiles: u32,
        /// There are states before the tiles.
        carried: u32,
        exclusive: u32,
        /// The last element comes first.
        reversed: u32,
        /// Where in the table of weights the ones of this vector start.
        weights: u32,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    Sum,
    Product,
    /// `s = a[i] + z · s`, from the last element to the first.
    Horner,
}

impl Scan {
    pub(super) const ALL: [Self; 3] = [Scan::Sum, Scan::Product, Scan::Horner];

    fn combine(self) -> Combine {
        match self {
            Scan::Sum => Combine::Sum,
            Scan::Product => Combine::Product,
            Scan::Horner => Combine::Horner,
        }
    }

    fn reduction(self) -> Reduction {
        match self {
            Scan::Sum => Reduction::Sum,
            Scan::Product => Reduction::Product,
            Scan::Horner => Reduction::Evaluate,
        }
    }
}

/// log₂ of the elements of a tile.
const fn log_tile<F: DeviceField>() -> u32 {
    tile_threads::<F>().ilog2() + LOG_RUN
}

/// What stays the same over the levels of one scan.
struct Plan<'a, F: DeviceField> {
    scan: Scan,
    weights: Option<&'a Buffer<Mont<F>>>,
}

impl<F: DeviceField> Vector<F> {
    /// Writes `out[i] = Σ a[j]`, over all j ≤ i ([`Prefix::Inclusive`]) or all j < i ([`Prefix::Exclusive`]).
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn prefix_sum<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        prefix: Prefix,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.scan(&Plan { scan: Scan::Sum, weights: None }, a.into(), prefix, out.into()).map(drop)
    }

    /// [`Vector::prefix_sum`] in place.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn prefix_sum_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, prefix: Prefix) -> Result<()> {
        self.scan_assign(&Plan { scan: Scan::Sum, weights: None }, a.into(), prefix, 0).map(drop)
    }

    /// Writes `out[i] = Π a[j]`, over all j ≤ i ([`Prefix::Inclusive`]) or all j < i ([`Prefix::Exclusive`]).
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn prefix_product<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        prefix: Prefix,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.scan(&Plan { scan: Scan::Product, weights: None }, a.into(), prefix, out.into()).map(drop)
    }

    /// [`Vector::prefix_product`] in place.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn prefix_product_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, prefix: Prefix) -> Result<()> {
        self.scan_assign(&Plan { scan: Scan::Product, weights: None }, a.into(), prefix, 0).map(drop)
    }

    /// Divides the polynomial with the coefficients `a` by x − `z`: writes the quotient and returns the
    /// remainder, which is the value at `z`. The quotient's highest coefficient is zero. Waits for the remainder.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the remainder is not an element of the field,
    ///   as may happen if `a` was never written.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn divide_by_linear<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        z: F,
        quotient: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<F> {
        let (a, quotient) = (a.into(), quotient.into());
        let weights = self.weights(z, secrecy_of([a, quotient.as_view()]))?;
        let plan = Plan { scan: Scan::Horner, weights: Some(&weights) };
        // q[i] = Σ_{j > i} a[j] z^(j − i − 1), and the remainder is what would be q[−1].
        self.last(&self.scan(&plan, a, Prefix::Exclusive, quotient)?)
    }

    /// [`Vector::divide_by_linear`] in place: `a` becomes the quotient.
    ///
    /// # Errors
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the remainder is not an element of the field,
    ///   as may happen if `a` was never written.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   tiles, one element for each tile of up to 2¹¹ elements.
    /// - The errors [of every operation](Vector#errors).
    pub fn divide_by_linear_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, z: F) -> Result<F> {
        let a = a.into();
        let weights = self.weights(z, a.secrecy())?;
        let plan = Plan { scan: Scan::Horner, weights: Some(&weights) };
        self.last(&self.scan_assign(&plan, a, Prefix::Exclusive, 0)?)
    }

    /// Gives the states before the tiles, and after them all at the end.
    fn scan(
        &self,
        plan: &Plan<'_, F>,
        a: View<'_, Mont<F>>,
        prefix: Prefix,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<Buffer<Mont<F>>> {
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        let (params, mut carries) = self.carries(plan, a, secrecy_of([a, out.as_view()]), len, prefix, 0)?;
        let kernel = self.kernels.prefix[plan.scan as usize][Output::Apart as usize]
            .get(&self.device, || spec::<F>(plan.scan, Output::Apart))?;
        let mut args = vec![Arg::read(a), Arg::write(out), Arg::write(&mut carries)];
        args.extend(plan.weights.map(Arg::read));
        // SAFETY: both buffers have `len` elements and threads touch no others, `carries` has a place for each
        // tile and one more, and the exponents of weights stay below log₂ of the length.
        unsafe { kernel.launch(self.queue(), params.tiles.into(), &params, &mut args)? };
        Ok(carries)
    }

    /// [`Vector::scan`] in place, of a vector whose elements stand for 2^`weights` each.
    fn scan_assign(
        &self,
        plan: &Plan<'_, F>,
        a: ViewMut<'_, Mont<F>>,
        prefix: Prefix,
        weights: u32,
    ) -> Result<Buffer<Mont<F>>> {
        let len = self.checked_len(a.len())?;
        let (params, mut carries) = self.carries(plan, a.as_view(), a.secrecy(), len, prefix, weights)?;
        let kernel = self.kernels.prefix[plan.scan as usize][Output::InPlace as usize]
            .get(&self.device, || spec::<F>(plan.scan, Output::InPlace))?;
        let mut args = vec![Arg::write(a), Arg::write(&mut carries)];
        args.extend(plan.weights.map(Arg::read));
        // SAFETY: as in `scan`; a thread reads only the elements that it writes.
        unsafe { kernel.launch(self.queue(), params.tiles.into(), &params, &mut args)? };
        Ok(carries)
    }

    /// The states before the tiles of the `len` elements, with room for the one after them all.
    fn carries(
        &self,
        plan: &Plan<'_, F>,
        a: View<'_, Mont<F>>,
        secrecy: Secrecy,
        len: u32,
        prefix: Prefix,
        weights: u32,
    ) -> Result<(Params, Buffer<Mont<F>>)> {
        let log_chunk = log_tile::<F>();
        let tiles = len.div_ceil(1 << log_chunk);
        let (carried, reversed) = (u32::from(tiles > 1), u32::from(plan.scan == Scan::Horner));
        let mut carries = match len {
            // Nothing is launched: this is the state at the end.
            0 => self.upload(&[plan.scan.combine().identity::<F>()], secrecy)?,
            _ => self.device.alloc_with(tiles as usize + 1, secrecy)?,
        };
        if tiles > 1 {
            let params = reduce::Params { len, log_chunk, chunks: tiles, reversed, weights };
            self.launch_reduce(plan.scan.reduction(), params, a, None, plan.weights, carries.as_view_mut())?;
            let states = carries.view_mut(..tiles as usize)?;
            self.scan_assign(plan, states, Prefix::Exclusive, weights + log_chunk)?;
        }
        let exclusive = u32::from(prefix == Prefix::Exclusive);
        Ok((Params { len, tiles, carried, exclusive, reversed, weights }, carries))
    }

    fn last(&self, carries: &Buffer<Mont<F>>) -> Result<F> {
        let mut value = [F::ZERO];
        self.queue().read_into(carries.view(carries.len().saturating_sub(1)..)?, &mut value)?;
        Ok(value[0])
    }
}

pub(super) fn spec<F: DeviceField>(scan: Scan, output: Output) -> KernelSpec {
    let combine = scan.combine();
    let (data, store) = in_and_out::<F>(output);
    let weights = combine.has_weights().then(|| Binding::read("weights", binding_type::<F>()));
    let bindings = (data, Binding::write("carries", binding_type::<F>()), weights);
    let threads = tile_threads::<F>();
    let seen = bindings.list();
    let source = move |language| match language {
        Language::Cuda => format!(
            "{}{}#define LOG_THREADS {}\n#define LOG_RUN {LOG_RUN}\n{}{}",
            source::cuda::<F>(),
            combine.cuda(),
            threads.ilog2(),
            output.define(),
            evariste_cuda::vector::PREFIX
        ),
        Language::Wgsl { int64 } => {
            let extra = format!(
                "{}{}{store}const LOG_THREADS = {}u;\nconst LOG_RUN = {LOG_RUN}u;\n",
                source::wgsl_tile::<F>(threads),
                combine.wgsl(),
                threads.ilog2()
            );
            wgsl_kernel::<F>(int64, &seen, &extra, evariste_shaders::vector::PREFIX)
        }
    };
    let body = move |params: &Params, args: Args<'_, '_>| run::<F>(combine, params, args);
    let variant = variant::<F>(&format!("{scan:?}{}", output.label()));
    let mul = if combine == Combine::Sum { 0 } else { iterations::mul::<F>() };
    let all = 2 * iterations::repeat(1 << LOG_RUN, mul) + mul + iterations::repeat(threads.ilog2().into(), mul);
    KernelSpec::new("prefix", variant, bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(threads))
        .iterations(move |_: &Params| all)
}

/// `a` and `out`, carries, weights.
type Args<'a, 'm> = ((&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>), &'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>);

fn run<F: DeviceField>(combine: Combine, params: &Params, ((a, out), carries, weights): Args<'_, '_>) {
    let weight = weights.map_or(F::ONE, |weights| F::load(&weights.read()[params.weights as usize * F::LIMBS..]));
    let (a, out) = match out {
        None => (None, a.write::<u32>()),
        Some(out) => (Some(a.read::<u32>()), out.write::<u32>()),
    };
    let (len, tiles) = (params.len as usize, params.tiles as usize);
    let (states, end) = carries.write::<u32>().split_at_mut(tiles * F::LIMBS);
    let reversed = params.reversed == 1;
    let tile = F::LIMBS << log_tile::<F>();
    let go = |tile_index: usize, at: usize, out: &mut [u32]| {
        let slot = if reversed { tiles - 1 - tile_index } else { tile_index };
        let carry = if params.carried == 1 { F::load(&states[slot * F::LIMBS..]) } else { combine.identity() };
        let count = out.len() / F::LIMBS;
        (0..count).fold(carry, |before, position| {
            let i = if reversed { count - 1 - position } else { position };
            let place = i * F::LIMBS..(i + 1) * F::LIMBS;
            let x = F::load(a.map_or(&out[place.clone()], |a| &a[at..][place.clone()]));
            let after = combine.apply(x, before, weight);
            if params.exclusive == 1 { before } else { after }.store(&mut out[place]);
            after
        })
    };
    // Tiles are counted from where the prefixes begin: the one that is not whole is the last.
    let limbs = len * F::LIMBS;
    let out = &mut out[..limbs];
    let tiles: Vec<&mut [u32]> =
        if reversed { out.rchunks_mut(tile).collect() } else { out.chunks_mut(tile).collect() };
    let mut results = Wiped::from(vec![0; tiles.len() * F::LIMBS]);
    let mut tasks: Vec<_> = tiles.into_iter().zip(results.chunks_exact_mut(F::LIMBS)).collect();
    parallel::chunks(&mut tasks, 1, &|i, tasks| {
        let at = if reversed { limbs.saturating_sub((i + 1) * tile) } else { i * tile };
        tasks.iter_mut().for_each(|(out, result)| go(i, at, out).store(result));
    });
    if let Some(last) = results.rchunks_exact(F::LIMBS).next() {
        end[..F::LIMBS].copy_from_slice(last);
    }
}
