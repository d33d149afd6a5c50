// The factors between two passes alone, by the method that TWIDDLES says: out[k 2^log_columns + j] = w^(j k) for j < 2^log_columns,
// all `len` of them, from what `powers` holds of w, a root of unity of order 2^log_n:
//   TWO_POWERS       w, of which w^j is computed, and (w^j)^k of that
//   ON_THE_FLY       w, of which w^(j k) is computed
//   BINARY_POWERS    w^(2^i) for i < log_n, of which w^(j k) is a product
//   TWO_TABLES       w^i for i < 2^split, then w^(i 2^split), of which w^(j k) is a product
//   HALF_STORED      w^i for i < 2^(log_n - 1), which are factors or these times w^(2^(log_n - 1)) = -1
// Grid: one thread a factor. No shared memory.
//
// Source: "PreNTT: a GPU-based acceleration method for number theoretic transforms of zk-SNARKs", section 2, which compares the
// first with the third and has the last as completion (equation 5).

extern "C" __global__ void ntt_twiddles_alone(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t j = i & ((1u << params.log_columns) - 1), k = i >> params.log_columns, e = j * k;
#if TWIDDLES == TWO_POWERS
    out[i] = power(power(powers[0], j), k);
#elif TWIDDLES == ON_THE_FLY
    out[i] = power(powers[0], e);
#elif TWIDDLES == BINARY_POWERS
    F factor = f_one();
    for (uint32_t bit = 0; e != 0; bit++, e >>= 1) {
        if (e & 1) factor = f_mul(factor, powers[bit]);
    }
    out[i] = factor;
#elif TWIDDLES == TWO_TABLES
    out[i] = f_mul(powers[e & ((1u << params.split) - 1)], powers[(1u << params.split) + (e >> params.split)]);
#else
    uint32_t half = 1u << max(params.log_n, 1u) >> 1;
    F factor = powers[e & (half - 1)];
    out[i] = (e & half) != 0 ? f_sub(f_zero(), factor) : factor;
#endif
}
