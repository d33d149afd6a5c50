//! Whether this machine has a GPU, as far as its kernel shows without a driver.

use std::path::Path;

/// What Linux shows of GPUs that Vulkan may reach: those of any maker, NVIDIA's, Windows' below it, Qualcomm's, Arm's.
const SHOWN: [&str; 5] = ["/dev/dri", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"];

/// Whether there may be one that is no emulation. Other systems than Linux always have one.
pub(crate) fn may_be_there() -> bool {
    !cfg!(target_os = "linux") || SHOWN.iter().any(|path| Path::new(path).exists())
}
