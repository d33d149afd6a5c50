//! Kernels made ready: modules, layouts and pipelines.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    codegen::{Layout, Parameters, generate_for},
    gpu::Gpu,
    pipelines::Pipeline,
};
use crate::{
    bindings::Access,
    cache::Cache,
    compilations::Origin,
    error::{Error, Result},
    handles::{Executable, own},
    spec::{KernelSpec, two_texts},
};

/// What a pipeline of a kernel depends on beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Variant {
    /// Chunks of each binding.
    pub(super) chunks: Vec<u32>,
    /// Views start within what is bound: where, stands before the parameters.
    pub(super) based: bool,
    /// A buffer is read in one binding and written in another: all bindings are for writing then.
    pub(super) shared: bool,
}

impl Variant {
    /// For buffers of one chunk.
    fn of(spec: &KernelSpec, based: bool, shared: bool) -> Self {
        Self { chunks: vec![1; spec.bindings.len()], based, shared }
    }

    fn is_plain(&self) -> bool {
        !self.based && !self.shared && self.chunks.iter().all(|count| *count == 1)
    }

    /// Bytes of the parameters with what stands before them.
    pub(super) fn params_bytes(&self, spec: &KernelSpec) -> usize {
        spec.params_bytes() + if self.based { 4 * spec.bindings.len() } else { 0 }
    }
}

/// A kernel that was made ready: for whole buffers of one chunk at once, for others when they come.
#[derive(Debug)]
pub(super) struct Program {
    gpu: Arc<Gpu>,
    spec: KernelSpec,
    plain: Arc<Pipeline>,
    others: Mutex<HashMap<Variant, Arc<Pipeline>>>,
}

impl Program {
    pub(super) fn new(gpu: &Arc<Gpu>, spec: &KernelSpec) -> Result<Self> {
        gpu.alive()?;
        let plain = build(gpu, spec, &Variant::of(spec, false, false))?;
        Ok(Self { gpu: Arc::clone(gpu), spec: spec.clone(), plain, others: Mutex::default() })
    }

    /// The program behind a handle, if it is of this device.
    pub(super) fn of<'a>(executable: &'a Executable, gpu: &Arc<Gpu>) -> Result<&'a Self> {
        let program = own(executable.downcast_ref::<Self>(), "kernel", &gpu.info)?;
        gpu.expect_same("kernel", &program.gpu)?;
        Ok(program)
    }

    pub(super) fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// The pipelines for buffers of one chunk: for whole ones, and for what else the kernel declares.
    pub(super) fn pipelines(&self) -> Result<Vec<(Variant, Arc<Pipeline>)>> {
        let declared: &[(bool, bool)] = match (self.spec.within_a_buffer, self.spec.of_parts) {
            (true, _) => &[(false, false), (false, true), (true, true)],
            (false, true) => &[(false, false), (true, false)],
            (false, false) => &[(false, false)],
        };
        let variants = declared.iter().map(|(based, shared)| Variant::of(&self.spec, *based, *shared));
        variants.map(|variant| self.pipeline(&variant).map(|pipeline| (variant, pipeline))).collect()
    }

    /// The pipeline for buffers like these.
    pub(super) fn pipeline(&self, variant: &Variant) -> Result<Arc<Pipeline>> {
        if variant.is_plain() {
            return Ok(Arc::clone(&self.plain));
        }
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = others().get(variant) {
            return Ok(Arc::clone(pipeline));
        }
        let pipeline = build(&self.gpu, &self.spec, variant)?;
        // Where another thread was faster, this one's goes when the lock is free again.
        Ok(Arc::clone(others().entry(variant.clone()).or_insert_with(|| Arc::clone(&pipeline))))
    }
}

/// Where parameters of `bytes` bytes pass.
fn parameters(gpu: &Gpu, bytes: usize) -> Result<Parameters> {
    let (limit, actual) = (gpu.params.size(), bytes as u64);
    if bytes <= gpu.immediate_bytes {
        Ok(Parameters::Immediate)
    } else if actual <= limit {
        Ok(Parameters::Uniform)
    } else {
        Err(Error::TooLarge { what: "the parameters of a kernel", device: gpu.info.id, expected: limit, actual })
    }
}

fn build(gpu: &Gpu, spec: &KernelSpec, variant: &Variant) -> Result<Arc<Pipeline>> {
    let Variant { chunks, based, shared } = variant;
    let (limit, actual) = (u64::from(gpu.info.limits.bindings), chunks.iter().map(|n| u64::from(*n)).sum());
    if actual > limit {
        return Err(Error::TooLarge {
            what: "the buffers of a kernel, in bindings,",
            device: gpu.info.id,
            expected: limit,
            actual,
        });
    }
    let parameters = parameters(gpu, variant.params_bytes(spec))?;
    let (int64, chunk_bytes) = (gpu.info.features.int64, gpu.chunk_bytes);
    let layout = Layout { int64, parameters, chunks, chunk_bytes, based: *based, shared: *shared };
    let text = generate_for(spec, &layout);
    let digest = Cache::key(&[spec.name.as_bytes(), text.as_bytes()]);
    if let Some(pipeline) = gpu.pipelines.find(&digest) {
        return Ok(pipeline);
    }
    if variant.is_plain() && gpu.pipelines.has_other(&digest, spec.name, &spec.variant) {
        return Err(two_texts(spec, gpu.info.id));
    }
    log::debug!("compiling {} unless it is cached", spec.label());
    let start = Instant::now();
    let built = gpu.scoped(|| create(gpu, spec, variant, parameters, &text, &digest));
    gpu.alive()?;
    let built = built.and_then(|built| match gpu.fails("create_compute_pipeline") {
        false => Ok(built),
        true => Err(wgpu::Error::Internal { source: "made to fail".into(), description: "made to fail".into() }),
    });
    let built = built.inspect_err(|_| gpu.counters.compilations.note_time(Origin::Compiler, start.elapsed()));
    let (pipeline, cached) = built.map_err(|error| match error {
        wgpu::Error::OutOfMemory { .. } => gpu.driver_error("create_compute_pipeline", error),
        error => Error::Compile {
            kernel: spec.label(),
            device: format!("{} ({}, {})", gpu.info.id, gpu.info.name, gpu.info.driver),
            log: error.to_string(),
        },
    })?;
    let pipeline = gpu.pipelines.keep(digest, pipeline);
    let origin = if cached { Origin::DiskCache } else { Origin::Compiler };
    gpu.counters.compilations.note(spec.label(), origin, start.elapsed());
    Ok(pipeline)
}

/// Makes the pipeline, and tells whether it came from the disk cache. Errors go to the scope around.
fn create(
    gpu: &Gpu,
    spec: &KernelSpec,
    variant: &Variant,
    parameters: Parameters,
    text: &str,
    digest: &blake3::Hash,
) -> (Pipeline, bool) {
    let device = &gpu.device;
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: Some(spec.name), source: wgpu::ShaderSource::Wgsl(text.into()) };
    // SAFETY: bounds checks and loop counters guard against texts that leave their buffers or never end. Nothing of the
    // text runs before a dispatch, whose caller vouches that the body stays inside its bindings.
    let module = unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
    let mut entries = Vec::new();
    for (binding, count) in spec.bindings.iter().zip(&variant.chunks) {
        let read_only = binding.access == Access::Read && !variant.shared;
        let ty = wgpu::BufferBindingType::Storage { read_only };
        for _ in 0..*count {
            entries.push(entry(entries.len() as u32, ty, false, None));
        }
    }
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let bytes = variant.params_bytes(spec);
    let params_bytes = NonZero::new(bytes as u64);
    let params_layout = params_bytes.filter(|_| parameters == Parameters::Uniform).map(|bytes| {
        let entries = [entry(0, wgpu::BufferBindingType::Uniform, true, Some(bytes))];
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
    });
    let params = params_layout.as_ref().map(|layout| {
        let resource = wgpu::BufferBinding { buffer: &gpu.params, offset: 0, size: params_bytes };
        let entries = [wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(resource) }];
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout), params_layout.as_ref()][..1 + usize::from(params.is_some())],
        immediate_size: if parameters == Parameters::Immediate { bytes as u32 } else { 0 },
    });
    let (cache, cached) = load(gpu, digest);
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(spec.name),
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some(spec.name),
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: cache.as_ref(),
    });
    if let Some(data) = cache.filter(|_| !cached).and_then(|cache| cache.get_data()) {
        store(gpu, digest, &data);
    }
    let plain = variant.is_plain().then(|| (spec.name, spec.variant.clone()));
    (Pipeline { plain, pipeline, layout, params }, cached)
}

fn entry(
    binding: u32,
    ty: wgpu::BufferBindingType,
    has_dynamic_offset: bool,
    min_binding_size: Option<wgpu::BufferSize>,
) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size },
        count: None,
    }
}

/// The driver's cache for one pipeline, and whether it has contents from the disk. Contents that wgpu refuses are as
/// good as none.
fn load(gpu: &Gpu, digest: &blake3::Hash) -> (Option<wgpu::PipelineCache>, bool) {
    let Some(disk) = &gpu.pipelines.cache else { return (None, false) };
    let create = |data: Option<&[u8]>| {
        let descriptor = wgpu::PipelineCacheDescriptor { label: None, data, fallback: false };
        // SAFETY: the data come from `get_data`: the folder is the user's alone, and the file's checksum is over the
        // key, which names the adapter and its driver.
        gpu.scoped(|| unsafe { gpu.device.create_pipeline_cache(&descriptor) }).ok()
    };
    let stored = disk.get(&key(gpu, digest));
    match stored.and_then(|data| create(Some(&data))) {
        Some(cache) => (Some(cache), true),
        None => (create(None), false),
    }
}

fn store(gpu: &Gpu, digest: &blake3::Hash, data: &[u8]) {
    if let Some(disk) = &gpu.pipelines.cache {
        disk.put(&key(gpu, digest), data);
    }
}

fn key(gpu: &Gpu, digest: &blake3::Hash) -> blake3::Hash {
    Cache::key(&[gpu.pipelines.device.as_bytes(), digest.as_bytes()])
}
