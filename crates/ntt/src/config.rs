/// Says how a plan is made. What is not set is chosen by size and device.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_ntt::{Config, Ntt, Twiddles};
///
/// let device = Device::best()?;
/// // Tables of 2√n elements instead of n, for one multiplication more an element and pass.
/// let config = Config { twiddles: Some(Twiddles::TwoLevel), ..Config::default() };
/// let small = Ntt::<Fr>::required_bytes(&device, 20, 1, config)?;
/// assert!(small < Ntt::<Fr>::required_bytes(&device, 20, 1, Config::default())?);
/// let ntt = Ntt::<Fr>::with_config(&device, 10, config)?;
/// # assert_eq!(ntt.size(), 1024);
/// // What a plan of a size is made with on a device.
/// assert_eq!(Config::default().chosen::<Fr>(&Device::cpu(), 10)?.twiddles, Some(Twiddles::Stored));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Config {
    /// Where the factors between passes come from. Unless set they are [`Twiddles::Stored`], or [`Twiddles::TwoLevel`] where
    /// stored ones of both directions do not fit the device's memory beside data and scratch of one transform, or one buffer. On
    /// GPUs of data centres they are [`Twiddles::StoredWithQuotients`] where all that takes up to 7% of the memory. Who uses one
    /// direction alone, or more memory for other things, says what to take.
    pub twiddles: Option<Twiddles>,
    /// How a transform is split into passes.
    pub split: Split,
}

/// Says where the factors between passes come from, by falling time of transforms and rising memory. Passes differ in
/// nothing else: the roots within them are always stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Twiddles {
    /// By squaring and multiplying twice in each thread, from the root of unity to (w^j)^k: up to 4 log₂ √n multiplications a factor
    /// where passes are of √n points, as Bellperson's kernel computes them. The product of w^j and w^k, of which PreNTT tells for the
    /// same cost, would be no factor.
    TwoPowers = 6,
    /// By squaring and multiplying from the root of unity, in each thread: up to 2 log₂ n multiplications a factor.
    OnTheFly = 3,
    /// As products of binary powers w^(2^i), which are stored: up to log₂ n multiplications a factor.
    BinaryPowers = 2,
    /// As products of two, from two tables of about √n elements: one multiplication a factor.
    TwoLevel = 1,
    /// Half of them stored, w^i for i below n/2, of which a pass behind the first has its own of fewer; the others are these times
    /// w^(n/2), which is −1.
    HalfStored = 5,
    /// All stored, n elements for each direction, computed on the device from two such tables.
    Stored = 0,
    /// All stored with their quotients by p, 2n elements for each direction, by which CUDA multiplies without reduction (Shoup's
    /// method): for prime fields of an even number of limbs from 4 on. Elsewhere plans have [`Twiddles::Stored`].
    StoredWithQuotients = 4,
}

impl Twiddles {
    /// All variants, for going through them.
    pub const ALL: [Self; 7] = [
        Self::TwoPowers,
        Self::OnTheFly,
        Self::BinaryPowers,
        Self::TwoLevel,
        Self::HalfStored,
        Self::Stored,
        Self::StoredWithQuotients,
    ];
}

/// Says how a transform is split into passes, each at most as large as the memory of a workgroup allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Split {
    /// As few balanced passes as leave elements side by side where a pass loads and stores them.
    #[default]
    Balanced,
    /// In halves, which are split again where they are too large: 1, 2, 4 or 8 passes. Where log₂ n is odd, one half has a
    /// level more, which is a step of radix 2.
    Square,
    /// Passes as large as possible, then what is left.
    Rectangular,
    /// In three passes, or more where these would be too large.
    ThreeWay,
    /// As squares only. Where log₂ n is odd, a kernel of its own does the first round of butterflies (Gentleman and Sande) with its
    /// factors, which it computes, and leaves two independent transforms of n/2: of the outputs with even index and of those with
    /// odd index. Each launch of the passes takes both, and the last one stores them interleaved. While a square of two passes is
    /// too small for what is left, that is halved again. The method for odd log₂ n of PreNTT; a round costs n/2
    /// multiplications more for its factors, and reads and writes the data once.
    Halves,
}

impl Split {
    /// All variants, for going through them.
    pub const ALL: [Self; 5] = [Self::Balanced, Self::Square, Self::Rectangular, Self::ThreeWay, Self::Halves];
}
