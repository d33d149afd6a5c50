/// The size of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// Its rows, a power of two.
    pub height: usize,
    /// Elements of a row.
    pub columns: usize,
}
