// out[i] = d a[i], with d the `digits` binary digits of k[i] from number `first` on; plus 2^digits out[i] where `carried` says
// that it has the multiples by the digits above. By digits from the highest down. Grid: one thread an element. No shared memory.
// Doubling is left to the addition, which does it where both points are equal: so there is one addition in the code.

extern "C" __global__ void __launch_bounds__(256)
point_multiply(const Params params, BUFFERS(Affine, uint32_t, Xyzz)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    Xyzz point = xyzz_of_affine(a[i]), sum = params.carried ? out[i] : xyzz_infinity();
    uint32_t scalar = k[i] >> params.first;
#pragma unroll 1
    for (int step = 2 * (int)params.digits - 1; step >= 0; step--) {
        // Odd steps double; even ones add the point where the digit is 1.
        bool doubling = step % 2 == 1;
        if (doubling || scalar >> step / 2 & 1) sum = xyzz_add(sum, doubling ? sum : point);
    }
    out[i] = sum;
}
