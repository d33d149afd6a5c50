//! Kernels compiled ahead of time, in one file, so that CUDA works with the driver alone.
//!
//! An archive has machine code for some architectures, and PTX for all others. A kernel's code is found by the hash
//! that the cache on disk uses too ([`nvrtc::key`](crate::nvrtc::key)). The hash covers the text, the declaration and
//! the options, but not the compiler's version. So code is used for exactly what it was compiled from, and is not found
//! after any change. `cargo xtask kernels --package` makes an archive. Devices take those in the folder of the cache
//! whose names end in `.archive`. With the feature `kernels` they take that of the crate `evariste-kernels` too.
//!
//! # Format
//! Numbers are little-endian. Groups are compressed each by itself (Brotli), so that similar code lies together, and a
//! kernel takes no more than its group to be read.
//!
//! | Bytes | What |
//! |---|---|
//! | 8 | the name and version of the format |
//! | 32 | BLAKE3 of the index, which is what comes up to the groups |
//! | 4, 4 | groups, entries |
//! | 20 for each group | its [`Target`] (4), its start behind the index (8), its bytes compressed (4) and not (4) |
//! | 76 for each entry | key (32), BLAKE3 of the code under that key (32), group (4), start in it (4), bytes (4) |
//! | the rest | groups |
//!
//! A target is its number, plus 2^31 for PTX. Entries stand in ascending order of keys.
//!
//! Nothing of an archive whose index was changed is used, and no code that was changed. The hashes have no secret key:
//! they do not tell who made an archive.

use std::{
    borrow::Cow,
    collections::{BTreeSet, VecDeque},
    fmt,
    io::{self, Read},
    ops::Range,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use rayon::prelude::*;

use crate::cache::Cache;

/// First bytes of every archive: name and version of the format.
const MAGIC: &[u8; 8] = b"evrarch1";

/// How the names of archives in the folder of the cache end.
pub const EXTENSION: &str = ".archive";

/// The most bytes of a group before it is compressed.
pub const MAX_GROUP_BYTES: usize = 64 << 20;

/// Groups that stay decompressed.
const RECENT: usize = 4;

const GROUP_BYTES: usize = 20;
const ENTRY_BYTES: usize = 76;

/// Set in the number of a target that is PTX.
const PTX: u32 = 1 << 31;

/// The target of a kernel's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Machine code for an architecture, such as 90 for `sm_90`.
    Machine(u32),
    /// PTX for an architecture and all later ones, such as 75 for `compute_75`.
    Ptx(u32),
}

impl Target {
    fn of_number(number: u32) -> Self {
        if number & PTX == 0 { Self::Machine(number) } else { Self::Ptx(number & !PTX) }
    }

    fn number(self) -> u32 {
        match self {
            Self::Machine(number) => number,
            Self::Ptx(number) => number | PTX,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(number) => write!(f, "sm_{number}"),
            Self::Ptx(number) => write!(f, "compute_{number}"),
        }
    }
}

impl FromStr for Target {
    type Err = io::Error;

    /// Reads a name such as `sm_90` or `compute_75`.
    fn from_str(name: &str) -> io::Result<Self> {
        let number = |text: &str| text.parse().ok().filter(|number| (1..1000).contains(number));
        let machine = name.strip_prefix("sm_").and_then(number).map(Self::Machine);
        let ptx = || name.strip_prefix("compute_").and_then(number).map(Self::Ptx);
        machine.or_else(ptx).ok_or_else(|| io::Error::other(format!("{name} is no target such as sm_90 or compute_75")))
    }
}

/// The code of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// By what it is found: [`nvrtc::key`](crate::nvrtc::key) of the kernel for the group's target.
    pub key: [u8; 32],
    /// A cubin, or PTX that ends in a zero.
    pub code: Vec<u8>,
}

/// Kernels that are compressed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The target of the code.
    pub target: Target,
    /// At least one.
    pub entries: Vec<Entry>,
}

/// Makes an archive. `compress` makes a Brotli stream of the bytes of a group, on rayon's pool.
///
/// # Errors
/// An error if:
///
/// - two entries have one key,
/// - an entry has no code,
/// - a group has more than [`MAX_GROUP_BYTES`],
/// - or `compress` returns one.
pub fn pack(groups: &[Group], compress: impl Fn(&[u8]) -> io::Result<Vec<u8>> + Sync) -> io::Result<Vec<u8>> {
    let (mut records, mut raw) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let mut all = Vec::new();
        for Entry { key, code } in &group.entries {
            if code.is_empty() {
                return Err(io::Error::other("an entry has no code"));
            }
            records.push((*key, sum(key, code), number as u32, all.len() as u32, code.len() as u32));
            all.extend_from_slice(code);
            if all.len() > MAX_GROUP_BYTES {
                return Err(io::Error::other(format!("a group has more than {MAX_GROUP_BYTES} bytes")));
            }
        }
        raw.push(all);
    }
    records.sort_unstable_by_key(|(key, ..)| *key);
    if records.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(io::Error::other("two entries have one key"));
    }
    let compressed: Vec<Vec<u8>> = raw.par_iter().map(|raw| compress(raw)).collect::<io::Result<_>>()?;

    let mut index = [groups.len() as u32, records.len() as u32].map(u32::to_le_bytes).concat();
    let mut at = 0_u64;
    for ((group, raw), compressed) in groups.iter().zip(&raw).zip(&compressed) {
        let length = u32::try_from(compressed.len()).map_err(io::Error::other)?;
        index.extend(group.target.number().to_le_bytes());
        index.extend(at.to_le_bytes());
        index.extend([length, raw.len() as u32].map(u32::to_le_bytes).concat());
        at += u64::from(length);
    }
    for (key, sum, group, start, length) in records {
        index.extend([key, *sum.as_bytes()].concat());
        index.extend([group, start, length].map(u32::to_le_bytes).concat());
    }
    let mut archive = [MAGIC, blake3::hash(&index).as_bytes().as_slice(), &index].concat();
    compressed.iter().for_each(|group| archive.extend_from_slice(group));
    Ok(archive)
}

fn sum(key: &[u8; 32], code: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key, code)
}

/// A group of an open archive.
struct Place {
    target: Target,
    /// Where it lies in the file.
    range: Range<usize>,
    bytes: usize,
    decoded: Mutex<Weak<Vec<u8>>>,
}

/// An entry of an open archive.
struct Record {
    key: [u8; 32],
    sum: blake3::Hash,
    group: usize,
    /// Where it lies in its group.
    range: Range<usize>,
}

/// An archive that was read, with its index checked.
pub struct Archive {
    name: String,
    bytes: Cow<'static, [u8]>,
    groups: Vec<Place>,
    /// In ascending order of keys.
    records: Vec<Record>,
    recent: Mutex<VecDeque<Arc<Vec<u8>>>>,
}

impl Archive {
    /// Reads the index of an archive; `name` is what logs call it.
    ///
    /// # Errors
    /// An error that says what is wrong if the bytes are no archive of this version, or if their index was damaged.
    pub fn open(name: &str, bytes: impl Into<Cow<'static, [u8]>>) -> io::Result<Self> {
        let bytes = bytes.into();
        let (groups, records) = read_index(&bytes).map_err(io::Error::other)?;
        Ok(Self { name: name.to_owned(), bytes, groups, records, recent: Mutex::default() })
    }

    /// Counts the kernels.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Tells whether there are no kernels.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Gives what there is code for, in ascending order.
    pub fn targets(&self) -> Vec<Target> {
        self.groups.iter().map(|group| group.target).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Gives the groups: their targets, their bytes of code, and their bytes when compressed.
    pub fn groups(&self) -> impl Iterator<Item = (Target, usize, usize)> {
        self.groups.iter().map(|group| (group.target, group.bytes, group.range.len()))
    }

    /// Gives the code under a key, unless there is none or it was damaged: the log tells the latter.
    pub fn get(&self, key: &[u8; 32]) -> Option<Vec<u8>> {
        let at = self.records.binary_search_by(|record| record.key.cmp(key)).ok()?;
        let record = &self.records[at];
        let group = self.group(&self.groups[record.group]);
        let code = group.as_ref().and_then(|group| group.get(record.range.clone()));
        let intact = code.filter(|code| sum(key, code) == record.sum);
        if intact.is_none() {
            log::warn!("{}: a kernel is not used, its code is damaged", self.name);
        }
        intact.map(<[u8]>::to_vec)
    }

    /// A group as it was before it was compressed.
    fn group(&self, place: &Place) -> Option<Arc<Vec<u8>>> {
        let mut decoded = place.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = decoded.upgrade() {
            return Some(group);
        }
        let mut group = Vec::with_capacity(place.bytes);
        let compressed = &self.bytes[place.range.clone()];
        let mut reader = brotli_decompressor::Decompressor::new(compressed, 4096).take(place.bytes as u64 + 1);
        reader.read_to_end(&mut group).ok().filter(|bytes| *bytes == place.bytes)?;
        let group = Arc::new(group);
        *decoded = Arc::downgrade(&group);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(Arc::clone(&group));
        if recent.len() > RECENT {
            recent.pop_front();
        }
        Some(group)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("name", &self.name).field("kernels", &self.len()).finish_non_exhaustive()
    }
}

/// Takes numbers and hashes off the start of bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn usize(&mut self) -> Option<usize> {
        self.u32()?.try_into().ok()
    }

    /// A range by its start and its length.
    fn range(&mut self, start: u64, length: usize, end: usize) -> Option<Range<usize>> {
        let start = usize::try_from(start).ok()?;
        let range = start..start.checked_add(length)?;
        (range.end <= end).then_some(range)
    }
}

fn read_index(bytes: &[u8]) -> Result<(Vec<Place>, Vec<Record>), &'static str> {
    const DAMAGED: &str = "its index is damaged";
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no archive of kernels of this version")?;
    let (hash, rest) = rest.split_first_chunk::<{ blake3::OUT_LEN }>().ok_or(DAMAGED)?;
    let mut reader = Reader(rest);
    let lengths = reader.usize().zip(reader.usize());
    let index = lengths.and_then(|(groups, entries)| {
        let bytes = groups.checked_mul(GROUP_BYTES)?.checked_add(entries.checked_mul(ENTRY_BYTES)?)?.checked_add(8)?;
        Some((groups, entries, rest.get(..bytes)?))
    });
    let (groups, entries, index) = index.ok_or(DAMAGED)?;
    if blake3::hash(index) != *hash {
        return Err(DAMAGED);
    }
    let first = MAGIC.len() + hash.len() + index.len();
    read_groups(&mut reader, groups, first, bytes.len())
        .and_then(|groups| read_entries(&mut reader, entries, &groups).map(|entries| (groups, entries)))
        .ok_or("its index makes no sense, or its end is missing")
}

fn read_groups(reader: &mut Reader<'_>, count: usize, first: usize, end: usize) -> Option<Vec<Place>> {
    let mut group = || {
        let target = Target::of_number(reader.u32()?);
        let start = u64::from_le_bytes(reader.array()?).checked_add(first as u64)?;
        let length = reader.usize()?;
        let range = reader.range(start, length, end)?;
        let bytes = reader.usize().filter(|bytes| *bytes <= MAX_GROUP_BYTES)?;
        Some(Place { target, range, bytes, decoded: Mutex::default() })
    };
    (0..count).map(|_| group()).collect()
}

fn read_entries(reader: &mut Reader<'_>, count: usize, groups: &[Place]) -> Option<Vec<Record>> {
    let mut entry = || {
        let (key, sum) = (reader.array()?, blake3::Hash::from_bytes(reader.array()?));
        let (group, start, length) = (reader.usize()?, reader.u32()?, reader.usize()?);
        let range = reader.range(start.into(), length, groups.get(group)?.bytes)?;
        (length > 0).then_some(Record { key, sum, group, range })
    };
    let records: Vec<Record> = (0..count).map(|_| entry()).collect::<Option<_>>()?;
    records.is_sorted_by(|a, b| a.key < b.key).then_some(records)
}

/// The archives that a device takes code from, the first first.
#[derive(Debug, Default)]
pub(crate) struct Archives(Vec<Arc<Archive>>);

impl Archives {
    /// Those in the folder of a cache, by name, then that of the program.
    pub(crate) fn given(cache: &Cache) -> Self {
        let files = cache.archives(EXTENSION).into_iter().filter_map(|(name, bytes)| {
            Archive::open(&name, bytes).inspect_err(|error| log::warn!("{name} is not used: {error}")).ok()
        });
        Self(files.map(Arc::new).chain(built_in()).collect())
    }

    /// Code for an architecture `sm_N`, best first. `key` gives what a target's is found by.
    pub(crate) fn find(
        &self,
        architecture: &str,
        key: impl Fn(Target) -> blake3::Hash,
    ) -> impl Iterator<Item = (Target, Vec<u8>)> {
        let targets = self.0.iter().flat_map(|archive| archive.targets()).collect();
        let keys = usable(&targets, architecture).into_iter().map(move |target| (target, key(target)));
        keys.flat_map(|(target, key)| {
            self.0.iter().filter_map(move |archive| Some((target, archive.get(key.as_bytes())?)))
        })
    }

    /// Counts the archives.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What runs on an architecture `sm_N`: its own machine code, that of earlier ones of its generation, PTX of earlier
/// ones. Newest first.
fn usable(targets: &BTreeSet<Target>, architecture: &str) -> Vec<Target> {
    let Ok(Target::Machine(own)) = architecture.parse() else { return Vec::new() };
    let runs = |target: &Target| match *target {
        Target::Machine(number) => number <= own && number / 10 == own / 10,
        Target::Ptx(number) => number <= own,
    };
    let (ptx, machine): (Vec<Target>, Vec<Target>) =
        targets.iter().rev().copied().filter(runs).partition(|target| matches!(target, Target::Ptx(_)));
    [machine, ptx].concat()
}

/// The archive of the program: that of `evariste-kernels`.
fn built_in() -> Option<Arc<Archive>> {
    #[cfg(feature = "kernels")]
    {
        static BUILT_IN: std::sync::OnceLock<Option<Arc<Archive>>> = std::sync::OnceLock::new();
        let open = || {
            let name = "the archive of evariste-kernels";
            let opened = match evariste_kernels::ARCHIVE {
                [] => Err(io::Error::other(evariste_kernels::MISSING)),
                bytes => Archive::open(name, bytes),
            };
            opened.inspect_err(|error| log::warn!("{name} is not used: {error}")).ok().map(Arc::new)
        };
        BUILT_IN.get_or_init(open).clone()
    }
    #[cfg(not(feature = "kernels"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (mut from, mut compressed) = (bytes, Vec::new());
        brotli::BrotliCompress(&mut from, &mut compressed, &brotli::enc::BrotliEncoderParams::default())?;
        Ok(compressed)
    }

    fn key(text: &str) -> [u8; 32] {
        *blake3::hash(text.as_bytes()).as_bytes()
    }

    fn entry(name: &str, target: Target) -> Entry {
        Entry { key: key(&format!("{name} {target}")), code: format!("{target} of {name}; ").repeat(9).into_bytes() }
    }

    const NAMES: [&str; 3] = ["pass", "sort", "round"];
    const TARGETS: [Target; 4] = [Target::Machine(80), Target::Machine(90), Target::Machine(120), Target::Ptx(75)];

    fn groups() -> Vec<Group> {
        TARGETS.map(|target| Group { target, entries: NAMES.map(|name| entry(name, target)).to_vec() }).to_vec()
    }

    #[test]
    fn what_was_packed_comes_back() {
        let groups = groups();
        let packed = pack(&groups, compress).unwrap();
        let archive = Archive::open("a", packed.clone()).unwrap();
        assert_eq!((archive.len(), archive.targets()), (12, TARGETS.to_vec()));
        for _ in 0..2 {
            for Entry { key, code } in groups.iter().flat_map(|group| &group.entries) {
                assert_eq!(archive.get(key).as_ref(), Some(code));
            }
        }
        assert_eq!(archive.get(&key("another")), None);
        assert_eq!(pack(&groups, compress).unwrap(), packed, "it depends on nothing else");
        let none = Archive::open("none", pack(&[], compress).unwrap()).unwrap();
        assert!(none.is_empty() && none.targets().is_empty() && none.get(&key("another")).is_none());
    }

    #[test]
    fn what_cannot_be_found_again_is_refused() {
        let twice = [groups(), groups()].concat();
        assert!(pack(&twice, compress).unwrap_err().to_string().contains("one key"));
        let mut empty = groups();
        empty[1].entries[1].code.clear();
        assert!(pack(&empty, compress).unwrap_err().to_string().contains("no code"));
        assert!(pack(&groups(), |_| Err(io::Error::other("full"))).is_err());
    }

    /// That every entry is as it was, or missing.
    fn expect_intact_or_missing(bytes: Vec<u8>, what: &str) -> usize {
        let Ok(archive) = Archive::open("damaged", bytes) else { return 0 };
        let found = groups().into_iter().flat_map(|group| group.entries).filter(|entry| {
            let code = archive.get(&entry.key);
            assert!(code.as_ref().is_none_or(|code| *code == entry.code), "{what}");
            code.is_some()
        });
        found.count()
    }

    #[test]
    fn every_damage_is_a_miss_or_misses_what_was_asked_for() {
        let packed = pack(&groups(), compress).unwrap();
        for length in 0..packed.len() {
            let found = expect_intact_or_missing(packed[..length].to_vec(), &format!("cut to {length}"));
            assert_eq!(found, 0, "cut to {length}, a group is missing");
        }
        let mut kept = 0;
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut flipped = packed.clone();
                flipped[at] ^= 1 << bit;
                kept += expect_intact_or_missing(flipped, &format!("bit {bit} of byte {at}"));
            }
        }
        assert!(kept > 0, "damage to one group leaves the others");
        let behind = [packed.as_slice(), b"more"].concat();
        assert_eq!(expect_intact_or_missing(behind, "longer"), 12);
    }

    /// Indices that say what is not so, under hashes that hold.
    #[test]
    fn an_index_that_makes_no_sense_is_refused() {
        let packed = pack(&groups(), compress).unwrap();
        let index = MAGIC.len() + 32;
        let first_group = index + 8;
        let first_entry = first_group + TARGETS.len() * GROUP_BYTES;
        let patched = |at: usize, value: &[u8]| {
            let mut patched = packed.clone();
            patched[at..at + value.len()].copy_from_slice(value);
            let end = first_entry + 12 * ENTRY_BYTES;
            let hash = blake3::hash(&patched[index..end]);
            patched[MAGIC.len()..index].copy_from_slice(hash.as_bytes());
            Archive::open("patched", patched)
        };
        assert!(patched(first_group, &packed[first_group..][..4]).is_ok(), "as it was");
        let most = u32::MAX.to_le_bytes();
        let cases = [
            ("the start of a group", first_group + 4, u64::MAX.to_le_bytes().to_vec()),
            ("a group behind the end", first_group + 4, (packed.len() as u64).to_le_bytes().to_vec()),
            ("the compressed bytes of a group", first_group + 12, most.to_vec()),
            ("the bytes of a group", first_group + 16, most.to_vec()),
            ("a group too short for its entries", first_group + 16, 1_u32.to_le_bytes().to_vec()),
            ("the order of entries", first_entry, vec![0xff; 32]),
            ("two entries of one key", first_entry, packed[first_entry + ENTRY_BYTES..][..32].to_vec()),
            ("an entry's group", first_entry + 64, 4_u32.to_le_bytes().to_vec()),
            ("an entry's start", first_entry + 68, most.to_vec()),
            ("an entry's bytes", first_entry + 72, most.to_vec()),
            ("an entry without code", first_entry + 72, vec![0; 4]),
        ];
        for (what, at, value) in cases {
            let refused = patched(at, &value).expect_err(what);
            assert!(refused.to_string().contains("no sense"), "{what}: {refused}");
        }
        for count in [index, index + 4] {
            let mut wrong = packed.clone();
            wrong[count..count + 4].copy_from_slice(&most);
            assert!(Archive::open("counts", wrong).unwrap_err().to_string().contains("damaged"));
        }
    }

    #[test]
    fn groups_that_say_too_little_or_too_much_are_misses() {
        for (what, factor) in [("more", 2), ("less", 0)] {
            let group = Group { target: Target::Machine(90), entries: vec![entry("pass", Target::Machine(90))] };
            let packed = pack(std::slice::from_ref(&group), |raw| compress(&raw.repeat(factor))).unwrap();
            let archive = Archive::open(what, packed).unwrap();
            assert_eq!(archive.get(&group.entries[0].key), None, "{what}");
        }
    }

    #[test]
    fn files_of_another_format_are_foreign() {
        let mut later = pack(&groups(), compress).unwrap();
        later[MAGIC.len() - 1] += 1;
        for (what, bytes) in [("a later version", later), ("an image", b"\x7fELF".repeat(30)), ("nothing", vec![])] {
            let refused = Archive::open(what, bytes).expect_err(what);
            assert!(refused.to_string().contains("no archive of kernels of this version"), "{what}: {refused}");
        }
    }

    #[test]
    fn a_gpu_takes_its_own_code_then_its_generations_then_ptx() {
        use Target::{Machine, Ptx};

        let targets = [Machine(80), Machine(90), Machine(100), Machine(120), Ptx(75), Ptx(90)].into();
        let cases = [
            ("sm_90", vec![Machine(90), Ptx(90), Ptx(75)]),
            ("sm_89", vec![Machine(80), Ptx(75)]),
            ("sm_86", vec![Machine(80), Ptx(75)]),
            ("sm_75", vec![Ptx(75)]),
            ("sm_70", vec![]),
            ("sm_103", vec![Machine(100), Ptx(90), Ptx(75)]),
            ("sm_110", vec![Ptx(90), Ptx(75)]),
            ("stub", vec![]),
        ];
        for (architecture, expected) in cases {
            assert_eq!(usable(&targets, architecture), expected, "{architecture}");
        }
        for name in ["sm_90", "compute_75"] {
            assert_eq!(name.parse::<Target>().unwrap().to_string(), name);
        }
        for name in ["sm_", "sm_90a", "sm_0", "compute_4294967295", "90", ""] {
            assert!(name.parse::<Target>().is_err(), "{name}");
        }
        for target in TARGETS {
            assert_eq!(Target::of_number(target.number()), target);
        }
    }
}
