//! The device's clock, and which of its places are free for events.

use std::sync::{Mutex, PoisonError};

/// Events that can have a timestamp at once; further ones get the host's time.
const QUERIES: u32 = 64;

/// wgpu writes resolved timestamps at multiples of this.
pub(super) const RESOLVED_BYTES: u64 = wgpu::QUERY_RESOLVE_BUFFER_ALIGNMENT;

/// The device's clock.
#[derive(Debug)]
pub(super) struct Timer {
    pub(super) queries: wgpu::QuerySet,
    pub(super) resolved: wgpu::Buffer,
    pub(super) nanos_per_tick: f64,
    free: Mutex<Vec<u32>>,
}

impl Timer {
    /// The clock, if the device has one.
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Self> {
        let features = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        let nanos_per_tick = f64::from(queue.get_timestamp_period());
        if !device.features().contains(features) || nanos_per_tick <= 0.0 {
            return None;
        }
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("events"),
            ty: wgpu::QueryType::Timestamp,
            count: QUERIES,
        });
        let resolved = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("events"),
            size: u64::from(QUERIES) * RESOLVED_BYTES,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Some(Self { queries, resolved, nanos_per_tick, free: Mutex::new((0..QUERIES).collect()) })
    }

    pub(super) fn take(&self) -> Option<u32> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn give(&self, slot: u32) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }
}
