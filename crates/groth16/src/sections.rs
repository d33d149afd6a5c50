//! The container of circom's binary files: a name of four bytes, a version, and sections with a number and a length.
//!
//! A cursor knows where its bytes stand in the file, so that errors tell. No length is believed before that many bytes
//! are there.

use crate::error::{Error, Place, Problem, Result};

/// A format of files.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    /// The sections that every file has: number and contents.
    pub(crate) sections: &'static [(u32, &'static str)],
    /// Sections that a file may have.
    pub(crate) optional: &'static [(u32, &'static str)],
}

impl Format {
    fn place(&self, number: u32) -> Option<Place> {
        let mut sections = self.sections.iter().chain(self.optional);
        sections.find(|(known, _)| *known == number).map(|(number, name)| Place::Section { number: *number, name })
    }
}

/// The sections of a file.
#[derive(Debug)]
pub(crate) struct Sections<'a> {
    found: Vec<(u32, Cursor<'a>)>,
}

impl<'a> Sections<'a> {
    /// Finds the sections of a file. All that the format asks for are there, each once, and nothing else.
    pub(crate) fn new(bytes: &'a [u8], format: &Format) -> Result<Self> {
        let mut file = Cursor { place: Place::Container, bytes, offset: 0 };
        let start = file.clone();
        let name = file.take(4)?;
        if name != format.name.as_bytes() {
            let actual = String::from_utf8_lossy(name).into_owned();
            return Err(start.error(Problem::Format { expected: format.name, actual }));
        }
        let start = file.clone();
        let version = file.word()?;
        if version != format.version {
            return Err(start.error(Problem::Version { expected: format.version, actual: version }));
        }
        let count = file.word()?;
        let mut found: Vec<(u32, Cursor<'a>)> = Vec::new();
        for _ in 0..count {
            let start = file.clone();
            let number = file.word()?;
            let Some(place) = format.place(number) else { return Err(start.error(Problem::Unknown { number })) };
            if found.iter().any(|(known, _)| *known == number) {
                return Err(Cursor { place, ..start }.error(Problem::Twice));
            }
            let len = file.long()?;
            let offset = file.offset;
            let bytes = Cursor { place, ..file.clone() }.take(len)?;
            file.take(len)?;
            found.push((number, Cursor { place, bytes, offset }));
        }
        for (number, name) in format.sections {
            if !found.iter().any(|(known, _)| known == number) {
                let place = Place::Section { number: *number, name };
                return Err(Cursor { place, ..file }.error(Problem::Missing));
            }
        }
        file.finish()?;
        Ok(Self { found })
    }

    /// Returns a cursor at the start of a section, if the file has it.
    pub(crate) fn optional(&self, number: u32) -> Option<Cursor<'a>> {
        self.found.iter().find(|(known, _)| *known == number).map(|(_, cursor)| cursor.clone())
    }

    /// Returns a cursor at the start of a section that the format asks for.
    pub(crate) fn cursor(&self, number: u32) -> Result<Cursor<'a>> {
        let missing = || Cursor { place: Place::Container, bytes: &[], offset: 0 }.error(Problem::Missing);
        self.optional(number).ok_or_else(missing)
    }
}

/// The bytes of a section that have not been read.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    place: Place,
    bytes: &'a [u8],
    /// Where they begin in the file.
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// An error about what stands here.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error::File { path: None, place: self.place, offset: self.offset, problem }
    }

    /// An error about what stands some bytes further on.
    pub(crate) fn error_at(&self, distance: u64, problem: Problem) -> Error {
        Error::File { path: None, place: self.place, offset: self.offset + distance, problem }
    }

    /// Reads bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let actual = self.bytes.len() as u64;
        if len > actual {
            return Err(self.error(Problem::Truncated { expected: len, actual }));
        }
        let (taken, rest) = self.bytes.split_at(len as usize);
        self.bytes = rest;
        self.offset += len;
        Ok(taken)
    }

    /// Leaves out bytes, of which there are so many.
    pub(crate) fn skip(&mut self, len: usize) {
        self.bytes = &self.bytes[len..];
        self.offset += len as u64;
    }

    /// Reads an integer of 32 bits.
    pub(crate) fn word(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads an integer of 64 bits.
    pub(crate) fn long(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    /// Checks that so many elements of a length, and nothing else, are left. Returns their number.
    pub(crate) fn expect_elements(&self, count: u64, bytes: u64) -> Result<usize> {
        let actual = self.bytes.len() as u64;
        match count.checked_mul(bytes) {
            Some(expected) if expected == actual => Ok(count as usize),
            Some(expected) if expected < actual => Err(self.error_at(expected, trailing(actual - expected))),
            expected => Err(self.error(Problem::Truncated { expected: expected.unwrap_or(u64::MAX), actual })),
        }
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            actual => Err(self.error(trailing(actual as u64))),
        }
    }
}

fn trailing(actual: u64) -> Problem {
    Problem::Trailing { actual }
}
