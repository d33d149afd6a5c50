// Joins the nodes that msm_accumulate leaves, 2 THREADS neighbours to one, and stores the sums of buckets that are done.
// A node stands for a range of sorted pairs: the keys of its first and its last bucket and what it has of their sums. If
// the two are one bucket, it has one sum, the first.
// Grid: one block for 2 THREADS nodes that lie `stride` apart. First, two neighbours that both have more than one bucket add up
// the one that they share, which is done then: nearly all additions, side by side. In step k of the others, thread t joins node
// 2^(k+1) t and the one 2^k after it into the former's place: one addition at most. After the last launch, node 0 is stored as
// well.
// No shared memory; blocks do not touch the nodes of others.

// In the key of a node's last bucket: it is done, together with the first of the next node. There are fewer buckets.
#define DONE 0x80000000u

extern "C" __global__ void __launch_bounds__(THREADS)
msm_merge(const Params params, BUFFERS(uint32_t, Xyzz, Xyzz)) {
    wait_for_previous();
    uint64_t first = (uint64_t)blockIdx.x * 2 * THREADS;
    uint32_t done = 0;
    // Two steps for the neighbours of a thread's two nodes, then those of the tree.
#pragma unroll 1
    for (uint32_t step = 0; step < 2 || 1u << (step - 2) <= THREADS; step++) {
        bool neighbours = step < 2;
        uint32_t width = neighbours ? 1 : 1u << (step - 2);
        // Node numbers in units of the stride.
        uint32_t own = neighbours ? 2 * threadIdx.x + step : 2 * width * threadIdx.x, other = own + width;
        size_t a = 2 * (size_t)((first + own) * params.stride), b = 2 * (size_t)((first + other) * params.stride);
        bool there = other < 2 * THREADS && (first + other) * params.stride < params.nodes;
        uint32_t a_first = there ? keys[a] : params.sentinel, a_last = there ? keys[a + 1] : params.sentinel;
        uint32_t b_first = there ? keys[b] : params.sentinel, b_last = there ? keys[b + 1] : params.sentinel;
        bool a_one = a_first == a_last, b_one = b_first == b_last, joined = a_last == b_first;
        if (there && a_last & DONE && !neighbours) {
            x_store(sums + a + 1, c_load(sums + b + 1));
            keys[a + 1] = b_last;
        } else if (b_first != params.sentinel && (!neighbours || (joined && !a_one && !b_one))) {
            // Slices without pairs come last.
            Xyzz sum = c_load(sums + b);
            if (joined) {
                sum = x_add_xyzz(c_load(sums + a + (a_one ? 0 : 1)), sum);
            } else if (!a_one) {
                x_store(buckets + a_last, c_load(sums + a + 1));
            }
            // `sum` is that of b's first bucket: part of a's node, or done.
            bool ends = !b_one && !(joined && a_one);
            x_store(ends ? buckets + b_first : sums + a + (joined && a_one ? 0 : 1), sum);
            if (neighbours) {
                done |= 1u << step;
            } else {
                if (!b_one) x_store(sums + a + 1, c_load(sums + b + 1));
                keys[a + 1] = b_last;
            }
        }
        __syncthreads();
        if (step == 1) {
            for (uint32_t k = 0; k < 2; k++) {
                if (done >> k & 1) keys[2 * (size_t)((first + 2 * threadIdx.x + k) * params.stride) + 1] |= DONE;
            }
            __syncthreads();
        }
    }
    if (params.last && threadIdx.x == 0 && keys[0] != params.sentinel) {
        x_store(buckets + keys[0], c_load(sums));
        if (keys[0] != keys[1]) x_store(buckets + keys[1], c_load(sums + 1));
    }
}
