// All rounds that are left, each as sumcheck_round does it, and then what sumcheck_finish does: for pairs so few that one block
// takes less time for them than a launch takes. Here a thread does less for a pair: it folds an element, and then evaluates at
// one point. Folded elements are in the tables, or where neighbours are folded, in turn there and in `folded`; values of rounds
// stay in shared memory.
//
// Comes after sumcheck/draw.cuh, `table_of`, which says where a table is after so many folds, `ends` and `point_at`, and:
//   HIGH   1 if variables are bound from the highest, where folded tables stay in place
//
// Grid: one block. Shared memory: one element a thread, and that of `draw`.

extern "C" __global__ void __launch_bounds__(THREADS)
sumcheck_tail(const Params params, BUFFERS(SOURCE_TYPES F, F, uint32_t)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    F* values = drawing(tile).values;
    constexpr uint32_t group = group_of(POINTS), groups = THREADS / group;
    uint32_t thread = threadIdx.x, lane = thread % group;
    previous_values(params, partials, tile, values);
#pragma unroll 1
    for (uint32_t round = 0;; round++) {
        F challenge = draw(params, round, inputs, partials, state, tile);
        if (round == params.rounds) {
            table_values(params, ARGUMENTS WEIGHTS round, partials, challenge);
            return;
        }
        uint32_t pairs = params.pairs >> round, at_one = params.ones >> (round + 1) & 1;
#pragma unroll 1
        for (uint32_t i = thread; i < TABLES * 2 * pairs; i += THREADS) {
            uint32_t table = i / (2 * pairs), x = i % (2 * pairs);
            const F* from = table_of(params, ARGUMENTS table, round);
            F a = f_load(from + (HIGH ? x : 2 * x)), b = f_load(from + (HIGH ? x + 2 * pairs : 2 * x + 1));
            table_of(params, ARGUMENTS table, round + 1)[x] = f_add(a, draw_f_mul(f_sub(b, a), challenge));
        }
        __syncthreads();
        // Beside what other warps do at the points, where pairs are few.
        next_claim(params, round, partials, tile, challenge);
#pragma unroll 1
        for (uint32_t first = 0; first < POINTS; first += groups) {
            uint32_t p = first + thread / group;
            F total = f_zero();
            if (p < POINTS) {
#pragma unroll 1
                for (uint32_t x = lane; x < pairs; x += group) {
                    F value = point_at(params, ARGUMENTS p, x, pairs, round + 1, at_one, inputs);
#if WEIGHTED
                    value = draw_f_mul(value, f_load(eq + params.low_at + pairs + x));
#endif
                    total = f_add(total, value);
                }
            }
            total = group_sum(total, tile, group, pairs);
            if (lane == 0 && p < POINTS) values[1 + p] = total;
        }
    }
}
