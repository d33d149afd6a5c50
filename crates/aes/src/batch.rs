//! Messages of one buffer, and the launches that they take.

use std::mem;

use evariste_backend::{Buffer, Secrecy};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::{
    Aes, Error, Result,
    copies::{tail, words},
    cpu::BLOCK,
    kernels::{Descriptor, POWERS, Place},
};

/// Messages of one launch.
const MAX_MESSAGES: usize = 1 << 30;

/// Messages whose descriptors one task makes at a time, at some 10 ns each.
const GRAIN: usize = 1 << 10;

/// One message within a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) key: usize,
    pub(crate) iv: [u8; BLOCK],
}

impl Span {
    fn descriptor(&self) -> Descriptor {
        let Place([word_low, word_high]) = Place::of(self.offset);
        Descriptor {
            first_unit: 0,
            word_low,
            blocks: 0,
            key: self.key as u32,
            tail: tail(self.offset + self.len) as u32,
            powers: (self.key * POWERS) as u32,
            word_high,
            chained: 0,
            iv: self.iv,
        }
    }
}

/// Messages that were checked against their buffer: each lies in it, none shares a byte with another, and each has a key.
#[derive(Debug)]
pub(crate) struct Batch {
    spans: Vec<Span>,
    secrecy: Secrecy,
}

/// What a launch works on: messages in the order of their units, and parts of them.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) descriptors: Vec<Descriptor>,
    pub(crate) units: u32,
    pub(crate) secrecy: Secrecy,
}

/// A launch's work, with its descriptors on the device.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) part: Part,
    pub(crate) messages: Buffer<u32>,
}

/// How the rest of a message starts that goes on in the next launch.
pub(crate) enum Next {
    /// With this initialisation vector.
    Iv([u8; BLOCK]),
    /// With the block that lies before it.
    Chained,
}

impl Batch {
    /// Refuses messages that leave the buffer, overlap, do not start at a word, or name no key. `secrecy` is that of the
    /// initialisation vectors.
    pub(crate) fn new(aes: &Aes, data: &Buffer<u8>, spans: Vec<Span>, secrecy: Secrecy) -> Result<Self> {
        let batch = Self { spans, secrecy };
        let expect = |(message, span): (usize, &Span)| {
            if span.offset % BLOCK != 0 {
                return Err(Error::Alignment { message, expected: BLOCK, actual: span.offset });
            }
            aes.expect_range(data, &(span.offset..span.offset.saturating_add(span.len)))?;
            aes.expect_key(message, span.key)
        };
        let spans = batch.spans.par_iter().enumerate().with_min_len(GRAIN);
        if let Some(error) = spans.find_map_first(|span| expect(span).err()) {
            return Err(error);
        }
        expect_disjoint(&batch.spans)?;
        Ok(batch)
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.iter().all(|span| span.len == 0)
    }

    /// Its messages as kernels see them that only read, each cut into segments of so many blocks, of which it has at least one.
    pub(crate) fn segments(&self, most: u64) -> Vec<Descriptor> {
        let mut segments = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let whole = Descriptor { iv: [0; BLOCK], ..span.descriptor() };
            loop {
                let left = words(at, end - at);
                let Place([word_low, word_high]) = Place::of(at);
                let rest = Descriptor { word_low, word_high, blocks: left as u32, ..whole };
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
    pub(crate) fn parts(&self, aes: &Aes, next: impl Fn([u8; BLOCK], u64) -> Next) -> Vec<Part> {
        let per_thread = u64::from(aes.per_thread());
        let room = (aes.config().launch_blocks() / per_thread) as u32;
        let new = |capacity: usize| Part {
            descriptors: Vec::with_capacity(capacity.min(MAX_MESSAGES)),
            units: 0,
            secrecy: self.secrecy,
        };
        let units = |span: &Span| words(span.offset, span.len).div_ceil(per_thread);
        let total: u64 = self.spans.iter().map(units).sum();
        if total <= room.into() && self.spans.len() <= MAX_MESSAGES {
            let after = |sum: &mut u32, span: &Span| Some(mem::replace(sum, *sum + units(span) as u32));
            let firsts: Vec<u32> = self.spans.iter().scan(0, after).collect();
            let descriptor = |(span, first_unit): (&Span, &u32)| {
                let blocks = words(span.offset, span.len) as u32;
                Descriptor { first_unit: *first_unit, blocks, ..span.descriptor() }
            };
            let descriptors = self.spans.par_iter().zip(&firsts).with_min_len(GRAIN).map(descriptor).collect();
            return vec![Part { descriptors, units: total as u32, secrecy: self.secrecy }];
        }
        let (mut parts, mut part) = (Vec::new(), new(self.spans.len()));
        for span in &self.spans {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let mut rest = span.descriptor();
            loop {
                if part.units == room || part.descriptors.len() == MAX_MESSAGES {
                    parts.push(mem::replace(&mut part, new(0)));
                }
                let (left, free) = (words(at, end - at), u64::from(room - part.units) * per_thread);
                let now = left.min(free);
                let Place([word_low, word_high]) = Place::of(at);
                let descriptor = Descriptor { first_unit: part.units, word_low, word_high, blocks: now as u32, ..rest };
                part.units += now.div_ceil(per_thread) as u32;
                if now == left {
                    part.descriptors.push(descriptor);
                    break;
                }
                part.descriptors.push(Descriptor { tail: BLOCK as u32, ..descriptor });
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

impl Drop for Batch {
    fn drop(&mut self) {
        if self.secrecy == Secrecy::Secret {
            self.spans.iter_mut().for_each(|span| span.iv.zeroize());
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.secrecy == Secrecy::Secret {
            self.descriptors.iter_mut().for_each(|descriptor| descriptor.iv.zeroize());
        }
    }
}

fn expect_disjoint(spans: &[Span]) -> Result<()> {
    let ordered = |pair: &[Span]| pair[0].offset + pair[0].len <= pair[1].offset;
    if spans.par_windows(2).with_min_len(GRAIN).all(ordered) {
        return Ok(());
    }
    let mut order: Vec<(usize, &Span)> = spans.iter().enumerate().filter(|(_, span)| span.len > 0).collect();
    order.sort_by_key(|(_, span)| span.offset);
    match order.windows(2).find(|pair| pair[0].1.offset + pair[0].1.len > pair[1].1.offset) {
        None => Ok(()),
        Some(pair) => Err(Error::Overlap { first: pair[0].0, second: pair[1].0 }),
    }
}
