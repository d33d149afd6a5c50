// Sums of the points of each bucket, from pairs of a bucket and a point sorted by bucket: what msm_accumulate is compared
// with. Grid: one thread a bucket, which adds all its points to what the bucket holds, however many they are. No shared
// memory.
//
// A value is 2 * point + (1 if its opposite is added).

extern "C" __global__ void __launch_bounds__(THREADS)
msm_unbalanced(const Params params, BUFFERS(uint32_t, uint32_t, Affine, Xyzz)) {
    wait_for_previous();
    uint32_t bucket = blockIdx.x * THREADS + threadIdx.x;
    if (bucket >= params.buckets) return;
    // Its first pair.
    uint32_t i = 0;
    for (uint32_t above = params.len; i < above;) {
        uint32_t middle = i + (above - i) / 2;
        if (keys[middle] < bucket) {
            i = middle + 1;
        } else {
            above = middle;
        }
    }
    if (i >= params.len || keys[i] != bucket) return;
    Xyzz sum = c_load(buckets + bucket);
#pragma unroll 1
    for (; i < params.len && keys[i] == bucket; i++) {
        uint32_t value = params.ordered ? 2 * i : values[i];
        Affine point = c_load(points + value / 2);
        if (value % 2) point = affine_negate(point);
        sum = x_add_affine(sum, point);
    }
    x_store(buckets + bucket, sum);
}
