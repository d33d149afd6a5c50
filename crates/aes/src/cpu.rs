//! The modes on host memory, by RustCrypto's block functions on all cores: the CPU's bodies of the kernels, and what
//! short host slices get on every device.

use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit,
    StreamCipherCore, consts::U16,
};
use ctr::{CtrCore, flavors};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    gf128,
    ghash::HashKey,
    kernels::{
        BlockMode, BlockParams, CtrParams, Descriptor, Direction, GhashParams, MoveParams, POWERS, SerialParams,
    },
    key::{HostCipher, with_cipher},
};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// Bytes that one task takes: enough to hide its start, little enough to stay in the first caches.
const GRAIN: usize = 32 << 10;

/// Bytes up to which one thread takes all: waking others takes as long. 64 KiB in CTR mode took 19 µs on 16 threads, and 9 on
/// one.
pub(crate) const SERIAL: usize = 128 << 10;

/// Bytes from which on 32 blocks at a time are faster than as many as there are.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 128;

type Blocks<'a> = &'a mut [Array<u8, U16>];

/// A counter block plus n, as a big-endian number of 128 bits, or of its last 32 bits alone.
pub(crate) fn add_counter(counter: [u8; BLOCK], n: u128, wide: bool) -> [u8; BLOCK] {
    let value = u128::from_be_bytes(counter);
    let low = u128::from(u32::MAX);
    match wide {
        true => value.wrapping_add(n),
        false => value & !low | value.wrapping_add(n) & low,
    }
    .to_be_bytes()
}

/// XORs the keystream from byte `skip` of the block of `counter` on.
pub(crate) fn ctr(cipher: &HostCipher, counter: [u8; BLOCK], wide: bool, skip: usize, data: &mut [u8]) {
    let head = if skip == 0 { 0 } else { data.len().min(BLOCK - skip) };
    let (head, body) = data.split_at_mut(head);
    if !head.is_empty() {
        xor(head, &Zeroizing::new(cipher.encrypt(counter))[skip..]);
    }
    let first = add_counter(counter, u128::from(skip > 0), wide);
    let task = |(i, chunk): (usize, &mut [u8])| {
        let counter = add_counter(first, (i * (GRAIN / BLOCK)) as u128, wide);
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &cipher.lanes
            && chunk.len() >= LANES
        {
            return lanes.counter(counter, wide).apply(chunk);
        }
        let (blocks, tail) = Array::slice_as_chunks_mut(chunk);
        let count = blocks.len() as u128;
        with_cipher!(cipher, c => ctr_blocks(c, counter, wide, blocks));
        if !tail.is_empty() {
            xor(tail, &*Zeroizing::new(cipher.encrypt(add_counter(counter, count, wide))));
        }
    };
    in_parallel(body, GRAIN, task);
}

fn ctr_blocks<C>(cipher: &C, counter: [u8; BLOCK], wide: bool, blocks: Blocks<'_>)
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    let counter = counter.into();
    match wide {
        true => CtrCore::<&C, flavors::Ctr128BE>::inner_iv_init(cipher, &counter).apply_keystream_blocks(blocks),
        false => CtrCore::<&C, flavors::Ctr32BE>::inner_iv_init(cipher, &counter).apply_keystream_blocks(blocks),
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

/// One sector of at least a block, between the tweaks from the encrypted one `tweak` on, with stealing.
pub(crate) fn xts(cipher: &HostCipher, direction: Direction, tweak: &[u8; BLOCK], data: &mut [u8]) {
    let tweak = u128::from_le_bytes(*tweak);
    let (whole, part) = (data.len() / BLOCK, data.len() % BLOCK);
    let straight = whole - usize::from(part > 0);
    let (body, end) = data.split_at_mut(straight * BLOCK);
    let task = |(i, chunk): (usize, &mut [u8])| {
        xts_blocks(cipher, direction, xts_power(tweak, i * (GRAIN / BLOCK)), chunk);
    };
    in_parallel(body, GRAIN, task);
    if part > 0 {
        steal(cipher, direction, xts_power(tweak, straight), end);
    }
}

fn xts_blocks(cipher: &HostCipher, direction: Direction, mut tweak: u128, data: &mut [u8]) {
    let mut tweaks = Zeroizing::new([0_u128; 64]);
    for piece in data.chunks_mut(64 * BLOCK) {
        for slot in &mut tweaks[..piece.len() / BLOCK] {
            *slot = tweak.to_le();
            tweak = xts_double(tweak);
        }
        let tweaks = &bytemuck::bytes_of(&*tweaks)[..piece.len()];
        xor(piece, tweaks);
        blocks(cipher, direction, piece);
        xor(piece, tweaks);
    }
}

/// The last whole block and the short one after it, with the tweak of the former.
fn steal(cipher: &HostCipher, direction: Direction, tweak: u128, data: &mut [u8]) {
    let (whole, part) = data.split_at_mut(BLOCK);
    let (first, second) = match direction {
        Direction::Encrypt => (tweak, xts_double(tweak)),
        Direction::Decrypt => (xts_double(tweak), tweak),
    };
    xts_blocks(cipher, direction, first, whole);
    whole[..part.len()].swap_with_slice(part);
    xts_blocks(cipher, direction, second, whole);
}

fn xts_double(tweak: u128) -> u128 {
    (tweak << 1) ^ ((tweak >> 127) * 0x87)
}

/// Times x^n. XTS numbers coefficients as this crate's field does, so that its arithmetic serves.
fn xts_power(tweak: u128, n: usize) -> u128 {
    if n == 0 { tweak } else { gf128::multiply(tweak, gf128::power(&gf128::squares::<32>(2), n as u64)) }
}

pub(crate) fn ctr_kernel(params: &CtrParams, data: &mut [u8], cipher: &HostCipher) {
    let start = params.start.word() * BLOCK;
    let range = start + params.skip as usize..start + (params.blocks as usize - 1) * BLOCK + params.tail as usize;
    let counter = bytemuck::cast(params.counter);
    ctr(cipher, counter, params.wide != 0, params.skip as usize, &mut data[range]);
}

/// The data of each message, in the order of where they lie.
fn split<'a>(mut data: &'a mut [u8], messages: &'a [Descriptor]) -> Vec<(&'a Descriptor, &'a mut [u8])> {
    let mut order: Vec<&Descriptor> = messages.iter().filter(|message| message.blocks > 0).collect();
    order.sort_by_key(|message| message.word());
    let (mut done, mut parts) = (0, Vec::with_capacity(order.len()));
    for message in order {
        let start = message.word() * BLOCK;
        let end = start + (message.blocks as usize - 1) * BLOCK + message.tail as usize;
        let (part, rest) = data.split_at_mut(end - done);
        parts.push((message, &mut part[start - done..]));
        (data, done) = (rest, end);
    }
    parts
}

/// What CBC starts from where the first message goes on with what lies before it. No other one of a launch does.
fn first_iv(data: &[u8], messages: &[Descriptor]) -> [u8; BLOCK] {
    match messages.first() {
        Some(message) if message.chained > 0 => last_block(&data[(message.word() - 1) * BLOCK..][..BLOCK]),
        _ => [0; BLOCK],
    }
}

pub(crate) fn message_kernel(
    mode: BlockMode,
    direction: Direction,
    wide: bool,
    data: &mut [u8],
    messages: &[Descriptor],
    ciphers: &[HostCipher],
) {
    let first_iv = first_iv(data, messages);
    each(
        split(data, messages),
        |(_, data)| data.len(),
        |(message, data)| {
            let cipher = &ciphers[message.key as usize];
            match mode {
                BlockMode::Ecb => ecb(cipher, direction, data),
                BlockMode::Cbc if message.chained > 0 => cbc_decrypt(cipher, first_iv, data),
                BlockMode::Cbc => cbc_decrypt(cipher, message.iv, data),
                BlockMode::Ctr => ctr(cipher, message.iv, wide, 0, data),
                BlockMode::Tweak => {
                    let first = u128::from_le_bytes(message.iv);
                    for (i, slot) in data.as_chunks_mut().0.iter_mut().enumerate() {
                        *slot = first.wrapping_add(i as u128).to_le_bytes();
                    }
                    ecb(cipher, Direction::Encrypt, data);
                }
                BlockMode::Xts => unreachable!("sectors are no messages"),
            }
        },
    );
}

pub(crate) fn cbc_encrypt_kernel(
    params: &SerialParams,
    data: &mut [u8],
    messages: &[Descriptor],
    ciphers: &[HostCipher],
) {
    let (first, count) = (params.first as usize * BLOCK, params.blocks as usize * BLOCK);
    let first_iv = first_iv(data, messages);
    let one = |(message, data): (&Descriptor, &mut [u8])| {
        if first >= data.len() {
            return;
        }
        let (done, rest) = data.split_at_mut(first);
        let iv = match first {
            0 if message.chained > 0 => first_iv,
            0 => message.iv,
            _ => last_block(&done[first - BLOCK..]),
        };
        let end = count.min(rest.len());
        cbc_encrypt(&ciphers[message.key as usize], iv, &mut rest[..end]);
    };
    each(split(data, messages), |(_, data)| data.len(), one);
}

pub(crate) fn xts_kernel(
    params: &BlockParams,
    data: &mut [u8],
    tweaks: &[[u8; BLOCK]],
    cipher: &HostCipher,
    decrypt: bool,
    per_thread: u32,
) {
    debug_assert_eq!(params.messages, params.blocks.div_ceil(per_thread));
    let sectors = (params.units / params.messages.max(1)) as usize;
    let direction = if decrypt { Direction::Decrypt } else { Direction::Encrypt };
    let bytes = params.blocks as usize * BLOCK;
    let stride = (params.stride as usize * BLOCK).max(bytes);
    let parts = data[params.word.word() * BLOCK..].chunks_mut(stride).zip(&tweaks[..sectors]).collect();
    each(
        parts,
        |_| bytes,
        |(sector, tweak): (&mut [u8], &[u8; BLOCK])| {
            xts(cipher, direction, tweak, &mut sector[..bytes]);
        },
    );
}

pub(crate) fn steal_kernel(
    params: &SerialParams,
    data: &mut [u8],
    tweaks: &[[u8; BLOCK]],
    cipher: &HostCipher,
    decrypt: bool,
) {
    let direction = if decrypt { Direction::Decrypt } else { Direction::Encrypt };
    for (i, tweak) in tweaks[..params.count as usize].iter().enumerate() {
        let at = (params.word.word() + i * params.stride as usize + params.blocks as usize) * BLOCK;
        let tweak = xts_power(u128::from_le_bytes(*tweak), params.blocks as usize);
        steal(cipher, direction, tweak, &mut data[at..][..BLOCK + params.tail as usize]);
    }
}

pub(crate) fn ghash_kernel(
    params: &GhashParams,
    data: &[u8],
    messages: &[Descriptor],
    keys: &[HashKey],
    out: &mut [[u8; BLOCK]],
) {
    let bytes = |word: usize, blocks: u32, tail: u32| match blocks {
        0 => &[],
        _ => &data[word * BLOCK..][..(blocks as usize - 1) * BLOCK + tail as usize],
    };
    if params.segment == 0 {
        let parts = out.iter_mut().zip(&messages[..params.count as usize]).collect();
        each(
            parts,
            |(_, message)| message.blocks as usize * BLOCK,
            |(out, message)| {
                *out = *keys[message.powers as usize / POWERS].sum(bytes(message.word(), message.blocks, message.tail));
            },
        );
        return;
    }
    let (key, segment) = (&keys[params.power as usize / POWERS], params.segment as usize * BLOCK);
    let data = bytes(params.word.word(), params.blocks, params.tail);
    match &mut out[..params.count as usize] {
        [out] => *out = *key.sum(data),
        out => out.par_iter_mut().zip(data.par_chunks(segment)).for_each(|(out, part)| *out = *key.sum(part)),
    }
}

pub(crate) fn move_kernel(params: &MoveParams, src: &[u8], dst: &mut [u8]) {
    let len = (params.words as usize - 1) * BLOCK + params.tail as usize - params.to as usize;
    let from = params.src_word.word() * BLOCK + params.from_byte as usize;
    let to = params.dst_word.word() * BLOCK + params.to as usize;
    let pairs = dst[to..][..len].par_chunks_mut(GRAIN).zip(src[from..][..len].par_chunks(GRAIN));
    pairs.for_each(|(dst, src)| dst.copy_from_slice(src));
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

fn last_block(bytes: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block.copy_from_slice(bytes);
    block
}
