// What the kernels of a sumcheck share.
//
// Comes after the arithmetic of the field F of challenges and:
//   EXTENDED   1 if tables may have elements of the field B below
//   WEIGHTED   1 if pairs have weights
//   POINTS     points at which a round is evaluated

// An element of a table as one of F.
__device__ __forceinline__ F lift(const F& x) {
    return x;
}

#if EXTENDED
__device__ __forceinline__ F lift(const B& x) {
    F r = f_zero();
    r.c[0] = x;
    return r;
}
#endif

// A sum of terms, times their weights if there are any.
#if WEIGHTED && F_LAZY
typedef FSum Sum;

__device__ __forceinline__ Sum sum_zero() {
    return f_sum_zero();
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& weight, const F& term) {
    f_mac(sum, weight, term);
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return f_sum_reduce(sum);
}
#else
typedef F Sum;

__device__ __forceinline__ Sum sum_zero() {
    return f_zero();
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& weight, const F& term) {
#if WEIGHTED
    sum = f_add(sum, f_mul(weight, term));
#else
    sum = f_add(sum, term);
#endif
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return sum;
}
#endif

struct Sums {
    Sum at[POINTS];
};

struct Params {
    uint32_t pairs;
    uint32_t log_chunk;
    uint32_t chunks;
    uint32_t source_stride; // from one table to the next, where they share a buffer
    uint32_t target_stride;
    uint32_t low_at;  // the weight of pair x is eq[low_at + low bits of x], times eq[high_at + the others]
    uint32_t low_bits;
    uint32_t high_at;
    uint32_t both;    // chunks have pairs of several factors of the second kind
    uint32_t partials_at;
    // Where a challenge is drawn: what the round before left, and where its message goes.
    uint32_t previous_chunks;
    uint32_t previous_at;
    uint32_t claim_at; // two sums that rounds have to have, of which one is read and the other written
    uint32_t parity;
    uint32_t lines_at;  // what the first two values of a round count in its message
    uint32_t matrix_at; // and the others, in any round
    uint32_t message_at;
    uint32_t ones;      // bit j: the first point was 1 and not 0, of the round before, and of those of this launch
    uint32_t rounds;    // of this launch, if it does all that are left
};
