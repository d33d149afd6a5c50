// Copies bytes between places of any alignment: dst[to + i] = src[from + i], `to` and `from` less than 16. Thread t owns word t of
// the target and keeps the bytes around the copy, which are zero after a copy to a target that is `fresh`.

extern "C" __global__ void __launch_bounds__(THREADS)
move_bytes(const Params params, BUFFERS(uint4, uint4)) {
    wait_for_previous();
    for (size_t t = (size_t)blockIdx.x * THREADS + threadIdx.x; t < params.words; t += (size_t)gridDim.x * THREADS) {
        // Target word t starts with the source's byte 16 t + from - to.
        size_t byte = 16 * t + 16 + params.from_byte - params.to, at = byte / 16;
        uint32_t shift = byte % 16;
        uint4 zero = make_uint4(0, 0, 0, 0);
        uint4 a = at >= 1 && at - 1 < params.src_words ? src[at - 1] : zero;
        uint4 b = at < params.src_words ? src[at] : zero;
        uint32_t in[9] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, 0}, out[4];
#pragma unroll
        for (uint32_t w = 0; w < 4; w++) {
            uint32_t low = 0, high = 0;
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                if (i == shift / 4 + w) low = in[i], high = in[i + 1];
            }
            out[w] = __funnelshift_r(low, high, 8 * (shift % 4));
        }
        uint4 y = make_uint4(out[0], out[1], out[2], out[3]), *place = dst + t;
        uint32_t first = t == 0 ? params.to : 0, end = t + 1 == params.words ? params.tail : 16;
        if (first == 0 && end == 16) {
            *place = y;
        } else if (params.fresh != 0) {
            *place = select_bytes(zero, y, first, end);
        } else {
            store_bytes(place, *place, y, first, end);
        }
    }
}
