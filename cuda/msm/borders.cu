// Where the elements of each bucket start and end in a list of keys that is sorted, those of `sentinel` last: firsts[k] is the
// number of the first element of bucket k, and ends[k] that behind its last. Those of buckets without elements stay as they are.
// Grid: one thread a key. No shared memory.

extern "C" __global__ void __launch_bounds__(256) msm_borders(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len || keys[i] >= params.sentinel) return;
    uint32_t key = keys[i];
    if (i == 0 || keys[i - 1] != key) firsts[key] = i;
    if (i + 1 == params.len || keys[i + 1] != key) ends[key] = i + 1;
}
