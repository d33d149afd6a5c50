//! What needs a process of its own.

pub(crate) mod child;

pub use child::run_child;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process,
};

use evariste::backend::{DEVICE_VARIABLE, Device, DeviceId, Kind};
use libtest_mimic::{Failed, Trial};

use crate::{
    area::Area,
    expect::expect,
    harness::{DeviceTrials, Outcome},
};

/// The environment variable of the kernel cache.
const CACHE_VARIABLE: &str = "EVARISTE_CACHE";

/// Address space for filling memory, in KiB: enough for the driver of an emulated GPU.
const LITTLE_MEMORY: u64 = 6 << 20;

pub(crate) const AREA: Area = Area { common, ..Area::new("process", add) };

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("plans_leave_no_memory_behind", plans_leave_no_memory_behind);
    trials.add("damaged_cache_files_are_replaced", damaged_cache_files_are_replaced);
    trials.add("prepared_calls_compile_nothing", prepared_calls_compile_nothing);
    if cfg!(unix) && (trials.device.info().features.software || trials.device.info().id.kind == Kind::Cpu) {
        trials.add("exhausted_memory_is_an_error", exhausted_memory_is_an_error);
    }
}

fn common() -> Vec<Trial> {
    let mut trials = vec![Trial::test("any::process::a_device_variable_that_is_nonsense", nonsense)];
    if cfg!(target_os = "linux") {
        trials.push(Trial::test("any::process::missing_libraries_are_unavailable", missing_libraries));
    }
    trials
}

fn plans_leave_no_memory_behind(device: &Device) -> Outcome {
    let report = child::run(&format!("cycles {}", device.info().id), &[], None)?;
    let summary = report.split(';').next().unwrap_or_default();
    let numbers: Vec<u64> = summary.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [resident, held, allowed] if resident < allowed && held < allowed => Ok(()),
        _ => Err(report.into()),
    }
}

fn damaged_cache_files_are_replaced(device: &Device) -> Outcome {
    let folder = Folder::new(&format!("cache-{}", device.info().id.to_string().replace(':', "-")))?;
    let scenario = format!("ntt {}", device.info().id);
    let run = || child::run(&scenario, &[(CACHE_VARIABLE, folder.path().as_os_str())], None);
    let expect_ok = |report: String| if report.starts_with("ok") { Ok(report) } else { Err(Failed::from(report)) };
    let cold = expect_ok(run()?)?;
    let warm = expect_ok(run()?)?;
    let files = || -> Result<Vec<PathBuf>, Failed> {
        fs::read_dir(folder.path())?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failed>>()
    };
    for (i, file) in files()?.into_iter().enumerate() {
        let mut contents = fs::read(&file)?;
        match i % 3 {
            0 => contents.truncate(contents.len() / 2),
            1 => contents.iter_mut().for_each(|byte| *byte = !*byte),
            _ => contents.clear(),
        }
        fs::write(&file, contents)?;
    }
    let damaged = expect_ok(run()?)?;
    let again = expect_ok(run()?)?;
    if device.info().id.kind == Kind::Cuda {
        for (what, report) in [("cold", &cold), ("damaged", &damaged)] {
            expect(&format!("{what}: everything is compiled: {report}"), report.ends_with(", 0 from the cache"))?;
        }
        for (what, report) in [("warm", &warm), ("again", &again)] {
            expect(&format!("{what}: nothing is compiled: {report}"), report.starts_with("ok: 0 compiled"))?;
        }
    }
    Ok(())
}

/// With an empty cache, and again from what the first process left there.
fn prepared_calls_compile_nothing(device: &Device) -> Outcome {
    let folder = Folder::new(&format!("prepared-{}", device.info().id.to_string().replace(':', "-")))?;
    let variables = [(CACHE_VARIABLE, folder.path().as_os_str()), ("MESA_SHADER_CACHE_DISABLE", OsStr::new("true"))];
    let run = |scenario| child::run(&format!("{scenario} {}", device.info().id), &variables, None);
    let (first, second) = (run("prepared")?, run("prepared-again")?);
    for report in [&first, &second] {
        expect(report, report.starts_with("ok: "))?;
    }
    let is_kept = fs::read_dir(folder.path())?.next().is_some();
    // Vulkan has caches of pipelines, the other systems of wgpu have not.
    let must_be_kept = match device.info().id.kind {
        Kind::Cpu => false,
        Kind::Cuda => true,
        Kind::Wgpu => cfg!(target_os = "linux"),
    };
    expect("the first process leaves files in the cache", is_kept || !must_be_kept)?;
    if is_kept {
        expect(&format!("the first process compiles: {first}"), first.ends_with(", 0 from the cache"))?;
        expect(&format!("the second one compiles nothing: {second}"), second.starts_with("ok: 0 compiled"))?;
    }
    Ok(())
}

fn exhausted_memory_is_an_error(device: &Device) -> Outcome {
    let scenario = format!("memory {}", device.info().id);
    let report = child::run(&scenario, &[], Some(LITTLE_MEMORY))?;
    expect(&report, report.starts_with("ok: ") && report.contains("out of memory"))
}

fn nonsense() -> Outcome {
    let report = child::run("best", &[(DEVICE_VARIABLE, OsStr::new("nonsense"))], None)?;
    expect(&report, report.starts_with("error: ") && report.contains(DeviceId::EXPECTED))?;
    let report = child::run("best", &[(DEVICE_VARIABLE, OsStr::new("cpu"))], None)?;
    expect(&report, report.starts_with("ok: cpu"))
}

/// Puts files that are no libraries in the way of the loader, which stops at the first file of a name.
fn missing_libraries() -> Outcome {
    let folder = Folder::new("libraries")?;
    for name in ["libcuda.so", "libcuda.so.1", "libvulkan.so", "libvulkan.so.1"] {
        fs::write(folder.path().join(name), "not a library")?;
    }
    let hidden = [("LD_LIBRARY_PATH", folder.path().as_os_str())];
    for (device, hint) in [("cuda:0", "driver"), ("wgpu:0", "Vulkan")] {
        let report = child::run(&format!("open {device}"), &hidden, None)?;
        let expected = report.starts_with("error: ") && report.contains("unavailable") && report.contains(hint);
        expect(&format!("{device} is unavailable and says why: {report}"), expected)?;
    }
    let report = child::run("best", &hidden, None)?;
    expect(&report, report.starts_with("ok: cpu"))
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self, Failed> {
        let path = env::temp_dir().join(format!("evariste-{name}-{}", process::id()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
