//! Where the code of a kernel comes from, on the double of the driver: the cache, archives, the compiler, in this
//! order.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
    sync::{Arc, Mutex, Once, PoisonError},
};

use super::{
    Cuda, compiler,
    double::{self, Failure},
    driver::Context,
    kernels::Compiler,
};
use crate::{
    archive::{self, Entry, Group, Target},
    bindings::{Binding, BindingType},
    cache::Cache,
    compilations::Origin,
    device::Device,
    device::dispatch::Arg,
    error::{Error, Result},
    info::Kind,
    kernel::Kernel,
    params,
    spec::KernelSpec,
};

static PRESENT: Compiler = Compiler {
    version: || Ok((13, 0)),
    compile: |_, _, architecture| {
        Ok((architecture.to_owned(), compiler::Compiled { code: vec![1], log: String::new(), usage: None }))
    },
};

/// An image whose header is not all there.
const TRUNCATED: &[u8] = b"\x7fELF\x02\x01";

static TRUNCATING: Compiler = Compiler {
    version: || Ok((13, 0)),
    compile: |_, _, architecture| {
        let code = TRUNCATED.to_vec();
        Ok((architecture.to_owned(), compiler::Compiled { code, log: String::new(), usage: None }))
    },
};

static ABSENT: Compiler = Compiler {
    version: || Err(Error::Unavailable { backend: Kind::Cuda, reason: "there is no NVRTC".into() }),
    compile: |_, _, _| panic!("there is no compiler"),
};

params! {
    struct Fill {
        word: u32,
    }
}

fn spec(text: &'static str) -> KernelSpec {
    let bindings = vec![Binding::write("x", BindingType::U32)];
    KernelSpec::new::<Fill, _>("fill", text, bindings, |_, _| {}, |_| text.to_owned()).threads(64)
}

/// A folder that is the user's alone.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("evariste-archived-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        drop(Cache::at(Some(path.clone())));
        Self(path)
    }

    fn open(&self, compiler: &'static Compiler) -> Result<Device> {
        let context = Context::retain_of(&double::FUNCTIONS, 0)?;
        let cache = Cache::at(Some(self.0.clone()));
        Ok(Device::unregistered(Arc::new(Cuda::of(context, cache, compiler)?)))
    }

    fn give(&self, name: &str, archive: &[u8]) {
        fs::write(self.0.join(name), archive).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An archive of kernels with these texts for each of some targets.
fn archive_of(texts: &[&'static str], targets: &[Target]) -> Vec<u8> {
    let entry = |text: &&'static str, target: &Target| Entry {
        key: compiler::key(&spec(text), &target.to_string()),
        code: target.to_string().into_bytes(),
    };
    let group =
        |target: &Target| Group { target: *target, entries: texts.iter().map(|text| entry(text, target)).collect() };
    archive::pack(&targets.iter().map(group).collect::<Vec<_>>(), compress).unwrap()
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let (mut from, mut compressed) = (bytes, Vec::new());
    brotli::BrotliCompress(&mut from, &mut compressed, &brotli::enc::BrotliEncoderParams::default())?;
    Ok(compressed)
}

/// Makes a kernel, launches it, and tells where its code came from.
fn origin(device: &Device, text: &'static str) -> Result<Origin> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&told);
    device.on_compile(Some(Arc::new(move |compilation| note.lock().unwrap().push(compilation.origin))));
    let kernel = Kernel::<Fill>::new(device, spec(text));
    device.on_compile(None);
    let kernel = kernel?;
    let mut x = device.zeros::<u32>(64)?;
    // SAFETY: the double fills the buffer and no more.
    unsafe { kernel.launch(&device.default_queue(), 1, &Fill { word: 7 }, &mut [Arg::write(&mut x)]) }?;
    assert_eq!(x.to_vec()?, [7; 64]);
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(told.len(), 1);
    Ok(told[0])
}

fn reason(error: Error) -> String {
    let Error::Unavailable { backend: Kind::Cuda, reason } = error else { panic!("{error:?}") };
    reason
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.lock().unwrap_or_else(PoisonError::into_inner).push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Has warnings kept from now on.
fn keep_lines() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
}

fn was_told(parts: &[&str]) -> bool {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn without_compiler_and_archive_the_error_names_both_ways_out() {
    double::reset(false);
    let folder = Folder::new("neither");
    let device = folder.open(&ABSENT).unwrap();
    let told = reason(origin(&device, "a").unwrap_err());
    let parts = ["fill (a)", "sm_90", "there is no NVRTC", "no archive", "feature kernels", "kernels --package"];
    for part in parts.into_iter().chain(["EVARISTE_CACHE"]) {
        assert!(cfg!(feature = "kernels") && part == "no archive" || told.contains(part), "{part}: {told}");
    }
}

#[test]
fn an_archive_makes_up_for_the_compiler() {
    double::reset(false);
    let folder = Folder::new("instead");
    folder.give("mine.archive", &archive_of(&["a", "b"], &[Target::Machine(90)]));
    for compiler in [&ABSENT, &PRESENT] {
        let device = folder.open(compiler).unwrap();
        assert_eq!(origin(&device, "a").unwrap(), Origin::Archive);
        assert_eq!(origin(&device, "b").unwrap(), Origin::Archive);
        let stats = device.stats();
        assert_eq!((stats.compiled, stats.cache_hits), (0, 2));
    }
    // Another text is another kernel.
    let told = reason(origin(&folder.open(&ABSENT).unwrap(), "c").unwrap_err());
    assert!(told.contains("has it") && told.contains("there is no NVRTC"), "{told}");
    assert_eq!(origin(&folder.open(&PRESENT).unwrap(), "c").unwrap(), Origin::Compiler);
}

#[test]
fn the_cache_comes_first() {
    double::reset(false);
    let folder = Folder::new("order");
    assert_eq!(origin(&folder.open(&PRESENT).unwrap(), "a").unwrap(), Origin::Compiler);
    folder.give("mine.archive", &archive_of(&["a"], &[Target::Machine(90)]));
    for compiler in [&ABSENT, &PRESENT] {
        assert_eq!(origin(&folder.open(compiler).unwrap(), "a").unwrap(), Origin::DiskCache);
    }
}

#[test]
fn what_does_not_load_is_passed_over() {
    double::reset(false);
    keep_lines();
    let folder = Folder::new("next");
    folder.give("mine.archive", &archive_of(&["fails to load"], &[Target::Machine(90), Target::Ptx(75)]));
    let device = folder.open(&ABSENT).unwrap();
    double::fail("cuModuleLoadData", 0, Failure::Once);
    assert_eq!(origin(&device, "fails to load").unwrap(), Origin::Archive);
    assert!(was_told(&["fill (fails to load) for sm_90", "not used"]));
    // The PTX too.
    let device = folder.open(&ABSENT).unwrap();
    double::fail("cuModuleLoadData", 0, Failure::Lasting);
    reason(origin(&device, "fails to load").unwrap_err());
    double::heal();
    assert!(was_told(&["fill (fails to load) for compute_75", "not used"]));
}

#[test]
fn an_image_that_ends_too_early_never_reaches_the_driver() {
    double::reset(false);
    keep_lines();
    // Fresh from a compiler: an error. From an archive and from the cache: passed over.
    let folder = Folder::new("early");
    let error = origin(&folder.open(&TRUNCATING).unwrap(), "ends early").unwrap_err();
    assert!(matches!(&error, Error::Compile { log, .. } if log.contains("ends too early")), "{error}");
    let key = compiler::key(&spec("ends early"), "sm_90");
    let group = Group { target: Target::Machine(90), entries: vec![Entry { key, code: TRUNCATED.to_vec() }] };
    folder.give("mine.archive", &archive::pack(&[group], compress).unwrap());
    assert_eq!(origin(&folder.open(&PRESENT).unwrap(), "ends early").unwrap(), Origin::Compiler);
    assert!(was_told(&["fill (ends early) for sm_90", "ends too early"]));
    let cache = Cache::at(Some(folder.0.clone()));
    cache.put(&Cache::key(&[&key, &13_u32.to_le_bytes(), &0_u32.to_le_bytes()]), TRUNCATED);
    assert_eq!(origin(&folder.open(&PRESENT).unwrap(), "ends early").unwrap(), Origin::Compiler);
    assert!(was_told(&["cached fill (ends early) is replaced", "ends too early"]));
}

#[test]
fn ptx_serves_a_gpu_without_machine_code() {
    double::reset(false);
    let folder = Folder::new("ptx");
    folder.give("a.archive", &archive_of(&["a"], &[Target::Machine(120), Target::Ptx(100)]));
    reason(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap_err());
    folder.give("b.archive", &archive_of(&["a"], &[Target::Ptx(75)]));
    assert_eq!(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap(), Origin::Archive);
}

#[test]
fn a_damaged_or_foreign_archive_is_a_miss_and_a_line_in_the_log() {
    double::reset(false);
    keep_lines();
    let good = archive_of(&["a"], &[Target::Machine(90)]);
    let mut index = good.clone();
    index[20] ^= 1;
    let mut code = good.clone();
    let middle = code.len() - 4;
    code[middle] ^= 0xff;
    let cases = [
        ("foreign", b"something else".to_vec(), "foreign.archive"),
        ("index", index, "index.archive"),
        ("cut", good[..good.len() - 1].to_vec(), "cut.archive"),
        ("code", code, "code.archive"),
        ("empty", Vec::new(), "empty.archive"),
    ];
    for (what, bytes, name) in cases {
        let folder = Folder::new(what);
        folder.give(name, &bytes);
        reason(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap_err());
        assert_eq!(origin(&folder.open(&PRESENT).unwrap(), "a").unwrap(), Origin::Compiler, "{what}");
        assert!(was_told(&[name, "not used"]), "{what}");
        // Another one beside it is used all the same.
        let folder = Folder::new(what);
        folder.give(name, &bytes);
        folder.give("z.archive", &good);
        assert_eq!(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap(), Origin::Archive, "{what}");
    }
}

#[cfg(unix)]
#[test]
fn an_archive_that_others_can_write_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    double::reset(false);
    keep_lines();
    let (folder, other) = (Folder::new("open"), Folder::new("elsewhere"));
    let good = archive_of(&["a"], &[Target::Machine(90)]);
    let expect_miss = |name: &str| {
        reason(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap_err());
        assert!(was_told(&[name, "not used"]));
        fs::remove_file(folder.0.join(name)).unwrap();
    };
    folder.give("theirs.archive", &good);
    let path: &Path = &folder.0.join("theirs.archive");
    fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap();
    expect_miss("theirs.archive");
    other.give("target.archive", &good);
    symlink(other.0.join("target.archive"), folder.0.join("link.archive")).unwrap();
    expect_miss("link.archive");
    // With another name it is no archive.
    folder.give("mine", &good);
    reason(origin(&folder.open(&ABSENT).unwrap(), "a").unwrap_err());
}
