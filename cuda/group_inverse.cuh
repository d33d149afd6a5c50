// 1 / x for the x of each thread of a block, none of which is zero, with one inversion for all of them: the products of pairs,
// of pairs of these and so on are a tree, with nodes 2 i and 2 i + 1 below node i, and inverses are passed down from its
// root. All threads must call it. `nodes` has 2 THREADS elements in shared memory.
__device__ inline F group_inverse(F* nodes, const F& x) {
    uint32_t thread = threadIdx.x;
    nodes[THREADS + thread] = x;
    __syncthreads();
#pragma unroll 1
    for (uint32_t width = THREADS / 2; width > 0; width /= 2) {
        uint32_t node = width + thread;
        if (thread < width) nodes[node] = f_mul(nodes[2 * node], nodes[2 * node + 1]);
        __syncthreads();
    }
    if (thread == 0) nodes[1] = f_inverse(nodes[1]);
    __syncthreads();
#pragma unroll 1
    for (uint32_t width = 1; width < THREADS; width *= 2) {
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
