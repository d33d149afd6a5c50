//! Points by their coordinates in Montgomery form, as CPU bodies of kernels compute with them. The formulas are
//! "madd-2008-s", "add-2008-s", "dbl-2008-s-1" of the Explicit-Formulas Database, and their like.
//! `cuda/curve/points.cuh` says why they hold for all points of a curve.

use std::array;

use ark_ff::{AdditiveGroup, Field, Zero};
use evariste_field::{DeviceField, native::Native};

use crate::device_curve::DeviceCurve;

type Base<C> = <C as ark_ec::CurveConfig>::BaseField;
/// The coordinates of an affine point: x, y.
pub type AffineOf<C> = [Base<C>; 2];
/// The coordinates of a point in XYZZ form: x, y, zz, zzz.
pub type XyzzOf<C> = [Base<C>; 4];
/// The coordinates of a point in Jacobian form: x, y, z.
pub type JacobianOf<C> = [Base<C>; 3];

/// Reads the `N` coordinates of a point in device form.
pub fn load<F: DeviceField, const N: usize>(words: &[u32]) -> [F; N] {
    array::from_fn(|i| F::load(&words[i * F::LIMBS..]))
}

/// Writes the `N` coordinates of a point in device form.
pub fn store<F: DeviceField, const N: usize>(point: &[F; N], words: &mut [u32]) {
    for (x, words) in point.iter().zip(words.chunks_exact_mut(F::LIMBS)) {
        x.store(words);
    }
}

/// 3 x² + a w².
fn tangent<C: DeviceCurve>(x: Native<Base<C>>, w: Native<Base<C>>) -> Native<Base<C>> {
    let xx = x.square();
    let m = xx.double() + xx;
    if C::COEFF_A.is_zero() { m } else { m + Native(C::mul_by_a(w.square().0)) }
}

/// Coordinates as the formulas compute with them.
#[inline]
fn native<F, const N: usize>(coordinates: [F; N]) -> [Native<F>; N] {
    coordinates.map(Native)
}

/// The other way.
#[inline]
fn plain<F, const N: usize>(coordinates: [Native<F>; N]) -> [F; N] {
    coordinates.map(|x| x.0)
}

/// Returns the point at infinity: (0, 0), or (0, 1) where b = 0.
pub fn affine_infinity<C: DeviceCurve>() -> AffineOf<C> {
    [Base::<C>::ZERO, if C::COEFF_B.is_zero() { Base::<C>::ONE } else { Base::<C>::ZERO }]
}

/// Returns whether a point is the point at infinity.
pub fn affine_is_infinity<C: DeviceCurve>(p: &AffineOf<C>) -> bool {
    *p == affine_infinity::<C>()
}

/// Returns −p.
pub fn affine_negate<C: DeviceCurve>([x, y]: AffineOf<C>) -> AffineOf<C> {
    if affine_is_infinity::<C>(&[x, y]) { [x, y] } else { [x, -y] }
}

/// Returns the denominator of the slope through two points, or 1 if their sum needs none.
pub fn affine_denominator<C: DeviceCurve>(p: AffineOf<C>, q: AffineOf<C>) -> Base<C> {
    let differences = [q[0].native_sub(&p[0]), q[1].native_add(&p[1])];
    match differences.into_iter().find(|d| !d.is_zero()) {
        Some(d) if !affine_is_infinity::<C>(&p) && !affine_is_infinity::<C>(&q) => d,
        _ => Base::<C>::ONE,
    }
}

/// Returns the sum of two points, given the inverse of their denominator.
pub fn affine_add<C: DeviceCurve>(p: AffineOf<C>, q: AffineOf<C>, inverse: Base<C>) -> AffineOf<C> {
    if affine_is_infinity::<C>(&p) {
        return q;
    }
    if affine_is_infinity::<C>(&q) {
        return p;
    }
    let slope = match (p[0] == q[0], p[1] == -q[1]) {
        (true, true) => return affine_infinity::<C>(),
        (true, false) => tangent::<C>(Native(p[0]), Native::ONE) * Native(inverse),
        (false, _) => Native(q[1].native_sub(&p[1])) * Native(inverse),
    };
    third(native(p), native(q), slope)
}

/// Returns the sum of two points of different x, neither at infinity, given the inverse of the second x less the first.
pub fn affine_chord<C: DeviceCurve>(p: AffineOf<C>, q: AffineOf<C>, inverse: Base<C>) -> AffineOf<C> {
    let [p, q] = [native(p), native(q)];
    third(p, q, (q[1] - p[1]) * Native(inverse))
}

/// The sum of two points on a line of the given slope.
fn third<F: DeviceField>(p: [Native<F>; 2], q: [Native<F>; 2], slope: Native<F>) -> [F; 2] {
    let x = slope.square() - p[0] - q[0];
    plain([x, slope * (p[0] - x) - p[1]])
}

/// Returns the XYZZ form of an affine point.
pub fn xyzz_of_affine<C: DeviceCurve>(p: AffineOf<C>) -> XyzzOf<C> {
    if affine_is_infinity::<C>(&p) {
        return [Base::<C>::ZERO; 4];
    }
    [p[0], p[1], Base::<C>::ONE, Base::<C>::ONE]
}

/// Returns the XYZZ form of a Jacobian point: 1M + 1S.
pub fn xyzz_of_jacobian<F: DeviceField>(point: [F; 3]) -> [F; 4] {
    let [x, y, z] = native(point);
    let zz = z.square();
    plain([x, y, zz, zz * z])
}

/// Returns −p.
pub fn xyzz_negate<F: Field>([x, y, zz, zzz]: [F; 4]) -> [F; 4] {
    [x, -y, zz, zzz]
}

fn xyzz_finish<F: DeviceField>(point: [Native<F>; 4], p: Native<F>, r: Native<F>, doubling: bool) -> [F; 4] {
    let [x, y, zz, zzz] = point;
    let pp = p.square();
    let (ppp, q) = (p * pp, x * pp);
    let mut x3 = r.square() - q.double();
    if !doubling {
        x3 -= ppp;
    }
    plain([x3, r * (q - x3) - y * ppp, zz * pp, zzz * ppp])
}

/// Returns 2 p: 6M + 3S, and 1M + 1S more where a is not 0.
pub fn xyzz_double<C: DeviceCurve>(p: XyzzOf<C>) -> XyzzOf<C> {
    let p = native(p);
    xyzz_finish(p, p[1].double(), tangent::<C>(p[0], p[2]), true)
}

/// Returns a + b for an affine b: 8M + 2S.
pub fn xyzz_add_affine<C: DeviceCurve>(a: XyzzOf<C>, b: AffineOf<C>) -> XyzzOf<C> {
    if affine_is_infinity::<C>(&b) {
        return a;
    }
    if a[2].is_zero() {
        return [b[0], b[1], Base::<C>::ONE, Base::<C>::ONE];
    }
    let (sum, b) = (native(a), native(b));
    let (p, r) = (b[0] * sum[2] - sum[0], b[1] * sum[3] - sum[1]);
    if p.is_zero() && r.is_zero() {
        return xyzz_double::<C>(a);
    }
    xyzz_finish(sum, p, r, false)
}

/// Returns a + b: 12M + 2S.
pub fn xyzz_add<C: DeviceCurve>(a: XyzzOf<C>, b: XyzzOf<C>) -> XyzzOf<C> {
    if b[2].is_zero() {
        return a;
    }
    if a[2].is_zero() {
        return b;
    }
    let [first, b] = [native(a), native(b)];
    let t: [_; 4] = array::from_fn(|i| first[i] * b[2 + i % 2]);
    let (p, r) = (b[0] * first[2] - t[0], b[1] * first[3] - t[1]);
    if p.is_zero() && r.is_zero() {
        return xyzz_double::<C>(a);
    }
    xyzz_finish(t, p, r, false)
}

/// Returns zzz, by which normalising divides, or 1 at infinity.
pub fn xyzz_denominator<F: Field>(p: [F; 4]) -> F {
    if p[2].is_zero() { F::ONE } else { p[3] }
}

/// Returns the affine form, given the inverse of the denominator.
pub fn xyzz_normalise<C: DeviceCurve>([x, y, zz, _]: XyzzOf<C>, inverse: Base<C>) -> AffineOf<C> {
    if zz.is_zero() {
        return affine_infinity::<C>();
    }
    let ([x, y, zz], inverse) = (native([x, y, zz]), Native(inverse));
    plain([x * (zz * inverse).square(), y * inverse])
}

/// Returns the Jacobian form of an affine point.
pub fn jacobian_of_affine<C: DeviceCurve>(p: AffineOf<C>) -> JacobianOf<C> {
    if affine_is_infinity::<C>(&p) {
        return [Base::<C>::ONE, Base::<C>::ONE, Base::<C>::ZERO];
    }
    [p[0], p[1], Base::<C>::ONE]
}

/// Returns the Jacobian form of an XYZZ point, with z = zz, since zz³ = zzz²: 2M.
pub fn jacobian_of_xyzz<F: DeviceField>(point: [F; 4]) -> [F; 3] {
    let [x, y, zz, zzz] = native(point);
    plain([x * zz, y * zzz, zz])
}

/// Returns −p.
pub fn jacobian_negate<F: Field>([x, y, z]: [F; 3]) -> [F; 3] {
    [x, -y, z]
}

fn jacobian_finish<F: DeviceField>(point: [Native<F>; 3], p: Native<F>, r: Native<F>) -> [F; 3] {
    let [x, y, z] = point;
    let pp = p.square();
    let (ppp, q) = (p * pp, x * pp);
    let x3 = r.square() - q.double() - ppp;
    plain([x3, r * (q - x3) - y * ppp, z * p])
}

/// Returns 2 p: 3M + 4S, and 1M + 2S more where a is not 0.
pub fn jacobian_double<C: DeviceCurve>(p: JacobianOf<C>) -> JacobianOf<C> {
    let [x, y, z] = native(p);
    let r = if C::COEFF_A.is_zero() { tangent::<C>(x, z) } else { tangent::<C>(x, z.square()) };
    let yy = y.square();
    // 4 x y² and 8 y⁴.
    let (q, eight) = ((x * yy).double().double(), yy.square().double().double().double());
    let x3 = r.square() - q.double();
    plain([x3, r * (q - x3) - eight, (y * z).double()])
}

/// Returns a + b for an affine b: 8M + 3S.
pub fn jacobian_add_affine<C: DeviceCurve>(a: JacobianOf<C>, b: AffineOf<C>) -> JacobianOf<C> {
    if affine_is_infinity::<C>(&b) {
        return a;
    }
    if a[2].is_zero() {
        return [b[0], b[1], Base::<C>::ONE];
    }
    let (sum, b) = (native(a), native(b));
    let zz = sum[2].square();
    let (p, r) = (b[0] * zz - sum[0], b[1] * zz * sum[2] - sum[1]);
    if p.is_zero() && r.is_zero() {
        return jacobian_double::<C>(a);
    }
    jacobian_finish(sum, p, r)
}

/// Returns a + b: 13M + 4S.
pub fn jacobian_add<C: DeviceCurve>(a: JacobianOf<C>, b: JacobianOf<C>) -> JacobianOf<C> {
    if b[2].is_zero() {
        return a;
    }
    if a[2].is_zero() {
        return b;
    }
    let [first, b] = [native(a), native(b)];
    let (aa, bb) = (first[2].square(), b[2].square());
    let t = [first[0] * bb, first[1] * bb * b[2], first[2] * b[2]];
    let (p, r) = (b[0] * aa - t[0], b[1] * aa * first[2] - t[1]);
    if p.is_zero() && r.is_zero() {
        return jacobian_double::<C>(a);
    }
    jacobian_finish(t, p, r)
}

/// Returns z, by which normalising divides, or 1 at infinity.
pub fn jacobian_denominator<F: Field>(p: [F; 3]) -> F {
    if p[2].is_zero() { F::ONE } else { p[2] }
}

/// Returns the affine form, given the inverse of the denominator.
pub fn jacobian_normalise<C: DeviceCurve>([x, y, z]: JacobianOf<C>, inverse: Base<C>) -> AffineOf<C> {
    if z.is_zero() {
        return affine_infinity::<C>();
    }
    let ([x, y], inverse) = (native([x, y]), Native(inverse));
    let square = inverse.square();
    plain([x * square, y * square * inverse])
}
