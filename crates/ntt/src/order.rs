/// The order of a transform's elements in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Element i lies at place i.
    #[default]
    Natural,
    /// Element i lies at the place with the binary digits of i reversed.
    BitReversed,
}

/// Reverses the lowest `bits` binary digits of `x`, or all 32 if `bits` is larger. The other digits become zero.
pub const fn reverse_bits(x: u32, bits: u32) -> u32 {
    // In 64 bits, so that none is shifted by all of its digits.
    ((x.reverse_bits() as u64) >> 32u32.saturating_sub(bits)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_bits_is_reversed() {
        for (x, bits, reversed) in [
            (1, 0, 0),
            (1, 1, 1),
            (1, 4, 8),
            (0b0110_0001, 5, 0b1_0000),
            (1, 31, 1 << 30),
            (1, 32, 1 << 31),
            (u32::MAX, 32, u32::MAX),
            (1, 33, 1 << 31),
            (1, u32::MAX, 1 << 31),
        ] {
            assert_eq!(reverse_bits(x, bits), reversed, "{x:b}, {bits} bits");
        }
    }
}
