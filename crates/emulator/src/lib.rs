#![doc = include_str!("../README.md")]

mod compiler;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use evariste_backend::{
    Device, DeviceInfo, Error, Event, Features, HostBuffer, Limits, Observer, Origin, Pending, Result, Secrecy, Stats,
    Transfer,
    author::{
        Arg, Backend, Binding, Compilations, CpuArg, Dispatch, Executable, KernelSpec, Memory, QueueHandle, Span,
        SpanMut,
    },
};

use compiler::{Compiler, Library};

/// Which of the field arithmetic's two bodies runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// That of GPUs, in chains of additions and multiplications with the carry flag.
    CarryFlag,
    /// The portable one.
    Portable,
}

/// What new memory is filled with, so that nobody counts on zeros, and reads of it are known.
const POISON: [u8; 4] = [0xdb, 0x5e, 0xa1, 0x17];

/// A device that runs CUDA sources on the host. Each call gives a new one, with no compiled kernels.
///
/// # Errors
/// [`Error::Unavailable`] without a compiler that it can use; the reason says which it takes.
pub fn device(arithmetic: Arithmetic) -> Result<Device> {
    let cpu = Device::cpu();
    let mut info = cpu.info().clone();
    info.name = "CUDA on the host".into();
    info.architecture = "emulator".into();
    info.driver = format!("{arithmetic:?}");
    info.parallelism = 4;
    // Those of an H100, so that plans are the same as there.
    info.limits = Limits {
        bindings: 16,
        workgroup_bytes: 227 << 10,
        cache_bytes: 50 << 20,
        workgroup_threads: 1024,
        staging_bytes: 16 << 20,
        loop_iterations: None,
        ..info.limits
    };
    info.features = Features { int64: true, queues: false, forward_progress: true, software: true };
    let (compiler, compilations) = (Compiler::new(arithmetic)?, Compilations::default());
    Ok(Device::unregistered(Arc::new(Emulator { cpu, info, compiler, compilations })))
}

/// Memory, queues and copies are those of the CPU; kernels are not.
#[derive(Debug)]
struct Emulator {
    cpu: Device,
    info: DeviceInfo,
    compiler: Compiler,
    compilations: Compilations,
}

impl Emulator {
    fn refuse(&self, call: &'static str, reason: String) -> Error {
        Error::Driver { device: self.info.id, call, reason }
    }
}

impl Backend for Emulator {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        self.compilations.counted(self.cpu.stats())
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let cpu = self.cpu.backend();
        let mut memory = cpu.alloc(bytes, secrecy)?;
        let mut fill = cpu.host_buffer(bytes as usize, Transfer::Upload, secrecy)?;
        fill.chunks_mut(POISON.len()).for_each(|word| word.copy_from_slice(&POISON[..word.len()]));
        cpu.write(cpu.default_queue(), (&mut memory).into(), fill)?.wait()?;
        Ok(memory)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.cpu.backend().host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        self.cpu.backend().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.cpu.backend().queue()
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        self.cpu.backend().write(queue, dst, src)
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        self.cpu.backend().read(queue, src, dst)
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.cpu.backend().copy(queue, src, dst)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.cpu.backend().clear(queue, dst)
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.cpu.backend().record(queue)
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.cpu.backend().wait_for(queue, event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.cpu.backend().elapsed(from, to)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        let compiled = self.compiler.compile(spec);
        let (library, time) =
            compiled.map_err(|log| Error::Compile { kernel: spec.label(), device: self.info.name.clone(), log })?;
        if let Some(time) = time {
            self.compilations.note(spec.label(), Origin::Compiler, time);
        }
        Ok(Executable::new(library))
    }

    fn observe(&self, observer: Option<Observer>) {
        self.compilations.observe(observer);
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let library = job.executable.downcast_ref::<Arc<Library>>();
        let library =
            Arc::clone(library.ok_or_else(|| self.refuse("launch", "the kernel is another device's".into()))?);
        let blocks = u32::try_from(job.groups).map_err(|_| Error::TooLarge {
            what: "grid",
            device: self.info.id,
            expected: u32::MAX.into(),
            actual: job.groups,
        })?;
        // The CPU's memory is seen by the bodies of its kernels only: so this launch is one of them.
        let outcome = Arc::new(Mutex::new(Ok(())));
        let (params, result) = (job.params.to_vec(), Arc::clone(&outcome));
        let edge = |(arg, binding): (&Arg<'_>, &Binding)| {
            let (span, word) = (arg.span(), binding.binding_type.bytes());
            ((span.at() % word) as usize, span.at() + span.bytes() == span.memory().bytes())
        };
        let edges: Vec<(usize, bool)> = job.args.iter().zip(&*job.spec.bindings).map(edge).collect();
        let body = move |(): &(), args: &mut [CpuArg<'_>]| {
            let ran = library.run(&params, args, &edges, blocks);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = ran;
        };
        let no_source = |_| String::new();
        let spec = KernelSpec::new(job.spec.name, job.spec.variant.clone(), job.spec.bindings.clone(), body, no_source);
        let cpu = self.cpu.backend();
        let executable = cpu.compile(&spec)?;
        let dispatch = Dispatch { executable: &executable, spec: &spec, params: &[], args: job.args, groups: 1 };
        // SAFETY: the runtime ends the launch when the kernel leaves its bindings.
        unsafe { cpu.dispatch(queue, dispatch) }?;
        let ran = outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ran.map_err(|reason| self.refuse("launch", format!("{} ({}): {reason}", job.spec.name, job.spec.variant)))
    }

    fn sync(&self) -> Result<()> {
        self.cpu.sync()
    }

    fn trim(&self) {
        self.cpu.trim();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
