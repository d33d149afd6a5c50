use evariste_backend::{
    Buffer, Device, Error,
    author::{Arg, Binding, BindingType, Kernel, KernelSpec},
    params,
};

use crate::{Arithmetic, device};

const LEN: u32 = 256;

params! {
    struct Params {
        len: u32,
    }
}

/// Launches the body of a kernel of 64 threads that takes `const uint32_t* a` and `uint32_t* out`, of 256 words each.
fn launch(device: &Device, body: &str, blocks: u64) -> Result<Vec<u32>, Error> {
    run(device, text(body), BINDINGS, blocks)
}

const BINDINGS: [Binding; 2] = [Binding::read("a", BindingType::U32), Binding::write("out", BindingType::U32)];

fn text(body: &str) -> String {
    format!(
        "extern \"C\" __global__ void x(const Params params, const uint32_t* a, uint32_t* out) {{\n\
         extern __shared__ uint32_t shared[];\n\
         uint32_t t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n{body}\n}}"
    )
}

fn run(device: &Device, text: String, bindings: [Binding; 2], blocks: u64) -> Result<Vec<u32>, Error> {
    run_into(device, text, bindings, blocks, device.zeros(LEN as usize)?)
}

fn run_into(
    device: &Device,
    text: String,
    bindings: [Binding; 2],
    blocks: u64,
    mut out: Buffer<u32>,
) -> Result<Vec<u32>, Error> {
    let spec = KernelSpec::new("x", text.clone(), bindings.to_vec(), |_: &Params, _| {}, move |_| text.clone());
    let kernel = Kernel::<Params>::new(device, spec.threads(64).shared_bytes(256))?;
    let a: Buffer<u32> = device.upload(&(0..LEN).collect::<Vec<_>>())?;
    // SAFETY: the runtime keeps the kernel inside its bindings; that it does is what is tested.
    unsafe {
        kernel.launch(
            &device.default_queue(),
            blocks,
            &Params { len: LEN },
            &mut [Arg::read(&a), Arg::write(&mut out)],
        )?
    };
    out.to_vec()
}

fn expect_refused(device: &Device, body: &str, blocks: u64, reason: &str) {
    match launch(device, body, blocks) {
        Err(error) => assert!(error.to_string().contains(reason), "{body}: {error}"),
        Ok(out) => panic!("{body}: not refused: {out:?}"),
    }
}

fn emulator() -> Device {
    device(Arithmetic::CarryFlag).unwrap()
}

#[test]
fn blocks_threads_barriers_and_warps() {
    let device = emulator();
    let reversed = "shared[t] = a[i]; __syncthreads(); out[i] = shared[63 - t];";
    let expected: Vec<u32> = (0..256).map(|i| i / 64 * 64 + 63 - i % 64).collect();
    assert_eq!(launch(&device, reversed, 4).unwrap(), expected);

    let statics =
        "__shared__ uint32_t s[2][32]; s[t / 32][t % 32] = a[i]; __syncwarp(); out[i] = s[t / 32][31 - t % 32];";
    let expected: Vec<u32> = (0..256).map(|i| i / 32 * 32 + 31 - i % 32).collect();
    assert_eq!(launch(&device, statics, 4).unwrap(), expected);

    let lanes = "uint32_t all = 0xffffffffu, up = __shfl_up_sync(all, a[i], 3), down = __shfl_down_sync(all, a[i], 1);\n\
                 uint32_t other = __shfl_xor_sync(all, a[i], 5), first = __shfl_sync(all, a[i], 0);\n\
                 out[i] = up + 1000 * down + 1000000 * (other ^ first) + __popc(__ballot_sync(all, t % 3 == 0));";
    let expected: Vec<u32> = (0u32..256)
        .map(|i| {
            let (lane, warp) = (i % 32, i / 32 * 32);
            let up = if lane < 3 { i } else { i - 3 };
            let down = if lane == 31 { i } else { i + 1 };
            let votes = (warp % 64..warp % 64 + 32).filter(|t| t % 3 == 0).count() as u32;
            (up + 1000 * down).wrapping_add(((i ^ 5) ^ warp).wrapping_mul(1_000_000)).wrapping_add(votes)
        })
        .collect();
    assert_eq!(launch(&device, lanes, 4).unwrap(), expected);

    let atomic = "atomicAdd(&out[a[i] % 4], 1);";
    assert_eq!(launch(&device, atomic, 4).unwrap()[..5], [64, 64, 64, 64, 0]);
}

#[test]
fn intrinsics() {
    let body = "uint32_t x = a[i] * 0x9e3779b9u;\n\
                out[i] = __byte_perm(x, ~x, 0x7b21) ^ __brev(x) ^ __funnelshift_l(x, ~x, t) ^ __funnelshift_r(x, ~x, t)\n\
                ^ __umulhi(x, x) ^ __ffs(x) ^ __clz(x) ^ min(x, 77u) ^ max(x, 99u);";
    let expected: Vec<u32> = (0u32..256)
        .map(|i| {
            let (x, y, t) = (i.wrapping_mul(0x9e37_79b9), !i.wrapping_mul(0x9e37_79b9), i % 64 % 32);
            let bytes = [x.to_le_bytes(), y.to_le_bytes()].concat();
            let sign = if bytes[3] & 0x80 == 0 { 0 } else { 0xff };
            let pair = u64::from(y) << 32 | u64::from(x);
            let first = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            u32::from_le_bytes([bytes[1], bytes[2], sign, bytes[7]])
                ^ x.reverse_bits()
                ^ ((pair << t) >> 32) as u32
                ^ (pair >> t) as u32
                ^ ((u64::from(x) * u64::from(x)) >> 32) as u32
                ^ first
                ^ x.leading_zeros()
                ^ x.min(77)
                ^ x.max(99)
        })
        .collect();
    assert_eq!(launch(&emulator(), body, 4).unwrap(), expected);
}

#[test]
fn races_are_found_whatever_the_order() {
    let device = emulator();
    let missing = "without a barrier between";
    // Threads run upwards here, so that the values come out right.
    expect_refused(&device, "shared[t] = a[i]; out[i] = shared[t == 0 ? 0 : t - 1];", 1, missing);
    expect_refused(&device, "shared[t] = a[i]; out[i] = shared[t / 32 * 32];", 1, missing);
    expect_refused(
        &device,
        "shared[t] = a[i]; __syncthreads(); uint32_t x = shared[(t + 1) % 64]; shared[t] = x; out[i] = x;",
        1,
        missing,
    );
    expect_refused(
        &device,
        "shared[t] = 0; __syncthreads(); shared[t] = a[i]; __syncwarp(); out[i] = shared[(t + 32) % 64];",
        1,
        missing,
    );
    expect_refused(&device, "__shared__ uint32_t s[2]; s[a[i] % 2] = t; __syncthreads(); out[i] = s[0];", 1, missing);
    expect_refused(&device, "if (t > 0) out[0] += t;", 1, missing);
    // Between blocks.
    expect_refused(&device, "out[t] = t;", 2, "another block");
    expect_refused(&device, "if (blockIdx.x == 0) out[t] = 1; else out[i] = out[t];", 2, "another block");
    expect_refused(&device, "if (blockIdx.x == 1) out[t] = 1; else out[i + 128] = out[t];", 2, "another block");
    launch(&device, "out[t] = t;", 1).unwrap();
    launch(&device, "for (uint32_t r = 0; r < 9; r++) { shared[(t + r) % 64] = t; __syncthreads(); } out[i] = 0;", 2)
        .unwrap();
}

#[test]
fn barriers_must_be_reached_by_all() {
    let device = emulator();
    expect_refused(&device, "if (t < 7) return; __syncthreads(); out[i] = 1;", 1, "do not reach");
    expect_refused(&device, "if (t < 7) return; __syncwarp(); out[i] = 1;", 1, "has ended");
    expect_refused(&device, "if (t < 7) __syncthreads(); else __syncwarp(); out[i] = 1;", 1, "something else");
    expect_refused(&device, "if (t % 2) out[i] = __shfl_sync(0xffffffffu, t, 0);", 1, "has ended");
    expect_refused(&device, "out[i] = __ballot_sync(0xffu, true);", 1, "a part of a warp");
    expect_refused(&device, "volatile uint32_t* flag = out; while (*flag == 0) {}", 1, "no block before it");
}

#[test]
fn memory_is_left_alone() {
    let device = emulator();
    expect_refused(&device, "out[i + 1] = 1;", 4, "writes 4 bytes at byte 1024");
    expect_refused(&device, "out[i] = a[2 * i];", 4, "reads 4 bytes at byte 1024");
    expect_refused(&device, "const_cast<uint32_t*>(a)[i] = 1;", 1, "only read");
    expect_refused(&device, "shared[t + 1] = 1;", 1, "shared memory of 256 bytes");
    expect_refused(&device, "out[i] = shared[t];", 1, "no thread has written");
    // Not what the block before left.
    expect_refused(&device, "if (blockIdx.x == 0) shared[t] = 1; else out[i] = shared[t];", 2, "no thread has written");
    expect_refused(&device, "out[i] = *reinterpret_cast<uint32_t*>(16);", 1, "outside of its buffers");
}

#[test]
fn what_nobody_has_written_is_not_read() {
    let device = emulator();
    let launch = |body: &str, written: &[u32]| {
        let mut out = device.alloc(LEN as usize).unwrap();
        out.view_mut(..written.len()).unwrap().write(written).unwrap();
        run_into(&device, text(body), BINDINGS, 1, out)
    };
    launch("for (uint32_t k = t; k < 256; k += 64) out[k] = a[k]; out[t] = out[t] + 1;", &[]).unwrap();
    launch("if (t > 0) out[t] += out[0];", &[0; 256]).unwrap();
    for (body, written) in [("out[t] += 1;", 0), ("out[t] += 1;", 63), ("out[t] = out[255];", 254)] {
        let error = launch(body, &vec![0; written]).unwrap_err();
        assert!(error.to_string().contains("which nobody has written"), "{body} after {written}: {error}");
    }
    // One word alone may hold any value.
    let held = u32::from_ne_bytes(crate::POISON);
    let mut values = [1; LEN as usize];
    values[7] = held;
    assert_eq!(launch("if (t == 0) out[0] = out[7];", &values).unwrap()[0], held);
}

#[test]
fn undefined_behaviour_ends_the_launch() {
    let device = emulator();
    let undefined = "undefined behaviour";
    expect_refused(&device, "out[i] = 1u << (t + a[i]);", 1, undefined);
    expect_refused(&device, "int x = 0x7fffffff - 20 + (int)t; out[i] = x + 1;", 1, undefined);
    expect_refused(&device, "uint32_t x[8] = {}; x[t % 9] = 1; out[i] = x[t % 8];", 1, undefined);
    expect_refused(&device, "out[i] = reinterpret_cast<const uint4*>(a + 1)[0].x;", 1, undefined);
    expect_refused(&device, "out[i] = 7 / (int)a[i];", 1, undefined);
    // The device is usable.
    launch(&device, "out[i] = t;", 4).unwrap();
}

#[test]
fn the_entry_must_be_as_declared() {
    let device = emulator();
    let entry = |params: &str, a: &str| {
        format!("extern \"C\" __global__ void x({params}, {a} uint32_t* a, uint32_t* out) {{ out[threadIdx.x] = 1; }}")
    };
    let try_it = |text: String| run(&device, text, BINDINGS, 1);
    try_it(entry("Params params", "const")).unwrap();
    let error = try_it(entry("uint64_t params", "const")).unwrap_err();
    assert!(error.to_string().contains("8 bytes of parameters, not 4"), "{error}");
    let error = try_it(entry("Params params", "")).unwrap_err();
    assert!(error.to_string().contains("writes buffers"), "{error}");
    let error = try_it("nonsense".into()).unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
}

#[test]
fn both_bodies_of_arithmetic_multiply() {
    let text = "out[i] = CARRY_MODEL;";
    assert_eq!(launch(&emulator(), text, 4).unwrap(), [1; 256]);
    assert_eq!(launch(&device(Arithmetic::Portable).unwrap(), text, 4).unwrap(), [0; 256]);
}

#[test]
fn a_name_and_a_variant_have_one_text() {
    let device = emulator();
    let spec = |text: String| KernelSpec::new("x", "one", BINDINGS.to_vec(), |_: &Params, _| {}, move |_| text.clone());
    let make = |body: &str| Kernel::<Params>::new(&device, spec(text(body)).threads(64).shared_bytes(256)).map(drop);
    make("out[i] = t;").unwrap();
    make("out[i] = t;").unwrap();
    let error = make("out[i] = t + 1;").unwrap_err();
    assert!(matches!(&error, Error::Compile { kernel, .. } if kernel == "x (one)"), "{error}");
}
