//! The CPU's bodies of the kernels: where each launch's data lies, and which mode on host memory it gets.

use rayon::prelude::*;

use crate::{
    block::{BLOCK, Counter},
    cpu,
    ghash::HashKey,
    host_cipher::HostCipher,
    params::{BlockMode, BlockParams, CtrParams, Descriptor, Direction, GhashParams, MoveParams, POWERS, SerialParams},
};

pub(crate) fn ctr_kernel(params: &CtrParams, data: &mut [u8], cipher: &HostCipher) {
    let start = params.start.word() * BLOCK;
    let range = start + params.skip as usize..start + (params.blocks as usize - 1) * BLOCK + params.tail as usize;
    let counter = bytemuck::cast(params.counter);
    cpu::ctr(cipher, counter, Counter::of_word(params.wide), params.skip as usize, &mut data[range]);
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
        Some(message) if message.chained > 0 => cpu::last_block(&data[(message.word() - 1) * BLOCK..][..BLOCK]),
        _ => [0; BLOCK],
    }
}

pub(crate) fn message_kernel(
    mode: BlockMode,
    direction: Direction,
    width: Counter,
    data: &mut [u8],
    messages: &[Descriptor],
    ciphers: &[HostCipher],
) {
    let first_iv = first_iv(data, messages);
    cpu::each(
        split(data, messages),
        |(_, data)| data.len(),
        |(message, data)| {
            let cipher = &ciphers[message.key as usize];
            match mode {
                BlockMode::Ecb => cpu::ecb(cipher, direction, data),
                BlockMode::Cbc if message.chained > 0 => cpu::cbc_decrypt(cipher, first_iv, data),
                BlockMode::Cbc => cpu::cbc_decrypt(cipher, message.iv, data),
                BlockMode::Ctr => cpu::ctr(cipher, message.iv, width, 0, data),
                BlockMode::Tweak => {
                    let first = u128::from_le_bytes(message.iv);
                    for (i, slot) in data.as_chunks_mut().0.iter_mut().enumerate() {
                        *slot = first.wrapping_add(i as u128).to_le_bytes();
                    }
                    cpu::ecb(cipher, Direction::Encrypt, data);
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
            _ => cpu::last_block(&done[first - BLOCK..]),
        };
        let end = count.min(rest.len());
        cpu::cbc_encrypt(&ciphers[message.key as usize], iv, &mut rest[..end]);
    };
    cpu::each(split(data, messages), |(_, data)| data.len(), one);
}

pub(crate) fn xts_kernel(
    params: &BlockParams,
    data: &mut [u8],
    tweaks: &[[u8; BLOCK]],
    cipher: &HostCipher,
    direction: Direction,
    per_thread: u32,
) {
    debug_assert_eq!(params.messages, params.blocks.div_ceil(per_thread));
    let sectors = (params.units / params.messages.max(1)) as usize;
    let bytes = params.blocks as usize * BLOCK;
    let stride = (params.stride as usize * BLOCK).max(bytes);
    let parts = data[params.word.word() * BLOCK..].chunks_mut(stride).zip(&tweaks[..sectors]).collect();
    cpu::each(
        parts,
        |_| bytes,
        |(sector, tweak): (&mut [u8], &[u8; BLOCK])| {
            cpu::xts(cipher, direction, tweak, &mut sector[..bytes]);
        },
    );
}

pub(crate) fn steal_kernel(
    params: &SerialParams,
    data: &mut [u8],
    tweaks: &[[u8; BLOCK]],
    cipher: &HostCipher,
    direction: Direction,
) {
    for (i, tweak) in tweaks[..params.count as usize].iter().enumerate() {
        let at = (params.word.word() + i * params.stride as usize + params.blocks as usize) * BLOCK;
        let tweak = cpu::xts_power(u128::from_le_bytes(*tweak), params.blocks as usize);
        cpu::steal(cipher, direction, tweak, &mut data[at..][..BLOCK + params.tail as usize]);
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
        cpu::each(
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
    let pairs = dst[to..][..len].par_chunks_mut(cpu::GRAIN).zip(src[from..][..len].par_chunks(cpu::GRAIN));
    pairs.for_each(|(dst, src)| dst.copy_from_slice(src));
}
