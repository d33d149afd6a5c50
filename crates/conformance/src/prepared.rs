//! That calls compile nothing once their plan was made, or was prepared for them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use evariste::backend::{Device, Kind};
use libtest_mimic::Failed;

use crate::{
    expect::{expect, expect_equal},
    harness::Outcome,
    trials::AREAS,
};

/// Checks a device that nobody else uses meanwhile, and tells what it compiled. Areas whose kernels take minutes there
/// are left out.
pub(crate) fn check(device: &Device, without: &[&str]) -> Result<String, Failed> {
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    device.on_compile(Some(Arc::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    })));
    let before = device.stats();
    for area in AREAS.iter().filter(|area| !without.contains(&area.name)) {
        area.prepared.map_or(Ok(()), |run| run(device))?;
    }
    device.on_compile(None);
    let after = device.stats();
    let (compiled, loaded) = (after.compiled - before.compiled, after.cache_hits - before.cache_hits);
    expect_equal("kernels that the observer was told of", &told.load(Ordering::Relaxed), &(compiled + loaded))?;
    // A device of the CPU's kind that has workgroups runs CUDA's sources.
    let info = device.info();
    let compiles = info.id.kind != Kind::Cpu || info.limits.workgroup_threads > 1;
    expect_equal("some kernels are compiled", &(compiled + loaded > 0), &compiles)?;
    expect("compiling took time", compiled == 0 || after.compile_time > before.compile_time)?;
    Ok(format!("{compiled} compiled, {loaded} from the cache"))
}

/// Does what must compile nothing.
pub(crate) fn quietly(device: &Device, what: &str, call: impl FnOnce() -> Outcome) -> Outcome {
    let before = device.stats();
    call()?;
    let after = device.stats();
    expect_equal(what, &(after.compiled, after.cache_hits), &(before.compiled, before.cache_hits))
}
