// Transforms of two points: x, y becomes x + y, x - y, with scaling before or after. One thread a transform.
// Parameters as in ntt_pass, of which it needs few.

const SCALE_IN = 128u;
const SCALE_OUT = 256u;
const SCALE_CONSTANT = 1024u;

struct Params {
    lines: u32,
    log_n: u32,
    stride_in: u32,
    stride_out: u32,
    flags: u32,
    roots: u32,
    log_roots: u32,
    twiddles: u32,
    log_twiddles: u32,
    scales: u32,
    log_scales: u32,
}

// s^k: with one digit, the lower table has both powers and the upper one the constant.
fn scaled(flag: u32, k: u32, x: F) -> F {
    if ((params.flags & flag) == 0u) {
        return x;
    }
    if ((params.flags & SCALE_CONSTANT) != 0u) {
        return f_mul(x, scale_load(params.scales));
    }
    return f_mul(f_mul(x, scale_load(params.scales + k)), scale_load(params.scales + 2u));
}

@compute @workgroup_size(THREADS)
fn ntt_pair(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let line = (group.x + group.y * groups.x) * THREADS + thread;
    if (line >= params.lines) {
        return;
    }
    let u = scaled(SCALE_IN, 0u, x_load(2u * line));
    let v = scaled(SCALE_IN, 1u, x_load(2u * line + 1u));
    x_store(2u * line, scaled(SCALE_OUT, 0u, f_add(u, v)));
    x_store(2u * line + 1u, scaled(SCALE_OUT, 1u, f_sub(u, v)));
}
