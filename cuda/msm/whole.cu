// Sums of the points of each bucket, from pairs of a bucket and a point sorted by bucket, each bucket by one thread: what
// msm_accumulate is compared with. Points are added to what buckets hold.
// Grid: one thread a slice of the pairs, all slices as long as the longest, but that their ends move on to the next border of
// buckets; with PER_BUCKET, one thread a bucket. No shared memory.
//
// Comes after msm/add.cuh.

// Blocks of a multiprocessor, as for msm_accumulate; where points become sums before they are added, registers do not suffice.
#if defined(ADD_DOUBLE) || defined(ADD_DOUBLED)
#define BLOCKS 1
#else
#define BLOCKS (F_LIMBS <= 8 ? 5 : F_LIMBS <= 12 ? 4 : 2)
#endif

// The first of the pairs from `at` to `above` whose bucket is not below `bucket`, or `above`.
__device__ __forceinline__ uint32_t first_of(const uint32_t* keys, uint32_t at, uint32_t above, uint32_t bucket) {
    while (at < above) {
        uint32_t middle = at + (above - at) / 2;
        if (keys[middle] < bucket) {
            at = middle + 1;
        } else {
            above = middle;
        }
    }
    return at;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
msm_whole(const Params params, BUFFERS(uint32_t, uint32_t, Affine, Xyzz)) {
    wait_for_previous();
    uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= params.threads) return;
#ifdef PER_BUCKET
    uint32_t i = first_of(keys, 0, params.len, thread), end = first_of(keys, i, params.len, thread + 1);
#else
    uint32_t count = first_of(keys, 0, params.len, params.sentinel);
    uint32_t slice = max((count + params.threads - 1) / params.threads, params.least);
    uint64_t start = (uint64_t)thread * slice;
    if (start >= count) return;
    uint32_t i = (uint32_t)start, end = min(count - i, slice) + i;
    if (i > 0) i = first_of(keys, i, count, keys[i - 1] + 1);
    end = first_of(keys, end, count, keys[end - 1] + 1);
#endif
    if (i >= end) return;
    uint32_t key = keys[i];
    Xyzz sum = c_load(buckets + key);
#pragma unroll 1
    while (i < end) {
        uint32_t next = keys[i], value = m_value(params, values, i);
        Affine point = m_point(params, points, value);
        if (next != key) {
            x_store(buckets + key, sum);
            key = next;
            sum = c_load(buckets + key);
        }
        i = m_add(params, keys, values, points, sum, point, value, i, end);
    }
    x_store(buckets + key, sum);
}
