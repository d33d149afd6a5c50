// 1 / x for the x of each thread of a block, none of which is zero, with one inversion for THREADS / ROOTS of them: the
// products of pairs, of pairs of these and so on are a tree for each, with nodes 2 i and 2 i + 1 below node i and ROOTS
// roots from number ROOTS on, and inverses are passed down from there. All threads must call it. `nodes` has 2 THREADS
// elements in shared memory. ROOTS threads invert.
//
// Source of inversions that are shared: Montgomery, "Speeding the Pollard and elliptic curve methods of
// factorization", Mathematics of Computation 48 (1987), section 10.3.1. There the products are a chain, here a tree.
__device__ inline F group_inverse(F* nodes, const F& x) {
    uint32_t thread = threadIdx.x;
    nodes[THREADS + thread] = x;
    __syncthreads();
#pragma unroll 1
    for (uint32_t width = THREADS / 2; width >= ROOTS; width /= 2) {
        uint32_t node = width + thread;
        if (thread < width) nodes[node] = f_mul(nodes[2 * node], nodes[2 * node + 1]);
        __syncthreads();
    }
    if (thread < ROOTS) nodes[ROOTS + thread] = f_inverse(nodes[ROOTS + thread]);
    __syncthreads();
#pragma unroll 1
    for (uint32_t width = ROOTS; width < THREADS; width *= 2) {
        uint32_t node = width + thread;
        if (thread < width) {
            F inverse = nodes[node], left = nodes[2 * node];
            nodes[2 * node] = f_mul(inverse, nodes[2 * node + 1]);
            nodes[2 * node + 1] = f_mul(inverse, left);
        }
        __syncthreads();
    }
    return nodes[THREADS + thread];
}
