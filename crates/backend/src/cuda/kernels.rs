//! Kernels ready to launch: in memory, from the disk cache, from an archive, or compiled.

use std::{
    collections::HashMap,
    ffi::{CString, c_int},
    ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use cudarc::driver::sys::{CUfunc_st, CUfunction_attribute, CUmod_st};

use super::{
    compiler,
    driver::{Context, Handle, call},
    image,
};
use crate::{
    archive::{Archives, Target},
    cache::{CACHE_VARIABLE, Cache},
    compilations::{Compilations, Origin},
    error::{Error, Result},
    spec::{KernelSpec, two_texts},
};

/// A kernel of this device.
struct Entry {
    name: &'static str,
    variant: String,
    /// Empty until it is first loaded. The lock is held meanwhile, so that it is compiled once.
    module: Mutex<Option<Arc<Module>>>,
}

/// What compiles: NVRTC, or in tests a double.
pub(super) struct Compiler {
    /// Its version.
    pub(super) version: fn() -> Result<(u32, u32)>,
    /// The target for a device of some architecture, and the code of a kernel's text for it.
    pub(super) compile: fn(&KernelSpec, &str, &str) -> Result<(String, compiler::Compiled)>,
}

pub(super) static NVRTC: Compiler = Compiler {
    version: compiler::version,
    compile: |spec, source, architecture| {
        let target = compiler::target(spec, architecture)?;
        let compiled = compiler::compile_source(spec, source, &target)?;
        Ok((target, compiled))
    },
};

/// The kernels of a device. They stay loaded for as long as it is open.
pub(super) struct Kernels {
    context: Arc<Context>,
    architecture: String,
    cache: Cache,
    /// Read when the cache has not what is asked for.
    archives: OnceLock<Archives>,
    compiler: &'static Compiler,
    entries: Mutex<HashMap<blake3::Hash, Arc<Entry>>>,
    compilations: Compilations,
}

impl Kernels {
    pub(super) fn new(context: &Arc<Context>, architecture: &str, cache: Cache, compiler: &'static Compiler) -> Self {
        Self {
            context: Arc::clone(context),
            architecture: architecture.to_owned(),
            cache,
            archives: OnceLock::new(),
            compiler,
            entries: Mutex::default(),
            compilations: Compilations::default(),
        }
    }

    pub(super) fn compilations(&self) -> &Compilations {
        &self.compilations
    }

    /// The kernel of a declaration. The context must be bound.
    pub(super) fn get(&self, spec: &KernelSpec) -> Result<Arc<Module>> {
        let source = compiler::source(spec);
        let digest = compiler::digest(spec, &source, &self.architecture);
        let entry = self.entry(spec, digest)?;
        let start = Instant::now();
        let (module, origin) = {
            let mut kept = entry.module.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(module) = &*kept {
                return Ok(Arc::clone(module));
            }
            let loaded = self.load(spec, &source, &digest);
            let (module, origin) = loaded.inspect_err(|_| {
                self.compilations.note_time(Origin::Compiler, start.elapsed());
                // What was never loaded does not keep its name.
                let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
                if entries.get(&digest).is_some_and(|known| Arc::ptr_eq(known, &entry)) {
                    entries.remove(&digest);
                }
            })?;
            let module = Arc::new(module);
            *kept = Some(Arc::clone(&module));
            (module, origin)
        };
        self.compilations.note(spec.label(), origin, start.elapsed());
        Ok(module)
    }

    /// The entry of a text. Another one of the same name and variant is refused.
    fn entry(&self, spec: &KernelSpec, digest: blake3::Hash) -> Result<Arc<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&digest) {
            return Ok(Arc::clone(entry));
        }
        if entries.values().any(|entry| entry.name == spec.name && entry.variant == spec.variant) {
            return Err(two_texts(spec, self.context.id()));
        }
        let entry = Arc::new(Entry { name: spec.name, variant: spec.variant.clone(), module: Mutex::default() });
        Ok(Arc::clone(entries.entry(digest).or_insert(entry)))
    }

    /// Two entries of the disk cache make one kernel. Its code has a key with the compiler's version. Under the digest
    /// alone is the key of the code stored last. The second entry finds the code on machines without the compiler.
    fn load(&self, spec: &KernelSpec, source: &str, digest: &blake3::Hash) -> Result<(Module, Origin)> {
        let version = (self.compiler.version)();
        let key = match &version {
            Ok((major, minor)) => Some(Cache::key(&[digest.as_bytes(), &major.to_le_bytes(), &minor.to_le_bytes()])),
            Err(_) => {
                let key = self.cache.get(digest).and_then(|key| <[u8; blake3::OUT_LEN]>::try_from(key).ok());
                key.map(blake3::Hash::from_bytes)
            }
        };
        if let Some(code) = key.and_then(|key| self.cache.get(&key)) {
            match Module::load(&self.context, spec, source, &code) {
                Ok(module) => return Ok((module, Origin::DiskCache)),
                Err(lost @ Error::Lost { .. }) => return Err(lost),
                Err(error) => log::warn!("cached {} is replaced, it does not load: {error}", spec.label()),
            }
        }
        if let Some(module) = self.load_archived(spec, source)? {
            return Ok((module, Origin::Archive));
        }
        let (major, minor) = version.map_err(|error| self.other_way(spec, error))?;
        log::debug!("compiling {}", spec.label());
        let (target, compiled) = (self.compiler.compile)(spec, source, &self.architecture)?;
        let module = Module::load(&self.context, spec, source, &compiled.code).map_err(|error| match error {
            Error::Driver { call, reason, .. } => Error::Compile {
                kernel: spec.label(),
                device: self.context.id().to_string(),
                log: format!(
                    "{call}: {reason}; if the driver is older than NVRTC {major}.{minor}, update it or install an \
                     NVRTC of its version"
                ),
            },
            other => other,
        })?;
        if let Some(key) = key {
            self.cache.put(&key, &compiled.code);
            self.cache.put(digest, key.as_bytes());
        }
        if let Some(usage) = compiled.usage {
            log::trace!("{} for {target} takes {usage}", spec.label());
        }
        Ok((module, Origin::Compiler))
    }
}

/// What was compiled ahead.
impl Kernels {
    fn archives(&self) -> &Archives {
        self.archives.get_or_init(|| Archives::given(&self.cache))
    }

    /// A kernel from the archives. What does not load is passed over.
    fn load_archived(&self, spec: &KernelSpec, source: &str) -> Result<Option<Module>> {
        let key = |target: Target| compiler::digest(spec, source, &target.to_string());
        for (target, code) in self.archives().find(&self.architecture, key) {
            match Module::load(&self.context, spec, source, &code) {
                Ok(module) => return Ok(Some(module)),
                Err(lost @ Error::Lost { .. }) => return Err(lost),
                Err(error) => {
                    log::warn!("{} for {target} in an archive is not used, it does not load: {error}", spec.label());
                }
            }
        }
        Ok(None)
    }

    /// Adds to a compiler's absence that archives make up for it.
    fn other_way(&self, spec: &KernelSpec, error: Error) -> Error {
        let Error::Unavailable { backend, reason } = error else { return error };
        let (kernel, architecture) = (spec.label(), &self.architecture);
        let found = match self.archives().len() {
            0 => "there is no archive of kernels".to_owned(),
            count => format!("none of {count} archives of kernels has it"),
        };
        let reason = format!(
            "{kernel} must be compiled for {architecture}, and {reason}. Or have it compiled ahead ({found}): turn on the feature \
             kernels of evariste, or put an archive that cargo xtask kernels --package makes into the folder {CACHE_VARIABLE}"
        );
        Error::Unavailable { backend, reason }
    }
}

/// A loaded kernel: what an [`crate::author::Executable`] of this backend holds.
pub(super) struct Module {
    context: Arc<Context>,
    raw: Handle<CUmod_st>,
    function: Handle<CUfunc_st>,
    name: &'static str,
    threads: u32,
    shared_bytes: u32,
    params_bytes: usize,
    bindings: usize,
    waits: bool,
}

impl Module {
    /// `code` is what the compiler made of `source`.
    fn load(context: &Arc<Context>, spec: &KernelSpec, source: &str, code: &[u8]) -> Result<Self> {
        let refuse = || Error::Compile {
            kernel: spec.label(),
            device: context.id().to_string(),
            log: "its code is no image, or ends too early".into(),
        };
        let code = image::whole(code).ok_or_else(refuse)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live value. The code is an image of the compiler, fresh or with its checksum
        // confirmed, from the cache or an archive; all that its headers tell of lies in it, or it is text that ends in
        // a zero.
        unsafe { call!(context, cuModuleLoadData(&mut raw, code.as_ptr().cast())) }?;
        let mut module = Self {
            context: Arc::clone(context),
            raw: Handle(raw),
            function: Handle(ptr::null_mut()),
            name: spec.name,
            threads: spec.threads,
            shared_bytes: spec.shared_bytes,
            params_bytes: spec.params_bytes(),
            bindings: spec.bindings.len(),
            waits: false,
        };
        module.find_function(spec, source)?;
        Ok(module)
    }

    fn find_function(&mut self, spec: &KernelSpec, source: &str) -> Result<()> {
        let refuse = |log| Error::Compile { kernel: spec.label(), device: self.context.id().to_string(), log };
        let name = CString::new(spec.name).map_err(|_| refuse("its name contains a zero".into()))?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is live, the name ends in a zero, and the pointer is to a live value.
        unsafe { call!(self.context, cuModuleGetFunction(&mut function, self.raw.0, name.as_ptr())) }?;

        let get = |attribute| -> Result<c_int> {
            let mut value = 0;
            // SAFETY: the function is live, and the pointer is to a live value.
            unsafe { call!(self.context, cuFuncGetAttribute(&mut value, attribute, function)) }?;
            Ok(value)
        };
        let threads = get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if i64::from(threads) < i64::from(spec.threads) {
            return Err(refuse(format!(
                "its registers allow {threads} threads in a workgroup, it declares {}: give it __launch_bounds__",
                spec.threads
            )));
        }
        // Beyond 48 KiB a kernel must ask for its dynamic shared memory.
        let bytes = c_int::try_from(spec.shared_bytes).unwrap_or(c_int::MAX);
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is live.
        unsafe { call!(self.context, cuFuncSetAttribute(function, attribute, bytes)) }?;
        // Code of an older compiler for a newer GPU is that of an older architecture.
        let architecture = get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?;
        self.waits = compiler::waits(source, architecture.try_into().unwrap_or(0));
        self.function = Handle(function);
        Ok(())
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn function(&self) -> *mut CUfunc_st {
        self.function.0
    }

    pub(super) fn threads(&self) -> u32 {
        self.threads
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Whether it may start before the launch ahead of it in its stream has ended, for which it waits itself.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Refuses arguments other than those that the kernel was compiled with: the driver would read past their end.
    pub(super) fn expect_arguments(&self, params_bytes: usize, bindings: usize) -> Result<()> {
        if (params_bytes, bindings) == (self.params_bytes, self.bindings) {
            return Ok(());
        }
        let describe = |bytes, buffers| format!("{bytes} bytes of parameters and {buffers} buffers");
        Err(Error::Arguments {
            kernel: self.name,
            expected: describe(self.params_bytes, self.bindings),
            actual: describe(params_bytes, bindings),
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // The code must not go while it runs.
        if self.context.bind().is_ok() && self.context.synchronize().is_ok() {
            // SAFETY: loaded in `load`, and nothing of it is used after this.
            let _ = unsafe { (self.context.functions().cuModuleUnload)(self.raw.0) };
        }
    }
}
