// Poseidon, a permutation of WIDTH elements.
//
// Comes after the arithmetic of the field, and
//   WIDTH, ALPHA   elements of a state; the exponent of the S-box: 3, 5 or 7
// The constants are an array of elements: those of the full rounds at the start and of those at the end, WIDTH a round; the
// matrix M by rows; the matrix of the last partial round; then 2 WIDTH for each partial round: the constant of element 0, the
// first row of its sparse matrix, and the rest of that matrix' first column.
//
// A partial round has an S-box on element 0 alone, which commutes with matrices on the other elements. So M is divided into such
// a matrix, which moves on to the next round, and one that is the identity but for its first row and column. The matrix of the
// last partial round takes all that moved.
//
// Long states go through loops that take element 0 and append its successor, so that elements stay in registers without the
// text of a product for each.
//
// Source: Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: a new hash function for zero-knowledge proof
// systems", USENIX Security 2021; the sparse matrices are those of its supplementary material.

#if WIDTH <= 4
#define UNROLL WIDTH
#else
#define UNROLL 1
#endif

// A sum of products.
#if F_LAZY
typedef FSum Sum;

__device__ __forceinline__ Sum sum_of(const F& x, const F& y) {
    Sum sum = f_sum_zero();
    f_mac(sum, x, y);
    return sum;
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& x, const F& y) {
    f_mac(sum, x, y);
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return f_sum_reduce(sum);
}
#else
typedef F Sum;

__device__ __forceinline__ Sum sum_of(const F& x, const F& y) {
    return f_mul(x, y);
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& x, const F& y) {
    sum = f_add(sum, f_mul(x, y));
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return sum;
}
#endif

// (x + c)^ALPHA
__device__ __forceinline__ F power(const F& x, const F& c) {
    F y = f_add(x, c), y2 = f_square(y);
    if (ALPHA == 3) return f_mul(y2, y);
    F y4 = f_square(y2);
    if (ALPHA == 5) return f_mul(y4, y);
    return f_mul(y4, f_mul(y2, y));
}

// Drops element `first`, and appends x.
__device__ __forceinline__ void shift_in(F* s, int first, const F& x) {
#pragma unroll
    for (int i = 0; i < WIDTH - 1; i++) {
        if (i >= first) s[i] = s[i + 1];
    }
    s[WIDTH - 1] = x;
}

// s = matrix s
__device__ __forceinline__ void multiply(F* s, const F* matrix) {
    F r[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) r[i] = f_zero();
#pragma unroll UNROLL
    for (int i = 0; i < WIDTH; i++) {
        const F* row = matrix + i * WIDTH;
        Sum sum = sum_of(s[0], f_load(row));
#pragma unroll
        for (int k = 1; k < WIDTH; k++) sum_add(sum, s[k], f_load(row + k));
        shift_in(r, 0, sum_value(sum));
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++) s[i] = r[i];
}

__device__ __forceinline__ void partial_round(F* s, const F* constants) {
    F x = power(s[0], f_load(constants));
    Sum sum = sum_of(x, f_load(constants + 1));
#pragma unroll UNROLL
    for (int i = 1; i < WIDTH; i++) {
        F y = s[1];
        sum_add(sum, y, f_load(constants + 1 + i));
        shift_in(s, 1, f_add(y, f_mul(x, f_load(constants + WIDTH + i))));
    }
    s[0] = sum_value(sum);
}

// The permutation, with `half` full rounds at each end and `partial` ones between.
__device__ __forceinline__ void permute_state(F* s, const F* constants, uint32_t half, uint32_t partial) {
    const F* matrix = constants + 2 * half * WIDTH;
    const F* sparse = matrix + 2 * WIDTH * WIDTH;
    // One text for all rounds: a partial one where `round` is from `half` to `half + partial`.
    const F* row = constants;
#pragma unroll 1
    for (uint32_t round = 0; round < 2 * half + partial; round++) {
        bool in_part = round >= half && round < half + partial;
        if (in_part && round + 1 < half + partial) {
            partial_round(s, sparse);
            sparse += 2 * WIDTH;
            continue;
        }
        if (in_part) {
            s[0] = power(s[0], f_load(sparse));
        } else {
#pragma unroll UNROLL
            for (int i = 0; i < WIDTH; i++) shift_in(s, 0, power(s[0], f_load(row + i)));
            row += WIDTH;
        }
        multiply(s, in_part ? matrix + WIDTH * WIDTH : matrix);
    }
}
