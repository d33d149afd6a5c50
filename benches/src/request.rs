use crate::{coverage::Coverage, sizes::Sizes};

/// What algorithms are asked to measure.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) coverage: Coverage,
    /// log₂ of the sizes, if the user chose them.
    pub(crate) log_n: Option<Sizes>,
    /// Whether other implementations are measured too, on the CPU.
    pub(crate) peers: bool,
}
