use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use evariste_backend::{
    Device, Element, Error, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, KernelSpec, Language, LazyKernel},
    parallel, params,
};

use crate::words::THREADS;

/// Most elements and words of a launch: kernels count them by 32 bits, and may count past the end by less than this
/// leaves.
const MOST: u32 = u32::MAX - u16::MAX as u32;

/// Words that a CPU thread takes at a time.
const GRAIN: usize = 1 << 13;

/// Indices up to which one CPU thread goes through all: it needs no atomics, which take four times as long.
const SERIAL: usize = 1 << 14;

params! {
    struct GatherParams {
        /// Elements to choose from, and of the result.
        len: u32,
        count: u32,
    }

    struct LastWriterParams {
        /// Places, and indices of such.
        len: u32,
        count: u32,
    }
}

/// Gathers and scatters the elements of a buffer by index, for any type whose size is a multiple of 4 bytes: kernels
/// see words. A call compiles its kernels the first time.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
/// use evariste_primitives::GatherScatter;
///
/// let device = Device::best()?;
/// let gather_scatter = GatherScatter::<u64>::new(&device);
/// let a = device.upload::<u64>(&[10, 11, 12])?;
/// let mut out = device.alloc(4)?;
/// gather_scatter.gather(&a, &device.upload(&[2, 0, 7, 2])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [12, 10, 0, 12]);
/// gather_scatter.scatter(&a, &device.upload(&[3, 0, 3])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [11, 10, 0, 12]);
/// # Ok(())
/// # }
/// ```
pub struct GatherScatter<T> {
    /// Of the kernels, which are made later: a queue of another device is refused.
    device: Device,
    queue: Queue,
    kernels: Arc<Kernels>,
    element: PhantomData<fn() -> T>,
}

/// The kernels that were used so far.
#[derive(Default)]
struct Kernels {
    gather: [LazyKernel<GatherParams>; 2],
    last_writer: LazyKernel<LastWriterParams>,
}

/// What the indices of a launch mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Elements by their number; others are the type's default value.
    Number,
    /// Elements by one more than their number; where there is none, the output stays.
    LastWriter,
}

impl<T> GatherScatter<T> {
    /// Makes a plan on a queue (`&device` is its default one). Compiles nothing.
    pub fn new(queue: impl Into<Queue>) -> Self {
        let queue = queue.into();
        Self { device: queue.device().clone(), queue, kernels: Arc::default(), element: PhantomData }
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }
}

impl<T: Element> GatherScatter<T> {
    /// Returns the kernels, for compiling them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![gather_spec::<T>(Mode::Number), gather_spec::<T>(Mode::LastWriter), last_writer_spec()]
    }

    /// Sets `out[i] = a[indices[i]]`, or the default value of `T::Host` if the index is beyond the end of `a`.
    ///
    /// # Errors
    /// - [`Error::Length`] unless there is an index for each output.
    /// - [`Error::TooLarge`] for more than 2³² − 2¹⁶ elements in `a` or `out`.
    /// - [`Error::WrongDevice`] if one of the three or the queue is of another device.
    /// - [`Error::Compile`] at the first use if the kernel's source is refused.
    /// - [`Error::Unavailable`] at the first use where the compiler is missing.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is gone.
    pub fn gather<'a>(
        &self,
        a: impl Into<View<'a, T>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, T>>,
    ) -> Result<()> {
        let (a, indices, out) = (a.into(), indices.into(), out.into());
        out.expect_len("the output", indices.len())?;
        self.expect_here([a.device(), indices.device(), out.device()])?;
        self.checked_len(out.len())?;
        self.launch_gather(Mode::Number, a, indices, out)
    }

    /// Sets `out[indices[i]] = a[i]` for ascending i: the last writer wins, with its whole element, on every device.
    /// Elements whose index is beyond the end of `out` are dropped, and places without an index keep their value.
    ///
    /// A first kernel finds the last writer of each place, in scratch of 4 bytes a place. A second one copies its
    /// element.
    ///
    /// # Errors
    /// - [`Error::Length`] unless there is an index for each element of `a`.
    /// - [`Error::TooLarge`] for more than 2³² − 2¹⁶ elements in `a` or `out`.
    /// - [`Error::WrongDevice`] if one of the three or the queue is of another device.
    /// - [`Error::OutOfMemory`] if the device has no room for the scratch.
    /// - [`Error::Compile`] at the first use if the compiler refuses a kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is gone.
    pub fn scatter<'a>(
        &self,
        a: impl Into<View<'a, T>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, T>>,
    ) -> Result<()> {
        let (a, indices, out) = (a.into(), indices.into(), out.into());
        indices.expect_len("the indices", a.len())?;
        self.expect_here([a.device(), indices.device(), out.device()])?;
        let (len, count) = (self.checked_len(out.len())?, self.checked_len(a.len())?);
        if len == 0 || count == 0 {
            return Ok(());
        }
        let kernel = self.kernels.last_writer.get(&self.device, last_writer_spec)?;
        let secrecy = Secrecy::of([a.secrecy(), indices.secrecy(), out.secrecy()]);
        let mut writers = self.device.alloc_with::<u32>(out.len(), secrecy)?;
        self.queue.clear(&mut writers)?;
        let (params, args) = (LastWriterParams { len, count }, &mut [Arg::read(indices), Arg::write(&mut writers)]);
        // SAFETY: there are `count` indices and `len` writers, and threads touch only those below.
        unsafe { kernel.launch(&self.queue, count.div_ceil(THREADS).into(), &params, args) }?;
        self.launch_gather(Mode::LastWriter, a, writers.as_view(), out)
    }

    /// Gathers by one index for each output, in launches whose words 32 bits count.
    fn launch_gather(&self, mode: Mode, a: View<'_, T>, indices: View<'_, u32>, mut out: ViewMut<'_, T>) -> Result<()> {
        let kernel = self.kernels.gather[mode as usize].get(&self.device, || gather_spec::<T>(mode))?;
        let words = const { words::<T>() };
        let (len, all) = (self.checked_len(a.len())?, out.len());
        let most = MOST as usize / words;
        for start in (0..all).step_by(most) {
            let part = start..all.min(start + most);
            let params = GatherParams { len, count: part.len() as u32 };
            let groups = (part.len() * words).div_ceil(THREADS as usize) as u64;
            let args = &mut [Arg::read(a), Arg::read(indices.view(part.clone())?), Arg::write(out.view_mut(part)?)];
            // SAFETY: threads touch indices and outputs below `count` only, and elements only below `len`.
            unsafe { kernel.launch(&self.queue, groups, &params, args) }?;
        }
        Ok(())
    }

    fn expect_here<const N: usize>(&self, devices: [&Device; N]) -> Result<()> {
        self.queue.expect_device(&self.device)?;
        devices.into_iter().try_for_each(|device| self.device.expect_same("a kernel argument", device))
    }

    fn checked_len(&self, len: usize) -> Result<u32> {
        u32::try_from(len).ok().filter(|len| *len <= MOST).ok_or(Error::TooLarge {
            what: "vector",
            device: self.device.info().id,
            expected: MOST.into(),
            actual: len as u64,
        })
    }
}

impl<T> Clone for GatherScatter<T> {
    fn clone(&self) -> Self {
        let Self { device, queue, kernels, element } = self;
        Self { device: device.clone(), queue: queue.clone(), kernels: Arc::clone(kernels), element: *element }
    }
}

impl<T> fmt::Debug for GatherScatter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherScatter").field("device", &self.device).finish_non_exhaustive()
    }
}

/// How kernels see elements.
const fn word<T: Element>() -> BindingType {
    assert!(T::BYTES.is_multiple_of(4), "elements are words");
    BindingType::of(T::BYTES)
}

/// Words of an element.
const fn words<T: Element>() -> usize {
    T::BYTES / word::<T>().bytes() as usize
}

/// The device form of the default value, in limbs of 32 bits.
fn default_limbs<T: Element>() -> Vec<u32> {
    // Encoders count on this alignment.
    let mut aligned = vec![0u128; T::BYTES.div_ceil(size_of::<u128>())];
    let bytes = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut aligned)[..T::BYTES];
    T::encode(&[T::Host::default()], bytes);
    bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect()
}

/// A function that gives a word of an element, in the language whose constructor of words is `word`: the body after its
/// head.
fn chosen_word(limbs: &[u32], lanes: usize, word: &str) -> String {
    let words = limbs.chunks_exact(lanes);
    let words = words.map(|limbs| limbs.iter().map(|limb| format!("{limb:#x}u")).collect::<Vec<_>>().join(", "));
    let words: Vec<String> = words.map(|limbs| format!("{word}({limbs})")).collect();
    let cases = words.iter().enumerate().skip(1);
    let cases: String = cases.map(|(i, word)| format!("case {i}u: {{ return {word}; }} ")).collect();
    format!("{{ switch (w) {{ {cases}default: {{ return {}; }} }} }}\n", words[0])
}

fn gather_spec<T: Element>(mode: Mode) -> KernelSpec {
    let (word, words) = const { (word::<T>(), words::<T>()) };
    let limbs = default_limbs::<T>();
    let lanes = word.bytes() as usize / 4;
    let bindings = [Binding::read("a", word), Binding::read("indices", BindingType::U32), Binding::write("out", word)];
    let (first, keeps) = match mode {
        Mode::Number => (0, false),
        Mode::LastWriter => (1, true),
    };
    let variant = match keeps {
        true => format!("elements of {} bytes by owner", T::BYTES),
        // What missing ones are is part of the text.
        false if limbs.iter().all(|limb| *limb == 0) => format!("elements of {} bytes by number", T::BYTES),
        false => format!("elements of {} bytes by number, else {limbs:x?}", T::BYTES),
    };
    let missing = limbs.clone();
    let source = move |language| match language {
        Language::Cuda => {
            let (name, made) = match word {
                BindingType::Vec4 | BindingType::Bytes => ("uint4", "make_uint4"),
                BindingType::Vec2 => ("uint2", "make_uint2"),
                BindingType::U32 | BindingType::Atomic => ("uint32_t", "uint32_t"),
            };
            let missing = match keeps {
                true => "#define KEEP\n".to_owned(),
                false => {
                    let body = chosen_word(&missing, lanes, made);
                    format!("__device__ __forceinline__ Word missing(uint32_t w) {body}")
                }
            };
            format!(
                "typedef {name} Word;\n#define WORDS {words}u\n#define FIRST {first}u\n{missing}{}",
                evariste_cuda::primitives::GATHER
            )
        }
        Language::Wgsl { .. } => {
            let name = match word {
                BindingType::Vec4 | BindingType::Bytes => "vec4<u32>",
                BindingType::Vec2 => "vec2<u32>",
                BindingType::U32 | BindingType::Atomic => "u32",
            };
            let missing = match keeps {
                true => "fn missing(t: u32, w: u32) {}\n".to_owned(),
                false => format!(
                    "fn default_word(w: u32) -> {name} {}fn missing(t: u32, w: u32) {{ out_set(t, default_word(w)); }}\n",
                    chosen_word(&missing, lanes, name)
                ),
            };
            format!(
                "const WORDS = {words}u;\nconst FIRST = {first}u;\n{missing}{}",
                evariste_shaders::primitives::GATHER
            )
        }
    };
    let body = move |params: &GatherParams, [a, indices, out]: &mut [CpuArg<'_>; 3]| {
        let n = limbs.len();
        let a = &a.read::<u32>()[..params.len as usize * n];
        let indices = &indices.read::<u32>()[..params.count as usize];
        let each = (GRAIN / n).max(1);
        parallel::chunks(&mut out.write::<u32>()[..params.count as usize * n], each * n, &|run, out| {
            for (out, index) in out.chunks_exact_mut(n).zip(&indices[run * each..]) {
                let start = (index.wrapping_sub(first) as usize).saturating_mul(n);
                match a.get(start..start.saturating_add(n)) {
                    Some(x) => out.copy_from_slice(x),
                    None if keeps => {}
                    None => out.copy_from_slice(&limbs),
                }
            }
        });
    };
    KernelSpec::new("gather", variant, bindings, body, source).threads(THREADS)
}

fn last_writer_spec() -> KernelSpec {
    let bindings = [Binding::read("indices", BindingType::U32), Binding::write("owners", BindingType::Atomic)];
    let source = |language| match language {
        Language::Cuda => evariste_cuda::primitives::LAST_WRITER.into(),
        Language::Wgsl { .. } => evariste_shaders::primitives::LAST_WRITER.into(),
    };
    let body = |params: &LastWriterParams, [indices, writers]: &mut [CpuArg<'_>; 2]| {
        let indices = &indices.read::<u32>()[..params.count as usize];
        let writers = &mut writers.write::<u32>()[..params.len as usize];
        if indices.len() <= SERIAL || rayon::current_num_threads() == 1 {
            // Numbers grow.
            for (i, index) in indices.iter().enumerate() {
                if let Some(writer) = writers.get_mut(*index as usize) {
                    *writer = i as u32 + 1;
                }
            }
            return;
        }
        // SAFETY: atomics have the layout of their integers, and nothing else sees these while they are borrowed.
        let writers = unsafe { &*(std::ptr::from_mut(writers) as *const [AtomicU32]) };
        // From the last one on, which stays: those before it, if they are for the same place, only read.
        parallel::ranges(indices.len(), &|range| {
            for i in range.rev() {
                let number = i as u32 + 1;
                if let Some(writer) = writers.get(indices[i] as usize)
                    && writer.load(Ordering::Relaxed) < number
                {
                    writer.fetch_max(number, Ordering::Relaxed);
                }
            }
        });
    };
    KernelSpec::new("last_writer", "places by index", bindings, body, source).threads(THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    /// Six limbs whose default is not all zero bytes.
    struct Six;

    impl Element for Six {
        type Host = u32;

        const BYTES: usize = 24;

        fn encode(src: &[u32], dst: &mut [u8]) {
            for (x, dst) in src.iter().zip(dst.chunks_exact_mut(24)) {
                dst.fill(*x as u8);
                dst[20..].copy_from_slice(&(x + 5).to_le_bytes());
            }
        }

        fn decode(src: &[u8], dst: &mut [u32]) -> Result<()> {
            for (x, src) in dst.iter_mut().zip(src.chunks_exact(24)) {
                *x = bytemuck::pod_read_unaligned::<u32>(&src[20..]) - 5;
                assert!(src[..20].iter().all(|byte| *byte == *x as u8), "{src:?}");
            }
            Ok(())
        }
    }

    #[test]
    fn elements_go_where_a_loop_would_put_them() {
        let device = Device::cpu();
        let gather_scatter = GatherScatter::<Six>::new(&device);
        for (len, count) in [(0, 5), (1, 1), (5, 0), (1000, 3000), (40_000, 50_000)] {
            let a: Vec<u32> = (0..count).map(|i| i * 7 + 1).collect();
            let indices: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761) % (len + len / 8 + 1)).collect();
            let before: Vec<u32> = (0..len).map(|i| i + 3).collect();
            let (da, di) = (device.upload::<Six>(&a).unwrap(), device.upload(&indices).unwrap());
            let mut out = device.upload::<Six>(&before).unwrap();
            gather_scatter.scatter(&da, &di, &mut out).unwrap();
            let mut expected = before.clone();
            reference::scatter(&a, &indices, &mut expected);
            assert_eq!(out.to_vec().unwrap(), expected);
            let mut gathered = device.alloc::<Six>(count as usize).unwrap();
            gather_scatter.gather(&out, &di, &mut gathered).unwrap();
            assert_eq!(gathered.to_vec().unwrap(), reference::gather(&expected, &indices));
        }
    }

    #[test]
    fn words_are_rendered_by_their_number() {
        assert_eq!(chosen_word(&[1, 2], 2, "w"), "{ switch (w) { default: { return w(0x1u, 0x2u); } } }\n");
        let two = "{ switch (w) { case 1u: { return w(0x2u); } default: { return w(0x1u); } } }\n";
        assert_eq!(chosen_word(&[1, 2], 1, "w"), two);
    }
}
