//! What the compiler and the assembler say of an entry.

use std::fmt;

/// The resources of a multiprocessor that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of local memory (the stack) of each thread.
    pub local_bytes: u32,
    /// Bytes of registers that each thread stores to local memory for want of registers.
    pub spill_bytes: u32,
    /// Bytes of static shared memory of a workgroup;
    /// [`KernelSpec::shared_bytes`](crate::author::KernelSpec::shared_bytes) come on top.
    pub shared_bytes: u32,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registers, local_bytes, spill_bytes, shared_bytes } = self;
        write!(f, "{registers} registers, {local_bytes} B local, {spill_bytes} B spilled, {shared_bytes} B shared")
    }
}

/// The sizes of an entry's parameters in PTX.
pub(super) fn parameters(ptx: &str, name: &str) -> Option<Vec<usize>> {
    let (_, rest) = ptx.split_once(&format!(".entry {name}("))?;
    let (list, _) = rest.split_once(')')?;
    list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()).map(parameter_bytes).collect()
}

/// The size of one parameter, such as `.param .u64 .ptr .align 1 x_param_1` or `.param .align 4 .b8 x_param_0[12]`.
fn parameter_bytes(parameter: &str) -> Option<usize> {
    let bits = |word: &str| word.strip_prefix(['.'])?.strip_prefix(['b', 'u', 's', 'f'])?.parse::<usize>().ok();
    let bytes = parameter.split_whitespace().find_map(bits)? / 8;
    match parameter.split_once('[') {
        Some((_, count)) => Some(bytes * count.trim_end_matches(']').parse::<usize>().ok()?),
        None => Some(bytes),
    }
}

/// What the assembler's report says of an entry, and of the functions that it calls.
pub(super) fn usage(log: &str, name: &str) -> Option<Usage> {
    let (_, report) = log.split_once(&format!("Compiling entry function '{name}'"))?;
    let report = report.split("Compiling entry function").next()?;
    let (_, own) = report.split_once(&format!("Function properties for {name}"))?;
    Some(Usage {
        registers: number_before(report, " registers")?,
        local_bytes: number_before(report, " bytes cumulative stack size")
            .or_else(|| number_before(own, " bytes stack frame"))?,
        spill_bytes: report.lines().filter_map(|line| number_before(line, " bytes spill stores")).sum(),
        shared_bytes: number_before(report, " bytes smem").unwrap_or(0),
    })
}

fn number_before(text: &str, unit: &str) -> Option<u32> {
    let (before, _) = text.split_once(unit)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
