//! Images of code, which the driver takes without their length: it goes by what they say of themselves.

use std::borrow::Cow;

/// First bytes of an ELF image.
const ELF: &[u8] = b"\x7fELF";

/// First bytes of images of several architectures, which neither the compiler nor archives give.
const FAT: [u32; 2] = [0xba55_ed50, 0x4662_43b1];

/// A section of an ELF image that has no bytes in it.
const NO_BITS: u64 = 8;

/// What the driver may be given of code: an ELF image all of whose tables and sections lie in it, or text with a zero at the end.
/// `None` for what would have it read past the end.
pub(super) fn whole(code: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_fat = FAT.iter().any(|magic| code.starts_with(&magic.to_le_bytes()));
    match code.starts_with(ELF) {
        true => elf_ends_within(code)?.then_some(Cow::Borrowed(code)),
        false if is_fat => None,
        false if code.contains(&0) => Some(Cow::Borrowed(code)),
        false => Some(Cow::Owned([code, &[0]].concat())),
    }
}

/// Whether the tables of a 64-bit, little-endian ELF image (System V ABI, "Object Files"), and what they tell of, end within it.
/// `None` if there is no such header.
fn elf_ends_within(code: &[u8]) -> Option<bool> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(code.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(word))
    };
    let within = |start: u64, bytes: u64| start.checked_add(bytes).is_some_and(|end| end <= code.len() as u64);
    let is_known = code.get(4..6)? == [2, 1];
    // Of the program's segments and of sections: where their table starts, the bytes of an entry, how many there are.
    let segments = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let sections = (number(0x28, 8)?, number(0x3a, 2)?, number(0x3c, 2)?);
    // Where an entry has the start and the length of its bytes, and its type; none of these is a segment without any.
    let parts =
        |(table, size, count): (u64, u64, u64), least: u64, [start, bytes, kind]: [u64; 3], none: Option<u64>| {
            count == 0
                || size >= least
                    && within(table, size * count)
                    && (0..count).all(|entry| {
                        let field =
                            |at: u64, bytes| number((table + entry * size + at) as usize, bytes).unwrap_or(u64::MAX);
                        none == Some(field(kind, 4)) || within(field(start, 8), field(bytes, 8))
                    })
        };
    Some(is_known && parts(segments, 56, [0x08, 0x20, 0], None) && parts(sections, 64, [0x18, 0x20, 4], Some(NO_BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of one section with some bytes, its table behind them.
    fn image(section: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 64];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image.extend_from_slice(section);
        let table = image.len() as u64;
        let mut entry = [0; 64];
        entry[0x18..0x20].copy_from_slice(&64_u64.to_le_bytes());
        entry[0x20..0x28].copy_from_slice(&(section.len() as u64).to_le_bytes());
        image.extend_from_slice(&entry);
        image[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        image[0x3a..0x3e].copy_from_slice(&[64, 0, 1, 0]);
        image
    }

    #[test]
    fn text_ends_in_a_zero() {
        assert_eq!(whole(b".version 8.0").as_deref(), Some(b".version 8.0\0".as_slice()));
        assert!(matches!(whole(b".version 8.0\0"), Some(Cow::Borrowed(_))));
        assert_eq!(whole(&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]), None);
    }

    #[test]
    fn images_that_reach_past_their_end_are_refused() {
        let good = image(b"code of a kernel");
        assert_eq!(whole(&good).as_deref(), Some(&good[..]));
        // Every shorter one, and every larger number in its header and its section's entry.
        assert!((4..good.len()).all(|len| whole(&good[..len]).is_none()));
        let entry = good.len() - 64;
        let bytes = [(0x28, 1), (0x28, 7), (0x3c, 0), (0x3c, 1)];
        let bytes_of_entry = [(0x18, 1), (0x18, 7), (0x20, 1), (0x20, 7)].map(|(at, byte)| (entry + at, byte));
        for (at, byte) in bytes.into_iter().chain(bytes_of_entry) {
            let mut bad = good.clone();
            bad[at + byte] = 0xff;
            assert_eq!(whole(&bad), None, "byte {byte} of the number at {at}");
        }
        // A section without bytes may be as long as it likes.
        let mut empty = good.clone();
        empty[entry + 4] = NO_BITS as u8;
        empty[entry + 0x27] = 0xff;
        assert!(whole(&empty).is_some());
        let mut other = good;
        other[4] = 1;
        assert_eq!(whole(&other), None);
    }
}
