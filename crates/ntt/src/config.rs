mod split;

#[cfg_attr(not(feature = "compare"), allow(unreachable_pub))]
pub use split::Split;

/// The choices that a plan is made with. A plan chooses by size and device what you don't set.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_ntt::{Ntt, NttConfig, Twiddles};
///
/// let device = Device::best()?;
/// // Tables of 2√n elements instead of n, for one multiplication more an element and pass.
/// let config = NttConfig::default().twiddles(Twiddles::TwoLevel);
/// let small = Ntt::<Fr>::required_bytes(&device, 20, 1, config)?;
/// assert!(small < Ntt::<Fr>::required_bytes(&device, 20, 1, NttConfig::default())?);
/// let ntt = Ntt::<Fr>::with_config(&device, 10, config)?;
/// # assert_eq!(ntt.size(), 1024);
/// // The choices of a plan of 2^10 elements on the CPU.
/// assert_eq!(NttConfig::default().resolve::<Fr>(&Device::cpu(), 10)?.twiddles, Some(Twiddles::Stored));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NttConfig {
    /// The source of the twiddles between passes. The plan's choice is [`Twiddles::Stored`]. It is
    /// [`Twiddles::TwoLevel`] if stored twiddles of both directions, data and scratch of one transform exceed the
    /// device's memory. So it is if the twiddles exceed one buffer. On data-centre GPUs it is
    /// [`Twiddles::StoredWithQuotients`] if that takes at most 7% of the memory. Set it if you use one direction only
    /// or need the memory.
    pub twiddles: Option<Twiddles>,
    /// The split of a transform into passes.
    #[cfg(feature = "compare")]
    pub split: Split,
    #[cfg(not(feature = "compare"))]
    pub(crate) split: Split,
}

impl NttConfig {
    /// Sets [`NttConfig::twiddles`]; with `None` the plan chooses.
    #[must_use]
    pub fn twiddles(mut self, twiddles: impl Into<Option<Twiddles>>) -> Self {
        self.twiddles = twiddles.into();
        self
    }

    /// Sets the split of a transform into passes.
    #[cfg(any(test, feature = "compare"))]
    #[must_use]
    pub fn split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }
}

/// The source of the twiddles between two passes, from the slowest transforms and least memory to the fastest and most.
/// The roots within a pass are always stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Twiddles {
    /// Each thread computes (w^j)^k from the root of unity w by squaring and multiplying twice, as Bellperson's kernel
    /// does. This takes up to 4 log₂ √n multiplications a twiddle if passes have √n points.
    TwoPowers = 6,
    /// Each thread computes w^(jk) from the root of unity by squaring and multiplying: up to 2 log₂ n multiplications a
    /// twiddle.
    OnTheFly = 3,
    /// Products of the stored binary powers w^(2^i): up to log₂ n multiplications a twiddle.
    BinaryPowers = 2,
    /// Products of two entries of two tables of about √n elements: one multiplication a twiddle.
    TwoLevel = 1,
    /// The powers w^i for i < n/2 are stored; the others are their opposites, as w^(n/2) = −1. Each pass behind the
    /// first has a shorter table of its own.
    HalfStored = 5,
    /// All stored, n elements for each direction. The device computes them from two tables of √n elements.
    Stored = 0,
    /// All stored with their quotients by p, 2n elements for each direction. CUDA then multiplies without reduction
    /// (Shoup's method). This serves prime fields with an even number of limbs from 4 on; other plans take
    /// [`Twiddles::Stored`].
    StoredWithQuotients = 4,
}

impl Twiddles {
    /// All variants, to iterate over.
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
