// Which elements of a list that is sorted by bucket become which element of the next list, where neighbours of a bucket are added
// up: places[j] is the number of the first of the two, or of the last one of a bucket that has no neighbour. Behind the end of the
// next list, which the last offset tells, it is 0xffffffff.
//   firsts    the first element of each bucket
//   offsets   the first element of each bucket in the next list, and in the end their number
// Grid: one thread an element of either list. No shared memory.

extern "C" __global__ void __launch_bounds__(256)
msm_places(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.out_len && i >= offsets[params.sentinel]) places[i] = 0xffffffff;
    if (i >= params.len || keys[i] >= params.sentinel) return;
    uint32_t key = keys[i], number = i - firsts[key];
    if (number % 2 == 0) places[offsets[key] + number / 2] = i;
}
