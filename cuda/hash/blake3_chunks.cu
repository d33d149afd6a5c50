// The chaining values of chunks of 1024 bytes, the leaves of BLAKE3's tree, or the digests of messages that are one chunk (ROOT).
// TABLE: chunk i has jobs[4 i + 1] bytes from at + jobs[4 i] on and is number jobs[4 i + 2] of its message; out[stride
// jobs[4 i + 3]] is its value. Else it is chunk i mod `chunks` of message i / chunks, which has `bytes` bytes from
// at + pitch i / chunks on and starts with chunk `first`; out[stride i] is its value.
// Grid: one thread a chunk, with the state in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) blake3_chunks(const Params params, BUFFERS(uint4, uint4, uint4)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    size_t target = i;
    uint32_t at, bytes, number;
    if (params.flags & TABLE) {
        uint4 job = jobs[i];
        at = params.at + job.x;
        bytes = job.y;
        number = job.z;
        target = job.w;
    } else {
        uint32_t message = (uint32_t)i / params.chunks, chunk = (uint32_t)i % params.chunks;
        at = params.at + message * params.pitch + chunk * 1024;
        bytes = min(params.bytes - chunk * 1024, 1024u);
        number = params.first + chunk;
    }
    uint32_t h[8], end = params.flags & ROOT ? CHUNK_END | AS_ROOT : CHUNK_END, flags = CHUNK_START;
    start(h);
    int32_t rest = (int32_t)bytes;
#pragma unroll 1
    do {
        uint32_t m[BLOCK_WORDS] = {0};
        add_block(m, reinterpret_cast<const uint32_t*>(x), at, rest, 0);
        if (rest <= (int32_t)BLOCK) flags |= end;
        compress(h, m, number, min((uint32_t)rest, BLOCK), flags);
        flags = 0;
        at += BLOCK;
        rest -= BLOCK;
    } while (rest > 0);
    store_digest(out + 2 * target * params.stride, h);
}
