//! A kernel of your own, over any field and on any device: the permutation MiMC with exponent 5,
//! x ↦ (…((x + c₀)⁵ + c₁)⁵ …)⁵, of many elements at once.
//!
//! ```text
//! own_kernel [LOG_LEN]    log₂ of the elements, 16 unless given
//! ```
//! The kernel is declared once, with a body for each language. The results are compared with arkworks'. It is an
//! example of a kernel; which constants and how many rounds a hash needs is for its authors to say.

use std::{env, error::Error, time::Instant};

use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste::{
    Buffer, Device,
    backend::{
        Error as BackendError, Queue,
        author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language, loop_iterations},
        parallel, params,
    },
    field::{DeviceField, Mont, source},
};

type Result<T> = evariste::backend::Result<T>;

/// Threads of a workgroup.
const THREADS: u32 = 128;

/// Elements of one launch: kernels count words with 32 bits.
const MAX_LEN: usize = 1 << 26;

/// Elements that a thread of the CPU takes at a time.
const GRAIN: usize = 64;

const CUDA: &str = r#"
extern "C" __global__ void mimc(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) {
        F v = x[i];
        for (uint32_t round = 0; round < params.rounds; round++) {
            F sum = f_add(v, constants[round]);
            F square = f_mul(sum, sum);
            v = f_mul(f_mul(square, square), sum);
        }
        x[i] = v;
    }
}
"#;

const WGSL: &str = r#"
@compute @workgroup_size(THREADS)
fn mimc(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        var v = x_load(i);
        for (var round = 0u; round < params.rounds; round++) {
            let sum = f_add(v, constants_load(round));
            let square = f_mul(sum, sum);
            v = f_mul(f_mul(square, square), sum);
        }
        x_store(i, v);
    }
}
"#;

params! {
    struct Params {
        /// Elements.
        len: u32,
        rounds: u32,
    }
}

/// MiMC with constants of the caller's, on one device.
struct Mimc<F: DeviceField> {
    kernel: Kernel<Params>,
    constants: Buffer<Mont<F>>,
}

impl<F: DeviceField> Mimc<F> {
    fn new(device: &Device, constants: &[F]) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, Self::spec())?, constants: device.upload(constants)? })
    }

    fn spec() -> KernelSpec {
        let word = source::binding_type::<F>();
        let bindings = [Binding::write("x", word), Binding::read("constants", word)];
        let seen = bindings;
        let text = move |language| match language {
            Language::Cuda => source::cuda::<F>() + CUDA,
            Language::Wgsl { int64 } => {
                let accessors: String = seen.iter().map(source::wgsl_accessors::<F>).collect();
                source::wgsl::<F>(int64) + &accessors + WGSL
            }
        };
        let cpu = |params: &Params, [x, constants]: &mut [CpuArg<'_>; 2]| {
            let constants: Vec<F> = constants.read().chunks_exact(F::LIMBS).map(F::load).collect();
            parallel::chunks(&mut x.write()[..params.len as usize * F::LIMBS], GRAIN * F::LIMBS, &|_, run| {
                for x in run.chunks_exact_mut(F::LIMBS) {
                    permuted(F::load(x), &constants).store(x);
                }
            });
        };
        // Devices that end loops after a number of iterations refuse more rounds than they would do.
        let iterations = |params: &Params| loop_iterations(params.rounds.into(), 3 * source::iterations::mul::<F>());
        KernelSpec::new("mimc", source::label::<F>(), bindings, cpu, text).threads(THREADS).iterations(iterations)
    }

    /// Replaces each element of `x` by its permutation. Work is queued: reading the buffer waits for it.
    fn permute(&self, queue: &Queue, x: &mut Buffer<Mont<F>>) -> Result<()> {
        if x.len() > MAX_LEN {
            let (what, device) = ("a batch of permutations", queue.device().info().id);
            return Err(BackendError::TooLarge { what, device, expected: MAX_LEN as u64, actual: x.len() as u64 });
        }
        let (len, rounds) = (x.len() as u32, self.constants.len() as u32);
        let args = &mut [Arg::write(x), Arg::read(&self.constants)];
        // SAFETY: threads touch only elements below `len` and constants below `rounds`, which are those of both
        // buffers.
        unsafe { self.kernel.launch(queue, len.div_ceil(THREADS).into(), &Params { len, rounds }, args) }
    }
}

/// The permutation of one element.
fn permuted<F: Field>(x: F, constants: &[F]) -> F {
    constants.iter().fold(x, |x, constant| {
        let sum = x + constant;
        sum.square().square() * sum
    })
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let log_len = env::args().nth(1).map_or(Ok(16), |text| text.parse::<u32>())?;
    let len = 1u32.checked_shl(log_len).ok_or("too many elements")?;
    let device = Device::best()?;
    run::<Fr>(&device, len)
}

fn run<F: DeviceField>(device: &Device, len: u32) -> std::result::Result<(), Box<dyn Error>> {
    let constants: Vec<F> = (1..=110u64).map(|i| F::from(i).pow([7])).collect();
    let mimc = Mimc::new(device, &constants)?;
    let elements: Vec<F> = (0..u64::from(len)).map(F::from).collect();
    let mut x = device.upload::<Mont<F>>(&elements)?;
    let start = Instant::now();
    mimc.permute(&device.default_queue(), &mut x)?;
    device.sync()?;
    println!("{len} elements on {device} in {:.2?}", start.elapsed());
    // One in a hundred, or all of few, is computed anew.
    let permuted_there = x.to_vec()?;
    for i in (0..elements.len()).step_by(if len > 1000 { 97 } else { 1 }) {
        if permuted_there[i] != permuted(elements[i], &constants) {
            return Err(format!("element {i} differs from arkworks'").into());
        }
    }
    println!("as arkworks computes them");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_agrees_with_arkworks() {
        for device in Device::all() {
            for len in [1, 127, 129] {
                run::<Fr>(&device, len).unwrap();
                run::<evariste::field::small::BabyBear>(&device, len).unwrap();
            }
        }
    }
}
