//! Any GPU.
use std::sync::Arc;

use crate::{Backend, Error, Kind, Result};

pub mod compose;

pub(crate) fn open(_: usize) -> Result<Arc<dyn Backend>> {
    Err(Error::Unavailable { backend: Kind::Wgpu, reason: "not there yet".into() })
}

pub(crate) fn count() -> Result<usize> {
    open(0).map(|_| 1)
}
