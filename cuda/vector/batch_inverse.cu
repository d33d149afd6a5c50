// out[i] = 1 / a[i], and 0 where a[i] is 0 (Montgomery's trick).
// Grid: thread t owns the elements t, t + threads, t + 2 threads, … (`threads` of the whole grid, so that neighbours
// read neighbours), at most `run` of them. `out` holds the prefix products in between. 3 multiplications an element and
// ROOTS inversions a block. Shared memory: two elements a thread.
//
// Source: Montgomery, "Speeding the Pollard and elliptic curve methods of factorization", Mathematics of Computation
// 48 (1987), section 10.3.1.

extern "C" __global__ void batch_inverse(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
    F product = f_one();
    size_t i = thread;
    if (thread < params.threads) {
        for (; i < params.len; i += params.threads) {
            F x = f_load(a + i);
            out[i] = product;
            if (!f_is_zero(x)) product = f_mul(product, x);
        }
    }
    F inverse = group_inverse(reinterpret_cast<F*>(shared), product);
    while (i > thread) {
        i -= params.threads;
        F x = f_load(a + i);
        out[i] = f_is_zero(x) ? f_zero() : f_mul(inverse, f_load(out + i));
        if (!f_is_zero(x)) inverse = f_mul(inverse, x);
    }
}
