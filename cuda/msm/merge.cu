// Joins the nodes that msm_accumulate leaves, THREADS neighbours to one, and stores the sums of buckets that are done.
// A node stands for a range of sorted pairs: the keys of its first and its last bucket and what it has of their sums. If
// the two are one bucket, it has one sum, the first.
// Grid: one block for THREADS nodes that lie `stride` apart, with four lanes for each addition (msm/quad.cuh). First, two
// neighbours that both have more than one bucket add up the one that they share, which is done then: nearly all additions, side
// by side. In step k behind that, lanes join node 2^(k+1) t and the one 2^k after it into the former: one addition at most.
// Sums stay where they are: a node knows the place of its last one. After the last launch, node 0 is stored as well.
// Shared memory: three words a node. Blocks do not touch the nodes of others.

// In the place of a node's last sum: its bucket is done, together with the first of the next node.
#define DONE 0x80000000u

extern "C" __global__ void __launch_bounds__(THREADS)
msm_merge(const Params params, BUFFERS(uint32_t, Xyzz, Xyzz)) {
    wait_for_previous();
    // Keys of the first bucket and of the last, and the place of the last one's sum: twice the node's, or one more.
    __shared__ uint32_t firsts[THREADS], lasts[THREADS], places[THREADS];
    uint64_t start = (uint64_t)blockIdx.x * THREADS;
    uint32_t count = (uint32_t)min((uint64_t)(params.nodes - 1) / params.stride + 1 - start, (uint64_t)THREADS);
    uint32_t own = threadIdx.x;
    size_t node = 2 * (size_t)((start + own) * params.stride);
    firsts[own] = own < count ? keys[node] : params.sentinel;
    lasts[own] = own < count ? keys[node + 1] : params.sentinel;
    places[own] = 2 * own + (firsts[own] == lasts[own] ? 0 : 1);
    __syncthreads();
#define SUM(place) (sums + (2 * (size_t)((start + (place) / 2) * params.stride) + (place) % 2))
    // Two steps for the neighbours of a pair of nodes, then those of the tree.
#pragma unroll 1
    for (uint32_t step = 0; step < 2 || 1u << (step - 2) < count; step++) {
        bool neighbours = step < 2;
        uint32_t width = neighbours ? 1 : 1u << (step - 2), pairs = THREADS / 2 / width;
#pragma unroll 1
        for (uint32_t first = 0; first < pairs; first += QUADS) {
            uint32_t t = first + threadIdx.x / 4, a = neighbours ? 2 * t + step : 2 * width * t, b = a + width;
            // Slices without pairs come last.
            bool there = t < pairs && b < count && firsts[b] != params.sentinel;
            uint32_t a_last = 0, b_first = 0, b_last = 0, place = 0, b_place = 0;
            bool a_one = false;
            if (there) {
                a_last = lasts[a];
                a_one = firsts[a] == a_last;
                place = places[a];
                b_first = firsts[b];
                b_last = lasts[b];
                b_place = places[b];
            }
            bool done = place & DONE, b_one = b_first == b_last, joined = there && !done && a_last == b_first;
            bool adds = joined && (!neighbours || (!a_one && !b_one));
            // b's first bucket is done, too.
            bool ends = !b_one && !(joined && a_one);
            if (warp_ballot(adds)) {
                F sum = q_add(adds, SUM(place & ~DONE), SUM(2 * b));
                if (adds) q_store(ends ? buckets + b_first : SUM(place), sum);
            }
            if (there && !adds && !neighbours && !done) {
                if (!a_one) q_store(buckets + a_last, q_load(SUM(place)));
                if (ends) q_store(buckets + b_first, q_load(SUM(2 * b)));
            }
            warp_sync();
            if (there && threadIdx.x % 4 == 0) {
                if (neighbours) {
                    if (adds) places[a] = place | DONE;
                } else if (!(joined && b_one)) {
                    lasts[a] = b_last;
                    places[a] = b_place;
                }
            }
        }
        __syncthreads();
    }
    if (threadIdx.x >= 4 || firsts[0] == params.sentinel) return;
    bool one = firsts[0] == lasts[0];
    if (params.last) {
        q_store(buckets + firsts[0], q_load(SUM(0)));
        if (!one) q_store(buckets + lasts[0], q_load(SUM(places[0])));
    } else if (!one) {
        size_t node = 2 * (size_t)(start * params.stride);
        if (places[0] != 1) q_store(sums + node + 1, q_load(SUM(places[0])));
        if (threadIdx.x == 0) keys[node + 1] = lasts[0];
    }
}
