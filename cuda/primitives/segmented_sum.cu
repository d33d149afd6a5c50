// out[k] = the sum of values[i] over all i with keys[i] = k, for ascending keys, one level of it.
// Grid: one thread a slice of `slice` values. It stores the sums of the segments between its first and its last, and
// leaves those two to the next level, as elements 2 t and 2 t + 1; if they are one, the second is the identity. On the
// last level, which has one slice, it stores all. Registers: two values. No shared memory.
// Comes after a monoid: the type M and the functions m_zero() and m_add(a, b).

extern "C" __global__ void __launch_bounds__(256)
segmented_sum(const Params params, BUFFERS(uint32_t, M, M, uint32_t, M)) {
    wait_for_previous();
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= params.slices) return;
    size_t i = (size_t)thread * params.slice, end = i + params.slice < params.len ? i + params.slice : params.len;
    size_t rest = 2 * (size_t)thread;
    uint32_t key = keys[i];
    bool first = true;
    M sum = m_zero();
    for (; i < end; i++) {
        uint32_t next = keys[i];
        if (next != key) {
            if (first && !params.last) {
                next_keys[rest] = key;
                next_values[rest] = sum;
            } else if (key < params.segments) {
                out[key] = sum;
            }
            first = false;
            key = next;
            sum = m_zero();
        }
        sum = m_add(sum, values[i]);
    }
    if (params.last) {
        if (key < params.segments) out[key] = sum;
        return;
    }
    if (first) {
        next_keys[rest] = key;
        next_values[rest] = sum;
        sum = m_zero();
    }
    next_keys[rest + 1] = key;
    next_values[rest + 1] = sum;
}
