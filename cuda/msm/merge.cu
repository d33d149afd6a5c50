// Joins the nodes that msm_accumulate leaves, 2 THREADS neighbours to one, and stores the sums of buckets that are done.
// A node stands for a range of sorted pairs: the keys of its first and its last bucket and what it has of their sums. If
// the two are one bucket, it has one sum, the first.
// Grid: one block for 2 THREADS nodes that lie `stride` apart. First, two neighbours that both have more than one bucket add up
// the one that they share, which is done then: nearly all additions, side by side. In step k of the others, thread t joins node
// 2^(k+1) t and the one 2^k after it into the former: one addition at most. Sums stay where they are: a node knows the place of
// its last one. After the last launch, node 0 is stored as well.
// Shared memory: three words a node. Blocks do not touch the nodes of others.

// In the key of a node's last bucket: it is done, together with the first of the next node. There are fewer buckets.
#define DONE 0x80000000u

extern "C" __global__ void __launch_bounds__(THREADS)
msm_merge(const Params params, BUFFERS(uint32_t, Xyzz, Xyzz)) {
    wait_for_previous();
    // Keys of the first bucket and of the last, and the place of the last one's sum: twice the node's, or one more.
    __shared__ uint32_t firsts[2 * THREADS], lasts[2 * THREADS], places[2 * THREADS];
    uint64_t start = (uint64_t)blockIdx.x * 2 * THREADS;
    uint32_t count = (uint32_t)min((uint64_t)(params.nodes - 1) / params.stride + 1 - start, (uint64_t)(2 * THREADS));
    for (uint32_t own = threadIdx.x; own < 2 * THREADS; own += THREADS) {
        size_t node = 2 * (size_t)((start + own) * params.stride);
        firsts[own] = own < count ? keys[node] : params.sentinel;
        lasts[own] = own < count ? keys[node + 1] : params.sentinel;
        places[own] = 2 * own + (firsts[own] == lasts[own] ? 0 : 1);
    }
    __syncthreads();
#define SUM(place) (sums + (2 * (size_t)((start + (place) / 2) * params.stride) + (place) % 2))
    uint32_t done = 0;
    // Two steps for the neighbours of a thread's two nodes, then those of the tree.
#pragma unroll 1
    for (uint32_t step = 0; step < 2 || 1u << (step - 2) < count; step++) {
        bool neighbours = step < 2;
        uint32_t width = neighbours ? 1 : 1u << (step - 2);
        uint32_t a = neighbours ? 2 * threadIdx.x + step : 2 * width * threadIdx.x, b = a + width;
        // Slices without pairs come last.
        if (b < count && firsts[b] != params.sentinel) {
            uint32_t a_last = lasts[a], b_first = firsts[b], b_last = lasts[b];
            bool a_one = firsts[a] == a_last, b_one = b_first == b_last, joined = a_last == b_first;
            bool adds = joined && (!neighbours || (!a_one && !b_one));
            // b's first bucket is done, too.
            bool ends = !b_one && !(joined && a_one);
            if (adds) {
                Xyzz sum = x_add_xyzz(c_load(SUM(places[a])), c_load(SUM(2 * b)));
                x_store(ends ? buckets + b_first : SUM(places[a]), sum);
            } else if (!neighbours && !(a_last & DONE)) {
                if (!a_one) x_store(buckets + a_last, c_load(SUM(places[a])));
                if (ends) x_store(buckets + b_first, c_load(SUM(2 * b)));
            }
            if (neighbours) {
                if (adds) done |= 1u << step;
            } else if (!(joined && b_one)) {
                lasts[a] = b_last;
                places[a] = places[b];
            }
        }
        __syncthreads();
        if (step == 1) {
            for (uint32_t k = 0; k < 2; k++) {
                if (done >> k & 1) lasts[2 * threadIdx.x + k] |= DONE;
            }
            __syncthreads();
        }
    }
    if (threadIdx.x != 0 || firsts[0] == params.sentinel) return;
    bool one = firsts[0] == lasts[0];
    if (params.last) {
        x_store(buckets + firsts[0], c_load(SUM(0)));
        if (!one) x_store(buckets + lasts[0], c_load(SUM(places[0])));
    } else if (!one) {
        size_t node = 2 * (size_t)(start * params.stride);
        if (places[0] != 1) x_store(sums + node + 1, c_load(SUM(places[0])));
        keys[node + 1] = lasts[0];
    }
}
