//! Bytes that start anywhere: kernels take words of 16.

use std::ops::Range;

use evariste_backend::{Arg, Buffer, Queue};

use crate::{
    Aes, Result,
    block::BLOCK,
    kernels::{self, THREADS},
    params::{MoveParams, Place},
};

impl Aes {
    /// Runs `work` on the range's bytes where its first byte is `phase` bytes after a word: in place if it is so there,
    /// else on a copy. `work` gets the data and where the range starts in it.
    pub(crate) fn aligned(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        range: Range<usize>,
        phase: usize,
        work: impl FnOnce(&mut Buffer<u8>, usize) -> Result<()>,
    ) -> Result<()> {
        if range.start % BLOCK == phase {
            return work(data, range.start);
        }
        let mut copy = self.copy_of(queue, data, range.clone(), phase)?;
        work(&mut copy, phase)?;
        self.move_bytes(queue, &copy, phase, data, range.start, range.len(), Target::Used)
    }

    /// [`Aes::aligned`] for work that only reads.
    pub(crate) fn aligned_read<T>(
        &self,
        data: &Buffer<u8>,
        range: Range<usize>,
        work: impl FnOnce(&Buffer<u8>, usize) -> Result<T>,
    ) -> Result<T> {
        if range.start.is_multiple_of(BLOCK) {
            return work(data, range.start);
        }
        work(&self.copy_of(None, data, range, 0)?, 0)
    }

    /// A copy of a range that starts `phase` bytes after a word.
    fn copy_of(
        &self,
        queue: Option<&Queue>,
        data: &Buffer<u8>,
        range: Range<usize>,
        phase: usize,
    ) -> Result<Buffer<u8>> {
        let mut copy = self.0.device.alloc_with::<u8>(phase + range.len(), data.secrecy())?;
        self.move_bytes(queue, data, range.start, &mut copy, phase, range.len(), Target::Fresh)?;
        Ok(copy)
    }

    /// Copies bytes from one buffer to another, from and to any place.
    #[expect(clippy::too_many_arguments, reason = "two places, what lies around them, and a queue")]
    fn move_bytes(
        &self,
        queue: Option<&Queue>,
        src: &Buffer<u8>,
        from: usize,
        dst: &mut Buffer<u8>,
        to: usize,
        len: usize,
        target: Target,
    ) -> Result<()> {
        self.expect_range(src, &(from..from + len))?;
        self.expect_range(dst, &(to..to + len))?;
        let kernel = self.0.moves.get(&self.0.device, kernels::move_bytes)?;
        let mut done = 0;
        while done < len {
            let (from, to) = (from + done, to + done);
            // All but the last launch end where a word of the target does.
            let now = (len - done).min(self.launch_bytes() - to % BLOCK);
            let params = MoveParams {
                dst_word: Place::of(to),
                src_word: Place::of(from),
                to: (to % BLOCK) as u32,
                from_byte: (from % BLOCK) as u32,
                words: words(to, now) as u32,
                tail: tail(to + now) as u32,
                src_words: words(from, now) as u32,
                fresh: u32::from(target == Target::Fresh),
            };
            let groups = self.groups(params.words.into(), THREADS.into(), THREADS);
            let args = &mut [Arg::read(src), Arg::write(&mut *dst)];
            // SAFETY: words dst_word … dst_word + words − 1 of the target and src_word … src_word + src_words − 1 of the
            // source hold bytes of the ranges checked above, and buffers are padded to whole words.
            unsafe { kernel.launch(queue, groups, &params, args) }?;
            done += now;
        }
        Ok(())
    }
}

/// What lies around the bytes that are copied to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Nothing: nobody has written it.
    Fresh,
    /// What must stay.
    Used,
}

/// Words that hold bytes of a range.
pub(crate) fn words(start: usize, len: usize) -> u64 {
    match len {
        0 => 0,
        _ => ((start % BLOCK) as u64 + (len - 1) as u64) / BLOCK as u64 + 1,
    }
}

/// How many bytes of its word lie before the end of a range: 1 to 16.
pub(crate) fn tail(end: usize) -> usize {
    end.wrapping_sub(1) % BLOCK + 1
}
