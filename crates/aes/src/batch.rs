//! Messages of one view of a buffer, and the launches that they take.
//!
//! Each pass reads the batch from the caller's data. Descriptors are written where the device copies them from. Nothing
//! is kept of each message in between. For 16,384 messages that was megabytes, and faults of new pages took two fifths
//! of the time before the first launch.

use std::mem;

use evariste_backend::{Buffer, HostBuffer, Secrecy, Transfer, View, parallel};
use zeroize::Zeroize;

use crate::{
    alignment::{tail, words},
    block::BLOCK,
    error::{Error, Result},
    params::{Descriptor, POWERS},
    plan::Aes,
};

/// Messages of one launch.
const MAX_MESSAGES: usize = 1 << 30;

/// Messages that one task checks or makes the descriptors of, at some 10 ns each.
const GRAIN: usize = 1 << 9;

/// Messages whose descriptors go to the device together: 6 MiB, of whole tasks.
const UPLOAD: usize = GRAIN << 8;

// Through wgpu, longer host memory is copied once more.
const _: () = assert!(UPLOAD * size_of::<Descriptor>() <= 8 << 20);

/// Descriptors that a launch's work has room for at first.
const MIN_ROOM: usize = 64;

/// Words of a descriptor.
const WORDS: usize = size_of::<Descriptor>() / 4;

/// One message of a batch, in the data that all messages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The byte of the data where the message starts: a multiple of 16.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
    /// The index of its key.
    pub key: usize,
    /// Its counter block or initialisation vector.
    pub iv: [u8; BLOCK],
}

/// Where a message lies, and its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) key: usize,
}

/// Messages as a mode has them. What is said of one is the same each time.
pub(crate) trait Messages: Sync {
    fn count(&self) -> usize;
    fn span(&self, message: usize) -> Span;
    /// Its initialisation vector. Asked for only of messages that were found to be right.
    fn iv(&self, message: usize) -> [u8; BLOCK];

    /// Whether the initialisation vector tells of a key.
    fn secrecy(&self, _message: usize) -> Secrecy {
        Secrecy::Public
    }

    /// Refuses what the mode has no answer to.
    fn expect(&self, _message: usize) -> Result<()> {
        Ok(())
    }
}

impl Messages for &[Message] {
    fn count(&self) -> usize {
        self.len()
    }

    fn span(&self, message: usize) -> Span {
        let Message { offset, len, key, .. } = self[message];
        Span { offset, len, key }
    }

    fn iv(&self, message: usize) -> [u8; BLOCK] {
        self[message].iv
    }
}

/// One message alone.
impl Messages for Message {
    fn count(&self) -> usize {
        1
    }

    fn span(&self, _message: usize) -> Span {
        Span { offset: self.offset, len: self.len, key: self.key }
    }

    fn iv(&self, _message: usize) -> [u8; BLOCK] {
        self.iv
    }
}

impl Span {
    fn words(&self) -> u64 {
        words(self.offset, self.len)
    }

    fn descriptor(&self, iv: [u8; BLOCK]) -> Descriptor {
        let (tail, powers) = (tail(self.offset + self.len) as u32, (self.key * POWERS) as u32);
        Descriptor { key: self.key as u32, tail, powers, iv, ..Descriptor::default() }.at(self.offset)
    }
}

/// Messages that were checked against their data: each lies in it, none shares a byte with another, and each has a key.
pub(crate) struct Batch<'a> {
    messages: &'a dyn Messages,
    /// What comes before each [`GRAIN`] messages, in units.
    before: Vec<u64>,
    all: Sums,
}

/// What neighbouring messages come to.
#[derive(Clone, Copy, Debug)]
struct Sums {
    units: u64,
    blocks: u64,
    /// The most blocks of one.
    longest: u64,
    secrecy: Secrecy,
    /// Whether each ends before the next one starts.
    ordered: bool,
    /// Whether nothing is to be refused, but for messages that overlap.
    right: bool,
}

impl Default for Sums {
    fn default() -> Self {
        Self { units: 0, blocks: 0, longest: 0, secrecy: Secrecy::Public, ordered: true, right: true }
    }
}

impl Sums {
    fn add(&mut self, next: &Self) {
        self.units += next.units;
        self.blocks += next.blocks;
        self.longest = self.longest.max(next.longest);
        if next.secrecy == Secrecy::Secret {
            self.secrecy = Secrecy::Secret;
        }
        self.ordered &= next.ordered;
        self.right &= next.right;
    }
}

/// What a launch works on that the batch has to be cut for: messages in the order of their units, and parts of them.
#[derive(Debug, Default)]
struct Part {
    descriptors: Vec<Descriptor>,
    units: u32,
    secrecy: Secrecy,
}

/// A launch's work, with its descriptors on the device.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) units: u32,
    /// How many descriptors there are.
    pub(crate) count: usize,
    /// The most blocks of one.
    pub(crate) longest: u64,
    pub(crate) messages: Buffer<u32>,
}

/// How the rest of a message starts that goes on in the next launch.
pub(crate) enum Next {
    /// With this initialisation vector.
    Iv([u8; BLOCK]),
    /// With the block that lies before it.
    Chained,
}

impl<'a> Batch<'a> {
    /// Refuses data on another device, and messages that leave it, overlap, do not start at a word, or name no key.
    pub(crate) fn new(aes: &Aes, data: View<'_, u8>, messages: &'a dyn Messages) -> Result<Self> {
        aes.own_queue()?;
        aes.expect_here(data.device())?;
        let count = messages.count();
        let expect = |message: usize, span: &Span| {
            if !span.offset.is_multiple_of(BLOCK) {
                return Err(Error::Alignment { message, expected: BLOCK, actual: span.offset });
            }
            let (offset, count, len) = (span.offset as u64, span.len as u64, data.len() as u64);
            if offset.saturating_add(count) > len {
                return Err(evariste_backend::Error::OutOfRange { what: "a message", offset, count, len }.into());
            }
            aes.expect_key(message, span.key)
        };
        let end_of = |span: Span| span.offset.saturating_add(span.len);
        let fits =
            |span: Span| span.offset.is_multiple_of(BLOCK) && end_of(span) <= data.len() && span.key < aes.keys();
        let sums_of = |task: usize| {
            let first = task * GRAIN;
            let mut end = first.checked_sub(1).map_or(0, |before| end_of(messages.span(before)));
            let mut sums = Sums::default();
            for message in first..count.min(first + GRAIN) {
                let span = messages.span(message);
                if !fits(span) || messages.expect(message).is_err() {
                    return Sums { right: false, ..sums };
                }
                let blocks = span.words();
                let units = aes.units(blocks);
                let (secrecy, ordered) = (messages.secrecy(message), end <= span.offset);
                sums.add(&Sums { units, blocks, longest: blocks, secrecy, ordered, right: true });
                end = end_of(span);
            }
            sums
        };
        let mut tasks = vec![Sums::default(); count.div_ceil(GRAIN)];
        parallel::chunks(&mut tasks, 1, &|task, sums| sums[0] = sums_of(task));
        let mut all = Sums::default();
        let mut before = Vec::with_capacity(tasks.len());
        for sums in &tasks {
            before.push(all.units);
            all.add(sums);
        }
        if !all.right {
            // A second look finds out what is wrong: first what the mode refuses, then where messages lie.
            (0..count).try_for_each(|message| messages.expect(message))?;
            (0..count).try_for_each(|message| expect(message, &messages.span(message)))?;
            unreachable!("what was refused is refused again");
        }
        if !all.ordered {
            expect_disjoint(messages)?;
        }
        Ok(Self { messages, before, all })
    }

    pub(crate) fn count(&self) -> usize {
        self.messages.count()
    }

    pub(crate) fn span(&self, message: usize) -> Span {
        self.messages.span(message)
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> {
        (0..self.count()).map(|message| self.span(message))
    }

    /// Blocks of all messages.
    pub(crate) fn blocks(&self) -> u64 {
        self.all.blocks
    }

    /// Blocks of the longest message.
    pub(crate) fn longest(&self) -> u64 {
        self.all.longest
    }

    /// That of the initialisation vectors.
    pub(crate) fn secrecy(&self) -> Secrecy {
        self.all.secrecy
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks() == 0
    }

    /// Its messages as kernels see them that only read, each cut into segments of at most `most` blocks, at
    /// least one.
    pub(crate) fn segments(&self, most: u64) -> Vec<Descriptor> {
        let mut segments = Vec::with_capacity(self.count());
        for span in self.spans() {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let whole = span.descriptor([0; BLOCK]);
            loop {
                let left = words(at, end - at);
                let rest = Descriptor { blocks: left as u32, ..whole }.at(at);
                if left <= most {
                    segments.push(rest);
                    break;
                }
                segments.push(Descriptor { blocks: most as u32, tail: BLOCK as u32, ..rest });
                at += most as usize * BLOCK;
            }
        }
        segments
    }

    /// The launches that it takes. A message that does not fit goes on in the next one, which it is the first of, where
    /// `next` tells how from an initialisation vector and the blocks that came after it.
    pub(crate) fn prepare(&self, aes: &Aes, next: impl Fn([u8; BLOCK], u64) -> Next) -> Result<Vec<Prepared>> {
        let room = (aes.config().launch_blocks() / u64::from(aes.per_thread())) as u32;
        if self.all.units <= room.into() && self.count() <= MAX_MESSAGES {
            return Ok(vec![self.whole(aes)?]);
        }
        let upload = |part: Part| {
            let messages = aes.own_queue()?.upload_with(bytemuck::cast_slice(&part.descriptors), part.secrecy)?;
            let longest = part.descriptors.iter().map(|message| message.blocks).max().unwrap_or(0);
            Ok(Prepared { units: part.units, count: part.descriptors.len(), longest: longest.into(), messages })
        };
        self.parts(aes, room, next).into_iter().map(upload).collect()
    }

    /// All messages in one launch, their descriptors written where the device copies them from.
    fn whole(&self, aes: &Aes) -> Result<Prepared> {
        let (device, count, secrecy) = (aes.device(), self.count(), self.secrecy());
        let mut messages = device.alloc_with::<u32>(count * WORDS, secrecy)?;
        for first in (0..count).step_by(UPLOAD) {
            let end = count.min(first + UPLOAD);
            let bytes = (end - first) * size_of::<Descriptor>();
            let mut host = device.host_buffer(bytes, Transfer::Upload, secrecy)?;
            self.write(aes, first, &mut host);
            let mut place = messages.view_mut(first * WORDS..end * WORDS)?;
            // It goes back to where it came from when it was copied.
            drop(aes.queue().write_pinned(&mut place, host)?);
        }
        Ok(Prepared { units: self.all.units as u32, count, longest: self.longest(), messages })
    }

    /// Fills host memory with descriptors, from that of a task's first message on.
    fn write(&self, aes: &Aes, first: usize, host: &mut HostBuffer) {
        parallel::chunks(host, GRAIN * size_of::<Descriptor>(), &|task, part| {
            let first = first + task * GRAIN;
            let mut unit = self.before[first / GRAIN];
            for (message, slot) in (first..).zip(bytemuck::cast_slice_mut::<u8, Descriptor>(part)) {
                let span = self.span(message);
                let blocks = span.words();
                let descriptor = span.descriptor(self.messages.iv(message));
                *slot = Descriptor { first_unit: unit as u32, blocks: blocks as u32, ..descriptor };
                unit += aes.units(blocks);
            }
        });
    }

    fn parts(&self, aes: &Aes, room: u32, next: impl Fn([u8; BLOCK], u64) -> Next) -> Vec<Part> {
        let per_thread = u64::from(aes.per_thread());
        let new = |capacity: usize| Part {
            descriptors: Vec::with_capacity(capacity.min(MAX_MESSAGES)),
            units: 0,
            secrecy: self.secrecy(),
        };
        let (mut parts, mut part) = (Vec::new(), new(self.count()));
        for (message, span) in self.spans().enumerate() {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let mut rest = span.descriptor(self.messages.iv(message));
            loop {
                if part.units == room || part.descriptors.len() == MAX_MESSAGES {
                    parts.push(mem::replace(&mut part, new(0)));
                }
                let (left, free) = (words(at, end - at), u64::from(room - part.units) * per_thread);
                let now = left.min(free);
                let descriptor = Descriptor { first_unit: part.units, blocks: now as u32, ..rest }.at(at);
                part.units += now.div_ceil(per_thread) as u32;
                if now == left {
                    part.push(descriptor);
                    break;
                }
                part.push(Descriptor { tail: BLOCK as u32, ..descriptor });
                at += now as usize * BLOCK;
                match next(rest.iv, now) {
                    Next::Iv(iv) => rest.iv = iv,
                    Next::Chained => rest.chained = 1,
                }
            }
        }
        parts.push(part);
        parts
    }
}

impl Part {
    /// Without leaving behind what it had when it grows.
    fn push(&mut self, descriptor: Descriptor) {
        if self.descriptors.len() == self.descriptors.capacity() {
            let mut more = Vec::with_capacity((2 * self.descriptors.len()).max(MIN_ROOM));
            more.extend_from_slice(&self.descriptors);
            self.zeroize();
            self.descriptors = more;
        }
        self.descriptors.push(descriptor);
    }

    fn zeroize(&mut self) {
        if self.secrecy == Secrecy::Secret {
            self.descriptors.iter_mut().for_each(|descriptor| descriptor.iv.zeroize());
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.zeroize();
    }
}

fn expect_disjoint(messages: &dyn Messages) -> Result<()> {
    let spans = (0..messages.count()).map(|message| (message, messages.span(message)));
    let mut order: Vec<(usize, Span)> = spans.filter(|(_, span)| span.len > 0).collect();
    order.sort_by_key(|(_, span)| span.offset);
    match order.windows(2).find(|pair| pair[0].1.offset + pair[0].1.len > pair[1].1.offset) {
        None => Ok(()),
        Some(pair) => Err(Error::Overlap { first: pair[0].0, second: pair[1].0 }),
    }
}

#[cfg(test)]
mod tests;
