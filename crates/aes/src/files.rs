//! Readers, writers and files of any size, in pieces through the device.
//!
//! A file takes its target's name only when it is complete. Until then the target is as it was. On Linux the new file
//! has no name before, if the file system has such files, and vanishes if the program is killed. Elsewhere it lies
//! beside the target as `.NAME.N.part`, readable by its owner alone, and a killed program leaves it there. The next
//! file for the same target removes it.
//!
//! GCM reads a file twice, first for its tag alone. It writes no plaintext before it has found the tag right.
//!
//! A target that exists keeps its owner, its group and its permissions as `cp -p` does. Where the system does not let
//! it keep the owner or the group, set-uid and set-gid go, and without the group its rights. A target that is a link
//! stays a link, and the file that it points to is replaced. New files are for their owner alone.
//!
//! Targets that are no files, such as devices and pipes, are refused before the work. So are names that only folders
//! have, such as those that end with a slash.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::Path,
};

use evariste_backend::{Buffer, Queue};
use zeroize::Zeroizing;

use crate::{
    aside::Aside,
    block::{BLOCK, Counter, add_counter},
    cpu,
    ctr_mode::Ctr,
    error::{Error, Result},
    gcm::{Gcm, MAX_MESSAGE, Tag, expect_tag},
    ghash::Sum,
    pieces,
    plan::Aes,
};

impl Ctr {
    /// Reads `input` to its end, XORs the stream onto it, writes it to `output`, and moves on. Returns the number of
    /// bytes. `progress` gets the number of bytes written after each piece.
    ///
    /// # Errors
    /// - [`Error::Keystream`]: the stream ends before the input does.
    /// - [`Error::Io`]: reading or writing fails.
    /// - [`Error::Device`]: the device fails or has too little memory.
    ///
    /// The bytes written until then stay written. The position is after them, and after the piece that `output` refused
    /// or panicked at. A part of that piece may have been written: so no other data gets the same keystream.
    /// [`Ctr::apply_file`] leaves nothing behind.
    pub fn copy(
        &mut self,
        input: &mut impl Read,
        output: &mut impl Write,
        mut progress: impl FnMut(u64),
    ) -> Result<u64> {
        let (stream, start, mut done) = (self.clone(), self.position(), 0);
        pump(
            stream.aes(),
            |piece| fill(input, piece),
            |queue, piece, at, len| stream.clone().on(queue).apply_at(start + u128::from(at), piece.view_mut(..len)?),
            |at, piece| {
                let position = start + u128::from(at);
                crate::ctr_mode::expect_keystream(position, piece.len(), stream.counter())?;
                stream.apply_on_host(position, piece);
                Ok(())
            },
            |piece| {
                // Before others see it, so that nothing gets the same stream again should `output` or `progress` panic.
                self.advance(piece.len() as u64);
                write(output, piece)?;
                done += piece.len() as u64;
                progress(done);
                Ok(())
            },
        )?;
        Ok(done)
    }

    /// Copies as [`Ctr::copy`] does, from one file to another, which may be the same. The target appears when it is
    /// complete.
    ///
    /// # Errors
    /// The target and the position stay as they were with each of these:
    /// - [`Error::Keystream`]: the stream has fewer bytes left than the file has.
    /// - [`Error::Io`]: a file cannot be opened, read, written or given its name, or the target is no file.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn apply_file(&mut self, from: &Path, to: &Path, progress: impl FnMut(u64)) -> Result<u64> {
        let (mut input, len) = open(from)?;
        self.expect(len)?;
        let mut output = Aside::new(to, &input)?;
        let position = self.position();
        let done = self.copy(&mut input, output.file(), progress);
        let finished = done.and_then(|done| output.finish().map(|()| done));
        if finished.is_err() {
            self.seek(position)?;
        }
        finished
    }
}

impl Gcm {
    /// Encrypts a file into another with key 0. The target gets the ciphertext and then the tag. Returns the tag.
    /// `progress` gets the number of bytes written after each piece.
    ///
    /// # Errors
    /// The target stays as it was with each of these:
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: the nonce or associated data has more than 2^61 − 1 bytes. Or the file has more than 2^36
    ///   − 32, at the start or because it grows meanwhile.
    /// - [`Error::Io`]: a file cannot be opened, read, written or given its name, or the target is no file.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn seal_file(
        &self,
        nonce: &[u8],
        aad: &[u8],
        from: &Path,
        to: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<Tag> {
        let (mut input, len) = open(from)?;
        let start = self.start(0, nonce, aad, to_usize(len)?)?;
        let mut output = Aside::new(to, &input)?;
        let (mut hash, mut read, mut done) = (self.begin_hash(aad), 0, 0);
        let file = output.file();
        self.run(
            start.counter(),
            |piece| {
                let len = fill(&mut input, piece)?;
                read += len as u64;
                // The file may have grown meanwhile.
                expect_message(read)?;
                Ok(len)
            },
            |piece| {
                hash = self.extend_hash(&hash, piece);
                write(file, piece)?;
                done += piece.len() as u64;
                progress(done);
                Ok(())
            },
        )?;
        let tag = self.tag(&start, aad.len(), to_usize(done)?, &hash);
        write(output.file(), tag.as_ref())?;
        output.finish()?;
        Ok(tag)
    }

    /// Decrypts a file made by [`Gcm::seal_file`], which must be readable twice. The first time the host hashes all of
    /// it to check the tag, and nothing is written. The second time it is decrypted, and hashed again, since another
    /// program may have changed it meanwhile. `progress` counts the second time.
    ///
    /// # Errors
    /// The target stays as it was with each of these:
    /// - [`Error::Tag`]: the tag is not that of the rest of the file, the first time or the second.
    /// - [`Error::TagLength`]: the file is shorter than a tag, or its length changed before the tag was read.
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: the nonce or associated data has more than 2^61 − 1 bytes, or the ciphertext more than
    ///   2^36 − 32.
    /// - [`Error::Io`]: a file cannot be opened, read, read again, written or given its name, or the target is no file.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn open_file(
        &self,
        nonce: &[u8],
        aad: &[u8],
        from: &Path,
        to: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let (mut input, len) = open(from)?;
        Aside::expect_target(to)?;
        let tag_len = self.tag_bytes() as u64;
        let Some(data) = len.checked_sub(tag_len) else {
            return Err(Error::TagLength { expected: self.tag_bytes(), actual: to_usize(len)? });
        };
        let start = self.start(0, nonce, aad, to_usize(data)?)?;
        let (hash, read) = self.hash_all(aad, &mut Read::by_ref(&mut input).take(data))?;
        let mut tag = Vec::new();
        let end = &mut Read::by_ref(&mut input).take(tag_len + 1);
        end.read_to_end(&mut tag).map_err(|error| Error::io("reading the tag", &error))?;
        self.expect_tag_len(&tag)?;
        let expect_tag = |hash: &Sum, len| {
            expect_tag(&Zeroizing::new(self.tag(&start, aad.len(), to_usize(len)?, hash)), &tag, None)
        };
        expect_tag(&hash, read)?;

        input.rewind().map_err(|error| Error::io(format!("reading {} again", from.display()), &error))?;
        let mut output = Aside::new(to, &input)?;
        let (mut hash, mut read, mut done) = (self.begin_hash(aad), 0, 0);
        let file = output.file();
        let mut sealed = input.take(data);
        let next = |piece: &mut [u8]| {
            let len = fill(&mut sealed, piece)?;
            hash = self.extend_hash(&hash, &piece[..len]);
            read += len as u64;
            Ok(len)
        };
        self.run(start.counter(), next, |piece| {
            write(file, piece)?;
            done += piece.len() as u64;
            progress(done);
            Ok(())
        })?;
        expect_tag(&hash, read)?;
        output.finish()
    }

    /// The hash over associated data and all that `input` has, and the number of its bytes.
    fn hash_all(&self, aad: &[u8], input: &mut impl Read) -> Result<(Sum, u64)> {
        let mut piece = vec![0; self.aes().config().piece_bytes()];
        let (mut hash, mut read) = (self.begin_hash(aad), 0);
        loop {
            let len = fill(input, &mut piece)?;
            if len == 0 {
                return Ok((hash, read));
            }
            hash = self.extend_hash(&hash, &piece[..len]);
            read += len as u64;
        }
    }

    fn run(
        &self,
        counter: [u8; BLOCK],
        input: impl FnMut(&mut [u8]) -> Result<usize>,
        done: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let at = |at: u64| add_counter(counter, (at / BLOCK as u64).into(), Counter::Bits32);
        pump(
            self.aes(),
            input,
            |queue, piece, start, len| {
                self.aes().on(queue).ctr_aligned(piece.view_mut(..len)?, 0, at(start), Counter::Bits32)
            },
            |start, piece| {
                cpu::ctr(self.aes().cipher(0), at(start), Counter::Bits32, 0, piece);
                Ok(())
            },
            done,
        )
    }
}

/// Pieces from `input` to `done`, by `on_device` or `on_host`.
fn pump(
    aes: &Aes,
    mut input: impl FnMut(&mut [u8]) -> Result<usize>,
    on_device: impl Fn(&Queue, &mut Buffer<u8>, u64, usize) -> Result<()>,
    on_host: impl Fn(u64, &mut [u8]) -> Result<()>,
    mut done: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if !aes.device().info().is_processor() {
        return pieces::for_stream(aes)?.pump(input, on_device, done);
    }
    let mut piece = Zeroizing::new(vec![0; aes.config().piece_bytes()]);
    let mut at = 0;
    loop {
        let len = input(&mut piece)?;
        if len == 0 {
            return Ok(());
        }
        on_host(at, &mut piece[..len])?;
        done(&piece[..len])?;
        at += len as u64;
    }
}

/// Reads until `piece` is full or the input ends.
fn fill(input: &mut impl Read, piece: &mut [u8]) -> Result<usize> {
    let mut len = 0;
    while len < piece.len() {
        match input.read(&mut piece[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("reading", &error)),
        }
    }
    Ok(len)
}

fn write(output: &mut impl Write, piece: &[u8]) -> Result<()> {
    output.write_all(piece).map_err(|error| Error::io("writing", &error))
}

/// A file for reading, and its length.
fn open(path: &Path) -> Result<(File, u64)> {
    let fail = |error| Error::io(format!("opening {}", path.display()), &error);
    let file = File::open(path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    Ok((file, len))
}

fn to_usize(len: u64) -> Result<usize> {
    let limit = usize::MAX as u64;
    usize::try_from(len).map_err(|_| Error::TooLong { what: "a file", expected: limit, actual: len })
}

fn expect_message(len: u64) -> Result<()> {
    if len <= MAX_MESSAGE {
        return Ok(());
    }
    Err(Error::TooLong { what: "a message", expected: MAX_MESSAGE, actual: len })
}
