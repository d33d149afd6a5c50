//! Bytes that start anywhere: kernels take words of 16.

use evariste_backend::{Buffer, View, ViewMut, author::Arg};

use crate::{
    block::BLOCK,
    error::Result,
    kernels::{self, THREADS},
    params::MoveParams,
    plan::Aes,
};

impl Aes {
    /// Runs `work` on the bytes where the first of them is `phase` bytes after a word: in place if it is so there, else
    /// on a copy. Bodies for the CPU take bytes wherever they are.
    pub(crate) fn aligned<T>(
        &self,
        mut data: ViewMut<'_, u8>,
        phase: usize,
        work: impl FnOnce(ViewMut<'_, u8>) -> Result<T>,
    ) -> Result<T> {
        if self.whole_launches() || data.start() % BLOCK == phase {
            return work(data);
        }
        let mut copy = self.copy_of(data.as_view(), phase)?;
        let result = work(copy.view_mut(phase..)?)?;
        self.move_bytes(copy.view(phase..)?, data.reborrow(), 0, Target::Used, &mut 0)?;
        Ok(result)
    }

    /// [`Aes::aligned`] for work that takes itself away when it is done again, on any part from the start on: what came
    /// back of a copy is taken back when the rest does not come.
    pub(crate) fn aligned_or_undone(
        &self,
        mut data: ViewMut<'_, u8>,
        phase: usize,
        work: impl Fn(ViewMut<'_, u8>) -> Result<()>,
    ) -> Result<()> {
        if self.whole_launches() || data.start() % BLOCK == phase {
            return work(data);
        }
        let mut copy = self.copy_of(data.as_view(), phase)?;
        work(copy.view_mut(phase..)?)?;
        let mut done = 0;
        let moved = self.move_bytes(copy.view(phase..)?, data.reborrow(), 0, Target::Used, &mut done);
        if moved.is_err() && done > 0 {
            work(copy.view_mut(phase..phase + done)?)?;
            let (back, part) = (copy.view(phase..phase + done)?, data.view_mut(..done)?);
            self.move_bytes(back, part, 0, Target::Used, &mut 0)?;
        }
        moved
    }

    /// [`Aes::aligned`] for work that only reads.
    pub(crate) fn aligned_read<T>(
        &self,
        data: View<'_, u8>,
        work: impl FnOnce(View<'_, u8>) -> Result<T>,
    ) -> Result<T> {
        if self.whole_launches() || data.start().is_multiple_of(BLOCK) {
            return work(data);
        }
        work(self.copy_of(data, 0)?.as_view())
    }

    /// A copy that starts `phase` bytes after a word.
    fn copy_of(&self, data: View<'_, u8>, phase: usize) -> Result<Buffer<u8>> {
        let mut copy = self.plan.device.alloc_with::<u8>(phase + data.len(), data.secrecy())?;
        self.move_bytes(data, copy.as_view_mut(), phase, Target::Fresh, &mut 0)?;
        Ok(copy)
    }

    /// Copies bytes to those of another buffer from number `at` of `dst` on, from and to any place. Counts them in
    /// `done`, which is 0 before.
    fn move_bytes(
        &self,
        src: View<'_, u8>,
        mut dst: ViewMut<'_, u8>,
        at: usize,
        target: Target,
        done: &mut usize,
    ) -> Result<()> {
        let kernel = self.plan.moves.get(&self.plan.device, kernels::move_bytes)?;
        while *done < src.len() {
            let start = *done;
            let (from, to) = ((src.start() + start) % BLOCK, (dst.start() + at + start) % BLOCK);
            // All but the last launch end where a word of the target does.
            let now = (src.len() - start).min(self.launch_bytes() - to);
            let params = MoveParams {
                to: to as u32,
                from_byte: from as u32,
                words: words(to, now) as u32,
                tail: tail(to + now) as u32,
                src_words: words(from, now) as u32,
                fresh: u32::from(target == Target::Fresh),
            };
            let groups = self.groups(params.words.into(), THREADS.into(), THREADS);
            // What is fresh is written from the start of a word on.
            let first = at + start - if target == Target::Fresh { to } else { 0 };
            let part = dst.view_mut(first..at + start + now)?;
            let args = &mut [Arg::read(src.view(start..start + now)?), Arg::write(part)];
            // SAFETY: the words of both views are those that the parameters name. Fresh memory has nothing around the
            // view that anyone needs.
            unsafe { kernel.launch(self.queue(), groups, &params, args) }?;
            *done += now;
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
