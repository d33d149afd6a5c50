//! Images of code. The driver takes them without their length, and reads it from the image.

use std::borrow::Cow;

/// First bytes of an ELF image.
const ELF: &[u8] = b"\x7fELF";

/// A section of an ELF image that has no bytes in it.
const NO_BITS: u64 = 8;

/// Code that the driver may be given. It is an ELF image whose tables and sections all lie in it, or ASCII text with a
/// zero at the end. `None` for code with which the driver would read past the end. `None` also for images of several
/// architectures, which neither the compiler nor archives give.
pub(super) fn whole(code: &[u8]) -> Option<Cow<'_, [u8]>> {
    match code.starts_with(ELF) {
        true => elf_ends_within(code)?.then_some(Cow::Borrowed(code)),
        false => match code.iter().position(|byte| *byte == 0) {
            Some(end) => code[..end].is_ascii().then_some(Cow::Borrowed(code)),
            None => code.is_ascii().then(|| Cow::Owned([code, &[0]].concat())),
        },
    }
}

/// Whether the tables of a 64-bit, little-endian ELF image (System V ABI, "Object Files"), and what they tell of, end
/// within it. `None` if there is no such header.
fn elf_ends_within(code: &[u8]) -> Option<bool> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(code.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(word))
    };
    let within = |start: u64, bytes: u64| start.checked_add(bytes).is_some_and(|end| end <= code.len() as u64);
    // A header has 64 bytes. Larger numbers of segments or sections than it has room for, which kernels have not, are
    // elsewhere.
    let header = code.get(..64)?;
    let is_known = header[4..6] == [2, 1];
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
    let counted = segments.2 != 0xffff && (sections.2 > 0 || sections.0 == 0);
    Some(
        is_known
            && counted
            && parts(segments, 56, [0x08, 0x20, 0], None)
            && parts(sections, 64, [0x18, 0x20, 4], Some(NO_BITS)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of one segment and one section, both of these bytes, with their tables behind them.
    fn image(bytes: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 64];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image.extend_from_slice(bytes);
        let [start, length] = [64, bytes.len() as u64].map(u64::to_le_bytes);
        let (mut segment, mut section) = ([0; 56], [0; 64]);
        segment[0x08..0x10].copy_from_slice(&start);
        segment[0x20..0x28].copy_from_slice(&length);
        section[0x18..0x20].copy_from_slice(&start);
        section[0x20..0x28].copy_from_slice(&length);
        let tables = [image.len() as u64, image.len() as u64 + 56].map(u64::to_le_bytes);
        image.extend_from_slice(&segment);
        image.extend_from_slice(&section);
        image[0x20..0x28].copy_from_slice(&tables[0]);
        image[0x28..0x30].copy_from_slice(&tables[1]);
        image[0x36..0x3e].copy_from_slice(&[56, 0, 1, 0, 64, 0, 1, 0]);
        image
    }

    #[test]
    fn text_ends_in_a_zero() {
        assert_eq!(whole(b".version 8.0").as_deref(), Some(b".version 8.0\0".as_slice()));
        assert!(matches!(whole(b".version 8.0\0"), Some(Cow::Borrowed(_))));
        // Images of several architectures.
        for magic in [0xba55_ed50_u32, 0x4662_43b1, 0x1ee5_5a01] {
            assert_eq!(whole(&[&magic.to_le_bytes()[..], &[1, 0, 16, 0]].concat()), None);
        }
    }

    #[test]
    fn images_that_reach_past_their_end_are_refused() {
        let good = image(b"code of a kernel");
        assert_eq!(whole(&good).as_deref(), Some(&good[..]));
        assert!((4..good.len()).all(|len| whole(&good[..len]).is_none()));
        // A number in the header, in the segment's entry, in the section's: by its place, its bytes, and what it may
        // not be.
        let (segment, section) = (good.len() - 120, good.len() - 64);
        let bad: [(usize, &[u8]); 14] = [
            (0x20, &[0, 1]),
            (0x27, &[0xff]),
            (0x28, &[0, 1]),
            (0x2f, &[0xff]),
            (0x36, &[55]),
            (0x38, &[0xff, 0xff]),
            (0x38, &[9]),
            (0x3a, &[63]),
            (0x3c, &[0]),
            (0x3c, &[9]),
            (segment + 0x08, &[0, 1]),
            (segment + 0x27, &[0xff]),
            (section + 0x18, &[0, 1]),
            (section + 0x27, &[0xff]),
        ];
        for (at, bytes) in bad {
            let mut bad = good.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(whole(&bad), None, "{bytes:?} at {at}");
        }
        // A section without bytes may be as long as it likes.
        let mut empty = good.clone();
        empty[section + 4] = NO_BITS as u8;
        empty[section + 0x27] = 0xff;
        assert!(whole(&empty).is_some());
        let mut other = good;
        other[4] = 1;
        assert_eq!(whole(&other), None);
    }
}
