// Joins the nodes that msm_accumulate leaves, 2 THREADS neighbours to one, and stores the sums of buckets that are done.
// A node stands for a range of sorted pairs: the keys of its first and its last bucket and what it has of their sums. If
// the two are one bucket, it has one sum, the first.
// Grid: one block for 2 THREADS nodes that lie `stride` apart. In step k, thread t joins node 2^(k+1) t and the one
// 2^k after it into the former's place: one addition at most. After the last launch, node 0 is stored as well.
// No shared memory; blocks do not touch the nodes of others.

extern "C" __global__ void __launch_bounds__(THREADS)
msm_merge(const Params params, BUFFERS(uint32_t, Xyzz, Xyzz)) {
    wait_for_previous();
    uint64_t first = (uint64_t)blockIdx.x * 2 * THREADS;
#pragma unroll 1
    for (uint32_t width = 1; width <= THREADS; width *= 2) {
        // Node numbers in units of the stride.
        uint64_t own = first + (uint64_t)2 * width * threadIdx.x, other = own + width;
        if (threadIdx.x < THREADS / width && other * params.stride < params.nodes) {
            size_t a = 2 * (size_t)(own * params.stride), b = 2 * (size_t)(other * params.stride);
            uint32_t a_first = keys[a], a_last = keys[a + 1], b_first = keys[b], b_last = keys[b + 1];
            // Slices without pairs come last.
            if (b_first != params.sentinel) {
                bool a_one = a_first == a_last, b_one = b_first == b_last, joined = a_last == b_first;
                Xyzz sum = c_load(sums + b);
                if (joined) {
                    sum = x_add_xyzz(c_load(sums + a + (a_one ? 0 : 1)), sum);
                } else if (!a_one) {
                    x_store(buckets + a_last, c_load(sums + a + 1));
                }
                // `sum` is that of b's first bucket: part of a's node, or done.
                bool done = !b_one && !(joined && a_one);
                x_store(done ? buckets + b_first : sums + a + (joined && a_one ? 0 : 1), sum);
                if (!b_one) x_store(sums + a + 1, c_load(sums + b + 1));
                keys[a + 1] = b_last;
            }
        }
        __syncthreads();
    }
    if (params.last && threadIdx.x == 0 && keys[0] != params.sentinel) {
        x_store(buckets + keys[0], c_load(sums));
        if (keys[0] != keys[1]) x_store(buckets + keys[1], c_load(sums + 1));
    }
}
