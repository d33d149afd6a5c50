//! Properties for any lengths and offsets, on every device found.

use evariste_aes::{Aes, AesConfig, Method, Xts};
use evariste_backend::{Device, Secrecy, Transfer};
use proptest::prelude::*;

/// Everything on the device, in small pieces.
fn config(method: Method) -> AesConfig {
    AesConfig::default().method(method).cpu_threshold(0).chunk_bytes(4096).queues(2)
}

fn methods() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::Sbox), Just(Method::Table), Just(Method::FourTables), Just(Method::Bitsliced)]
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(16), Just(24), Just(32)].prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A stream applied in parts, in any places, is the stream applied at once, whatever computes it.
    #[test]
    fn parts_of_a_stream_make_the_stream(
        method in methods(),
        key in keys(),
        iv in any::<[u8; 16]>(),
        start in 0..100_u32,
        cuts in proptest::collection::vec(0..20_000_usize, 0..4),
        offset in 0..40_usize,
    ) {
        for device in Device::all() {
            let aes = Aes::with_keys(&device, &[&key], config(method)).unwrap();
            let len = cuts.iter().sum::<usize>();
            let mut whole = vec![0; len];
            let mut stream = aes.ctr(&iv).unwrap();
            stream.seek(start.into()).unwrap();
            stream.apply_host(&mut whole).unwrap();

            let mut data = device.zeros::<u8>(offset + len + 7).unwrap();
            let mut parts = aes.ctr(&iv).unwrap();
            parts.seek(start.into()).unwrap();
            let mut at = offset;
            for cut in &cuts {
                parts.apply(data.view_mut(at..at + cut).unwrap()).unwrap();
                at += cut;
            }
            let data = data.to_vec().unwrap();
            prop_assert!(data[..offset].iter().chain(&data[at..]).all(|byte| *byte == 0));
            prop_assert_eq!(&data[offset..at], &whole);
            prop_assert_eq!(parts.position(), stream.position());

            let mut pinned = device.host_buffer(offset + len, Transfer::Both, Secrecy::Secret).unwrap();
            pinned.fill(0);
            let mut back = pinned.split_off(offset);
            let mut stream = aes.ctr(&iv).unwrap();
            stream.seek(start.into()).unwrap();
            stream.apply_pinned(&mut back).unwrap();
            prop_assert_eq!(&*back, &whole[..]);
            prop_assert_eq!(parts.position(), stream.position());
            prop_assert!(pinned.join(back).is_ok(), "in place");
        }
    }

    /// What is sealed opens, and with any bit changed does not.
    #[test]
    fn sealed_messages_open_unless_they_change(
        method in methods(),
        key in keys(),
        nonce in proptest::collection::vec(any::<u8>(), 1..40),
        aad in proptest::collection::vec(any::<u8>(), 0..100),
        plain in proptest::collection::vec(any::<u8>(), 1..5000),
        offset in 0..20_usize,
        flip in any::<proptest::sample::Index>(),
    ) {
        for device in Device::all() {
            let gcm = Aes::with_keys(&device, &[&key], config(method)).unwrap().gcm().unwrap();
            let range = offset..offset + plain.len();
            let mut data = device.zeros::<u8>(range.end).unwrap();
            data.view_mut(offset..).unwrap().write(&plain).unwrap();
            let tag = gcm.seal(&nonce, &aad, data.view_mut(range.clone()).unwrap()).unwrap();

            let mut slice = plain.clone();
            prop_assert_eq!(gcm.seal_host(&nonce, &aad, &mut slice).unwrap(), tag);
            let bit = flip.index(8 * slice.len());
            slice[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(gcm.open_host(&nonce, &aad, &mut slice, tag.as_ref()).is_err());

            gcm.open(&nonce, &aad, data.view_mut(range.clone()).unwrap(), tag.as_ref()).unwrap();
            prop_assert_eq!(&data.to_vec().unwrap()[offset..], &plain);
        }
    }

    /// Sectors come back, and the device agrees with the CPU.
    #[test]
    fn sectors_come_back(
        method in methods(),
        key in proptest::collection::vec(any::<u8>(), 64),
        first in any::<u128>(),
        sector_bytes in 16..1000_usize,
        plain in proptest::collection::vec(any::<u8>(), 16..6000),
    ) {
        let last = plain.len() % sector_bytes;
        prop_assume!(key[..32] != key[32..] && (last == 0 || last >= 16));
        for device in Device::all() {
            let xts = Xts::with_config(&device, &key, sector_bytes, config(method)).unwrap();
            let mut data = plain.clone();
            xts.encrypt_host(first, &mut data).unwrap();
            let mut expected = plain.clone();
            Xts::new(&Device::cpu(), &key, sector_bytes).unwrap().encrypt_host(first, &mut expected).unwrap();
            prop_assert_eq!(&data, &expected);
            xts.decrypt_host(first, &mut data).unwrap();
            prop_assert_eq!(&data, &plain);
        }
    }

    /// Blocks that are chained come back, whichever pieces they go through a device in.
    #[test]
    fn chained_blocks_come_back(
        method in methods(),
        key in keys(),
        iv in any::<[u8; 16]>(),
        blocks in 0..2000_usize,
        seed in any::<u8>(),
    ) {
        let plain: Vec<u8> = (0..16 * blocks).map(|i| ((i * i) >> 3) as u8 ^ seed).collect();
        for device in Device::all() {
            let aes = Aes::with_keys(&device, &[&key], config(method)).unwrap();
            let mut data = plain.clone();
            aes.cbc().encrypt_host(&iv, &mut data).unwrap();
            aes.cbc().decrypt_host(&iv, &mut data).unwrap();
            prop_assert!(data == plain);
        }
    }
}
