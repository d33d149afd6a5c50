//! Readers, writers, files, and RustCrypto's traits.

use std::{
    env, fs,
    io::{self, Read, Write},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use evariste::aes::{
    Aes, Aes256Ctr, Aes256Ctr32, Aes256Gcm, AesConfig, Counter, Ctr, Error,
    aead::{AeadInOut, KeyInit},
    cipher::{KeyIvInit, StreamCipher, StreamCipherSeek},
};
use evariste::backend::{Device, Kind};
use libtest_mimic::Failed;

use super::bytes;
use crate::{
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    recorder::Recorder,
};

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("readers_and_writers", readers_and_writers);
    trials.add("failures_use_no_stream_twice", failures);
    trials.add("files", files);
    trials.add("files_that_fail_leave_the_target", files_that_fail);
    trials.add("targets", targets);
    trials.add("rustcrypto_traits", traits);
}

/// Several pieces in each stream.
fn small_pieces() -> AesConfig {
    AesConfig::default().cpu_threshold(0).chunk_bytes(10_000).queues(2)
}

/// A reader that gives a few bytes at a time, and, if it should, an error at the end.
struct Slow<'a> {
    rest: &'a [u8],
    fails: bool,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && self.fails {
            return Err(io::Error::other("the disk is gone"));
        }
        let len = buffer.len().min(self.rest.len()).min(777);
        buffer[..len].copy_from_slice(&self.rest[..len]);
        self.rest = &self.rest[len..];
        Ok(len)
    }
}

fn readers_and_writers(device: &Device) -> Outcome {
    let aes = Aes::with_keys(device, &[bytes(32, 1)], small_pieces())?;
    for (len, position) in [(0, 0), (1, 3), (10_000, 0), (45_678, 5)] {
        let plain = bytes(len, 2);
        let mut expected = plain.clone();
        let mut whole = aes.ctr(&[7; 16])?;
        whole.seek(position)?;
        whole.apply_host(&mut expected)?;
        let mut stream = aes.ctr(&[7; 16])?;
        stream.seek(position)?;
        let (mut output, mut heard) = (Vec::new(), 0);
        let done = stream.copy(&mut Slow { rest: &plain, fails: false }, &mut output, |bytes| heard = bytes)?;
        expect_same("copy", &output, &expected)?;
        expect_equal("bytes", &(done, heard), &(len as u64, len as u64))?;
        expect_equal("position", &stream.position(), &(position + len as u128))?;
        let failed = expect_error(
            "a reader that fails",
            stream.copy(&mut Slow { rest: &plain, fails: true }, &mut output, |_| ()),
        )?;
        expect("the reason is told", failed.to_string().contains("the disk is gone"))?;
    }
    Ok(())
}

/// A writer that takes a number of bytes, and then fails, or panics.
struct Short {
    written: Vec<u8>,
    room: usize,
    panics: bool,
}

impl Write for Short {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let len = data.len().min(self.room - self.written.len());
        self.written.extend_from_slice(&data[..len]);
        match len == 0 && !data.is_empty() {
            true if self.panics => panic::resume_unwind(Box::new("the disk is full")),
            true => Err(io::Error::other("the disk is full")),
            false => Ok(len),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whichever piece of a slice fails, the slice is as it was; and what a writer has got when it fails or panics, or
/// might have, is behind the position.
fn failures(device: &Device) -> Outcome {
    let recorder = Recorder::plain(device);
    let flaky = Device::unregistered(Arc::clone(&recorder) as _);
    let config = AesConfig::default().cpu_threshold(0).chunk_bytes(512 << 10).queues(2);
    let (plain, start) = (bytes((3 << 19) + 5, 3), 5);
    let mut expected = plain.clone();
    let mut whole = Aes::new(&Device::cpu(), &bytes(16, 1))?.ctr(&[7; 16])?;
    whole.seek(start)?;
    whole.apply_host(&mut expected)?;
    let mut stream = Aes::with_keys(&flaky, &[bytes(16, 1)], config)?.ctr(&[7; 16])?;
    stream.seek(start)?;
    let mut failures = 0;
    for reads in 0.. {
        recorder.fail_read_after(reads);
        let mut data = plain.clone();
        if stream.apply_host(&mut data).is_ok() {
            expect_same("after all reads", &data, &expected)?;
            break;
        }
        expect_same(&format!("a slice of which piece {reads} failed"), &data, &plain)?;
        expect_equal("the position then", &stream.position(), &start)?;
        failures += 1;
    }
    // Slices do not pass through a device that is the CPU.
    let pieces = if device.info().id.kind == Kind::Cpu { 0 } else { 3 };
    expect_equal("pieces that failed", &failures, &pieces)?;
    recorder.fail_read_after(usize::MAX);

    // Three launches, of 2,048 bytes each, and of those before the one that fails each once more.
    let config = AesConfig::default().cpu_threshold(0).launch_bytes(2048);
    let mut stream = Aes::with_keys(&flaky, &[bytes(16, 1)], config)?.ctr(&[7; 16])?;
    stream.seek(16)?;
    let mut data = flaky.upload::<u8>(&plain[..6_000])?;
    for launches in 0..3 {
        recorder.fail_launch_after(launches);
        expect_error("a launch that fails", stream.apply(&mut data))?;
        expect_same(&format!("a buffer of which launch {launches} failed"), &data.to_vec()?, &plain[..6_000])?;
        expect_equal("the position then", &stream.position(), &16)?;
    }
    recorder.fail_launch_after(usize::MAX);

    let aes = Aes::with_keys(device, &[bytes(16, 1)], small_pieces())?;
    for (room, panics) in [0, 9_999, 10_000, 12_345].into_iter().flat_map(|room| [(room, false), (room, true)]) {
        let (mut stream, mut output) = (aes.ctr(&[7; 16])?, Short { written: Vec::new(), room, panics });
        stream.seek(start)?;
        let copy = AssertUnwindSafe(|| stream.copy(&mut &plain[..20_000], &mut output, |_| ()));
        match panic::catch_unwind(copy) {
            Ok(outcome) => {
                let error = expect_error("a full disk", outcome)?;
                expect("the reason is told", !panics && error.to_string().contains("the disk is full"))?;
            }
            Err(_) => expect("the writer's own panic", panics)?,
        }
        let used = stream.position() - start;
        expect_same("what was written", &output.written, &expected[..room])?;
        expect(&format!("{used} bytes of stream are used for {room}"), used > room as u128 && used <= 20_000)?;
    }
    Ok(())
}

/// A folder that is removed at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, Failed> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("evariste-aes-{}-{number}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn expect_files(&self, count: usize) -> Outcome {
        expect_equal("files, nothing half written", &fs::read_dir(&self.0)?.count(), &count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(device: &Device) -> Outcome {
    let folder = Folder::new()?;
    let aes = Aes::with_keys(device, &[bytes(16, 3)], small_pieces())?;
    let gcm = aes.gcm()?;
    let [plain, sealed, opened] = ["plain", "sealed", "opened"].map(|name| folder.file(name));
    for len in [0, 1, 9_999, 10_000, 123_457] {
        let data = bytes(len, 4);
        fs::write(&plain, &data)?;

        let mut expected = data.clone();
        aes.ctr(&[1; 16])?.apply_host(&mut expected)?;
        let mut last = 0;
        let done = aes.ctr(&[1; 16])?.apply_file(&plain, &sealed, |bytes| last = bytes)?;
        expect_equal("bytes", &(done, last), &(len as u64, len as u64))?;
        expect_same("ctr", &fs::read(&sealed)?, &expected)?;
        aes.ctr(&[1; 16])?.apply_file(&sealed, &sealed, |_| ())?;
        expect_same("ctr, a file onto itself", &fs::read(&sealed)?, &data)?;

        let mut expected = data.clone();
        let tag = gcm.seal_host(&[2; 12], b"name", &mut expected)?;
        expected.extend_from_slice(tag.as_ref());
        expect_equal("tag", &gcm.seal_file(&[2; 12], b"name", &plain, &sealed, |_| ())?, &tag)?;
        expect_same("gcm", &fs::read(&sealed)?, &expected)?;
        gcm.open_file(&[2; 12], b"name", &sealed, &opened, |_| ())?;
        expect_same("gcm, opened", &fs::read(&opened)?, &data)?;
    }
    folder.expect_files(3)
}

fn files_that_fail(device: &Device) -> Outcome {
    let folder = Folder::new()?;
    let gcm = Aes::with_keys(device, &[bytes(16, 5)], small_pieces())?.gcm()?;
    let [plain, sealed, target] = ["plain", "sealed", "target"].map(|name| folder.file(name));
    fs::write(&plain, bytes(50_000, 6))?;
    fs::write(&target, b"good")?;
    gcm.seal_file(&[2; 12], &[], &plain, &sealed, |_| ())?;
    let good = fs::read(&sealed)?;
    for place in [0, 25_000, 50_015] {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        fs::write(&sealed, bad)?;
        // No plaintext is written, not even under another name.
        let mut heard = Vec::new();
        let opened = gcm.open_file(&[2; 12], &[], &sealed, &target, |done| heard.push(done));
        expect_equal("a changed file", &expect_error("a changed file", opened)?, &Error::Tag { message: None })?;
        expect_same("bytes decrypted", &heard, &[])?;
    }
    fs::write(&sealed, &good[..15])?;
    let error = expect_error("a short file", gcm.open_file(&[2; 12], &[], &sealed, &target, |_| ()))?;
    expect_equal("a short file", &error, &Error::TagLength { expected: 16, actual: 15 })?;
    let mut stream = gcm.aes().ctr(&[0; 16])?;
    let error = expect_error("no file", stream.apply_file(&folder.file("none"), &target, |_| ()))?;
    expect("no file", matches!(error, Error::Io { kind: io::ErrorKind::NotFound, .. }))?;
    let error = expect_error("no folder", stream.apply_file(&plain, &folder.file("none/target"), |_| ()))?;
    expect("no folder", matches!(error, Error::Io { kind: io::ErrorKind::NotFound, .. }))?;
    expect_equal("position", &stream.position(), &0)?;
    expect_same("the target", &fs::read(&target)?, b"good")?;
    folder.expect_files(3)
}

/// What a target keeps when it is replaced, and what is no target.
fn targets(device: &Device) -> Outcome {
    let folder = Folder::new()?;
    let aes = Aes::with_keys(device, &[bytes(16, 5)], small_pieces())?;
    let gcm = aes.gcm()?;
    let long = "n".repeat(250);
    let [plain, sealed, target] = ["plain", "sealed", &long].map(|name| folder.file(name));
    fs::write(&plain, bytes(20_000, 6))?;
    gcm.seal_file(&[2; 12], &[], &plain, &sealed, |_| ())?;
    gcm.open_file(&[2; 12], &[], &sealed, &target, |_| ())?;
    expect_same("a long name", &fs::read(&target)?, &bytes(20_000, 6))?;
    folder.expect_files(3)?;

    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let mode =
            |path: &std::path::Path| -> Result<u32, Failed> { Ok(path.metadata()?.permissions().mode() & 0o777) };
        expect_equal("the mode of a new file", &mode(&target)?, &0o600)?;
        for kept in [0o600, 0o640, 0o755, 0o444] {
            fs::set_permissions(&target, fs::Permissions::from_mode(kept))?;
            gcm.open_file(&[2; 12], &[], &sealed, &target, |_| ())?;
            expect_equal("the mode", &mode(&target)?, &kept)?;
        }
        fs::create_dir(folder.file("below"))?;
        let [link, chain, dangling] = ["link", "below/chain", "dangling"].map(|name| folder.file(name));
        symlink(&target, &link)?;
        symlink("../link", &chain)?;
        symlink("below/new", &dangling)?;
        for (link, file) in [(&link, &target), (&chain, &target), (&dangling, &folder.file("below/new"))] {
            fs::remove_file(file)
                .or_else(|_| if link == &dangling { Ok(()) } else { Err(io::Error::other("gone")) })?;
            aes.ctr(&[1; 16])?.apply_file(&plain, link, |_| ())?;
            expect("the link is one still", fs::symlink_metadata(link)?.is_symlink())?;
            let mut expected = bytes(20_000, 6);
            aes.ctr(&[1; 16])?.apply_host(&mut expected)?;
            expect_same("what it points to", &fs::read(file)?, &expected)?;
        }
        symlink("round", folder.file("round"))?;
        let mut stream = aes.ctr(&[1; 16])?;
        for (name, what) in [("round", "a link to itself"), ("below", "a folder")] {
            let error = expect_error(what, stream.apply_file(&plain, &folder.file(name), |_| ()))?;
            expect(what, matches!(error, Error::Io { kind: io::ErrorKind::InvalidInput, .. }))?;
        }
        let error = expect_error("a device", gcm.open_file(&[2; 12], &[], &sealed, "/dev/null".as_ref(), |_| ()))?;
        expect("a device", matches!(error, Error::Io { kind: io::ErrorKind::InvalidInput, .. }))?;
        // A hole that is longer than a message can be: refused before anything is written, and before it is read.
        fs::File::create(folder.file("hole"))?.set_len((1 << 36) - 31)?;
        let mut heard = 0;
        let [hole, none] = ["hole", "none"].map(|name| folder.file(name));
        let error = expect_error("too long", gcm.seal_file(&[2; 12], &[], &hole, &none, |_| heard += 1))?;
        let (limit, actual) = ((1 << 36) - 32, (1 << 36) - 31);
        expect_equal("too long", &error, &Error::TooLong { what: "a message", expected: limit, actual })?;
        expect_equal("pieces", &heard, &0)?;
        folder.expect_files(8)?;
    }
    Ok(())
}

fn traits(device: &Device) -> Outcome {
    let (key, iv) = (bytes(32, 7), bytes(16, 8));
    let mut expected = bytes(5000, 9);
    Aes::new(device, &key)?.ctr(&iv)?.apply_host(&mut expected)?;
    let mut stream = <Aes256Ctr as KeyIvInit>::new_from_slices(&key, &iv).map_err(|_| "lengths")?;
    let mut data = bytes(5000, 9);
    let (head, tail) = data.split_at_mut(1234);
    stream.apply_keystream(head);
    expect_equal("position", &stream.current_pos::<u64>(), &1234)?;
    stream.try_apply_keystream(tail).map_err(|_| "the keystream ends")?;
    expect_same("stream", &data, &expected)?;
    stream.seek(16_u32);
    expect_equal("position", &stream.current_pos::<u64>(), &16)?;
    let mut part = bytes(5000, 9)[16..].to_vec();
    stream.apply_keystream(&mut part);
    expect_same("seek", &part, &expected[16..])?;
    expect_error("key length", Aes256Ctr::new(device, &key[1..], &iv))?;

    let mut end = Aes256Ctr32::new(device, &key, &iv)?;
    end.try_seek((1_u64 << 36) - 10).map_err(|_| "a position within the stream")?;
    let (mut data, mut output) = (vec![7; 11], vec![8; 11]);
    expect("applied beyond the end", end.try_apply_keystream(&mut data).is_err())?;
    expect("applied beyond the end", end.try_apply_keystream_b2b(&data, &mut output).is_err())?;
    expect("written beyond the end", end.try_write_keystream(&mut output).is_err())?;
    expect("found beyond the end", end.try_seek((1_u64 << 36) + 1).is_err())?;
    expect_same("what was refused", &[data.clone(), output].concat(), &[[7; 11], [8; 11]].concat())?;
    end.unchecked_apply_keystream(&mut data);
    expect_same("what nobody checked", &data, &[0; 11])?;
    end.try_apply_keystream_b2b(&[7; 10], &mut data[..10]).map_err(|_| "the end of the stream")?;
    let mut last = vec![7; 10];
    let mut stream = Aes::new(device, &key)?.ctr(&iv)?.with_counter(Counter::Bits32);
    Ctr::seek(&mut stream, (1 << 36) - 10)?;
    stream.apply_host(&mut last)?;
    expect_same("the last bytes", &data[..10], &last)?;

    let gcm = <Aes256Gcm as KeyInit>::new_from_slice(&key).map_err(|_| "length")?;
    let (nonce, mut data) = ([1; 12].into(), bytes(5000, 10));
    let tag = gcm.encrypt_inout_detached(&nonce, b"aad", (&mut data[..]).into()).map_err(|_| "too long")?;
    let mut expected = bytes(5000, 10);
    let on_device = Aes256Gcm::new(device, &key)?;
    expect_same("tag", &tag, on_device.seal_host(&[1; 12], b"aad", &mut expected)?.as_ref())?;
    expect_same("aead", &data, &expected)?;
    expect("wrong data", gcm.decrypt_inout_detached(&nonce, b"aae", (&mut data[..]).into(), &tag).is_err())?;
    expect_same("still encrypted", &data, &expected)?;
    gcm.decrypt_inout_detached(&nonce, b"aad", (&mut data[..]).into(), &tag).map_err(|_| "wrong tag")?;
    expect_same("opened", &data, &bytes(5000, 10))
}
