//! Ways of adding points to a sum.

use evariste_curve::{
    DeviceCurve,
    point::{self, AffineOf},
};
use evariste_field::native::Native;

use crate::{
    config::{Addition, MAX_WINDOW},
    precompute::{BASE_BITS, PrecomputedTable},
    shared::{Sum, load_affine, zero},
};

/// How the points of sorted pairs are added to a sum: see `msm/add.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adding {
    /// One after the other.
    Single,
    /// Two of a bucket first, then what they make.
    Double,
    /// Doubled as often as the table falls short of their exponents.
    Doubled {
        /// Points between those of one doubling and of the next.
        table: u32,
        /// Doublings in the table, with the bases.
        tables: u32,
    },
}

impl Adding {
    /// One of each.
    pub(crate) const ALL: [Self; 3] = [Self::Single, Self::Double, Self::Doubled { table: 0, tables: 1 }];

    /// The way of adding, with tables of `len` points each.
    pub(crate) fn new(addition: Addition, precomputed: PrecomputedTable, len: usize) -> Self {
        match (precomputed, addition) {
            (PrecomputedTable::Doublings { copies }, _) => Self::Doubled { table: len as u32, tables: copies },
            (_, Addition::Single) => Self::Single,
            (_, Addition::Double) => Self::Double,
        }
    }

    /// Its place in [`Adding::ALL`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Single => 0,
            Self::Double => 1,
            Self::Doubled { .. } => 2,
        }
    }

    /// Its name in those of kernels.
    pub(crate) fn name(self) -> &'static str {
        ["one by one", "two by two", "doubled"][self.index()]
    }

    /// `table` and `tables` of a kernel's parameters.
    pub(crate) fn tables(self) -> [u32; 2] {
        match self {
            Self::Single | Self::Double => [0, 1],
            Self::Doubled { table, tables } => [table, tables],
        }
    }

    /// What comes before a kernel in CUDA C++, behind the arithmetic.
    pub(crate) fn cuda(self) -> String {
        let define = ["", "#define ADD_DOUBLE\n", "#define ADD_DOUBLED\n"][self.index()];
        [define, evariste_cuda::msm::ADD].concat()
    }

    /// What comes before a kernel in WGSL, behind the arithmetic.
    pub(crate) fn wgsl(self) -> &'static str {
        use evariste_shaders::msm::{ADD_DOUBLE, ADD_DOUBLED, ADD_SINGLE};
        [ADD_SINGLE, ADD_DOUBLE, ADD_DOUBLED][self.index()]
    }

    /// Times that of one addition that the loops of a thread turn for each point.
    pub(crate) fn iterations(self) -> u64 {
        match self {
            Self::Single => 1,
            Self::Double => 2,
            Self::Doubled { .. } => u64::from(MAX_WINDOW) + 1,
        }
    }

    /// Calls `found` with each bucket of sorted `keys` and the sum of its points, for a processor.
    pub(crate) fn sum<C: DeviceCurve>(
        self,
        keys: &[u32],
        number: &dyn Fn(usize) -> u32,
        points: &[u32],
        found: &mut dyn FnMut(u32, Sum<C>),
    ) {
        let mut first = 0;
        for run in keys.chunk_by(|a, b| a == b) {
            let numbers = first..first + run.len();
            first = numbers.end;
            found(run[0], self.sum_of::<C>(numbers.map(number), points));
        }
    }

    /// The sum of the points of some values.
    fn sum_of<C: DeviceCurve>(self, mut values: impl Iterator<Item = u32>, points: &[u32]) -> Sum<C> {
        let mut sum = zero::<C>();
        while let Some(value) = values.next() {
            sum = match self {
                Self::Single => point::xyzz_add_affine::<C>(sum, signed::<C>(points, value / 2, value)),
                Self::Double => {
                    let first = signed::<C>(points, value / 2, value);
                    let both = match values.next() {
                        Some(value) => add_affines::<C>(first, signed::<C>(points, value / 2, value)),
                        None => point::xyzz_of_affine::<C>(first),
                    };
                    point::xyzz_add::<C>(sum, both)
                }
                Self::Doubled { table, tables } => {
                    let (exponent, base) = (value >> (BASE_BITS + 1), value / 2 % (1 << BASE_BITS));
                    let known = exponent.min(tables - 1);
                    let point = signed::<C>(points, base + known * table, value);
                    if exponent == known {
                        point::xyzz_add_affine::<C>(sum, point)
                    } else {
                        let point = point::xyzz_of_affine::<C>(point);
                        let multiple = (known..exponent).fold(point, |point, _| point::xyzz_double::<C>(point));
                        point::xyzz_add::<C>(sum, multiple)
                    }
                }
            };
        }
        sum
    }
}

/// Point `at`, or its opposite if the value is odd.
fn signed<C: DeviceCurve>(points: &[u32], at: u32, value: u32) -> AffineOf<C> {
    let point = load_affine::<C>(points, at as usize);
    if value % 2 == 1 { point::affine_negate::<C>(point) } else { point }
}

/// Returns a + b: 4M + 2S, since both have the denominator 1.
fn add_affines<C: DeviceCurve>(a: AffineOf<C>, b: AffineOf<C>) -> Sum<C> {
    if point::affine_is_infinity::<C>(&a) {
        return point::xyzz_of_affine::<C>(b);
    }
    let first = point::xyzz_of_affine::<C>(a);
    if point::affine_is_infinity::<C>(&b) {
        return first;
    }
    let [a, b] = [a.map(Native), b.map(Native)];
    let (p, r) = (b[0] - a[0], b[1] - a[1]);
    if p.is_zero() && r.is_zero() {
        return point::xyzz_double::<C>(first);
    }
    let zz = p.square();
    let (zzz, q) = (p * zz, a[0] * zz);
    let x = r.square() - q.double() - zzz;
    [x, r * (q - x) - a[1] * zzz, zz, zzz].map(|x| x.0)
}
