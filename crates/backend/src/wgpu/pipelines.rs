//! The pipelines that a device keeps, in memory and on disk.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::cache::Cache;

/// Pipelines that are kept though no kernel uses them: making one again costs up to seconds.
const KEPT: usize = 256;

/// A kernel for one layout of its buffers.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// The kernel's name and variant, unless it is for views or for buffers of several chunks.
    pub(super) plain: Option<(&'static str, String)>,
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    /// Binds the ring of parameters, where they do not pass as immediates.
    pub(super) params: Option<wgpu::BindGroup>,
}

/// The pipelines of a device by the digest of their text.
#[derive(Debug)]
pub(super) struct Pipelines {
    known: Mutex<HashMap<blake3::Hash, Arc<Pipeline>>>,
    /// The disk cache, where the device has caches for pipelines.
    pub(super) cache: Option<Cache>,
    /// What pipelines depend on beside their text.
    pub(super) device: blake3::Hash,
}

impl Pipelines {
    pub(super) fn new(cache: Option<Cache>, adapter: &wgpu::AdapterInfo) -> Self {
        let numbers = [adapter.vendor, adapter.device, adapter.backend as u32].map(u32::to_le_bytes).concat();
        let texts = [&adapter.name, &adapter.driver, &adapter.driver_info].map(String::as_bytes);
        let device = Cache::key(&[b"wgpu 30", &numbers, texts[0], texts[1], texts[2]]);
        Self { known: Mutex::default(), cache, device }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<blake3::Hash, Arc<Pipeline>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, digest: &blake3::Hash) -> Option<Arc<Pipeline>> {
        self.lock().get(digest).cloned()
    }

    /// Whether there is a pipeline of this name and variant with another text than that of the digest. One of the same
    /// text may have come from another thread since [`Pipelines::find`] looked.
    pub(super) fn has_other(&self, digest: &blake3::Hash, name: &'static str, variant: &str) -> bool {
        let same = |(known, of): &(&'static str, String)| *known == name && of == variant;
        self.lock().iter().any(|(of, pipeline)| of != digest && pipeline.plain.as_ref().is_some_and(same))
    }

    pub(super) fn keep(&self, digest: blake3::Hash, pipeline: Pipeline) -> Arc<Pipeline> {
        let mut known = self.lock();
        if known.len() >= KEPT {
            known.retain(|_, pipeline| Arc::strong_count(pipeline) > 1);
        }
        Arc::clone(known.entry(digest).or_insert_with(|| Arc::new(pipeline)))
    }
}
