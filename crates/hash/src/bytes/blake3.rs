//! BLAKE3: its chunks, and its tree by layers. What is called a chunk here is a leaf of several chunks on processors.

use evariste_backend::{Buffer, Element, Error as DeviceError, Secrecy, View, ViewMut, author::Arg};

use super::{
    ByteHash, Messages, Most, WORD, groups,
    params::{CHUNK, ChunkParams, ParentParams, flags, parents},
    places, spec,
};
use crate::error::Result;

/// The memory of two layers of trees.
struct Layers {
    these: Buffer<[u8; 32]>,
    next: Buffer<[u8; 32]>,
}

/// What launches of one layer take: the number of values, and a table.
type Jobs<const N: usize> = Vec<[u32; N]>;

pub(super) fn required_bytes(messages: usize, bytes: usize) -> u64 {
    let chunks = bytes.div_ceil(CHUNK).max(1);
    let at_once = messages.min(Most::USUAL.messages) as u64;
    // A table of all chunks, and two layers.
    let kept = at_once.saturating_mul(chunks as u64).min(Most::USUAL.leaves.max(chunks) as u64);
    match chunks {
        1 => 16 * at_once,
        _ => kept.saturating_mul(16 + 8 + 32 + 32).saturating_add(16 * at_once.min(kept)),
    }
}

impl ByteHash {
    /// Leaves of a message's tree.
    fn leaves(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.shared.most.leaf).max(1)
    }

    /// Hashes messages of one length.
    pub(super) fn blake3_apart<T: Element>(
        &self,
        messages: Messages<'_, T>,
        mut out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        let (chunks, secrecy) =
            (self.leaves(messages.bytes()), Secrecy::of([messages.values.secrecy(), out.secrecy()]));
        self.expect_chunks(chunks)?;
        let at_once = self.messages_at_once(messages.bytes()).min(messages.count);
        let mut layers = match chunks {
            1 => None,
            _ => Some(self.layers(at_once * chunks, at_once, secrecy)?),
        };
        self.launch_messages(messages, out.reborrow(), stride, layers.as_mut())
    }

    /// How many messages of so many bytes are hashed at a time.
    fn messages_at_once(&self, bytes: usize) -> usize {
        let most = self.shared.most;
        let fitting = (most.bytes / bytes.max(1)).min(most.messages);
        let chunks = self.leaves(bytes);
        if chunks == 1 { fitting } else { fitting.min(most.leaves / chunks).max(1) }
    }

    /// Hashes messages of one length, with layers if they have several chunks.
    fn launch_messages<T: Element>(
        &self,
        messages: Messages<'_, T>,
        mut out: ViewMut<'_, [u8; 32]>,
        stride: usize,
        mut layers: Option<&mut Layers>,
    ) -> Result<()> {
        let (chunks, at_once) = (self.leaves(messages.bytes()), self.messages_at_once(messages.bytes()));
        for start in (0..messages.count).step_by(at_once) {
            let len = at_once.min(messages.count - start);
            let part = messages.part(start, len)?;
            let digests = out.view_mut(start * stride..start * stride + places(len, stride))?;
            match layers.as_deref_mut().filter(|_| chunks > 1) {
                None => self.launch_chunks(part, flags::ROOT, 0, 1, digests, stride)?,
                Some(layers) => {
                    self.launch_all_chunks(part, chunks, layers.these.view_mut(..len * chunks)?)?;
                    self.launch_layers(layers, len, chunks, digests, stride)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the values of all chunks of messages, of one if they are long.
    fn launch_all_chunks<T: Element>(
        &self,
        messages: Messages<'_, T>,
        chunks: usize,
        mut values: ViewMut<'_, [u8; 32]>,
    ) -> Result<()> {
        if messages.bytes() <= self.shared.most.bytes {
            return self.launch_chunks(messages, 0, 0, chunks, values, 1);
        }
        // Whole elements of whole chunks.
        let leaf = self.shared.most.leaf;
        let most = (self.shared.most.bytes / leaf / T::BYTES).max(1) * T::BYTES;
        for first in (0..chunks).step_by(most) {
            let len = most.min(chunks - first);
            let end = (first + len) * leaf / T::BYTES;
            let part = messages.values.view(first * leaf / T::BYTES..end.min(messages.columns))?;
            let part = Messages { values: part, columns: part.len(), count: 1 };
            self.launch_chunks(part, 0, first, len, values.view_mut(first..first + len)?, 1)?;
        }
        Ok(())
    }

    /// Writes the values of `chunks` chunks of each message, whose first has number `first`.
    fn launch_chunks<T: Element>(
        &self,
        messages: Messages<'_, T>,
        flags: u32,
        first: usize,
        chunks: usize,
        out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        let kernel = self.shared.chunks()?;
        let (bytes, len) = (messages.bytes(), messages.count * chunks);
        let params = ChunkParams {
            len: len as u32,
            at: messages.at(),
            pitch: bytes as u32,
            bytes: bytes as u32,
            stride: stride as u32,
            flags,
            chunks: chunks as u32,
            first: first as u32,
        };
        let args = &mut [Arg::read(messages.values), Arg::read(self.shared.nothing.view(..0)?), Arg::write(out)];
        // SAFETY: messages have so many bytes and chunks, and there is a place for the value of each chunk.
        unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
        Ok(())
    }

    /// Goes up the trees of `count` messages of so many chunks, at least 2.
    fn launch_layers(
        &self,
        layers: &mut Layers,
        count: usize,
        chunks: usize,
        mut out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        let kernel = self.shared.parents.get(&self.shared.device, spec::blake3_parents)?;
        let Layers { these, next } = layers;
        let (mut these, mut next, mut nodes) = (these, next, chunks);
        while nodes > 1 {
            let (len, is_root) = (count * nodes.div_ceil(2), nodes == 2);
            let target = if is_root { out.reborrow() } else { next.view_mut(..len)? };
            let params = ParentParams {
                len: len as u32,
                stride: if is_root { stride as u32 } else { 1 },
                flags: if is_root { flags::ROOT } else { 0 },
                nodes: nodes as u32,
            };
            let nothing = self.shared.nothing.view(..0)?;
            let args = &mut [Arg::read(these.view(..count * nodes)?), Arg::read(nothing), Arg::write(target)];
            // SAFETY: there are so many children of each message, and a place for each parent.
            unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
            (these, next) = (next, these);
            nodes = nodes.div_ceil(2);
        }
        Ok(())
    }

    /// Hashes messages of different lengths. The offsets have been checked.
    pub(super) fn blake3_many(
        &self,
        bytes: View<'_, u8>,
        offsets: &[usize],
        mut out: ViewMut<'_, [u8; 32]>,
    ) -> Result<()> {
        let secrecy = Secrecy::of([bytes.secrecy(), out.secrecy()]);
        let lengths = || offsets.windows(2).map(|pair| pair[1] - pair[0]);
        self.expect_chunks(lengths().map(|bytes| self.leaves(bytes)).max().unwrap_or(1))?;
        // Messages that are hashed at a time, several by a table or a long one alone, and the memory for the most of them.
        let most = self.shared.most;
        let (mut parts, mut start, mut kept) = (Vec::new(), 0, [0, 0]);
        while start < out.len() {
            let (mut len, mut all, mut trees) = (0, 0, [0, 0]);
            for chunks in lengths().skip(start).take(most.messages).map(|bytes| self.leaves(bytes)) {
                all += chunks;
                let is_one = len == 0 && offsets[start + 1] - offsets[start] > most.bytes;
                if len > 0 && (offsets[start + len + 1] - offsets[start] > most.bytes || all > most.leaves) {
                    break;
                }
                if chunks > 1 {
                    trees = [trees[0] + chunks, trees[1] + 1];
                }
                len += 1;
                if is_one {
                    break;
                }
            }
            kept = [kept[0].max(trees[0]), kept[1].max(trees[1])];
            parts.push(start..start + len);
            start += len;
        }
        let mut layers = match kept {
            [0, _] => None,
            [chunks, trees] => Some(self.layers(chunks, trees, secrecy)?),
        };
        for part in parts {
            let messages = bytes.view(offsets[part.start]..offsets[part.end])?;
            let digests = out.view_mut(part.clone())?;
            if messages.len() > most.bytes {
                let messages = Messages { values: messages, columns: messages.len(), count: 1 };
                self.launch_messages(messages, digests, 1, layers.as_mut())?;
            } else {
                self.launch_tables(messages, &offsets[part.start..=part.end], digests, layers.as_mut())?;
            }
        }
        Ok(())
    }

    /// Hashes messages by tables of their chunks and of the parents of each layer.
    fn launch_tables(
        &self,
        bytes: View<'_, u8>,
        offsets: &[usize],
        mut out: ViewMut<'_, [u8; 32]>,
        layers: Option<&mut Layers>,
    ) -> Result<()> {
        let leaf = self.shared.most.leaf;
        let (mut single, mut several): (Jobs<4>, Jobs<4>) = (Vec::new(), Vec::new());
        // The message, the first node and the number of nodes of each tree.
        let mut trees: Vec<[u32; 3]> = Vec::new();
        for (message, pair) in offsets.windows(2).enumerate() {
            let (at, len) = (pair[0] - offsets[0], pair[1] - pair[0]);
            let count = self.leaves(len);
            if count == 1 {
                single.push([at as u32, len as u32, 0, message as u32]);
                continue;
            }
            trees.push([message as u32, several.len() as u32, count as u32]);
            for chunk in 0..count {
                let rest = len - chunk * leaf;
                let at = (at + chunk * leaf) as u32;
                several.push([at, rest.min(leaf) as u32, chunk as u32, several.len() as u32]);
            }
        }
        self.launch_chunk_table(bytes, &single, flags::ROOT, out.reborrow())?;
        let Some(Layers { these, next }) = layers else { return Ok(()) };
        let (mut these, mut next) = (these, next);
        self.launch_chunk_table(bytes, &several, 0, these.as_view_mut())?;
        while !trees.is_empty() {
            let (mut roots, mut inner): (Jobs<2>, Jobs<2>) = (Vec::new(), Vec::new());
            trees.retain_mut(|[message, first, nodes]| {
                if *nodes == 2 {
                    roots.push([*first, *message]);
                    return false;
                }
                let start = inner.len() as u32;
                for child in (0..*nodes).step_by(2) {
                    let copy = if child + 1 == *nodes { parents::COPY } else { 0 };
                    inner.push([(*first + child) | copy, start + child / 2]);
                }
                (*first, *nodes) = (start, nodes.div_ceil(2));
                true
            });
            self.launch_parent_table(these, &roots, flags::ROOT, out.reborrow())?;
            self.launch_parent_table(these, &inner, 0, next.as_view_mut())?;
            (these, next) = (next, these);
        }
        Ok(())
    }

    fn launch_chunk_table(
        &self,
        bytes: View<'_, u8>,
        jobs: &[[u32; 4]],
        root: u32,
        out: ViewMut<'_, [u8; 32]>,
    ) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let kernel = self.shared.chunks()?;
        let params = ChunkParams {
            len: jobs.len() as u32,
            at: (bytes.start() % WORD) as u32,
            stride: 1,
            flags: flags::TABLE | root,
            ..ChunkParams::default()
        };
        let table = self.queue.upload_with::<u32>(jobs.as_flattened(), out.secrecy())?;
        let args = &mut [Arg::read(bytes), Arg::read(&table), Arg::write(out)];
        // SAFETY: the jobs name bytes and places that there are, no place twice.
        unsafe { kernel.launch(&self.queue, groups(jobs.len()), &params, args)? };
        Ok(())
    }

    fn launch_parent_table(
        &self,
        children: &Buffer<[u8; 32]>,
        jobs: &[[u32; 2]],
        root: u32,
        out: ViewMut<'_, [u8; 32]>,
    ) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let kernel = self.shared.parents.get(&self.shared.device, spec::blake3_parents)?;
        let params =
            ParentParams { len: jobs.len() as u32, stride: 1, flags: flags::TABLE | root, ..ParentParams::default() };
        let table = self.queue.upload_with::<u32>(jobs.as_flattened(), out.secrecy())?;
        let args = &mut [Arg::read(children), Arg::read(&table), Arg::write(out)];
        // SAFETY: the jobs name children and places that there are, no place twice.
        unsafe { kernel.launch(&self.queue, groups(jobs.len()), &params, args)? };
        Ok(())
    }

    /// Memory for the values of so many chunks of several trees, and for a layer above them, and the kernels: what can
    /// fail does before anything is written.
    fn layers(&self, chunks: usize, trees: usize, secrecy: Secrecy) -> Result<Layers> {
        let device = &self.shared.device;
        self.shared.parents.get(device, spec::blake3_parents)?;
        let these = device.alloc_with(chunks, secrecy)?;
        Ok(Layers { these, next: device.alloc_with(chunks.div_ceil(2) + trees, secrecy)? })
    }

    /// Refuses a message of more chunks than kernels number.
    fn expect_chunks(&self, chunks: usize) -> Result<()> {
        const MOST: usize = 1 << 31;
        if chunks <= MOST {
            return Ok(());
        }
        let (device, expected) = (self.shared.device.info().id, MOST as u64);
        Err(DeviceError::TooLarge { what: "message, in chunks", device, expected, actual: chunks as u64 }.into())
    }
}
