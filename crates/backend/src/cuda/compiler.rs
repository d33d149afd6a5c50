//! NVRTC.
