/// The way of data between the devices of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// NCCL if all ranks have it and an NVIDIA GPU of their own, and host memory else.
    #[default]
    Automatic,
    /// NCCL, from device memory to device memory. It takes the feature `nccl`.
    Nccl,
    /// Host memory of each rank, and what the ranks talk by.
    Host,
}
