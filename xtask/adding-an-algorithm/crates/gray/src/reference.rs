//! The definition, to compare with.

/// The Gray code of `x`: the codes of k + 1 bits are those of k bits, and then the same ones in reverse order with the
/// highest bit set.
pub fn code(x: u32) -> u32 {
    match x.checked_ilog2() {
        None => 0,
        Some(k) => 1 << k | code((1 << k) - 1 - (x - (1 << k))),
    }
}
