// The factors between two passes alone, by the method that TWIDDLES says: the twin of ntt/twiddles_alone.cu, which says what they are and
// what `powers` holds. One thread a factor.
//
// Source: "PreNTT: a GPU-based acceleration method for number theoretic transforms of zk-SNARKs", section 2.

fn factor(j: u32, k: u32) -> F {
    var e = j * k;
    if (TWIDDLES == TWO_POWERS) {
        return power(power(powers_load(0u), j), k);
    }
    if (TWIDDLES == ON_THE_FLY) {
        return power(powers_load(0u), e);
    }
    if (TWIDDLES == BINARY_POWERS) {
        var product = f_one();
        for (var bit = 0u; e != 0u; bit++) {
            if ((e & 1u) != 0u) {
                product = f_mul(product, powers_load(bit));
            }
            e >>= 1u;
        }
        return product;
    }
    if (TWIDDLES == TWO_TABLES) {
        let low = powers_load(e & ((1u << params.split) - 1u));
        return f_mul(low, powers_load((1u << params.split) + (e >> params.split)));
    }
    let half = (1u << max(params.log_n, 1u)) >> 1u;
    let stored = powers_load(e & (half - 1u));
    if ((e & half) != 0u) {
        return f_sub(f_zero(), stored);
    }
    return stored;
}

@compute @workgroup_size(THREADS)
fn ntt_twiddles_alone(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    out_store(i, factor(i & ((1u << params.log_columns) - 1u), i >> params.log_columns));
}
