// Runs a list of steps on each element: multiplications modulo its prime, and what stands between them. The steps from
// `first` to `end` are of one launch; the accumulator and the slots lie in `state` between launches.
// Grid: LANES threads an element. Shared memory: one factor for each thread. Registers: four times the limbs of a thread,
// for the accumulator, the modulus, and the two halves of a product.
//
// `constants` has for each prime HEAD words, the first of which is -1/p mod 2^32, and sections of LIMBS words; `state` has
// the limbs of an element's slots at a distance of `len` words. Codes and sections are those of the host.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    mod_run(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    __shared__ uint32_t staged[THREADS * M_LIMBS];
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x, element = thread / LANES;
    uint32_t lane = threadIdx.x % LANES;
    // Threads without an element end, but for those of a warp that has one and exchanges words.
    if ((LANES == 1 ? element : (thread - warp_lane()) / LANES) >= params.len) return;
    bool active = element < params.len, lead = active && lane == 0;
    uint32_t prime = active && params.indexed ? indices[element] : 0;
    bool known = prime < params.primes;
    const uint32_t* own = constants + (known ? prime : 0) * (size_t)params.stride + HEAD;
    const uint32_t* section = own + lane * M_LIMBS;
    uint32_t* slots = state + element + (size_t)lane * M_LIMBS * params.len;
    size_t slot = (size_t)LIMBS * params.len;
    uint32_t* factor = staged + threadIdx.x;

    uint32_t n0 = own[-(int)HEAD], acc[M_LIMBS] = {}, p[M_LIMBS];
#pragma unroll
    for (int j = 0; j < M_LIMBS; j++) p[j] = section[MODULUS * LIMBS + j];
    if (active && params.first > 0) {
#pragma unroll
        for (int j = 0; j < M_LIMBS; j++) acc[j] = slots[(size_t)j * params.len];
    }

#pragma unroll 1
    for (uint32_t at = params.first; at < params.end; at++) {
        uint32_t step = program[at], code = step & 15, x = step >> 4 & ((1u << ARGUMENT_BITS) - 1);
        uint32_t y = step >> (4 + ARGUMENT_BITS);
        // The bit of a logarithm: who has it and where.
        uint32_t bit = code == CORRECT ? y : x, word = bit / 32, holder = word / M_LIMBS;
        uint32_t* bits = slots + BITS * slot + word % M_LIMBS * (size_t)params.len;
        if (code < MULTIPLICATIONS) {
            if (code == SQUARE) {
#pragma unroll
                for (int j = 0; j < M_LIMBS; j++) factor[j * THREADS] = acc[j];
            } else if (code == SLOT || code == DIGIT) {
                uint32_t low = x * WINDOW;
                if (code == DIGIT) x = TABLE + (own[y * LIMBS + low / 32] >> low % 32 & ((1u << WINDOW) - 1));
                const uint32_t* from = slots + x * slot;
#pragma unroll
                for (int j = 0; j < M_LIMBS; j++) factor[j * THREADS] = active ? from[(size_t)j * params.len] : 0;
            } else {
                if (code == CORRECT) {
                    uint32_t held = active && lane == holder ? *bits >> bit % 32 & 1 : 0;
                    if (m_of(held, holder) == 0) x = ONE;
                }
#pragma unroll
                for (int j = 0; j < M_LIMBS; j++) factor[j * THREADS] = section[(size_t)x * LIMBS + j];
            }
            m_multiply(acc, p, n0, factor, lane);
        } else if (code == START) {
            uint32_t difference[M_LIMBS];
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) acc[j] = active ? values[element * LIMBS + lane * M_LIMBS + j] : 0;
            bool below = m_difference(difference, acc, p, lane) != 0;
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) acc[j] = known && below ? acc[j] : 0;
            if (lead) mask[element] = !known ? NO_PRIME : !below ? TOO_LARGE : ROOT;
        } else if (code == STORE) {
            if (active) {
#pragma unroll
                for (int j = 0; j < M_LIMBS; j++) slots[x * slot + (size_t)j * params.len] = acc[j];
            }
        } else if (code == LOAD) {
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) acc[j] = active ? slots[x * slot + (size_t)j * params.len] : 0;
        } else if (code == LOAD_CONSTANT) {
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) acc[j] = section[(size_t)x * LIMBS + j];
        } else if (code == BIT) {
            uint32_t differs = 0;
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) differs |= acc[j] ^ section[ONE * LIMBS + j];
            differs = m_any(differs) != 0;
            if (active && lane == holder) *bits = (bit % 32 == 0 ? 0 : *bits) | differs << bit % 32;
        } else if (code == CHECK) {
            uint32_t differs = 0;
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) differs |= acc[j] ^ (active ? slots[x * slot + (size_t)j * params.len] : 0);
            if (m_any(differs) != 0 && lead && mask[element] == ROOT) mask[element] = NO_ROOT;
        } else { // FINISH
            uint32_t other[M_LIMBS], difference[M_LIMBS], any = 0;
            m_difference(other, p, acc, lane);
#pragma unroll
            for (int j = 0; j < M_LIMBS; j++) any |= acc[j];
            bool smaller = m_difference(difference, other, acc, lane) != 0, odd = m_of(acc[0], 0) & 1;
            bool swap = (params.choice == EVEN && odd) || (params.choice == SMALLER && smaller);
            // The opposite of 0 is 0.
            any = m_any(any);
            if (params.choice == LARGER) swap = !smaller && any != 0;
            bool valid = m_of(lead ? mask[element] : 0, 0) == ROOT;
            if (active) {
#pragma unroll
                for (int j = 0; j < M_LIMBS; j++) {
                    out[element * LIMBS + lane * M_LIMBS + j] = valid ? swap ? other[j] : acc[j] : 0;
                }
            }
        }
    }

    if (active) {
#pragma unroll
        for (int j = 0; j < M_LIMBS; j++) slots[(size_t)j * params.len] = acc[j];
    }
}
