// What the lanes of a warp tell each other. All lanes of a warp call each of these functions together.
//
// No other source names the compiler's own functions for this. Sources say WARP where they mean the width of a warp. Those
// that are for 32 lanes whatever they are given refuse another width: aes/blocks.cu, aes/ctr.cu, aes/ghash.cu, sqrt/warp.cu.

#define WARP 32

// A bit for each lane.
typedef uint32_t LaneMask;

#define ALL_LANES 0xffffffffu

// This thread's place in its warp.
__device__ __forceinline__ uint32_t warp_lane() { return threadIdx.x % WARP; }

// The value of one lane.
__device__ __forceinline__ uint32_t warp_shuffle(uint32_t value, uint32_t lane) {
    return __shfl_sync(ALL_LANES, value, lane);
}

// The value of the lane whose number differs by the bits of `mask`.
__device__ __forceinline__ uint32_t warp_shuffle_xor(uint32_t value, uint32_t mask) {
    return __shfl_xor_sync(ALL_LANES, value, mask);
}

// The value of the lane so far below; the own one where there is none.
__device__ __forceinline__ uint32_t warp_shuffle_up(uint32_t value, uint32_t distance) {
    return __shfl_up_sync(ALL_LANES, value, distance);
}

// The value of the lane so far above; the own one where there is none.
__device__ __forceinline__ uint32_t warp_shuffle_down(uint32_t value, uint32_t distance) {
    return __shfl_down_sync(ALL_LANES, value, distance);
}

// The lanes that vote for it.
__device__ __forceinline__ LaneMask warp_ballot(bool vote) { return __ballot_sync(ALL_LANES, vote); }

// How many lanes a mask has.
__device__ __forceinline__ uint32_t warp_count(LaneMask lanes) { return __popc(lanes); }

// The lowest lane of a mask that is not empty.
__device__ __forceinline__ uint32_t warp_first(LaneMask lanes) { return __ffs(lanes) - 1; }

// The lanes below one.
__device__ __forceinline__ LaneMask warp_below(uint32_t lane) { return ((LaneMask)1 << lane) - 1; }

// What lanes wrote before, all lanes see behind it.
__device__ __forceinline__ void warp_sync() { __syncwarp(); }
