// Adds neighbours of a list of points that is sorted by bucket, two by two within each bucket. Element j of the next list comes of
// the elements places[j] and places[j] + 1, or of the first alone if the other is of another bucket. Affine additions of 5M + 1S,
// whose inversions are shared as in point_divide.
//   keys, out_keys    the buckets of elements, those of `sentinel` last
//   values            2 * point + (1 if its opposite is meant) of each element; without VALUES, element i is points[i]
//   places            0xffffffff behind the end of the next list
// Grid: thread t owns the elements t, t + threads, t + 2 threads, … of the next list. Shared memory: two elements of F a thread, and
// three more that are declared here.

// Blocks of a multiprocessor: they wait for memory, but with more of them points leave the registers.
#define BLOCKS (F_LIMBS <= 8 ? 512 / THREADS : F_LIMBS <= 12 ? 384 / THREADS : 1)

// An element of the next list: its bucket, or `sentinel` if there is none, and the values of its first and its last element,
// which are the same where it is alone.
struct Task {
    uint32_t key, first, last;
    bool pair;
};

__device__ __forceinline__ uint32_t value_of(const uint32_t* values, uint32_t i) {
#ifdef VALUES
    return values[i];
#else
    return 2 * i;
#endif
}

__device__ __forceinline__ Task task_of(const Params& params, const uint32_t* keys, const uint32_t* values, uint32_t place) {
    bool live = place != 0xffffffff;
    uint32_t i = live ? place : 0;
    Task task;
    uint32_t other = i + 1 < params.len ? i + 1 : i, key = keys[i], next = keys[other], last = value_of(values, other);
    task.key = live ? key : params.sentinel;
    task.pair = live && other != i && next == key;
    task.first = value_of(values, i);
    task.last = task.pair ? last : task.first;
    return task;
}

// Shared memory of a thread for what it will need: words of F_ALIGN bytes, each THREADS words from the next one, so that neighbours
// do not get in each other's way. Two elements of F lie in what inversions use, three behind it.
struct Ahead {
    FWord *low, *high;
};

#define F_PARTS ((int)(sizeof(F) / F_ALIGN))

__device__ __forceinline__ FWord* ahead_word(const Ahead& ahead, int word) {
    return (word < 2 * F_PARTS ? ahead.low : ahead.high - 2 * F_PARTS * THREADS) + word * THREADS;
}

// Asks for something of memory, to be in this thread's words from `first` on behind ahead_wait.
template <typename T>
__device__ __forceinline__ void ahead_ask(const Ahead& ahead, int first, const T* from) {
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / F_ALIGN); i++) {
        FWord* to = ahead_word(ahead, first + i);
        const FWord* word = reinterpret_cast<const FWord*>(from) + i;
#if __CUDA_ARCH__ >= 800
        uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(word), "n"(F_ALIGN) : "memory");
#else
        *to = *word;
#endif
    }
}

// What has been asked for since the last call belongs together.
__device__ __forceinline__ void ahead_close() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all but the last LEFT of what belongs together.
template <int LEFT>
__device__ __forceinline__ void ahead_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

template <typename T>
__device__ __forceinline__ T ahead_take(const Ahead& ahead, int first) {
    T r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / F_ALIGN); i++) reinterpret_cast<FWord*>(&r)[i] = *ahead_word(ahead, first + i);
    return r;
}

__device__ __forceinline__ Affine signed_point(const Affine& point, uint32_t value) {
#ifdef VALUES
    return value % 2 ? affine_negate(point) : point;
#else
    return point;
#endif
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

// The points of a pair are asked for while the pair before is added, or two pairs before where there is one product for each; their
// places in memory one pair earlier, and where these stand one pair before that.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
msm_pairs(const Params params, BUFFERS(uint32_t, uint32_t, Affine, uint32_t, uint32_t, Affine)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ FWord behind_inversions[3 * F_PARTS * THREADS];
    Ahead ahead = {reinterpret_cast<FWord*>(shared) + threadIdx.x, behind_inversions + threadIdx.x};
    uint32_t thread = blockIdx.x * THREADS + threadIdx.x, len = params.out_len;
    F product = f_one();
    uint32_t runs = thread < params.threads && thread < len ? (len - 1 - thread) / params.threads + 1 : 0;
    if (runs > 0) {
        // From the first element on.
        auto place = [&](uint32_t run) { return places[thread + min(run, runs - 1) * params.threads]; };
        // The abscissas of one element in two elements of F, of the next one in the next two.
        auto ask = [&](const Task& task, uint32_t run) {
            int first = run % 2 * 2 * F_PARTS;
            if (task.pair) {
                ahead_ask(ahead, first, &points[task.first / 2].x);
                ahead_ask(ahead, first + F_PARTS, &points[task.last / 2].x);
            }
            ahead_close();
        };
        Task task = task_of(params, keys, values, place(0)), next = task_of(params, keys, values, place(1));
        ask(task, 0);
        ask(next, 1);
        Task second = task_of(params, keys, values, place(2));
        uint32_t far = place(3);
#pragma unroll 1
        for (uint32_t run = 0; run < runs; run++) {
            uint32_t j = thread + run * params.threads;
            int first = run % 2 * 2 * F_PARTS;
            ahead_wait<1>();
            F a = f_zero(), b = f_zero();
            if (task.pair) {
                a = ahead_take<F>(ahead, first);
                b = ahead_take<F>(ahead, first + F_PARTS);
            }
            ask(second, run);
            Task third = task_of(params, keys, values, far);
            far = place(run + 4);
            F d = x_sub(b, a);
            out_keys[j] = task.key;
            if (!task.pair) {
                d = f_one();
            } else {
                out[j].x = product;
                if (!is_chord(d, a, b)) {
                    d = affine_denominator(signed_point(c_load(points + task.first / 2), task.first),
                                           signed_point(c_load(points + task.last / 2), task.last));
                }
            }
            product = x_mul(product, d);
            task = next, next = second, second = third;
        }
        ahead_wait<0>();
    }
    __syncthreads();
    F inverse = group_inverse(reinterpret_cast<F*>(shared), x_reduce(product));
    __syncthreads();
    if (runs == 0) return;
    // From the last element on: `run` of them are left.
    auto place = [&](uint32_t run, uint32_t less) { return places[thread + (max(run, less + 1) - less - 1) * params.threads]; };
    auto ask = [&](const Task& task, uint32_t run) {
        if (task.key != params.sentinel) {
            ahead_ask(ahead, 0, points + task.first / 2);
            ahead_ask(ahead, 2 * F_PARTS, points + task.last / 2);
        }
        if (task.pair) ahead_ask(ahead, 4 * F_PARTS, &out[thread + (run - 1) * params.threads].x);
        ahead_close();
    };
    Task task = task_of(params, keys, values, place(runs, 0));
    ask(task, runs);
    Task next = task_of(params, keys, values, place(runs, 1));
    uint32_t far = place(runs, 2);
#pragma unroll 1
    for (uint32_t run = runs; run > 0; run--) {
        uint32_t j = thread + (run - 1) * params.threads;
        ahead_wait<0>();
        Affine p = affine_infinity(), q = p;
        if (task.key != params.sentinel) {
            p = signed_point(ahead_take<Affine>(ahead, 0), task.first);
            q = signed_point(ahead_take<Affine>(ahead, 2 * F_PARTS), task.last);
        }
        F prefix = task.pair ? ahead_take<F>(ahead, 4 * F_PARTS) : f_zero();
        if (run > 1) ask(next, run - 1);
        Task second = task_of(params, keys, values, far);
        far = place(run, 3);
        F own = x_mul(inverse, prefix), d = x_sub(q.x, p.x);
        bool chord = task.pair && is_chord(d, p.x, q.x);
        if (!chord) {
            d = f_one();
            if (task.pair) {
                d = affine_denominator(p, q);
                q = affine_add(p, q, x_reduce(own));
            }
            if (task.key != params.sentinel) store_affine(out + j, q.x, q.y);
        }
        inverse = x_mul(inverse, d);
        F slope = x_mul(x_sub(q.y, p.y), own);
        F x = x_sub(x_sub(x_square(slope), p.x), q.x);
        F y = x_sub(x_mul(slope, x_sub(p.x, x)), p.y);
        if (chord) store_affine(out + j, x_reduce(x), x_reduce(y));
        task = next, next = second;
    }
}
