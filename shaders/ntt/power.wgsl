// Powers by squaring and multiplying: the twin of ntt/power.cuh.

// base^exponent, in up to 2 log2(exponent) products.
fn power(base: F, exponent: u32) -> F {
    var result = f_one();
    var square = base;
    for (var e = exponent; e != 0u; e >>= 1u) {
        if ((e & 1u) != 0u) {
            result = f_mul(result, square);
        }
        square = f_mul(square, square);
    }
    return result;
}
