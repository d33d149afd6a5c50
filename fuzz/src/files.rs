use std::fs;

use arbitrary::Unstructured;
use evariste_aes::{Aes, AesConfig, Counter, Error, Gcm};
use evariste_backend::Device;

use crate::{
    choice,
    folder::Folder,
    reference::{BLOCK, Cipher},
};

/// What stands in the target before.
const OLD: &[u8] = b"what was there";

/// Files: what is sealed is as GCM's standard says, opens to what it was, and opens no more once a byte of it, of the
/// nonce or of the associated data has changed; a stream applied to a file is CTR, in place too. A call that fails
/// leaves its target, and nothing beside it.
///
/// # Panics
/// If a file comes out otherwise.
pub fn aes_files(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let len = choice(input.choose(&[16_usize, 24, 32]).copied());
    let key: Vec<u8> = (0..len).map(|_| choice(input.arbitrary())).collect();
    let config = AesConfig::default().chunk_bytes(choice(input.int_in_range(0..=100)));
    let aes = Aes::with_keys(&Device::cpu(), &[&key], config).expect("the key has a length that AES has");
    let cipher = Cipher::new(&key);
    let place = Place { folder: Folder::new() };
    place.write("target", OLD);
    match choice(input.int_in_range(0..=2_u8)) {
        0 => stream(&mut input, &aes, &cipher, &place),
        1 => sealed(&mut input, &aes, &cipher, &place),
        _ => foreign(&mut input, &aes, &place),
    }
}

struct Place {
    folder: Folder,
}

impl Place {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, contents: &[u8]) {
        fs::write(self.path(name), contents).expect("the folder can be written to");
    }

    fn expect(&self, name: &str, contents: &[u8]) {
        assert!(fs::read(self.path(name)).expect("the file is there") == contents, "{name} is not what it should be");
    }

    /// There is nothing but these two.
    fn expect_clean(&self) {
        assert_eq!(self.folder.names(), ["source", "target"]);
    }
}

fn stream(input: &mut Unstructured<'_>, aes: &Aes, cipher: &Cipher, place: &Place) {
    let (iv, wide): (u128, bool) = (choice(input.arbitrary()), choice(input.arbitrary()));
    let (counter, bits) = if wide { (Counter::Bits128, 128) } else { (Counter::Bits32, 32) };
    let end = if wide { 1 << 100 } else { 1_u128 << 36 };
    let near_end = choice(input.ratio(1, 2));
    let offset: u128 = choice(input.int_in_range(0..=400_u32)).into();
    let position = if near_end { end - offset } else { offset };
    let plain: Vec<u8> = choice(input.arbitrary());
    place.write("source", &plain);

    let iv = iv.to_be_bytes();
    let mut ctr = aes.ctr(&iv).expect("the block has 16 bytes").with_counter(counter);
    ctr.seek(position).expect("the position lies in the stream");
    let (from, to) = (place.path("source"), place.path("target"));
    let outcome = ctr.apply_file(&from, &to, |_| ());
    if !wide && position + plain.len() as u128 > end {
        assert!(matches!(outcome, Err(Error::Keystream { .. })), "{outcome:?}");
        assert_eq!(ctr.position(), position);
        place.expect("target", OLD);
        return place.expect_clean();
    }
    assert_eq!(outcome, Ok(plain.len() as u64));
    let mut expected = plain.clone();
    cipher.ctr(iv, bits, position, &mut expected);
    place.expect("target", &expected);
    place.expect("source", &plain);
    ctr.seek(position).expect("it was there before");
    ctr.apply_file(&to, &to, |_| ()).expect("a file can be its own target");
    place.expect("target", &plain);
    place.expect_clean();
}

fn sealed(input: &mut Unstructured<'_>, aes: &Aes, cipher: &Cipher, place: &Place) {
    let tag_len = choice(input.choose(&[4_usize, 8, 12, 13, 15, BLOCK]).copied());
    let gcm = gcm(aes, tag_len);
    let mut nonce: Vec<u8> = choice(input.arbitrary());
    nonce.push(choice(input.arbitrary()));
    let mut aad: Vec<u8> = choice(input.arbitrary());
    let plain: Vec<u8> = choice(input.arbitrary());
    place.write("source", &plain);
    let (from, to) = (place.path("source"), place.path("target"));
    let tag = gcm.seal_file(&nonce, &aad, &from, &to, |_| ()).expect("the file is short");

    let mut expected = plain.clone();
    let reference = cipher.seal(&nonce, &aad, &mut expected);
    expected.extend(&reference[..tag_len]);
    assert_eq!(tag.as_ref(), &reference[..tag_len]);
    place.expect("target", &expected);

    place.write("source", OLD);
    gcm.open_file(&nonce, &aad, &to, &from, |_| ()).expect("what was sealed opens");
    place.expect("source", &plain);
    place.expect_clean();

    // A tag of 4 bytes is met by chance now and then.
    if tag_len < 8 {
        return;
    }
    let mut file = expected;
    let at = choice(input.int_in_range(0..=file.len() - 1));
    let of_nonce = at % nonce.len();
    let flip = choice(input.int_in_range(1..=255_u8));
    match choice(input.int_in_range(0..=4_u8)) {
        0 => file[at] ^= flip,
        1 => file.truncate(at),
        2 => file.insert(at, flip),
        3 => nonce[of_nonce] ^= flip,
        _ => aad.push(flip),
    }
    place.write("source", &file);
    place.write("target", OLD);
    let outcome = gcm.open_file(&nonce, &aad, &from, &to, |_| ());
    assert!(matches!(outcome, Err(Error::Tag { .. } | Error::TagLength { .. })), "{outcome:?}");
    place.expect("target", OLD);
    place.expect_clean();
}

/// A file that nobody sealed.
fn foreign(input: &mut Unstructured<'_>, aes: &Aes, place: &Place) {
    let gcm = gcm(aes, BLOCK);
    let nonce: Vec<u8> = choice(input.arbitrary());
    let file: Vec<u8> = choice(input.arbitrary());
    place.write("source", &file);
    let outcome = gcm.open_file(&nonce, &[], &place.path("source"), &place.path("target"), |_| ());
    match outcome {
        Err(Error::TagLength { expected, actual }) => {
            assert!((expected, actual) == (BLOCK, file.len()) && actual < BLOCK)
        }
        Err(Error::IvLength { .. }) => assert!(nonce.is_empty()),
        Err(Error::Tag { message: None }) => assert!(file.len() >= BLOCK && !nonce.is_empty()),
        other => panic!("{other:?}"),
    }
    place.expect("target", OLD);
    place.expect_clean();
}

fn gcm(aes: &Aes, tag_len: usize) -> Gcm {
    aes.gcm().and_then(|gcm| gcm.with_tag_bytes(tag_len)).expect("the length is one of those allowed")
}
