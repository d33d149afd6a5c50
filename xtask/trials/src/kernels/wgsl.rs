//! WGSL through naga, to what the drivers of Vulkan, Metal and DirectX 12 get.

use anyhow::{Context, Result, anyhow, ensure};
use evariste_backend::{author::KernelSpec, wgsl};
use naga::{
    AddressSpace, Block, Module, Statement,
    back::{hlsl, msl, spv},
    proc::Layouter,
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};

use super::Takes;

/// Workgroup memory to plan for: what WebGPU promises, what Apple and emulated GPUs have, what NVIDIA and AMD have.
pub(crate) const WORKGROUP_BYTES: [u32; 3] = [16 << 10, 32 << 10, 48 << 10];

/// Threads of a workgroup that WebGPU promises.
pub(crate) const WORKGROUP_THREADS: u32 = 256;

/// Storage buffers that WebGPU promises to a kernel.
const BINDINGS: usize = 8;

/// Bytes of immediates that all backends have.
const PARAMETER_BYTES: usize = 128;

/// Parses, validates and translates a kernel, and checks what naga does not: workgroup memory, and the declaration.
pub(crate) fn check(spec: &KernelSpec, int64: bool, workgroup_bytes: u32) -> Result<Takes> {
    let text = wgsl::generate(spec, int64);
    let module = naga::front::wgsl::parse_str(&text).map_err(|error| anyhow!(error.emit_to_string(&text)))?;
    let capabilities =
        Capabilities::IMMEDIATES | if int64 { Capabilities::SHADER_INT64 } else { Capabilities::empty() };
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|error| anyhow!(error.emit_to_string(&text)))?;
    check_entry(&module, spec)?;
    ensure!(
        spec.declares_iterations() || !has_loops(&module),
        "it has loops, and does not say how many iterations they take"
    );
    let shared_bytes = workgroup_memory(&module)?;
    ensure!(
        shared_bytes == spec.shared_bytes,
        "{shared_bytes} bytes of workgroup memory, its declaration says {}",
        spec.shared_bytes
    );
    ensure!(shared_bytes <= workgroup_bytes, "{shared_bytes} bytes of workgroup memory, there are {workgroup_bytes}");
    translate(&module, &info)?;
    Ok(Takes { shared_bytes, ..Default::default() })
}

fn check_entry(module: &Module, spec: &KernelSpec) -> Result<()> {
    let entry = module.entry_points.iter().find(|entry| entry.name == spec.name).context("its entry is missing")?;
    ensure!(
        entry.workgroup_size == [spec.threads, 1, 1],
        "workgroups of {:?} threads, its declaration says {}",
        entry.workgroup_size,
        spec.threads
    );
    ensure!(spec.threads <= WORKGROUP_THREADS, "{} threads in a workgroup", spec.threads);
    ensure!(spec.bindings.len() <= BINDINGS, "{} buffers", spec.bindings.len());
    ensure!(spec.params_bytes() <= PARAMETER_BYTES, "{} bytes of parameters", spec.params_bytes());
    Ok(())
}

/// Whether there is a loop in what a kernel's entry calls.
fn has_loops(module: &Module) -> bool {
    fn within(module: &Module, block: &Block) -> bool {
        block.iter().any(|statement| match statement {
            Statement::Loop { .. } => true,
            Statement::Block(block) => within(module, block),
            Statement::If { accept, reject, .. } => within(module, accept) || within(module, reject),
            Statement::Switch { cases, .. } => cases.iter().any(|case| within(module, &case.body)),
            Statement::Call { function, .. } => within(module, &module.functions[*function].body),
            _ => false,
        })
    }
    module.entry_points.iter().any(|entry| within(module, &entry.function.body))
}

fn workgroup_memory(module: &Module) -> Result<u32> {
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx())?;
    let variables = module.global_variables.iter().map(|(_, variable)| variable);
    let shared = variables.filter(|variable| variable.space == AddressSpace::WorkGroup);
    Ok(shared.map(|variable| layouter[variable.ty].size).sum())
}

fn translate(module: &Module, info: &ModuleInfo) -> Result<()> {
    spv::write_vec(module, info, &spv::Options::default(), None).context("to SPIR-V")?;
    let metal = msl::Options { lang_version: (2, 4), ..Default::default() };
    msl::write_string(module, info, &metal, &msl::PipelineOptions::default()).context("to MSL")?;
    let direct = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_0,
        immediates_target: Some(hlsl::BindTarget::default()),
        ..Default::default()
    };
    let mut text = String::new();
    hlsl::Writer::new(&mut text, &direct, &hlsl::PipelineOptions::default())
        .write(module, info, None)
        .context("to HLSL")?;
    Ok(())
}
