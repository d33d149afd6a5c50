use std::sync::Arc;

use evariste_backend::{
    Error, Queue, Result, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language},
    parallel, params,
};

/// Threads of a workgroup: what WebGPU promises.
const THREADS: u32 = 256;

/// Integers that a core takes at a time.
const GRAIN: usize = 1 << 14;

params! {
    struct Params {
        /// How many integers.
        len: u32,
    }
}

/// The Gray code of each integer, x ⊕ ⌊x / 2⌋: one read and one write of 4 bytes each.
#[derive(Clone, Debug)]
pub struct Gray {
    queue: Queue,
    kernel: Arc<Kernel<Params>>,
}

impl Gray {
    /// Compiles the kernel, for work on a queue: `&device` is its default one.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Unavailable`] where the compiler is missing.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        let queue = queue.into();
        let kernel = Arc::new(Kernel::new(queue.device(), spec())?);
        Ok(Self { queue, kernel })
    }

    /// The same operation, with the same kernel, on another queue.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// The kernel, for compiling it ahead.
    pub fn kernels() -> Vec<KernelSpec> {
        vec![spec()]
    }

    /// `out[i]` = the Gray code of `input[i]`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`] from 2³² integers on, [`Error::WrongDevice`], [`Error::Driver`],
    /// [`Error::Lost`].
    pub fn encode<'a>(&self, input: impl Into<View<'a, u32>>, out: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        let (input, out) = (input.into(), out.into());
        out.expect_len("the Gray codes", input.len())?;
        let device = self.queue.device().info().id;
        let (limit, actual) = (u32::MAX, input.len() as u64);
        let len = u32::try_from(actual);
        let len = len.map_err(|_| Error::TooLarge { what: "Gray codes", device, expected: limit.into(), actual })?;
        let args = &mut [Arg::read(input), Arg::write(out)];
        // SAFETY: both views have `len` integers, and threads touch only those below it.
        unsafe { self.kernel.launch(&self.queue, len.div_ceil(THREADS).into(), &Params { len }, args) }
    }
}

fn spec() -> KernelSpec {
    let bindings = [Binding::read("a", BindingType::U32), Binding::write("out", BindingType::U32)];
    let body = |params: &Params, [a, out]: &mut [CpuArg<'_>; 2]| {
        let a = a.read::<u32>();
        parallel::chunks(&mut out.write::<u32>()[..params.len as usize], GRAIN, &|i, out| {
            out.iter_mut().zip(&a[i * GRAIN..]).for_each(|(out, a)| *out = a ^ a >> 1);
        });
    };
    let source = |language| match language {
        Language::Cuda => evariste_cuda::gray::GRAY.to_owned(),
        Language::Wgsl { .. } => evariste_shaders::gray::GRAY.to_owned(),
    };
    KernelSpec::new("gray", "u32", bindings, body, source).threads(THREADS)
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;

    use super::*;
    use crate::reference;

    #[test]
    fn codes_are_those_of_the_definition() {
        for device in Device::all() {
            let gray = Gray::new(&device).unwrap();
            for len in [0, 1, GRAIN - 1, GRAIN, GRAIN + 1] {
                let input: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
                let mut out = device.alloc(len).unwrap();
                gray.encode(&device.upload(&input).unwrap(), &mut out).unwrap();
                for (x, code) in input.iter().zip(out.to_vec().unwrap()) {
                    assert_eq!(code, reference::code(*x), "the code of {x}");
                }
            }
        }
    }
}
