// Multiples of one point by a table: out[i] = k[i] G for integers k[i] of `words` words, whose digits have 8 bits; digit w of
// value d adds table[255 w + d - 1] = d 2^(8 w) G. A launch does `digits` digits from number `first` on, and starts from out[i]
// where `carried` says so. Grid: one thread a multiple. No shared memory.

extern "C" __global__ void __launch_bounds__(256)
point_fixed_base(const Params params, BUFFERS(Affine, uint32_t, Xyzz)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    const uint32_t* words = k + i * params.words;
    Xyzz sum = params.carried ? c_load(out + i) : xyzz_infinity();
#pragma unroll 1
    for (uint32_t digit = params.first; digit < params.first + params.digits; digit++) {
        uint32_t value = words[digit / 4] >> (8 * (digit % 4)) & 255;
        if (value) sum = xyzz_add_affine(sum, c_load(table + (255 * digit + value - 1)));
    }
    out[i] = sum;
}
