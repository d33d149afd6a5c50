// Adds neighbours of a list of points that is sorted by bucket: elements 2 j and 2 j + 1 become element j, of half as
// many. Where the two are of different buckets, the second stays, and the first goes to a list of its own, in which each
// bucket comes once: at place edges[j], the number of such j before. Affine additions of 5M + 1S, whose inversions are
// shared as in point_divide.
//   keys, out_keys    the buckets of elements, those of `sentinel` last
//   values            2 * point + (1 if its opposite is meant) of each element; without VALUES, element i is points[i]
//   side_keys, side_values   the list of those left over, values as above; from its end on, side_keys is `sentinel`
// Grid: thread t owns the pairs t, t + threads, t + 2 threads, …. Shared memory: two elements of F a thread.

// Blocks of a multiprocessor: they wait for memory, but with more of them points leave the registers.
#define BLOCKS (F_LIMBS <= 8 ? 512 / THREADS : F_LIMBS <= 12 ? 384 / THREADS : 1)

// Pair j: its buckets, `next` being `sentinel` if it has one element, and the values of its first and its last element,
// which are the same where the first is left over.
struct Task {
    uint32_t key, next, first, last;
};

__device__ __forceinline__ uint32_t value_of(const uint32_t* values, uint32_t i) {
#ifdef VALUES
    return values[i];
#else
    return 2 * i;
#endif
}

__device__ __forceinline__ Task task_of(const Params& params, const uint32_t* keys, const uint32_t* values, uint32_t j) {
    bool whole = 2 * j + 1 < params.len;
    uint32_t first = value_of(values, 2 * j), last = whole ? value_of(values, 2 * j + 1) : first;
    Task task;
    task.key = keys[2 * j];
    task.next = whole ? keys[2 * j + 1] : params.sentinel;
    task.last = task.next == params.sentinel ? first : last;
    task.first = task.next == task.key ? first : task.last;
    return task;
}

__device__ __forceinline__ F x_of(const Params& params, const Task& task, const Affine* points, uint32_t value) {
    return task.key == params.sentinel ? f_zero() : f_load(&points[value / 2].x);
}

__device__ __forceinline__ Affine point_of(const Params& params, const Task& task, const Affine* points, uint32_t value) {
    if (task.key == params.sentinel) return affine_infinity();
    Affine point = c_load(points + value / 2);
#ifdef VALUES
    if (value % 2) point = affine_negate(point);
#endif
    return point;
}

// Whether the sum of two points is that of the chord through them.
__device__ __forceinline__ bool is_chord(const F& difference, const F& a, const F& b) {
    return !x_is_zero(difference) && !f_is_zero(a) && !f_is_zero(b);
}

__device__ __forceinline__ void store_affine(Affine* out, const F& x, const F& y) {
    Affine point = {x, y};
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Affine) / F_ALIGN); i++) {
        reinterpret_cast<FWord*>(out)[i] = reinterpret_cast<const FWord*>(&point)[i];
    }
}

// What a pair needs is asked for a product or more before it is used: its points while the pair before is added, and their
// places in memory one pair earlier.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
msm_pairs(const Params params, BUFFERS(uint32_t, uint32_t, Affine, uint32_t, uint32_t, Affine, uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    uint32_t thread = blockIdx.x * THREADS + threadIdx.x, len = (params.len + 1) / 2;
    F product = f_one();
    uint32_t runs = thread < params.threads && thread < len ? (len - 1 - thread) / params.threads + 1 : 0;
    Task task, next;
    if (runs > 0) {
        task = task_of(params, keys, values, thread);
        next = task_of(params, keys, values, thread + min(1u, runs - 1) * params.threads);
        F a = x_of(params, task, points, task.first), b = x_of(params, task, points, task.last);
#pragma unroll 1
        for (uint32_t run = 0; run < runs; run++) {
            uint32_t j = thread + run * params.threads;
            Task behind = task_of(params, keys, values, thread + min(run + 2, runs - 1) * params.threads);
            F next_a = x_of(params, next, points, next.first), next_b = x_of(params, next, points, next.last);
            F d = x_sub(b, a);
            if (task.key != task.next) {
                d = f_one();
                bool left = task.next != params.sentinel;
                out_keys[j] = left ? task.next : task.key;
                if (left) {
                    uint32_t place = edges[j];
                    side_keys[place] = task.key;
                    side_values[place] = value_of(values, 2 * j);
                }
            } else {
                out_keys[j] = task.key;
                if (task.key == params.sentinel) {
                    d = f_one();
                } else {
                    out[j].x = product;
                    if (!is_chord(d, a, b)) {
                        d = affine_denominator(point_of(params, task, points, task.first),
                                               point_of(params, task, points, task.last));
                    }
                }
            }
            product = x_mul(product, d);
            task = next, next = behind, a = next_a, b = next_b;
        }
    }
    // The rest of the list of those left over; the last edge tells where it starts.
    if (thread < params.threads) {
        uint32_t end = edges[len];
        for (uint32_t i = thread; i < params.leftovers; i += params.threads) {
            if (i >= end) side_keys[i] = params.sentinel;
        }
    }
    F inverse = group_inverse(reinterpret_cast<F*>(shared), x_reduce(product));
    if (runs == 0) return;
    uint32_t j = thread + (runs - 1) * params.threads;
    task = task_of(params, keys, values, j);
    next = task_of(params, keys, values, thread + (max(runs, 2u) - 2) * params.threads);
    Affine p = point_of(params, task, points, task.first), q = point_of(params, task, points, task.last);
    F prefix = f_zero();
    if (task.key == task.next && task.key != params.sentinel) prefix = f_load(&out[j].x);
#pragma unroll 1
    for (uint32_t run = runs; run > 0; run--) {
        j = thread + (run - 1) * params.threads;
        Task behind = task_of(params, keys, values, thread + (max(run, 3u) - 3) * params.threads);
        F own = x_mul(inverse, prefix), d = x_sub(q.x, p.x);
        bool live = task.key != params.sentinel, pair = live && task.key == task.next;
        bool chord = pair && is_chord(d, p.x, q.x);
        if (!chord) {
            d = f_one();
            if (pair) {
                d = affine_denominator(p, q);
                q = affine_add(p, q, x_reduce(own));
            }
            if (live) store_affine(out + j, q.x, q.y);
        }
        inverse = x_mul(inverse, d);
        F slope = x_mul(x_sub(q.y, p.y), own);
        F x = x_sub(x_sub(x_square(slope), p.x), q.x);
        q = point_of(params, next, points, next.last);
        if (next.key == next.next && next.key != params.sentinel) {
            prefix = f_load(&out[thread + (max(run, 2u) - 2) * params.threads].x);
        }
        F y = x_sub(x_mul(slope, x_sub(p.x, x)), p.y);
        if (chord) store_affine(out + j, x_reduce(x), x_reduce(y));
        p = point_of(params, next, points, next.first);
        task = next, next = behind;
    }
}
