//! The bodies for the CPU: the functions of well-kept crates, which use the instructions of the processor. They are
//! faster than what is worth writing here, and kernels are compared with definitions of our own.

use blake2::Blake2s256;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use evariste_backend::parallel;
use sha2::{Digest, Sha256};
use sha3::{Keccak256, Sha3_256};

use super::{
    function::HashFunction,
    params::{CHUNK, ChunkParams, MessageParams, ParentParams, flags, parents},
};

/// Messages that a thread takes at a time.
const GRAIN: usize = 32;

impl HashFunction {
    /// Returns the digest of a message, which the host computes.
    pub fn digest(self, message: &[u8]) -> [u8; 32] {
        match self {
            HashFunction::Keccak256 => Keccak256::digest(message).into(),
            HashFunction::Sha3_256 => Sha3_256::digest(message).into(),
            HashFunction::Sha256 => Sha256::digest(message).into(),
            HashFunction::Blake2s256 => Blake2s256::digest(message).into(),
            HashFunction::Blake3 => blake3::hash(message).into(),
        }
    }
}

/// The body of `hash_messages`.
pub(super) fn hash_messages(
    function: HashFunction,
    params: &MessageParams,
    x: &[u8],
    offsets: &[u32],
    out: &mut [[u8; 32]],
) {
    let [len, pitch, bytes] = [params.len, params.pitch, params.bytes].map(|value| value as usize);
    let stride = params.stride as usize;
    each(&mut out[..end(len, stride)], [stride, GRAIN], &|i, place| {
        let message = match params.flags & flags::TABLE {
            0 => &x[i * pitch..][..bytes],
            _ => &x[offsets[i] as usize..offsets[i + 1] as usize],
        };
        *place = function.digest(message);
    });
}

/// The body of `blake3_chunks`, for leaves of so many bytes.
pub(super) fn blake3_chunks(leaf: usize, params: &ChunkParams, x: &[u8], jobs: &[[u32; 4]], out: &mut [[u8; 32]]) {
    let [len, pitch, bytes, chunks] =
        [params.len, params.pitch, params.bytes, params.chunks].map(|value| value as usize);
    let is_root = params.flags & flags::ROOT != 0;
    let value = |chunk: &[u8], number: u32| match is_root {
        true => blake3::hash(chunk).into(),
        false => {
            let mut hasher = blake3::Hasher::new();
            hasher.set_input_offset(u64::from(number) * leaf as u64);
            hasher.update(chunk).finalize_non_root()
        }
    };
    let (stride, grain) = (params.stride as usize, (GRAIN * CHUNK / leaf).max(1));
    if params.flags & flags::TABLE != 0 {
        let job = |[at, bytes, number, _]: &[u32; 4]| value(&x[*at as usize..][..*bytes as usize], *number);
        return each_job(&jobs[..len], |job| job[3], out, [stride, grain], &job);
    }
    each(&mut out[..end(len, stride)], [stride, grain], &|i, place| {
        let (message, chunk) = (i / chunks, i % chunks);
        let message = &x[message * pitch..][..bytes];
        *place = value(&message[chunk * leaf..message.len().min((chunk + 1) * leaf)], params.first + chunk as u32);
    });
}

/// The body of `blake3_parents`.
pub(super) fn blake3_parents(params: &ParentParams, x: &[[u8; 32]], jobs: &[[u32; 2]], out: &mut [[u8; 32]]) {
    let (len, stride, nodes) = (params.len as usize, params.stride as usize, params.nodes as usize);
    let is_root = params.flags & flags::ROOT != 0;
    let value = |left: usize, is_copy: bool| match (is_copy, is_root) {
        (true, _) => x[left],
        (false, true) => merge_subtrees_root(&x[left], &x[left + 1], Mode::Hash).into(),
        (false, false) => merge_subtrees_non_root(&x[left], &x[left + 1], Mode::Hash),
    };
    if params.flags & flags::TABLE != 0 {
        let job = |[left, _]: &[u32; 2]| value((left & !parents::COPY) as usize, left & parents::COPY != 0);
        return each_job(&jobs[..len], |job| job[1], out, [stride, GRAIN], &job);
    }
    let each_has = nodes.div_ceil(2);
    each(&mut out[..end(len, stride)], [stride, GRAIN], &|i, place| {
        let (message, parent) = (i / each_has, i % each_has);
        *place = value(message * nodes + 2 * parent, 2 * parent + 1 == nodes);
    });
}

/// Writes the values of jobs to their targets, which ascend and lie `stride` apart.
fn each_job<J: Sync>(
    jobs: &[J],
    target: fn(&J) -> u32,
    out: &mut [[u8; 32]],
    [stride, grain]: [usize; 2],
    value: &(dyn Fn(&J) -> [u8; 32] + Sync),
) {
    parallel::chunks(out, grain * stride, &|chunk, out| {
        let first = chunk * grain;
        let start = jobs.partition_point(|job| (target(job) as usize) < first);
        for job in &jobs[start..] {
            let Some(place) = out.get_mut((target(job) as usize - first) * stride) else { break };
            *place = value(job);
        }
    });
}

/// Calls `body` with the number and the place of each of the values, which lie `stride` apart.
fn each(out: &mut [[u8; 32]], [stride, grain]: [usize; 2], body: &(dyn Fn(usize, &mut [u8; 32]) + Sync)) {
    parallel::chunks(out, grain * stride, &|chunk, out| {
        out.iter_mut().step_by(stride).enumerate().for_each(|(i, place)| body(chunk * grain + i, place));
    });
}

/// The end of the last of values that lie `stride` apart.
fn end(len: usize, stride: usize) -> usize {
    len.checked_sub(1).map_or(0, |last| last * stride + 1)
}
