// out[stride i] = the digest of message i of x. TABLE: it is the bytes offsets[i] to offsets[i + 1] - 1, counted from byte `at` on;
// else `bytes` bytes from at + i pitch on.
// Grid: one thread a message, with the state in registers. Neighbours read different messages, 16 or 8 bytes at a time where these
// are aligned so. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) hash_messages(const Params params, BUFFERS(uint4, uint32_t, uint4)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t at = params.at + (uint32_t)i * params.pitch;
    uint32_t bytes = params.bytes;
    if (params.flags & TABLE) {
        uint32_t first = offsets[i];
        at = params.at + first;
        bytes = offsets[i + 1] - first;
    }
    State s;
    start(s);
    int32_t rest = (int32_t)bytes;
#pragma unroll 1
    for (bool last = false; !last; rest -= BLOCK, at += BLOCK) {
        absorb(s, reinterpret_cast<const uint32_t*>(x), at, rest, bytes, params.pad);
        last = is_last(rest);
    }
    uint32_t h[8];
    finish(h, s);
    store_digest(out + 2 * i * params.stride, h);
}
