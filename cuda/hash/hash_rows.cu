// Absorbs the first `columns` elements of each row of x, which lie `pitch` apart, into a sponge of which `position` elements of a
// block are there already. FIRST: the sponge is new, else it is in `states`. LAST: out[stride i] is the digest of row i, else the
// sponge goes to `states`.
// Comes after CARRIED, which is 0 where launches are both the first and the last, and have no states.
// Grid: one thread a row, with the state in registers. Neighbours read different rows, each whole sectors of them if columns
// and the place of the view are multiples of 32 bytes. No shared memory.

#if CARRIED
#define CARRIED_STATES , F
#else
#define CARRIED_STATES
#endif

extern "C" __global__ void __launch_bounds__(BOUNDS) hash_rows(const Params params, BUFFERS(F, F, F CARRIED_STATES)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
    bool last = true;
#if CARRIED
    last = params.flags & LAST;
    if (params.flags & FIRST) {
#pragma unroll
        for (int k = 0; k < WIDTH; k++) s[k] = f_zero();
    } else {
        load_elements(s, states + i * WIDTH, WIDTH);
    }
#else
#pragma unroll
    for (int k = 0; k < WIDTH; k++) s[k] = f_zero();
#endif
    int64_t columns = params.columns;
    const F* row = x + i * params.pitch;
#pragma unroll 1
    for (int64_t base = -(int64_t)params.position; base < columns; base += RATE) {
        bool whole = base + RATE <= columns;
        if (whole && base >= 0) {
            load_elements(s, row + base, RATE);
        } else {
#pragma unroll
            for (int k = 0; k < RATE; k++) {
                if (base + k >= 0 && base + k < columns) s[k] = f_load(row + (base + k));
            }
        }
        if (whole || last) permute_state(s, constants, params.half, params.partial);
    }
#if CARRIED
    if (!last) {
        store_elements(states + i * WIDTH, s, WIDTH);
        return;
    }
#endif
    store_elements(out + i * params.stride * DIGEST, s, DIGEST);
}
