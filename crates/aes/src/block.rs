//! Blocks, for all modes: their size, and the order of counter blocks.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// The bits of the counter block that are the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counter {
    /// All 128 bits, big-endian, as in SP 800-38A and OpenSSL.
    #[default]
    Bits128,
    /// The last 32 bits, big-endian, the others fixed, as in GCM: streams of at most 2^36 bytes.
    Bits32,
}

impl Counter {
    /// As kernels' parameters say it: whether all bits count.
    pub(crate) fn word(self) -> u32 {
        u32::from(self == Counter::Bits128)
    }

    /// What a kernel's parameters say.
    pub(crate) fn of_word(word: u32) -> Self {
        if word == 0 { Counter::Bits32 } else { Counter::Bits128 }
    }

    /// Returns how many bytes a stream has before its counter repeats.
    pub const fn limit(self) -> u128 {
        match self {
            // 2^132 bytes are beyond what a position can say.
            Counter::Bits128 => u128::MAX,
            Counter::Bits32 => 1 << 36,
        }
    }
}

/// A counter block plus n. The bits that count are a big-endian number.
pub(crate) fn add_counter(counter: [u8; BLOCK], n: u128, width: Counter) -> [u8; BLOCK] {
    let value = u128::from_be_bytes(counter);
    let low = u128::from(u32::MAX);
    match width {
        Counter::Bits128 => value.wrapping_add(n),
        Counter::Bits32 => value & !low | value.wrapping_add(n) & low,
    }
    .to_be_bytes()
}
