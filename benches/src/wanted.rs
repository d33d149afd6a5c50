use crate::{depth::Depth, sizes::Sizes};

/// What algorithms are asked to measure.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) depth: Depth,
    /// log₂ of the sizes, if the user chose them.
    pub(crate) log_n: Option<Sizes>,
    /// Whether other implementations are measured too, on the CPU.
    pub(crate) peers: bool,
}
