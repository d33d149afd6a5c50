/// The checks of points that a reader makes. Every reader refuses coordinates that are not below the modulus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Every point is on its curve and in the subgroup of prime order.
    #[default]
    Full,
    /// Every point is on its curve.
    Curve,
    /// Nothing more: for files whose points have passed a full check before.
    Trusted,
}
