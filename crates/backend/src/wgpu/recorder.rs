//! Commands on their way to the queue.
//!
//! Commands are recorded into one encoder and submitted together, since a submission costs more than a small launch. A
//! run of launches shares one compute pass; wgpu puts barriers between those that depend on each other.

use std::collections::VecDeque;

use super::staging::Upload;

/// Commands after which a batch is submitted, so that the device starts while the host goes on. A small launch took 54
/// µs with a submission each, 13 µs with one for 16, 11 µs with one for 64 (Mesa's lavapipe).
const BATCH_COMMANDS: u32 = 32;

/// Workgroups after which a batch is submitted: from here on the work outweighs the submission, and no batch grows long
/// enough for a watchdog.
const BATCH_GROUPS: u64 = 4096;

/// Bytes of uploads after which a batch is submitted, so that copies overlap the encoding of what follows.
const BATCH_UPLOAD_BYTES: u64 = 1 << 20;

/// Submissions with uploads that are remembered; a wait for the oldest of more waits for a later one instead.
const UPLOADS_REMEMBERED: usize = 64;

/// The batch that is being recorded. Fields drop in order: a pass ends before its encoder.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    /// Contents of the ring of uniform parameters that the batch uses.
    params: Vec<u8>,
    /// Staging that the batch copies from.
    uploads: Vec<Upload>,
    upload_bytes: u64,
    commands: u32,
    groups: u64,
    submitted: Option<wgpu::SubmissionIndex>,
    /// Submissions with uploads that nobody waited for, oldest first.
    upload_submissions: VecDeque<wgpu::SubmissionIndex>,
}

/// What a submission took out of the recorder.
pub(super) struct Batch {
    pub(super) commands: wgpu::CommandBuffer,
    pub(super) params: Vec<u8>,
    pub(super) uploads: Vec<Upload>,
}

impl Recorder {
    /// For a command outside of compute passes.
    pub(super) fn encoder(&mut self, device: &wgpu::Device) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.commands += 1;
        self.encoder.get_or_insert_with(|| device.create_command_encoder(&Default::default()))
    }

    /// For a launch of `groups` workgroups.
    pub(super) fn pass(&mut self, device: &wgpu::Device, groups: u64) -> &mut wgpu::ComputePass<'static> {
        self.commands += 1;
        self.groups = self.groups.saturating_add(groups);
        let encoder = &mut self.encoder;
        self.pass.get_or_insert_with(|| {
            let encoder = encoder.get_or_insert_with(|| device.create_command_encoder(&Default::default()));
            encoder.begin_compute_pass(&Default::default()).forget_lifetime()
        })
    }

    /// Adds uniform parameters and gives their offset, or `None` if `capacity` bytes are used up.
    pub(super) fn push_params(&mut self, params: &[u8], align: usize, capacity: usize) -> Option<u32> {
        let offset = self.params.len().next_multiple_of(align.max(1));
        if offset + params.len() > capacity {
            return None;
        }
        self.params.resize(offset, 0);
        self.params.extend_from_slice(params);
        u32::try_from(offset).ok()
    }

    /// Keeps staging memory until the batch is submitted.
    pub(super) fn push_upload(&mut self, upload: Upload) {
        self.upload_bytes += upload.bytes();
        self.uploads.push(upload);
    }

    /// Whether the batch should be submitted.
    pub(super) fn is_full(&self) -> bool {
        self.commands >= BATCH_COMMANDS || self.groups >= BATCH_GROUPS || self.upload_bytes >= BATCH_UPLOAD_BYTES
    }

    /// The batch for submission, if there is anything in it.
    pub(super) fn take(&mut self) -> Option<Batch> {
        self.pass = None;
        let encoder = self.encoder.take()?;
        (self.commands, self.groups, self.upload_bytes) = (0, 0, 0);
        let (params, uploads) = (std::mem::take(&mut self.params), std::mem::take(&mut self.uploads));
        Some(Batch { commands: encoder.finish(), params, uploads })
    }

    /// Notes a submission.
    pub(super) fn submitted(&mut self, index: wgpu::SubmissionIndex, has_uploads: bool) {
        if has_uploads {
            self.upload_submissions.push_back(index.clone());
            if self.upload_submissions.len() > UPLOADS_REMEMBERED {
                self.upload_submissions.pop_front();
            }
        }
        self.submitted = Some(index);
    }

    /// The latest submission.
    pub(super) fn latest(&self) -> Option<wgpu::SubmissionIndex> {
        self.submitted.clone()
    }

    /// The oldest submission with uploads that nobody waited for.
    pub(super) fn oldest_upload(&mut self) -> Option<wgpu::SubmissionIndex> {
        self.upload_submissions.pop_front()
    }
}
