// Sums over threads of a block.
//
// Comes after the arithmetic of a field and THREADS.

// Threads that share one of so many points.
__device__ constexpr uint32_t group_of(uint32_t points) {
    uint32_t group = THREADS;
    while (group > WARP && group * points > THREADS) group /= 2;
    return group;
}

// The sum of what the first `count` threads of each group have, or all if they are fewer. The others have zeros. In the
// group's first thread.
__device__ __forceinline__ F group_sum(F total, F* tile, uint32_t group, uint32_t count) {
    uint32_t thread = threadIdx.x, lane = thread % group;
    tile[thread] = total;
    __syncthreads();
    // Those of several devices need be no power of two.
    uint32_t below = min(group, count) - 1;
    below |= below >> 1;
    below |= below >> 2;
    below |= below >> 4;
    below |= below >> 8;
#pragma unroll 1
    for (uint32_t half = (below + 1) / 2; half > 0; half /= 2) {
        if (lane < half) {
            total = f_add(total, tile[thread + half]);
            tile[thread] = total;
        }
        __syncthreads();
    }
    return total;
}

// The sum of what `count` neighbouring lanes of a warp have, a power of two. In the first of them.
__device__ __forceinline__ F lanes_sum(F total, uint32_t count) {
    const uint32_t* words = reinterpret_cast<const uint32_t*>(&total);
#pragma unroll 1
    for (uint32_t distance = count / 2; distance > 0; distance /= 2) {
        F other;
        uint32_t* to = reinterpret_cast<uint32_t*>(&other);
#pragma unroll
        for (int i = 0; i < F_LIMBS; i++) to[i] = warp_shuffle_down(words[i], distance);
        total = f_add(total, other);
    }
    return total;
}
