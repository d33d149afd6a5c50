//! Places that 32 bits cannot say: what is launched on a device that has no memory, at the borders of 2^32 words and
//! 2^36 bytes.

mod batches;

use std::ops::Range;

use evariste::aes::{Aes, AesConfig, Counter, Message, Method, Xts};
use evariste::backend::{Buffer, Device};
use libtest_mimic::{Failed, Trial};

use crate::{
    expect::{expect_equal, expect_error},
    harness::Outcome,
    null_device::{Cover, Launch, NullDevice},
    tail_memory::TailMemory,
};

/// Two H200s' worth.
const MEMORY: u64 = 1 << 38;

/// 2^32 words of 16 bytes.
const BORDER: usize = 1 << 36;

const METHODS: [Method; 3] = [Method::FourTables, Method::Sbox, Method::Bitsliced];

/// Bytes of a launch: the usual number, one that is not whole workgroups, and nonsense.
const LAUNCHES: [u64; 3] = [32 << 30, (1 << 34) - 1000, u64::MAX];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn() -> Outcome| Trial::test(format!("any::aes::places::{name}"), run);
    vec![
        trial("ctr", ctr),
        trial("gcm", gcm),
        trial("ecb_and_cbc", ecb_and_cbc),
        trial("xts", xts),
        trial("batches", batches::batches),
        trial("limits", limits),
    ]
}

/// Ranges that end before, at and after the border, start there, or lie across several.
fn ranges() -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for border in [BORDER / 16, BORDER / 4, BORDER / 2, BORDER, 2 * BORDER] {
        for end in [border - 16, border - 1, border, border + 1, border + 16] {
            ranges.extend([0..end, border - 64..end, 5..end, BORDER / 16 - 1024..end]);
        }
        ranges.extend([border - 1..border + 1, border..border + 1, border + 1..border + 40, border - 16..border + 16]);
        ranges.push(border + 16..MEMORY as usize);
    }
    ranges.push(0..MEMORY as usize);
    ranges.retain(|range| range.start < range.end);
    ranges
}

struct Place {
    stub: std::sync::Arc<NullDevice>,
    device: Device,
}

impl Place {
    fn new() -> Self {
        let stub = NullDevice::new(2 * MEMORY);
        Self { device: stub.device(), stub }
    }

    fn data(&self) -> Result<Buffer<u8>, Failed> {
        Ok(self.device.alloc(MEMORY as usize)?)
    }

    fn aes(&self, method: Method, launch_bytes: u64) -> Result<Aes, Failed> {
        let config = AesConfig::default().method(method).launch_bytes(launch_bytes).cpu_threshold(0);
        let aes = Aes::with_keys(&self.device, &[[1; 16], [2; 16]], config)?;
        self.stub.take_calls();
        Ok(aes)
    }

    fn launches(&self, names: &[&str]) -> Vec<Launch> {
        let launches = self.stub.take_launches().into_iter();
        launches.filter(|launch| names.contains(&launch.name)).collect()
    }
}

fn bytes(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// Bytes from `skip` of a word on to `tail` of the last of some.
fn within(word: u64, skip: u32, blocks: u32, tail: u32) -> Range<u64> {
    let blocks = u64::from(blocks);
    16 * word + u64::from(skip)..if blocks == 0 { 16 * word } else { 16 * (word + blocks - 1) + u64::from(tail) }
}

fn add(iv: [u8; 16], n: u64, width: Counter) -> [u8; 16] {
    let (value, low) = (u128::from_be_bytes(iv), u128::from(u32::MAX));
    let sum = value.wrapping_add(n.into());
    match width {
        Counter::Bits128 => sum,
        Counter::Bits32 => value & !low | sum & low,
    }
    .to_be_bytes()
}

/// That threads reach all that a launch works on, and count within 32 bits.
fn expect_grid(launch: &Launch, blocks: u32) -> Outcome {
    if blocks > 1 << 31 {
        return Err(format!("{}: {blocks} blocks in a launch", launch.name).into());
    }
    let reach = launch.groups.checked_mul(launch.threads.into()).filter(|threads| *threads < 1 << 32);
    reach.map(drop).ok_or_else(|| format!("{}: {} workgroups", launch.name, launch.groups).into())
}

/// What `aes_ctr` was launched on must be a range, with the counters that belong there.
fn expect_ctr(launches: &[Launch], range: Range<u64>, iv: [u8; 16], width: Counter) -> Outcome {
    let mut cover = Cover::default();
    for launch in launches.iter().filter(|launch| launch.name == "aes_ctr") {
        let (start, [blocks, skip, tail]) = (launch.args[0].at / 16, [5, 6, 7].map(|i| launch.word(i)));
        expect_grid(launch, blocks)?;
        expect_equal("bytes of a launch", &within(start, skip, blocks, tail), &launch.args[0].range())?;
        let counter: [u8; 16] = launch.params[..16].try_into()?;
        let expected = add(iv, start - range.start / 16, width);
        expect_equal(&format!("the counter of word {start} of {range:?}"), &counter, &expected)?;
        cover.add(within(start, skip, blocks, tail));
    }
    cover.expect_exactly("aes_ctr", range)
}

/// What `move_bytes` was launched on: from a range to a range.
fn expect_moves(launches: &[Launch], from: Range<u64>, to: Range<u64>) -> Outcome {
    let mut cover = Cover::default();
    for launch in launches.iter().filter(|launch| launch.name == "move_bytes") {
        let [skip, offset, words, tail, src_words] = [0, 1, 2, 3, 4].map(|i| launch.word(i));
        expect_grid(launch, words)?;
        let [read, target] = [0, 1].map(|i| launch.args[i].range());
        expect_equal("the target of a copy", &within(target.start / 16, skip, words, tail), &target)?;
        expect_equal("the source of a copy", &(read.start - from.start), &(target.start - to.start))?;
        expect_equal("the source's first byte", &(read.start % 16), &offset.into())?;
        let expected = (read.end - 1) / 16 - read.start / 16 + 1;
        expect_equal("words of the source", &u64::from(src_words), &expected)?;
        cover.add(target);
    }
    cover.expect_exactly("move_bytes", to)
}

fn ctr() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    for method in METHODS {
        for launch_bytes in LAUNCHES {
            let aes = place.aes(method, launch_bytes)?;
            for range in ranges() {
                let iv = [0xff; 16];
                let mut stream = aes.ctr(&iv)?;
                stream.seek((range.start % 16) as u128)?;
                stream.apply(data.view_mut(range.clone())?)?;
                let launches = place.stub.take_launches();
                expect_ctr(&launches, bytes(&range), iv, Counter::Bits128)?;
                expect_equal("copies", &launches.iter().any(|launch| launch.name == "move_bytes"), &false)?;
                expect_equal("position", &stream.position(), &((range.start % 16 + range.len()) as u128))?;
            }
            // Where the position does not fit, on a copy.
            for range in [BORDER - 5..BORDER + 7, 3..BORDER + 1, BORDER + 1..BORDER + 100, BORDER - 31..3 * BORDER / 2]
            {
                aes.ctr(&[9; 16])?.apply(data.view_mut(range.clone())?)?;
                let launches = place.stub.take_launches();
                let copy = 0..range.len() as u64;
                expect_ctr(&launches, copy.clone(), [9; 16], Counter::Bits128)?;
                let middle =
                    launches.iter().position(|launch| launch.name == "aes_ctr").ok_or("nothing was launched")?;
                expect_moves(&launches[..middle], bytes(&range), copy.clone())?;
                expect_moves(&launches[middle..], copy, bytes(&range))?;
            }
        }
    }
    Ok(())
}

/// Powers of each key on the device.
const POWERS: u32 = 80;

/// What GHASH was launched on: parts of the range, in segments.
fn expect_ghash(launches: &[Launch], data: u64, range: Range<u64>) -> Outcome {
    let mut cover = Cover::default();
    for launch in launches.iter().filter(|launch| launch.name == "ghash") {
        let [count, blocks, tail, segment, power] = [0, 1, 2, 3, 4].map(|i| launch.word(i));
        expect_equal("segments", &count, &blocks.div_ceil(segment))?;
        expect_equal("room for sums", &(launch.args[3].bytes >= 16 * u64::from(count)), &true)?;
        expect_grid(launch, blocks)?;
        expect_equal("data and key", &(launch.args[0].memory, power), &(data, 0))?;
        cover.add(within(launch.args[0].at / 16, 0, blocks, tail));
    }
    cover.expect_exactly("ghash", range)
}

fn gcm() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    for method in METHODS {
        for launch_bytes in LAUNCHES {
            let gcm = place.aes(method, launch_bytes)?.gcm()?;
            for range in ranges().into_iter().filter(|range| range.start % 16 == 0) {
                if range.len() > BORDER - 32 {
                    let error = expect_error("too long", gcm.seal(&[1; 12], &[], data.view_mut(range.clone())?))?;
                    let (limit, actual) = (BORDER as u64 - 32, range.len() as u64);
                    let expected = evariste::aes::Error::TooLong { what: "a message", expected: limit, actual };
                    expect_equal("too long", &error, &expected)?;
                    expect_equal("launches", &place.stub.take_launches().len(), &0)?;
                    continue;
                }
                gcm.seal(&[1; 12], &[], data.view_mut(range.clone())?)?;
                let launches = place.stub.take_launches();
                let mut iv = [1; 16];
                iv[12..].copy_from_slice(&[0, 0, 0, 2]);
                expect_ctr(&launches, bytes(&range), iv, Counter::Bits32)?;
                let memory = launches[0].args[0].memory;
                expect_ghash(&launches, memory, bytes(&range))?;
            }
        }
    }
    Ok(())
}

/// A message of a batch, as kernels see it, and the bytes that it is.
struct Described {
    first_unit: u32,
    blocks: u32,
    key: u32,
    powers: u32,
    chained: bool,
    iv: [u8; 16],
    range: Range<u64>,
}

fn described(launch: &Launch) -> Vec<Described> {
    let one = |words: &[u32; 12]| {
        let word = launch.args[0].at / 16 + (u64::from(words[1]) | u64::from(words[6]) << 32);
        Described {
            first_unit: words[0],
            blocks: words[2],
            key: words[3],
            powers: words[5],
            chained: words[7] != 0,
            iv: bytemuck::pod_read_unaligned(bytemuck::cast_slice(&words[8..])),
            range: within(word, 0, words[2], words[4]),
        }
    };
    launch.args[1].contents::<[u32; 12]>().iter().map(one).collect()
}

/// The parts of messages that a launch of `aes_blocks` works on, found to have units that fit.
fn parts(launch: &Launch, per_thread: u32) -> Result<Vec<Described>, Failed> {
    let messages = described(launch);
    let mut units = 0;
    for message in &messages {
        expect_equal("the first unit", &message.first_unit, &units)?;
        units += message.blocks.div_ceil(per_thread);
    }
    expect_equal("units", &launch.word(0), &units)?;
    expect_equal("messages", &(launch.word(1) as usize), &messages.len())?;
    expect_grid(launch, units)?;
    Ok(messages)
}

fn per_thread(method: Method) -> u32 {
    if method == Method::Bitsliced { 8 } else { 1 }
}

fn ecb_and_cbc() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    for method in METHODS {
        for launch_bytes in LAUNCHES {
            let aes = place.aes(method, launch_bytes)?;
            let whole = |range: &Range<usize>| range.start.is_multiple_of(16) && range.len().is_multiple_of(16);
            for range in ranges().into_iter().filter(whole) {
                aes.ecb().encrypt(data.view_mut(range.clone())?)?;
                aes.ecb().decrypt(data.view_mut(range.clone())?)?;
                let launches = place.launches(&["aes_blocks"]);
                for direction in ["Encrypt", "Decrypt"] {
                    let mut cover = Cover::default();
                    for launch in launches.iter().filter(|launch| launch.variant.contains(direction)) {
                        parts(launch, per_thread(method))?.into_iter().for_each(|part| cover.add(part.range));
                    }
                    cover.expect_exactly(&format!("ecb, {direction}"), bytes(&range))?;
                }

                aes.cbc().decrypt(&[7; 16], data.view_mut(range.clone())?)?;
                let (mut cover, mut before) = (Cover::default(), u64::MAX);
                let launches = place.launches(&["aes_blocks", "aes_previous"]);
                for pair in launches.chunks(2) {
                    let [previous, launch] = pair else { return Err("previous blocks come before blocks".into()) };
                    expect_equal("names", &(previous.name, launch.name), &("aes_previous", "aes_blocks"))?;
                    expect_equal("tiles", &previous.word(0), &launch.word(0).div_ceil(256))?;
                    for part in parts(launch, per_thread(method))? {
                        // From the end on, since each part needs what lies before it as it was.
                        expect_equal("the order of parts", &(part.range.end <= before), &true)?;
                        before = part.range.start;
                        expect_equal("chained", &part.chained, &(part.range.start > range.start as u64))?;
                        cover.add(part.range);
                    }
                }
                cover.expect_exactly("cbc, decryption", bytes(&range))?;
            }
            // Encryption goes by 2^15 bytes a launch.
            for range in [BORDER - 64..BORDER + 64, BORDER..BORDER + (1 << 20) + 16, 2 * BORDER - 16..2 * BORDER] {
                aes.cbc().encrypt(&[7; 16], data.view_mut(range.clone())?)?;
                let mut cover = Cover::default();
                for launch in place.launches(&["aes_serial"]) {
                    let [message] = &described(&launch)[..] else { return Err("there is one message".into()) };
                    expect_equal("message", &message.range, &bytes(&range))?;
                    let (first, blocks) = (u64::from(launch.word(1)), u64::from(launch.word(2)));
                    let end = (message.range.start + 16 * (first + blocks)).min(message.range.end);
                    cover.add(message.range.start + 16 * first..end);
                }
                cover.expect_exactly("cbc, encryption", bytes(&range))?;
            }
        }
    }
    Ok(())
}

fn xts() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    let key: Vec<u8> = (0..32).collect();
    for method in METHODS {
        for (launch_bytes, sector) in LAUNCHES.into_iter().flat_map(|l| [16, 512, 4096, 1 << 24].map(|s| (l, s))) {
            let config = AesConfig::default().method(method).launch_bytes(launch_bytes).cpu_threshold(0);
            let xts = Xts::with_config(&place.device, &key, sector, config)?;
            place.stub.take_calls();
            for range in ranges().into_iter().filter(|range| range.start % 16 == 0) {
                let last = range.len() % sector;
                // Sectors of a block take one launch for each 2^26 of them.
                if last > 0 && last < 16 || range.len() / sector > 1 << 30 {
                    continue;
                }
                xts.encrypt(5, data.view_mut(range.clone())?)?;
                expect_sectors(&place.stub.take_launches(), sector, &range, per_thread(method))?;
            }
        }
    }
    Ok(())
}

/// What was launched of XTS must be all sectors, each with its own tweak.
fn expect_sectors(launches: &[Launch], sector: usize, range: &Range<usize>, per_thread: u32) -> Outcome {
    let (mut cover, mut tweaks) = (Cover::default(), Cover::default());
    let mut numbers = 0..0;
    for launch in launches {
        match launch.name {
            "aes_blocks" if launch.variant.starts_with("Tweak") => {
                for part in parts(launch, per_thread)? {
                    let first = u128::from_le_bytes(part.iv) as u64 - 5;
                    expect_equal("the key of tweaks", &part.key, &1)?;
                    tweaks.add(first..first + u64::from(part.blocks));
                    let start = if part.range.start == 0 { first } else { numbers.start };
                    numbers = start..first + u64::from(part.blocks);
                }
            }
            "aes_blocks" => {
                let [units, each, blocks] = [0, 1, 4].map(|i| launch.word(i));
                let (word, stride) = (launch.args[0].at / 16, u64::from(launch.word(3)));
                expect_equal("units of a sector", &each, &blocks.div_ceil(per_thread))?;
                expect_grid(launch, units)?;
                let sectors = u64::from(units / each);
                expect_equal("tweaks", &sectors, &(numbers.end - numbers.start))?;
                let start = range.start as u64 + numbers.start * sector as u64;
                expect_equal("where the sectors start", &(16 * word), &start)?;
                if sectors == 1 || u64::from(blocks) == stride {
                    cover.add(16 * word..16 * (word + (sectors - 1) * stride + u64::from(blocks)));
                }
                if sectors * stride.max(blocks.into()) > 1 << 31 {
                    return Err("a launch counts beyond 2^31 blocks".into());
                }
            }
            "aes_serial" => {
                let [count, _, blocks] = [0, 1, 2].map(|i| launch.word(i));
                let (word, tail) = (launch.args[0].at / 16, launch.word(4));
                expect_equal("sectors that steal", &count, &1)?;
                let start = 16 * (word + u64::from(blocks));
                cover.add(start..start + 16 + u64::from(tail));
            }
            other => return Err(format!("{other} was launched").into()),
        }
    }
    cover.expect_exactly("xts", bytes(range))?;
    tweaks.expect_exactly("tweaks", 0..range.len().div_ceil(sector) as u64)
}

/// What is refused is refused before anything is launched, and what ends at the last byte is not.
fn limits() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    let aes = place.aes(Method::FourTables, u64::MAX)?;
    let mut narrow = aes.ctr(&[0; 16])?.with_counter(Counter::Bits32);
    for len in [BORDER - 1, BORDER] {
        narrow.seek(0)?;
        narrow.apply(data.view_mut(16..16 + len)?)?;
        expect_ctr(&place.stub.take_launches(), 16..16 + len as u64, [0; 16], Counter::Bits32)?;
    }
    narrow.seek(0)?;
    expect_error("a counter that starts again", narrow.apply(data.view_mut(16..17 + BORDER)?))?;
    let mut wide = aes.ctr(&[0; 16])?;
    wide.seek(1 << 40)?;
    let mut narrow = wide.with_counter(Counter::Bits32);
    expect_equal("remaining", &narrow.remaining(), &0)?;
    expect_error("a stream that ended before", narrow.apply(data.view_mut(0..1)?))?;
    expect_error("a stream that ended before", narrow.apply_host(&mut [7; 20]))?;

    let xts = Xts::new(&place.device, &(0..32).collect::<Vec<u8>>(), 512)?;
    place.stub.take_calls();
    for first in [u128::MAX, u128::MAX - 1] {
        let error = expect_error("sectors", xts.encrypt(first, data.view_mut(0..512 * 2 + 16)?))?;
        expect_equal("sectors", &error, &evariste::aes::Error::SectorNumber { first, count: 3 })?;
        expect_error("sectors", xts.decrypt_host(first, &mut [0; 1040]))?;
    }
    expect_equal("launches", &place.stub.take_launches().len(), &0)?;
    xts.encrypt(u128::MAX - 2, data.view_mut(0..512 * 2 + 16)?)?;
    xts.encrypt(u128::MAX, data.view_mut(BORDER..BORDER + 512)?)?;
    Ok(())
}

/// Trials of kernels at such places, on a device whose long buffers have only the end.
pub(crate) fn in_kernels(device: &Device) -> Outcome {
    const AROUND: usize = 16 * 400;

    let device = &TailMemory::device(device.clone());
    let cpu = Device::cpu();
    let keys = [[1; 16], [2; 16]];
    let key: Vec<u8> = (0..32).collect();
    for method in [Method::fastest(device.info()), Method::Sbox, Method::Bitsliced] {
        let several: &[u64] = if method == Method::Bitsliced { &[32 << 30, 1000] } else { &[32 << 30] };
        for &launch_bytes in several {
            let config = super::on_device(method).launch_bytes(launch_bytes);
            let (aes, host) =
                (Aes::with_keys(device, &keys, config.clone())?, Aes::with_keys(&cpu, &keys, config.clone())?);
            let xts = Xts::with_config(device, &key, 512, config.clone())?;
            let host_xts = Xts::with_config(&cpu, &key, 512, config)?;
            let mut data = device.alloc::<u8>(BORDER + AROUND)?;
            let mut expected = super::bytes(2 * AROUND, 1);
            data.view_mut(BORDER - AROUND..)?.write(&expected)?;
            let mut near = cpu.upload::<u8>(&expected)?;
            // Places count from the border on one side, and from the start of what is near it on the other.
            for (start, end) in [(-2000, 3000), (-16, 0), (0, 16), (-33, 2007)] {
                let at = |base: usize| base.wrapping_add_signed(start)..base.wrapping_add_signed(end);
                let (far_range, range) = (at(BORDER), at(AROUND));
                let what = format!("{method:?}, {launch_bytes} bytes a launch, {start} to {end}");
                let mut check = |what: &str, data: &Buffer<u8>, near: &Buffer<u8>| {
                    let mut actual = vec![0; 2 * AROUND];
                    data.view(BORDER - AROUND..)?.read(&mut actual)?;
                    expected = near.to_vec()?;
                    crate::expect::expect_same(what, &actual, &expected)
                };
                aes.ctr(&[0xff; 16])?.apply(data.view_mut(far_range.clone())?)?;
                host.ctr(&[0xff; 16])?.apply(near.view_mut(range.clone())?)?;
                check(&format!("{what}, ctr"), &data, &near)?;
                let tag = aes.gcm()?.seal(&[1; 12], b"aad", data.view_mut(far_range.clone())?)?;
                let expected_tag = host.gcm()?.seal(&[1; 12], b"aad", near.view_mut(range.clone())?)?;
                crate::expect::expect_same(&format!("{what}, tag"), tag.as_ref(), expected_tag.as_ref())?;
                check(&format!("{what}, gcm"), &data, &near)?;
                let blocks = |range: &Range<usize>| range.start..range.start + range.len() / 16 * 16;
                let (far_blocks, near_blocks) = (blocks(&far_range), blocks(&range));
                aes.ecb().encrypt(data.view_mut(far_blocks.clone())?)?;
                host.ecb().encrypt(near.view_mut(near_blocks.clone())?)?;
                check(&format!("{what}, ecb"), &data, &near)?;
                aes.cbc().decrypt(&[3; 16], data.view_mut(far_blocks.clone())?)?;
                host.cbc().decrypt(&[3; 16], near.view_mut(near_blocks.clone())?)?;
                check(&format!("{what}, cbc, decryption"), &data, &near)?;
                aes.cbc().encrypt(&[4; 16], data.view_mut(far_blocks)?)?;
                host.cbc().encrypt(&[4; 16], near.view_mut(near_blocks)?)?;
                check(&format!("{what}, cbc, encryption"), &data, &near)?;
                if range.len() % 512 == 0 || range.len() % 512 >= 16 {
                    xts.encrypt(5, data.view_mut(far_range.clone())?)?;
                    host_xts.encrypt(5, near.view_mut(range.clone())?)?;
                    check(&format!("{what}, xts"), &data, &near)?;
                }
            }
            let message = |offset: usize, len, key, iv| Message { offset, len, key, iv: [iv; 16] };
            let of = |border: usize| {
                [message(border - 160, 70, 0, 1), message(border - 32, 65, 1, 2), message(border + 48, 1000, 0, 3)]
            };
            aes.ctr_batch(&mut data, &of(BORDER), Counter::Bits128)?;
            host.ctr_batch(&mut near, &of(AROUND / 16 * 16), Counter::Bits128)?;
            let mut actual = vec![0; 2 * AROUND];
            data.view(BORDER - AROUND..)?.read(&mut actual)?;
            crate::expect::expect_same("a batch", &actual, &near.to_vec()?)?;
        }
    }
    Ok(())
}
