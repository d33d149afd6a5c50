//! The modes on host memory, by RustCrypto's block functions on all cores. They serve short host slices on every
//! device, and the CPU's bodies of the kernels.

use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit,
    StreamCipherCore, consts::U16,
};
use ctr::{CtrCore, flavors};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    block::{BLOCK, Counter, add_counter},
    gf128,
    host_cipher::{HostCipher, with_cipher},
    params::Direction,
};

/// Bytes that one task takes: enough to hide its start, little enough to stay in the first caches.
pub(crate) const GRAIN: usize = 32 << 10;

/// Bytes up to which one thread takes all: waking others takes as long. 64 KiB in CTR mode took 19 µs on 16 threads,
/// and 9 on one.
pub(crate) const SERIAL: usize = 128 << 10;

/// Bytes from which a step of 32 blocks is faster than one of the actual blocks.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 128;

type Blocks<'a> = &'a mut [Array<u8, U16>];

/// XORs the keystream from byte `skip` of the block of `counter` on.
pub(crate) fn ctr(cipher: &HostCipher, counter: [u8; BLOCK], width: Counter, skip: usize, data: &mut [u8]) {
    let head = if skip == 0 { 0 } else { data.len().min(BLOCK - skip) };
    let (head, body) = data.split_at_mut(head);
    if !head.is_empty() {
        xor(head, &Zeroizing::new(cipher.encrypt(counter))[skip..]);
    }
    let first = add_counter(counter, u128::from(skip > 0), width);
    let task = |(i, chunk): (usize, &mut [u8])| {
        let counter = add_counter(first, (i * (GRAIN / BLOCK)) as u128, width);
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &cipher.lanes
            && chunk.len() >= LANES
        {
            return lanes.keystream(counter, width).apply(chunk);
        }
        let (blocks, tail) = Array::slice_as_chunks_mut(chunk);
        let count = blocks.len() as u128;
        with_cipher!(cipher, c => ctr_blocks(c, counter, width, blocks));
        if !tail.is_empty() {
            xor(tail, &*Zeroizing::new(cipher.encrypt(add_counter(counter, count, width))));
        }
    };
    in_parallel(body, GRAIN, task);
}

fn ctr_blocks<C>(cipher: &C, counter: [u8; BLOCK], width: Counter, blocks: Blocks<'_>)
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    let counter = counter.into();
    match width {
        Counter::Bits128 => {
            CtrCore::<&C, flavors::Ctr128BE>::inner_iv_init(cipher, &counter).apply_keystream_blocks(blocks)
        }
        Counter::Bits32 => {
            CtrCore::<&C, flavors::Ctr32BE>::inner_iv_init(cipher, &counter).apply_keystream_blocks(blocks)
        }
    }
}

/// Each block of whole blocks on its own.
pub(crate) fn ecb(cipher: &HostCipher, direction: Direction, data: &mut [u8]) {
    in_parallel(data, GRAIN, |(_, chunk)| blocks(cipher, direction, chunk));
}

fn blocks(cipher: &HostCipher, direction: Direction, data: &mut [u8]) {
    let (blocks, _) = Array::slice_as_chunks_mut(data);
    match direction {
        Direction::Encrypt => with_cipher!(cipher, c => c.encrypt_blocks(blocks)),
        Direction::Decrypt => with_cipher!(cipher, c => c.decrypt_blocks(blocks)),
    }
}

pub(crate) fn cbc_encrypt(cipher: &HostCipher, iv: [u8; BLOCK], data: &mut [u8]) {
    let (blocks, _) = Array::slice_as_chunks_mut(data);
    with_cipher!(cipher, c => cbc::Encryptor::inner_iv_init(c, &iv.into()).encrypt_blocks(blocks));
}

pub(crate) fn cbc_decrypt(cipher: &HostCipher, iv: [u8; BLOCK], data: &mut [u8]) {
    let one = |iv: [u8; BLOCK], data: &mut [u8]| {
        let (blocks, _) = Array::slice_as_chunks_mut(data);
        with_cipher!(cipher, c => cbc::Decryptor::inner_iv_init(c, &iv.into()).decrypt_blocks(blocks));
    };
    if data.len() <= SERIAL {
        return one(iv, data);
    }
    // What comes before each task, which the task before overwrites.
    let previous: Vec<[u8; BLOCK]> =
        data.chunks_exact(GRAIN).map(|chunk| last_block(&chunk[GRAIN - BLOCK..])).collect();
    in_parallel(data, GRAIN, |(i, chunk)| one(if i == 0 { iv } else { previous[i - 1] }, chunk));
}

/// Sectors of XTS whose tweaks are encrypted together: enough to keep a processor's instructions for it busy.
const SECTORS: usize = 16;

/// Room for the tweaks of neighbouring blocks. To zero it takes as long as some blocks do: so it serves many sectors.
type Tweaks = Zeroizing<[u128; 64]>;

fn no_tweaks() -> Tweaks {
    Zeroizing::new([0; 64])
}

/// Sectors of `sector_bytes` bytes, numbered from `first` on, the last perhaps shorter, with the keys for data and for
/// tweaks.
pub(crate) fn xts_sectors(
    [cipher, for_tweaks]: [&HostCipher; 2],
    direction: Direction,
    first: u128,
    sector_bytes: usize,
    data: &mut [u8],
) {
    let each = (GRAIN / sector_bytes).clamp(1, SECTORS);
    let task = |(i, part): (usize, &mut [u8])| {
        let mut starts = Zeroizing::new([0_u128; SECTORS]);
        let starts = &mut starts[..part.len().div_ceil(sector_bytes)];
        starts.iter_mut().enumerate().for_each(|(j, start)| *start = (first + (i * each + j) as u128).to_le());
        blocks(for_tweaks, Direction::Encrypt, bytemuck::cast_slice_mut(starts));
        let mut tweaks = no_tweaks();
        for (sector, start) in part.chunks_mut(sector_bytes).zip(starts) {
            xts(cipher, direction, u128::from_le(*start), sector, &mut tweaks);
        }
    };
    match data.len() {
        ..=SERIAL => data.chunks_mut(each * sector_bytes).enumerate().for_each(task),
        _ => data.par_chunks_mut(each * sector_bytes).enumerate().for_each(task),
    }
}

/// One sector of at least a block, between the tweaks from the encrypted one `tweak` on, with stealing.
fn xts(cipher: &HostCipher, direction: Direction, tweak: u128, data: &mut [u8], tweaks: &mut Tweaks) {
    let (whole, part) = (data.len() / BLOCK, data.len() % BLOCK);
    let straight = whole - usize::from(part > 0);
    let (body, end) = data.split_at_mut(straight * BLOCK);
    if body.len() <= SERIAL {
        xts_blocks(cipher, direction, tweak, body, tweaks);
    } else {
        let task = |tweaks: &mut Tweaks, (i, chunk): (usize, &mut [u8])| {
            xts_blocks(cipher, direction, xts_power(tweak, i * (GRAIN / BLOCK)), chunk, tweaks);
        };
        body.par_chunks_mut(GRAIN).enumerate().for_each_init(no_tweaks, task);
    }
    if part > 0 {
        steal(cipher, direction, xts_power(tweak, straight), end, tweaks);
    }
}

fn xts_blocks(cipher: &HostCipher, direction: Direction, mut tweak: u128, data: &mut [u8], tweaks: &mut Tweaks) {
    for piece in data.chunks_mut(tweaks.len() * BLOCK) {
        for slot in &mut tweaks[..piece.len() / BLOCK] {
            *slot = tweak.to_le();
            tweak = xts_double(tweak);
        }
        let tweaks = &bytemuck::bytes_of(&**tweaks)[..piece.len()];
        xor(piece, tweaks);
        blocks(cipher, direction, piece);
        xor(piece, tweaks);
    }
}

/// The last whole block and the short one after it, with the tweak of the former.
fn steal(cipher: &HostCipher, direction: Direction, tweak: u128, data: &mut [u8], tweaks: &mut Tweaks) {
    let (whole, part) = data.split_at_mut(BLOCK);
    let (first, second) = match direction {
        Direction::Encrypt => (tweak, xts_double(tweak)),
        Direction::Decrypt => (xts_double(tweak), tweak),
    };
    xts_blocks(cipher, direction, first, whole, tweaks);
    whole[..part.len()].swap_with_slice(part);
    xts_blocks(cipher, direction, second, whole, tweaks);
}

fn xts_double(tweak: u128) -> u128 {
    (tweak << 1) ^ ((tweak >> 127) * 0x87)
}

/// Times x^n. XTS numbers coefficients as this crate's field does, so that its arithmetic serves.
fn xts_power(tweak: u128, n: usize) -> u128 {
    if n == 0 { tweak } else { gf128::multiply(tweak, gf128::power(&gf128::squares::<32>(2), n as u64)) }
}

/// Does `task` on each piece of `grain` bytes, with its number, or on all data as one where that is little.
fn in_parallel(data: &mut [u8], grain: usize, task: impl Fn((usize, &mut [u8])) + Send + Sync) {
    match data.len() {
        0 => {}
        1..=SERIAL => task((0, data)),
        _ => data.par_chunks_mut(grain).enumerate().for_each(task),
    }
}

/// Does `work` on each of several pieces of data, of `bytes` each.
pub(crate) fn each<T: Send>(parts: Vec<T>, bytes: impl Fn(&T) -> usize, work: impl Fn(T) + Send + Sync) {
    match parts.iter().map(bytes).sum() {
        ..=SERIAL => parts.into_iter().for_each(work),
        _ => parts.into_par_iter().for_each(work),
    }
}

fn xor(data: &mut [u8], mask: &[u8]) {
    data.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

pub(crate) fn last_block(bytes: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block.copy_from_slice(bytes);
    block
}
