// Sums of the points of each bucket, from pairs of a bucket and a point sorted by bucket, those of `sentinel` last.
// Grid: one thread a slice of the pairs, all slices as long as the longest, so that the work is the same whatever the
// buckets are. A thread stores the sums of the buckets between its first and its last, and leaves those two as a node for
// msm_merge: keys 2 t and 2 t + 1 of node_keys, sums in node_sums; if they are one, the first sum alone. A slice without
// pairs leaves `sentinel`. Unless `fresh`, buckets hold sums already, which who starts a bucket starts from.
// No shared memory.
//
// A value is 2 * point + (1 if its opposite is added). After msm/add.cuh, points are added as that says.

// Blocks of a multiprocessor: with more, sums leave the registers.
#ifdef M_ADD
#define BLOCKS 1
#else
#define BLOCKS (F_LIMBS <= 12 ? 4 : 2)
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
msm_accumulate(const Params params, BUFFERS(uint32_t, uint32_t, Affine, Xyzz, uint32_t, Xyzz)) {
    wait_for_previous();
    uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= params.slices) return;
    // Pairs before the sentinels.
    uint32_t count = 0;
    for (uint32_t above = params.len; count < above;) {
        uint32_t middle = count + (above - count) / 2;
        if (keys[middle] < params.sentinel) {
            count = middle + 1;
        } else {
            above = middle;
        }
    }
    uint32_t slice = max((count + params.slices - 1) / params.slices, params.least);
    uint64_t start = (uint64_t)thread * slice;
    uint32_t* node_key = node_keys + 2 * (size_t)thread;
    Xyzz* node_sum = node_sums + 2 * (size_t)thread;
    if (start >= count) {
        node_key[0] = node_key[1] = params.sentinel;
        return;
    }
    uint32_t i = (uint32_t)start, end = min(count - i, slice) + i, key = keys[i];
    node_key[0] = key;
    bool first = true;
    Xyzz sum = xyzz_infinity();
    if (!params.fresh && (i == 0 || keys[i - 1] != key)) sum = c_load(buckets + key);
#pragma unroll 1
#ifdef M_ADD
    while (i < end) {
        uint32_t next = keys[i], value = m_value(params, values, i);
        Affine point = m_point(params, points, value);
#else
    for (; i < end; i++) {
        uint32_t next = keys[i], value = params.ordered ? 2 * i : values[i];
        Affine point = c_load(points + value / 2);
#endif
        if (next != key) {
            x_store(first ? node_sum : buckets + key, sum);
            first = false;
            key = next;
            sum = params.fresh ? xyzz_infinity() : c_load(buckets + key);
        }
#ifdef M_ADD
        i = m_add(params, keys, values, points, sum, point, value, i, end);
#else
        if (value % 2) point = affine_negate(point);
        sum = x_add_affine(sum, point);
#endif
    }
    node_key[1] = key;
    x_store(node_sum + (first ? 0 : 1), sum);
}
