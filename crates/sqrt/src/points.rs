use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex},
};

use ark_ff::{AdditiveGroup, Field, PrimeField};
use evariste_backend::{
    Arg, Binding, BindingType, Buffer, CpuArg, Kernel, KernelSpec, Language, Queue, Secrecy, View, ViewMut, Wiped,
    loop_turns, parallel, params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Jacobian, point,
    source::{self as curve_source, Form},
};
use evariste_field::{
    DeviceField, Mont,
    ifma::{self, STEP},
    source::{self, turns},
};

use crate::{
    Error, Result, RootField,
    machine::{self, Machine, THREADS},
    methods,
    plan::{Loaded, Plan, beta, checked_len, launch_len, parts},
    program::Program,
    subgroup::{MAX_BETA, Membership},
};

/// Says how a point is written as bytes: by its x, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// That of BLS12-381 in ZCash, Ethereum and the drafts of the CFRG: big-endian, the highest coefficient first. The highest
    /// bits of the first byte say that it is compressed (always), the point at infinity, and that y is the larger root.
    Zcash,
    /// arkworks' own for curves in short Weierstrass form: little-endian, the lowest coefficient first. The highest bits of the
    /// last byte say that y is the larger root, and the point at infinity. For BLS12-381 arkworks has ZCash's instead.
    ///
    /// Bits that neither a coordinate nor a flag needs must be 0, so that a point has one encoding: else the bytes are
    /// [`PointError::NotCanonical`]. arkworks ignores those of the last byte where the flags take one more than the coordinate: six
    /// bits of the 33rd byte for Pallas, Vesta and the other curves over primes of 255 and 256 bits.
    Arkworks,
}

/// Says what is checked of points besides their encoding and that they lie on the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Nothing.
    Curve,
    /// That they lie in the subgroup of prime order.
    #[default]
    Subgroup,
}

/// Says why bytes are no point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The flags are none that a compressed point has, or those of the point at infinity with a coordinate that is not 0.
    #[error("the flags are not those of a compressed point")]
    Flags,
    /// A coefficient of the coordinate is not below p.
    #[error("the coordinate is not in canonical form")]
    NotCanonical,
    /// There is no point with this x.
    #[error("there is no point with this x on the curve")]
    NotOnCurve,
    /// The point is not in the subgroup of prime order.
    #[error("the point is not in the subgroup")]
    NotInSubgroup,
}

impl PointError {
    /// Tells what a status of [`Decompress::decompress`] says; `None` of a point that is right.
    pub fn of(status: u32) -> Option<Self> {
        match status {
            0 => None,
            1 => Some(PointError::Flags),
            2 => Some(PointError::NotCanonical),
            3 => Some(PointError::NotOnCurve),
            _ => Some(PointError::NotInSubgroup),
        }
    }
}

/// Where the parts of an encoding lie.
#[derive(Clone, Copy, Debug)]
struct Layout {
    bytes: usize,
    big_endian: bool,
    flags_at: usize,
    flags: u8,
    required: u8,
    larger: u8,
    degree: usize,
    /// Where each coefficient starts, and how many bytes it has.
    parts: [(usize, usize); 2],
}

/// The flag of the point at infinity, in both encodings.
const INFINITE: u8 = 0x40;

impl Layout {
    fn new<F: RootField>(encoding: Encoding) -> Result<Self> {
        let degree = F::extension_degree() as usize;
        let bits = F::BasePrimeField::MODULUS_BIT_SIZE as usize;
        let plain = bits.div_ceil(8);
        match encoding {
            Encoding::Zcash => {
                let actual = (8 * plain - bits) as u32;
                if actual < 3 {
                    return Err(Error::Flags { expected: 3, actual });
                }
                let start = |k| if k < degree { (degree - 1 - k) * plain } else { 0 };
                let parts = [0, 1].map(|k| (start(k), plain));
                let (bytes, big_endian) = (degree * plain, true);
                Ok(Self { bytes, big_endian, flags_at: 0, flags: 0xe0, required: 0x80, larger: 0x20, degree, parts })
            }
            Encoding::Arkworks => {
                let last = (bits + 2).div_ceil(8);
                let parts = [(0, if degree == 1 { last } else { plain }), (plain, last)];
                let bytes = (degree - 1) * plain + last;
                let (big_endian, flags_at) = (false, bytes - 1);
                Ok(Self { bytes, big_endian, flags_at, flags: 0xc0, required: 0, larger: 0x80, degree, parts })
            }
        }
    }

    /// Byte `i` of a coefficient, from the lowest on, without flags.
    fn digit(&self, point: &[u8], k: usize, i: usize) -> u8 {
        let (start, count) = self.parts[k];
        if i >= count {
            return 0;
        }
        let at = if self.big_endian { start + count - 1 - i } else { start + i };
        if at == self.flags_at { point[at] & !self.flags } else { point[at] }
    }
}

params! {
    struct PointsParams {
        len: u32,
    }

    /// The digits of the scalar from number `low` on, below `high`; the highest one of `bits` is that which the multiple starts
    /// with.
    struct SubgroupParams {
        len: u32,
        bits: u32,
        high: u32,
        low: u32,
    }
}

/// The indices of points that were refused, each with why.
pub type Refused = Vec<(usize, PointError)>;

/// Makes points of a curve from their compressed encodings, on one device: bytes in, affine points in Montgomery form
/// out, as [`evariste_curve`] has them. Everything happens on the device: parsing, the check of each coordinate, y from
/// x by the [`Method`](crate::Method) of the field, and the subgroup.
///
/// The subgroup is decided by one multiplication with a short scalar where r = z⁴ − z² + 1 (BLS12-381 and its family): for G1
/// z² P = −φ(P), of 127 doublings, and for G2 z P = ψ(P), of 63 (Scott, "A note on group membership tests for G1, G2 and GT on BLS
/// pairing-friendly curves", 2021); for G2 of BN254 and its family 6 z² P = ψ(P), of 126 (El Housni, Guillevic and Piellard,
/// "Co-factor clearing and subgroup membership testing on pairing-friendly curves", 2022); on other curves by r P = 0, and not at
/// all where the cofactor is 1. Devices that end the loops of a thread do it in several launches, with a Jacobian point for each of
/// a launch kept between them.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::{G1Affine, g1::Config};
/// use ark_ec::AffineRepr;
/// use ark_serialize::CanonicalSerialize;
/// use evariste_backend::Device;
/// use evariste_sqrt::{Check, Decompress, Encoding, Error, PointError};
///
/// let mut bytes = Vec::new();
/// G1Affine::generator().serialize_compressed(&mut bytes).unwrap();
/// let decompress = Decompress::<Config>::new(&Device::best()?, Encoding::Zcash, Check::Subgroup)?;
/// assert_eq!(decompress.decompress_host(&bytes)?.to_vec()?, [G1Affine::generator()]);
/// bytes[0] &= 0x7f;
/// let refused = decompress.decompress_host(&bytes).unwrap_err();
/// assert_eq!(refused, Error::Point { index: 0, kind: PointError::Flags });
/// # Ok(())
/// # }
/// ```
pub struct Decompress<C: DeviceCurve<BaseField: RootField>> {
    queue: Queue,
    inner: Arc<Inner<C>>,
}

type Prime0<C> = <<C as ark_ec::CurveConfig>::BaseField as Field>::BasePrimeField;

struct Inner<C: DeviceCurve<BaseField: RootField>> {
    layout: Layout,
    points: Loaded<PointsParams, Prime0<C>>,
    subgroup: Option<Subgroup<C>>,
    /// Points of one launch.
    each: usize,
    products: u64,
}

struct Subgroup<C: DeviceCurve<BaseField: RootField>> {
    kernel: Kernel<SubgroupParams>,
    scalar: Buffer<u32>,
    ends: Buffer<Mont<C::BaseField>>,
    bits: u32,
    /// Digits of one launch.
    digits: u32,
}

impl<C: DeviceCurve<BaseField: RootField>> Decompress<C> {
    /// Makes the program and its tables, for work on a queue (`&device` is its default one), and compiles the kernels.
    ///
    /// # Errors
    /// [`Error::Field`] if the base field is neither prime nor a quadratic extension x² = β of a prime field;
    /// [`Error::Square`] if β is a square; [`Error::Modulus`] if the modulus is no prime; [`Error::Flags`] if the
    /// coordinates leave no room for the flags of the encoding; [`Error::Curve`] for a check of the subgroup if the
    /// coefficients, the generator, its order or the cofactor of the curve do not hold; [`Error::Device`] if a kernel
    /// does not compile, if the device has no room for the tables, or if it fails.
    pub fn new(queue: impl Into<Queue>, encoding: Encoding, check: Check) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let (layout, program) = (Layout::new::<C::BaseField>(encoding)?, Arc::new(program::<C>()?));
        let points = Loaded::new(&queue, &program, points_spec::<C>(layout, &program))?;
        let membership = if check == Check::Subgroup { Membership::checked::<C>(device)? } else { None };
        let subgroup = membership.map(|membership| Subgroup::new(&queue, &membership)).transpose()?;
        let launch = |subgroup: &Subgroup<C>| {
            launch_len::<C::BaseField>(device.info(), u64::from(subgroup.bits) * PRODUCTS_OF_DIGIT)
        };
        let each = subgroup.as_ref().map_or(points.each, |subgroup| points.each.min(launch(subgroup)));
        let inner = Arc::new(Inner { layout, points, subgroup, each, products: program.products() });
        Ok(Self { queue, inner })
    }

    /// Gives the same operations, with the same kernels, on a queue of their own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Lists the kernels of an encoding, for compiling them ahead; none for what [`Decompress::new`] refuses.
    pub fn kernels(encoding: Encoding) -> Vec<KernelSpec> {
        let (Ok(layout), Ok(program)) = (Layout::new::<C::BaseField>(encoding), program::<C>()) else {
            return Vec::new();
        };
        let subgroup = Membership::<C::BaseField>::of::<C>().map(|membership| subgroup_spec::<C>(&membership));
        std::iter::once(points_spec::<C>(layout, &Arc::new(program))).chain(subgroup).collect()
    }

    /// Counts the bytes of the encoding of a point.
    pub fn point_bytes(&self) -> usize {
        self.inner.layout.bytes
    }

    /// Counts the multiplications and squarings in the prime field that the root of one point takes.
    pub fn products(&self) -> u64 {
        self.inner.products
    }

    /// Writes to `out[i]` the point with encoding number i of `bytes`, and 0 to `status[i]`; or the point at infinity,
    /// and to `status[i]` what is wrong ([`PointError::of`]).
    ///
    /// # Errors
    /// [`Error::Device`], with [`Length`](evariste_backend::Error::Length) unless there are a status for each point and
    /// the bytes of as many encodings, with [`WrongDevice`](evariste_backend::Error::WrongDevice) if one of the three
    /// lies on another device, with [`TooLarge`](evariste_backend::Error::TooLarge) for encodings of 2^32 bytes or
    /// more, for more than 2^31 points, or if a thread of the device may not do as much as one root takes, with
    /// [`Unaligned`](evariste_backend::Error::Unaligned) for a view of bytes that is not whole words of 4, with
    /// [`OutOfMemory`](evariste_backend::Error::OutOfMemory) if multiples are kept between launches and there is no
    /// room for them, or with what the device fails with.
    pub fn decompress<'a>(
        &self,
        bytes: impl Into<View<'a, u8>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
        status: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (bytes, mut out, mut status) = (bytes.into(), out.into(), status.into());
        let (queue, inner) = (&self.queue, &*self.inner);
        let len = out.len();
        bytes.expect_len("the encodings, in bytes,", len.saturating_mul(inner.layout.bytes))?;
        status.expect_len("the statuses", len)?;
        let too_large = |limit: usize| {
            let (what, device) = ("a batch of encodings, in bytes,", queue.device().info().id);
            Error::Device(evariste_backend::Error::TooLarge {
                what,
                device,
                expected: limit as u64,
                actual: bytes.len() as u64,
            })
        };
        // Kernels count bytes with 32 bits.
        if bytes.len() > u32::MAX as usize {
            return Err(too_large(u32::MAX as usize));
        }
        checked_len(queue.device(), "a batch of points", len)?;
        inner.points.kernel.expect_fits(&PointsParams { len: 0 })?;
        if let Some(subgroup) = &inner.subgroup {
            subgroup.launches(0).try_for_each(|params| subgroup.kernel.expect_fits(&params))?;
        }
        // The multiples between launches, where there are several for the digits of the subgroup's scalar.
        let divided = inner.subgroup.as_ref().is_some_and(|subgroup| subgroup.launches(0).count() > 1);
        let secrecy = Secrecy::of([bytes.secrecy(), out.secrecy(), status.secrecy()]);
        let mut sums =
            queue.device().alloc_with::<Jacobian<C>>(if divided { len.min(inner.each) } else { 0 }, secrecy)?;
        for part in parts(len, inner.each) {
            let params = PointsParams { len: part.len() as u32 };
            let groups = params.len.div_ceil(THREADS).into();
            let encodings = bytes.view(part.start * inner.layout.bytes..part.end * inner.layout.bytes)?;
            let (mut out, mut status) = (out.view_mut(part.clone())?, status.view_mut(part)?);
            let mut args = inner.points.args(queue)?;
            args.extend([Arg::read(encodings), Arg::write(&mut out), Arg::write(&mut status)]);
            // SAFETY: there are bytes, points and statuses for `len` points, and threads touch only theirs. The program refers to
            // its own slots, constants and digits alone, and a hash gives places in its table for any element.
            unsafe { inner.points.kernel.launch(queue, groups, &params, &mut args)? };
            let Some(subgroup) = &inner.subgroup else { continue };
            for params in subgroup.launches(params.len) {
                let args = &mut [
                    Arg::read(&subgroup.scalar),
                    Arg::read(&subgroup.ends),
                    Arg::write(&mut out),
                    Arg::write(&mut status),
                    Arg::write(&mut sums),
                ];
                // SAFETY: there are `len` points and statuses, a scalar of `bits` digits and both ends, and as many multiples if
                // one launch does not do all digits, else none are touched.
                unsafe { subgroup.kernel.launch(queue, groups, &params, args)? };
            }
        }
        Ok(())
    }

    /// The same operations in launches of so many points, and of so many digits of the subgroup's scalar.
    #[cfg(test)]
    pub(crate) fn in_launches_of(mut self, each: usize, digits: u32) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("a plan with one handle");
        inner.each = each;
        inner.subgroup.iter_mut().for_each(|subgroup| subgroup.digits = digits);
        self
    }

    /// Makes the points of encodings in host memory, on the device.
    ///
    /// # Errors
    /// [`Error::Point`] with the first encoding that is no point; and the errors of [`Decompress::try_decompress_host`], for
    /// the same reasons.
    pub fn decompress_host(&self, bytes: &[u8]) -> Result<Buffer<AffinePoint<C>>> {
        let (points, wrong) = self.try_decompress_host(bytes)?;
        match wrong.first() {
            None => Ok(points),
            Some((index, kind)) => Err(Error::Point { index: *index, kind: *kind }),
        }
    }

    /// Makes the points of encodings in host memory, on the device, with the point at infinity for what is no point;
    /// and lists all that are none, by index and kind.
    ///
    /// # Errors
    /// [`Error::Device`], with [`Length`](evariste_backend::Error::Length) if the bytes are no whole number of
    /// encodings, with [`OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for bytes,
    /// points and statuses; and the errors of [`Decompress::decompress`], for the same reasons.
    pub fn try_decompress_host(&self, bytes: &[u8]) -> Result<(Buffer<AffinePoint<C>>, Refused)> {
        // Of bytes that end within an encoding, the last one is too short.
        let len = bytes.len().div_ceil(self.inner.layout.bytes);
        let queue = &self.queue;
        self.inner.points.expect_queue(queue)?;
        let mut encodings = queue.device().alloc::<u8>(bytes.len())?;
        let (mut points, mut status) = (queue.device().alloc(len)?, queue.device().alloc::<u32>(len)?);
        queue.write(&mut encodings, bytes)?;
        self.decompress(&encodings, &mut points, &mut status)?;
        let status = queue.read(&status)?;
        let wrong = status.iter().enumerate().filter_map(|(i, status)| Some((i, PointError::of(*status)?)));
        Ok((points, wrong.collect()))
    }
}

impl<C: DeviceCurve<BaseField: RootField>> Subgroup<C> {
    fn new(queue: &Queue, membership: &Membership<C::BaseField>) -> Result<Self> {
        let device = queue.device();
        let kernel = Kernel::new(device, subgroup_spec::<C>(membership))?;
        let ends = membership.ends.unwrap_or([C::BaseField::ONE; 2]);
        let (scalar, ends) = (queue.upload(&membership.scalar.to_u32_digits())?, queue.upload(&ends)?);
        // Uploads are there before a launch on any queue: plans are made once.
        device.sync()?;
        let bits = membership.scalar.bits() as u32;
        let mut subgroup = Self { kernel, scalar, ends, bits, digits: (bits - 1).max(1) };
        while subgroup.digits > 1 && !subgroup.launches(0).all(|params| subgroup.kernel.fits(&params)) {
            subgroup.digits = subgroup.digits.div_ceil(2);
        }
        Ok(subgroup)
    }

    /// What each launch does for so many points: digits of the scalar from the highest on; one launch without any for a scalar
    /// of one digit.
    fn launches(&self, len: u32) -> impl Iterator<Item = SubgroupParams> {
        let (bits, digits) = (self.bits, self.digits);
        (0..(bits - 1).div_ceil(digits).max(1)).map(move |i| {
            let high = bits - 1 - i * digits;
            SubgroupParams { len, bits, high, low: high.saturating_sub(digits) }
        })
    }
}

/// y of x.
fn program<C: DeviceCurve<BaseField: RootField>>() -> Result<Program<Prime0<C>>> {
    let [a, b] = [C::COEFF_A, C::COEFF_B].map(|x| x.to_base_prime_field_elements().collect::<Vec<_>>());
    let Plan { prime, beta, .. } = Plan::<C::BaseField>::new()?;
    methods::points(&prime, beta, &a, &b)
}

/// Points that a CPU thread takes at a time.
const GRAIN: usize = 16;
const _: () = assert!(GRAIN <= STEP);

/// Products of a doubling and an addition of Jacobian points: 8 or 11, and 11 or 16.
pub(crate) const PRODUCTS_OF_DIGIT: u64 = 20;

fn points_spec<C: DeviceCurve<BaseField: RootField>>(layout: Layout, program: &Arc<Program<Prime0<C>>>) -> KernelSpec {
    let word = source::binding_type::<Prime0<C>>();
    let [program_words, constants, hashed] = machine::bindings::<Prime0<C>>();
    let bindings = [
        program_words,
        constants,
        hashed,
        Binding::read("bytes", BindingType::U32),
        Binding::write("out", word),
        Binding::write("status", BindingType::U32),
    ];
    let infinity_y = point::affine_infinity::<C>()[1] == C::BaseField::ONE;
    let rendered = Arc::clone(program);
    let source = move |language| match language {
        Language::Cuda => {
            let field = source::cuda::<Prime0<C>>();
            let layout = cuda_layout(&layout, infinity_y);
            [&field, &machine::cuda(&rendered), &layout, evariste_cuda::sqrt::POINTS].concat()
        }
        Language::Wgsl { int64 } => {
            let field = source::wgsl::<Prime0<C>>(int64);
            let accessors = source::wgsl_accessors::<Prime0<C>>(&bindings[4]);
            let layout = wgsl_layout::<Prime0<C>>(&layout, infinity_y);
            [&field, &machine::wgsl(&rendered), &accessors, &layout, evariste_shaders::sqrt::POINTS].concat()
        }
    };
    let (run, turns) = (Arc::clone(program), program.turns());
    let body =
        move |params: &PointsParams, args: &mut [CpuArg<'_>; 6]| points_body::<C>(&run, &layout, params.len, args);
    let Layout { bytes, big_endian, flags_at, flags, required, larger, parts, .. } = layout;
    let variant = format!(
        "{bytes} bytes, {big_endian}, {flags_at}, {flags:#x}, {required:#x}, {larger:#x}, {parts:?}, {infinity_y} over {} ({})",
        source::label::<C::BaseField>(),
        machine::label(program),
    );
    let turns = turns + loop_turns(2, loop_turns(8, 0));
    KernelSpec::new("sqrt_points", variant, bindings, body, source)
        .threads(THREADS)
        .turns(move |_: &PointsParams| turns)
}

fn cuda_layout(layout: &Layout, infinity_y: bool) -> String {
    let list = |part: fn(&(usize, usize)) -> usize| {
        layout.parts[..layout.degree].iter().map(|x| part(x).to_string()).collect::<Vec<_>>().join(", ")
    };
    format!(
        "#define COEFFICIENTS {}\n#define BYTES {}\n#define BIG_ENDIAN {}\n#define FLAGS_AT {}u\n#define FLAGS {}u\n\
         #define REQUIRED {}u\n#define INFINITE {INFINITE}u\n#define LARGER {}u\n#define STARTS {{ {} }}\n\
         #define COUNTS {{ {} }}\n#define INFINITY_Y {}\n",
        layout.degree,
        layout.bytes,
        u8::from(layout.big_endian),
        layout.flags_at,
        layout.flags,
        layout.required,
        layout.larger,
        list(|part| part.0),
        list(|part| part.1),
        u8::from(infinity_y),
    )
}

fn wgsl_layout<B: DeviceField>(layout: &Layout, infinity_y: bool) -> String {
    let Layout { bytes, big_endian, flags_at, flags, required, larger, degree, parts } = layout;
    let limbs = (0..B::LIMBS).map(|i| format!("e_limb(point, start, count, {i}u)")).collect::<Vec<_>>().join(", ");
    let stores = |value: &dyn Fn(usize) -> String| -> String {
        (0..2 * degree).map(|k| format!("    out_store({}u * i + {k}u, {});\n", 2 * degree, value(k))).collect()
    };
    let none = |k: usize| if infinity_y && k == *degree { "f_one()" } else { "f_zero()" }.to_owned();
    format!(
        "const COEFFICIENTS = {degree}u;\nconst LIMBS = {}u;\nconst BYTES = {bytes}u;\nconst BIG_ENDIAN = {big_endian};\n\
         const FLAGS_AT = {flags_at}u;\nconst FLAGS = {flags}u;\nconst REQUIRED = {required}u;\n\
         const INFINITE = {INFINITE}u;\nconst LARGER = {larger}u;\n\
         fn starts(k: u32) -> u32 {{ return select({}u, {}u, k == 0u); }}\n\
         fn counts(k: u32) -> u32 {{ return select({}u, {}u, k == 0u); }}\n\
         fn e_element(point: u32, start: u32, count: u32) -> F {{\n  return F({limbs});\n}}\n\
         fn outputs(i: u32, none: bool) {{\n  if (none) {{\n{}  }} else {{\n{}  }}\n}}\n",
        B::LIMBS,
        parts[1].0,
        parts[0].0,
        parts[1].1,
        parts[0].1,
        stores(&none),
        stores(&|k| format!("slots[{k}]")),
    )
}

fn points_body<C: DeviceCurve<BaseField: RootField>>(
    program: &Program<Prime0<C>>,
    layout: &Layout,
    len: u32,
    [words, constants, hashed, bytes, out, status]: &mut [CpuArg<'_>; 6],
) {
    let machine = Machine::<Prime0<C>>::new(program, words.read(), constants.read(), hashed.read());
    let (each, limbs, len) = (Prime0::<C>::LIMBS, 2 * C::BaseField::LIMBS, len as usize);
    let bytes = bytes.read::<u8>();
    let status: Vec<_> = status.write::<u32>()[..len].chunks_mut(GRAIN).map(Mutex::new).collect();
    parallel::chunks(&mut out.write::<u32>()[..len * limbs], GRAIN * limbs, &|chunk, out| {
        // Nobody else takes this chunk.
        let Ok(mut status) = status[chunk].lock() else { return };
        let mut group = machine.group(2 * layout.degree);
        let mut infinite = [false; STEP];
        for (at, status) in (0..).step_by(STEP).zip(status.chunks_mut(STEP)) {
            for (i, status) in status.iter_mut().enumerate() {
                let point = &bytes[(chunk * GRAIN + at + i) * layout.bytes..][..layout.bytes];
                let (mut canonical, mut zero) = (true, true);
                for k in 0..layout.degree {
                    let words = group.words(k, i);
                    for (i, word) in words.iter_mut().enumerate() {
                        *word =
                            (0..4).fold(0, |word, j| word | u32::from(layout.digit(point, k, 4 * i + j)) << (8 * j));
                    }
                    let rest = (4 * each..layout.parts[k].1).all(|i| layout.digit(point, k, i) == 0);
                    zero &= rest && words.iter().all(|word| *word == 0);
                    if !(rest && Prime0::<C>::is_stored(words)) {
                        canonical = false;
                        words.fill(0);
                    }
                }
                let flags = point[layout.flags_at];
                infinite[i] = flags & INFINITE != 0;
                let larger = flags & layout.larger != 0;
                group.want[i] = larger.into();
                *status = match () {
                    () if flags & layout.required != layout.required || infinite[i] && (larger || !zero) => 1,
                    () if !canonical => 2,
                    () => 0,
                };
            }
            machine.run(&mut group, status.len());
            let out = out[at * limbs..].chunks_exact_mut(limbs);
            for (i, (out, status)) in out.zip(status).enumerate() {
                if *status == 0 && !infinite[i] && group.verdicts[i] == 0 {
                    *status = 3;
                }
                if *status != 0 || infinite[i] {
                    point::store(&point::affine_infinity::<C>(), out);
                    continue;
                }
                for (k, words) in out.chunks_exact_mut(each).enumerate() {
                    words.copy_from_slice(group.words(k, i));
                }
            }
        }
    });
}

fn subgroup_spec<C: DeviceCurve<BaseField: RootField>>(membership: &Membership<C::BaseField>) -> KernelSpec {
    let word = source::binding_type::<C::BaseField>();
    let bindings = [
        Binding::read("scalar", BindingType::U32),
        Binding::read("ends", word),
        Binding::write("points", word),
        Binding::write("status", BindingType::U32),
        Binding::write("sums", word),
    ];
    let (seen, short, conjugate) = (bindings, membership.ends.is_some(), membership.conjugate);
    let source = move |language| match language {
        Language::Cuda => {
            let curve = curve_source::cuda::<C>();
            let (short, conjugate) = (u8::from(short), u8::from(conjugate));
            let ends = format!("#define ENDOMORPHISM {short}\n#define CONJUGATE {conjugate}\n");
            [&curve, &ends, evariste_cuda::sqrt::SUBGROUP].concat()
        }
        Language::Wgsl { int64 } => {
            let curve = curve_source::wgsl::<C>(int64, &[Form::Jacobian]);
            let points = curve_source::wgsl_accessors::<C>(&seen[2], Form::Affine)
                + &curve_source::wgsl_accessors::<C>(&seen[4], Form::Jacobian);
            let ends = source::wgsl_accessors::<C::BaseField>(&seen[1]);
            let conjugated = if conjugate { "F(x.c0, b_sub(b_zero(), x.c1))" } else { "x" };
            let text = format!("const ENDOMORPHISM = {short};\nfn conjugate(x: F) -> F {{ return {conjugated}; }}\n",);
            [&curve, &points, &ends, &text, evariste_shaders::sqrt::SUBGROUP].concat()
        }
    };
    let (of, scalar) = (membership.clone(), membership.scalar.clone());
    let side_by_side = SideBySide::<C>::new(membership);
    let body = move |params: &SubgroupParams, args: &mut [CpuArg<'_>; 5]| {
        subgroup_body::<C>(&of, side_by_side.as_ref(), *params, args);
    };
    // Doublings have 8 products, or 11 where a is not 0; additions 11, and a doubling in the rare case.
    let mul = turns::mul::<C::BaseField>();
    let turns = move |params: &SubgroupParams| {
        let additions = (params.low..params.high).filter(|bit| scalar.bit((*bit).into())).count() as u64;
        loop_turns((params.high - params.low).into(), 11 * mul).saturating_add(additions * 20 * mul) + 6 * mul
    };
    let (bits, curve) = (membership.scalar.bits(), curve_source::label::<C>());
    let how = match (short, conjugate) {
        (false, _) => "",
        (true, false) => " and an endomorphism",
        (true, true) => " and an endomorphism of conjugates",
    };
    let variant = format!("{bits} digits{how} over {curve}");
    KernelSpec::new("sqrt_subgroup", variant, bindings, body, source).threads(THREADS).turns(turns)
}

fn subgroup_body<C: DeviceCurve<BaseField: RootField>>(
    membership: &Membership<C::BaseField>,
    side_by_side: Option<&SideBySide<C>>,
    params: SubgroupParams,
    [_, _, points, status, sums]: &mut [CpuArg<'_>; 5],
) {
    let (limbs, each, len) = (2 * C::BaseField::LIMBS, 3 * C::BaseField::LIMBS, params.len as usize);
    // There are no multiples where one launch does all digits.
    let sums = sums.write::<u32>().chunks_mut(GRAIN * each).map(Some).chain(std::iter::repeat_with(|| None));
    let status = status.write::<u32>()[..len].chunks_mut(GRAIN);
    let status: Vec<_> = status.zip(sums).map(Mutex::new).collect();
    let side_by_side = side_by_side.filter(|_| params.high + 1 == params.bits && params.low == 0);
    let multiplied = |mut sum: point::JacobianOf<C>, p: point::AffineOf<C>| {
        for bit in (params.low..params.high).rev() {
            sum = point::jacobian_double::<C>(sum);
            if membership.scalar.bit(bit.into()) {
                sum = point::jacobian_add_affine::<C>(sum, p);
            }
        }
        sum
    };
    parallel::chunks(&mut points.write::<u32>()[..len * limbs], GRAIN * limbs, &|chunk, points| {
        // Nobody else takes this chunk.
        let Ok(mut own) = status[chunk].lock() else { return };
        let (status, sums) = &mut *own;
        let enough = status.iter().filter(|status| **status == 0).count() >= MIN_SIDE_BY_SIDE;
        let multiples = side_by_side.filter(|_| enough).map(|side_by_side| side_by_side.multiples(points));
        for (i, (words, status)) in points.chunks_exact_mut(limbs).zip(status.iter_mut()).enumerate() {
            let p: point::AffineOf<C> = point::load(words);
            if *status != 0 || point::affine_is_infinity::<C>(&p) {
                continue;
            }
            let kept = sums.as_deref_mut().map(|sums| &mut sums[i * each..][..each]);
            let sum = match (&multiples, &kept) {
                (Some(multiples), _) => point::load(&multiples[i * each..]),
                (None, Some(kept)) if params.high + 1 < params.bits => multiplied(point::load(kept), p),
                (None, _) => multiplied(point::jacobian_of_affine::<C>(p), p),
            };
            match kept {
                Some(kept) if params.low > 0 => point::store(&sum, kept),
                _ if is_member::<C>(membership, p, sum) => {}
                _ => {
                    point::store(&point::affine_infinity::<C>(), words);
                    *status = 4;
                }
            }
        }
    });
}

/// Points of a step from which on the step takes less time than they do one after the other.
const MIN_SIDE_BY_SIDE: usize = 6;

/// Multiples by the subgroup's scalar in lanes of the CPU, where the curve has an endomorphism. Formulas there are not complete:
/// where an addition would be a doubling or its sum infinite, z is 0 at the end. Of a point of the subgroup no multiple on the
/// way by a scalar below r / 2 is, so that such points are outside, as z = 0 says.
struct SideBySide<C: DeviceCurve<BaseField: RootField>> {
    lanes: ifma::Field,
    digits: Vec<bool>,
    beta: u8,
    one: Vec<u32>,
    curve: PhantomData<C>,
}

impl<C: DeviceCurve<BaseField: RootField>> SideBySide<C> {
    fn new(membership: &Membership<C::BaseField>) -> Option<Self> {
        membership.ends?;
        let beta = match beta::<C::BaseField>().ok()? {
            None => 0,
            Some(square) => (1..=MAX_BETA).find(|beta| Prime0::<C>::from(*beta) == -square)?,
        };
        let lanes = ifma::Field::of::<Prime0<C>>().filter(|_| C::COEFF_A == C::BaseField::ZERO)?;
        let digits = (0..membership.scalar.bits() - 1).rev().map(|bit| membership.scalar.bit(bit)).collect();
        let mut one = vec![0; Prime0::<C>::LIMBS];
        Prime0::<C>::ONE.store(&mut one);
        Some(Self { lanes, digits, beta, one, curve: PhantomData })
    }

    /// Of up to a step of points, Jacobian.
    fn multiples(&self, points: &[u32]) -> Wiped<u32> {
        let limbs = C::BaseField::LIMBS;
        let mut all = Wiped::from(vec![0; STEP * 2 * limbs]);
        all[..points.len()].copy_from_slice(points);
        let mut multiples = Wiped::from(vec![0; STEP * 3 * limbs]);
        let degree = limbs / Prime0::<C>::LIMBS;
        let Self { lanes, digits, beta, one, .. } = self;
        #[cfg(target_arch = "x86_64")]
        {
            use crate::lanes::multiples::Multiples;
            let job = Multiples { digits, degree, beta: *beta, one, points: &all, multiples: &mut multiples };
            lanes.run::<Prime0<C>, _>(job, Multiples::run_usual);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no {lanes:?} is made for {multiples:?} by {digits:?} over {one:?}, {degree} and {beta}");
        #[cfg(target_arch = "x86_64")]
        multiples
    }
}

/// Whether a point whose multiple by the scalar is `multiple` is in the subgroup.
fn is_member<C: DeviceCurve<BaseField: RootField>>(
    membership: &Membership<C::BaseField>,
    p: point::AffineOf<C>,
    [x, y, z]: point::JacobianOf<C>,
) -> bool {
    let Some(ends) = membership.ends else { return z == C::BaseField::ZERO };
    let [u, v] = if membership.conjugate { p.map(|x| x.frobenius_map(1)) } else { p };
    let square = z.square();
    z != C::BaseField::ZERO && u * ends[0] * square == x && v * ends[1] * square * z == y
}

impl<C: DeviceCurve<BaseField: RootField>> fmt::Debug for Decompress<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompress")
            .field("device", self.queue.device())
            .field("layout", &self.inner.layout)
            .finish_non_exhaustive()
    }
}
