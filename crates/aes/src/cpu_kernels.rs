//! The CPU's bodies of the kernels: where each launch's data lies, and which mode on host memory it gets.

use rayon::prelude::*;

use crate::{
    block::{BLOCK, Counter},
    cpu,
    ghash::HashKey,
    host_cipher::HostCipher,
    params::{BlockMode, BlockParams, CtrParams, Descriptor, Direction, GhashParams, POWERS, SerialParams},
};

pub(crate) fn ctr_kernel(params: &CtrParams, data: &mut [u8], cipher: &HostCipher) {
    let counter = bytemuck::cast(params.counter);
    cpu::ctr(cipher, counter, Counter::of_word(params.wide), params.skip as usize, data);
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
    params: &BlockParams,
    data: &mut [u8],
    messages: &[Descriptor],
    ciphers: &[HostCipher],
) {
    let one = |key: u32, iv: [u8; BLOCK], data: &mut [u8]| {
        let cipher = &ciphers[key as usize];
        match mode {
            BlockMode::Ecb => cpu::ecb(cipher, direction, data),
            BlockMode::Cbc => cpu::cbc_decrypt(cipher, iv, data),
            BlockMode::Ctr => cpu::ctr(cipher, iv, Counter::of_word(params.wide), 0, data),
            BlockMode::Xts => {
                let first = u128::from_le_bytes(iv);
                cpu::xts_sectors([cipher, &ciphers[1]], direction, first, params.stride as usize, data);
            }
            BlockMode::Tweak => unreachable!("XTS finds its tweaks itself"),
        }
    };
    if params.messages == 0 {
        return one(params.key, bytemuck::cast(params.iv), data);
    }
    let first_iv = first_iv(data, messages);
    let iv = |message: &Descriptor| if message.chained > 0 { first_iv } else { message.iv };
    cpu::each(split(data, messages), |(_, data)| data.len(), |(message, data)| one(message.key, iv(message), data));
}

pub(crate) fn cbc_encrypt_kernel(
    params: &SerialParams,
    data: &mut [u8],
    messages: &[Descriptor],
    ciphers: &[HostCipher],
) {
    if params.count == 0 {
        return cpu::cbc_encrypt(&ciphers[params.key as usize], bytemuck::cast(params.iv), data);
    }
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
    let data = bytes(0, params.blocks, params.tail);
    match &mut out[..params.count as usize] {
        [out] => *out = *key.sum(data),
        out => out.par_iter_mut().zip(data.par_chunks(segment)).for_each(|(out, part)| *out = *key.sum(part)),
    }
}
