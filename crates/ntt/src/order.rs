/// The order in which the elements of a transform lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Element i at place i.
    #[default]
    Natural,
    /// Element i at the place whose binary digits are those of i reversed.
    BitReversed,
}

/// The lowest `bits` binary digits of `x` in reversed order, the others being zero.
pub const fn reverse_bits(x: u32, bits: u32) -> u32 {
    (x.reverse_bits() >> 1) >> (31 - bits)
}
