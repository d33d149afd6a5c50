// The challenge of the last round, and the value of each table at it, behind the messages.
// Grid: one block; thread t owns the tables t, t + THREADS, … Shared memory: that of `draw`.

extern "C" __global__ void __launch_bounds__(THREADS)
sumcheck_finish(const Params params, SOURCES const F* inputs, F* partials, uint32_t* state) {
    extern __shared__ __align__(16) unsigned char shared[];
    F challenge = draw(params, inputs, partials, state, reinterpret_cast<F*>(shared));
    for (uint32_t table = threadIdx.x; table < TABLES; table += THREADS) {
        F a = f_zero(), b = f_zero();
        ends(params, ARGUMENTS table, a, b);
        partials[params.message_at + DEGREE + table] = f_add(a, f_mul(f_sub(b, a), challenge));
    }
}
