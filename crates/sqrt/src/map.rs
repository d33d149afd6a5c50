use std::{any::type_name, fmt, sync::Arc};

use ark_ec::{
    AffineRepr,
    hashing::curve_maps::{swu::SWUConfig, wb::WBConfig},
    short_weierstrass::SWCurveConfig,
};
use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{
    Queue, Secrecy, View, ViewMut,
    author::{Arg, KernelSpec},
};
use evariste_curve::{CurveConstant, CurveError, Jacobian};
use evariste_field::Mont;

use crate::{
    error::{Error, Result},
    kernel::{Loaded, Params, Shape, checked_len, parts, spec},
    machine::THREADS,
    methods::{self, Map},
    plan::Programs,
    program::Program,
    root_field::RootField,
};

/// The prime field under a curve.
type Prime0<C> = <<C as ark_ec::CurveConfig>::BaseField as Field>::BasePrimeField;

/// Maps elements of a curve's base field to points of the curve on one device. It computes `map_to_curve` of RFC 9380
/// for suites like those of BLS12-381.
///
/// This is the simplified map of Shallue, van de Woestijne and Ulas to an isogenous curve, followed by the isogeny. The
/// field is prime (G1) or a quadratic extension (G2). A thread takes one element, without an inversion. A prime field
/// takes one exponentiation as in [`Sqrt::sqrt_ratio`](crate::Sqrt::sqrt_ratio) and about 150 products, an extension
/// two exponentiations and about 250 products.
///
/// The points are in Jacobian form. They lie on the curve, but not in the subgroup.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::{Fq, g1::Config};
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_sqrt::MapToCurve;
///
/// let device = Device::best()?;
/// let u = device.upload::<Mont<Fq>>(&[1, 2, 3].map(Fq::from))?;
/// let mut points = device.alloc(3)?;
/// MapToCurve::<Config>::new(&device)?.map(&u, &mut points)?;
/// assert!(points.to_vec()?.into_iter().all(|p| ark_bls12_381::G1Affine::from(p).is_on_curve()));
/// # Ok(())
/// # }
/// ```
pub struct MapToCurve<C: WBConfig<BaseField: RootField>> {
    queue: Queue,
    loaded: Arc<Loaded<Params, Prime0<C>>>,
}

impl<C: WBConfig<BaseField: RootField>> MapToCurve<C> {
    /// Makes a plan on a queue (`&device` is its default one). Compiles the kernel.
    ///
    /// # Errors
    /// - [`Error::Field`]: the base field is neither prime nor a quadratic extension x² = β of a prime field.
    /// - [`Error::Square`]: the constant of the simplified map or β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Curve`]: the isogenous curve's generator is not on it, or the map takes it to no point of this curve.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the tables or fails.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        let queue = queue.into();
        let program = Arc::new(program::<C>()?);
        let loaded = Loaded::new(&queue, &program, kernel::<C>(&program))?;
        Ok(Self { queue, loaded: Arc::new(loaded) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), loaded: Arc::clone(&self.loaded) }
    }

    /// Returns the kernel, so that you can compile it ahead. The list is empty where [`MapToCurve::new`] refuses the
    /// curve.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        program::<C>().ok().map(|program| kernel::<C>(&Arc::new(program))).into_iter().collect()
    }

    /// Returns the most bytes of device memory that a call for `len` elements allocates: 4 for each element of a
    /// launch.
    pub fn required_bytes(&self, len: usize) -> u64 {
        4 * len.min(self.loaded.each) as u64
    }

    /// Writes the image of `u[i]` to `out[i]`.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): there is not one point for each element.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): elements, points or the queue are of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or one map exceeds the
    ///   loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): there is no room for [`MapToCurve::required_bytes`].
    /// - Another error, if the device fails.
    pub fn map<'a>(
        &self,
        u: impl Into<View<'a, Mont<C::BaseField>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (u, mut out) = (u.into(), out.into());
        out.expect_len("the points", u.len())?;
        let Loaded { kernel, each, .. } = &*self.loaded;
        let queue = self.queue.expect_device(kernel.device())?;
        checked_len(queue.device(), "a batch of elements to map", u.len())?;
        kernel.expect_fits(&Params { len: 0, want: 0 })?;
        let secrecy = Secrecy::of([u.secrecy(), out.secrecy()]);
        let mut verdicts = queue.device().alloc_with::<u32>(u.len().min(*each), secrecy)?;
        for part in parts(u.len(), *each) {
            let params = Params { len: part.len() as u32, want: 0 };
            let mut args = self.loaded.args(queue)?;
            args.extend([Arg::read(u.view(part.clone())?), Arg::write(out.view_mut(part)?), Arg::write(&mut verdicts)]);
            // SAFETY: inputs and outputs have `len` elements, verdicts no fewer, and threads touch only those below it.
            // The program refers to its own slots, constants and digits alone, and a hash gives places in its table for
            // any element.
            unsafe { kernel.launch(queue, params.len.div_ceil(THREADS).into(), &params, &mut args) }?;
        }
        Ok(())
    }

    /// The same plan with launches of `each` elements.
    #[cfg(test)]
    pub(crate) fn in_launches_of(mut self, each: usize) -> Self {
        Arc::get_mut(&mut self.loaded).expect("a plan with one handle").each = each;
        self
    }
}

fn program<C: WBConfig<BaseField: RootField>>() -> Result<Program<Prime0<C>>> {
    let (Programs { prime, beta, .. }, isogeny) = (Programs::<C::BaseField>::new()?, &C::ISOGENY_MAP);
    expect_isogeny::<C>()?;
    if !<C::IsogenousCurve as SWUConfig>::ZETA.legendre().is_qnr() {
        return Err(Error::Square);
    }
    let coefficients = |x: C::BaseField| x.to_base_prime_field_elements().collect::<Vec<_>>();
    let all = |of: &[C::BaseField]| of.iter().map(|x| coefficients(*x)).collect::<Vec<_>>();
    let (x, y) = (
        [isogeny.x_map_numerator, isogeny.x_map_denominator].map(all),
        [isogeny.y_map_numerator, isogeny.y_map_denominator].map(all),
    );
    let [a, b, z] = [
        <C::IsogenousCurve as SWCurveConfig>::COEFF_A,
        <C::IsogenousCurve as SWCurveConfig>::COEFF_B,
        <C::IsogenousCurve as SWUConfig>::ZETA,
    ]
    .map(coefficients);
    let Some(beta) = beta else {
        let (x, y) = (x.map(|of| of.concat()), y.map(|of| of.concat()));
        let [x, y] = [&x, &y].map(|of| [of[0].as_slice(), of[1].as_slice()]);
        return Ok(methods::maps(&prime, &Map { a: a[0], b: b[0], z: z[0], x, y }));
    };
    let [x, y] = [&x, &y].map(|of| [of[0].as_slice(), of[1].as_slice()]);
    Ok(methods::maps2(&prime, beta, &Map { a, b, z, x, y }))
}

/// Refuses a map that takes a point of the isogenous curve to none of this one.
fn expect_isogeny<C: WBConfig<BaseField: RootField>>() -> Result<()> {
    type Isogenous<C> = <C as WBConfig>::IsogenousCurve;
    let is_on =
        |a: C::BaseField, b: C::BaseField, (x, y): (C::BaseField, C::BaseField)| y.square() == (x.square() + a) * x + b;
    let generator = Isogenous::<C>::GENERATOR;
    if !generator.xy().is_some_and(|point| is_on(Isogenous::<C>::COEFF_A, Isogenous::<C>::COEFF_B, point)) {
        let curve = type_name::<Isogenous<C>>();
        return Err(CurveError { curve, constant: CurveConstant::Generator }.into());
    }
    let map = &C::ISOGENY_MAP;
    let of_x = |polynomial: &[C::BaseField]| {
        polynomial.iter().rev().fold(C::BaseField::ZERO, |value, coefficient| value * generator.x + coefficient)
    };
    let [x, y] = [(map.x_map_numerator, map.x_map_denominator), (map.y_map_numerator, map.y_map_denominator)]
        .map(|(numerator, denominator)| Some(of_x(numerator) * of_x(denominator).inverse()?));
    // Few points, which the generator may be one of, go to infinity.
    match x.zip(y).is_none_or(|(x, y)| is_on(C::COEFF_A, C::COEFF_B, (x, y * generator.y))) {
        true => Ok(()),
        false => Err(CurveError { curve: type_name::<C>(), constant: CurveConstant::Isogeny }.into()),
    }
}

fn kernel<C: WBConfig<BaseField: RootField>>(program: &Arc<Program<Prime0<C>>>) -> KernelSpec {
    spec::<C::BaseField>(Shape::Maps, program, "simplified SWU")
}

impl<C: WBConfig<BaseField: RootField>> fmt::Debug for MapToCurve<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapToCurve").field("device", self.queue.device()).finish_non_exhaustive()
    }
}
