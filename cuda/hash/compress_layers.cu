// Layers of nodes over two children, one after the other. `nodes` has digests that follow each other: 2 len children, then len
// nodes over each two of them, len / 2 nodes over these, and so on for `layers` layers. len is a power of two. A workgroup
// computes whole subtrees: one node of the last layer or more, or if len is small all nodes.
// Grid: LANES threads a node of the first layer, one for each element of a state, and zeros for those beyond WIDTH. Where there
// are fewer nodes than a GPU has room for, a layer takes as long as one permutation, and that is shorter so than by one thread. A
// launch goes up several layers. The workgroup's memory, which WGSL needs, is not used.

__device__ __forceinline__ F of_lane(const F& x, uint32_t lane) {
    F r;
#pragma unroll
    for (int k = 0; k < F_LIMBS; k++) r.l[k] = warp_shuffle(x.l[k], lane);
    return r;
}

__device__ __forceinline__ F of_other_lane(const F& x, uint32_t mask) {
    F r;
#pragma unroll
    for (int k = 0; k < F_LIMBS; k++) r.l[k] = warp_shuffle_xor(x.l[k], mask);
    return r;
}

// This lane's element of `mix`: with four elements x0 to x3, 2 x0 + 3 x1 + x2 + x3 is the sum of all, x0, and twice x1.
__device__ __forceinline__ F mix_lanes(const F& a, uint32_t element) {
    F x = element < WIDTH ? a : f_zero(), next = of_lane(x, (warp_lane() & ~3u) | ((warp_lane() + 1) & 3));
    F pair = add(x, of_other_lane(x, 1)), all = add(pair, of_other_lane(pair, 2));
    F mixed = add(add(all, x), add(next, next)), sum = mixed;
#pragma unroll
    for (uint32_t mask = 4; mask < LANES; mask *= 2) sum = add(sum, of_other_lane(sum, mask));
    return add(mixed, sum);
}

// The sum of the other elements is formed beside the S-box of element 0.
__device__ __forceinline__ F partial_round_lanes(const F& x, uint32_t element, const F& factor, const F& constant) {
    F first = power(x, constant), others = element - 1 < WIDTH - 1 ? x : f_zero();
#pragma unroll
    for (uint32_t mask = 1; mask < LANES; mask *= 2) others = add(others, of_other_lane(others, mask));
    F product = multiple(sum_of(f_zero()), element == 0 ? first : x, factor);
    return add(add(others, of_lane(first, warp_lane() & ~(LANES - 1))), product);
}

// Constants are loaded a round ahead.
__device__ __forceinline__ F permute_lanes(F x, uint32_t element, const F* constants, uint32_t half, uint32_t partial) {
    uint32_t place = element < WIDTH ? element : 0;
    const F *diagonal = constants + 2 * half * WIDTH, *ones = diagonal + WIDTH;
    x = mix_lanes(x, element);
#pragma unroll 1
    for (uint32_t end = 0; end < 2; end++) {
        const F* row = constants + end * half * WIDTH + place;
        F next = f_load(row);
#pragma unroll 1
        for (uint32_t round = 0; round < half; round++) {
            F constant = next;
            if (round + 1 < half) next = f_load(row + (round + 1) * WIDTH);
            x = mix_lanes(power(x, constant), element);
        }
        if (end == 1 || partial == 0) continue;
        F factor = f_load(diagonal + place);
        next = f_load(ones);
#pragma unroll 1
        for (uint32_t round = 0; round < partial; round++) {
            F constant = next;
            if (round + 1 < partial) next = f_load(ones + round + 1);
            x = partial_round_lanes(x, element, factor, constant);
        }
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS) compress_layers(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    uint32_t element = threadIdx.x % LANES, node = threadIdx.x / LANES, len = params.len;
    F* children = nodes;
#pragma unroll 1
    for (uint32_t layer = 0; layer < params.layers; layer++) {
        F* parents = children + (size_t)len * (2 * DIGEST);
        uint32_t own = (THREADS / LANES) >> layer, i = blockIdx.x * own + node;
        bool is_node = node < own && i < len;
        // Whole warps alike: lanes tell each other their elements.
        if (warp_ballot(is_node) != 0) {
            F x = is_node && element < 2 * DIGEST ? f_load(children + (size_t)i * (2 * DIGEST) + element) : f_zero();
            x = permute_lanes(x, element, constants, params.half, params.partial);
            if (is_node && element < DIGEST) parents[(size_t)i * DIGEST + element] = x;
        }
        __syncthreads();
        children = parents;
        len /= 2;
    }
}
