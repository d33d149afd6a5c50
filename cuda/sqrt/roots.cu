// out[i] and verdicts[i] = what a program makes of a[i], and of b[i] where there are PAIRS. Elements have COEFFICIENTS; results
// have OUT, and are zero where the verdict is 0, unless there are PAIRS.
// Grid: one thread an element. No shared memory. Local memory: the slots of the program.

#if PAIRS
#define SECOND , F
#else
#define SECOND
#endif

#if OUT > 0
#define RESULTS , F
#else
#define RESULTS
#endif

extern "C" __global__ void __launch_bounds__(128)
sqrt_roots(const Params params, BUFFERS(uint32_t, F, uint32_t, F SECOND RESULTS, uint32_t)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F slots[SLOTS];
#pragma unroll
    for (int k = 0; k < COEFFICIENTS; k++) slots[k] = f_load(a + i * COEFFICIENTS + k);
#if PAIRS
    slots[1] = f_load(b + i);
#endif
    uint32_t verdict = m_run(program, constants, hashed, slots, params.want);
#if OUT > 0
#pragma unroll
    for (int k = 0; k < OUT; k++) out[i * OUT + k] = verdict || PAIRS ? slots[k] : f_zero();
#endif
    verdicts[i] = verdict;
}
