// found[0] = the largest 2^32 - 1 - i for i < len, or what was there if that is larger, of all i for which the state with the
// integer start + i as its element `position`, permuted, has an element RATE - 1 whose integer is 0 in the bits of `mask`.
// `state` has a state, then R and 1 / R for R = 2^(32 LIMBS): products by them bring integers into Montgomery form, and back.
// Grid: one thread an i, with the state in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(BOUNDS) grind(const Params params, BUFFERS(F, F, uint32_t)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) s[k] = f_load(state + k);
    F x = f_zero();
    x.l[0] = params.start[0] + i;
#if F_LIMBS > 1
    x.l[1] = params.start[1];
#endif
    x = f_mul(x, f_load(state + WIDTH));
#pragma unroll
    for (uint32_t k = 0; k < RATE; k++) {
        if (k == params.position) s[k] = x;
    }
    permute_state(s, constants, params.half, params.partial);
    F drawn = f_mul(s[RATE - 1], f_load(state + (WIDTH + 1)));
    bool zero = (drawn.l[0] & params.mask[0]) == 0;
#if F_LIMBS > 1
    zero = zero && (drawn.l[1] & params.mask[1]) == 0;
#endif
    if (zero) atomicMax(found, 0xffffffffu - i);
}
