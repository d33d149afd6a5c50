// The value of each table at the challenge of the last round, behind the messages.
//
// Comes after sumcheck/draw.cuh and `ends`, which loads what is left of a table. By a block; thread t owns the tables t,
// t + THREADS, …

__device__ __forceinline__ void table_values(const Params& params, SOURCES uint32_t folds, F* partials, const F& challenge) {
    for (uint32_t table = threadIdx.x; table < TABLES; table += THREADS) {
        F a = f_zero(), b = f_zero();
        ends(params, ARGUMENTS table, folds, a, b);
        partials[params.message_at + DEGREE * (folds + 1) + table] = f_add(a, f_mul(f_sub(b, a), challenge));
    }
}
