// Adds neighbours of a list of points that is sorted by bucket: see the CUDA twin. Thread t owns the pairs t,
// t + threads, t + 2 threads, …. Comes after `value_of(i)`, the value of element i.

fn point_of(value: u32) -> Affine {
    let point = points_load(value / 2u);
    if (value % 2u == 1u) {
        return affine_negate(point);
    }
    return point;
}

// The bucket of the second element of pair j, or `sentinel`.
fn second_key(j: u32) -> u32 {
    if (2u * j + 1u < params.len) {
        return keys_get(2u * j + 1u);
    }
    return params.sentinel;
}

@compute @workgroup_size(THREADS)
fn msm_pairs(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    let len = (params.len + 1u) / 2u;
    var runs = 0u;
    if (thread < params.threads && thread < len) {
        runs = (len - 1u - thread) / params.threads + 1u;
    }
    var product = f_one();
    for (var run = 0u; run < runs; run++) {
        let j = thread + run * params.threads;
        let key = keys_get(2u * j);
        let next = second_key(j);
        if (key != params.sentinel) {
            out_coordinate_store(2u * j, product);
            if (next == key) {
                product = f_mul(product, affine_denominator(point_of(value_of(2u * j)), point_of(value_of(2u * j + 1u))));
            } else if (next != params.sentinel) {
                let place = edges_get(j);
                side_keys_set(place, key);
                side_values_set(place, value_of(2u * j));
            }
        }
        out_keys_set(j, select(next, key, next == params.sentinel));
    }
    // The rest of the list of those left over.
    if (thread < params.threads) {
        let end = edges_get(len);
        for (var i = thread; i < params.leftovers; i += params.threads) {
            if (i >= end) {
                side_keys_set(i, params.sentinel);
            }
        }
    }
    var inverse = group_inverse(product, local);
    for (var run = runs; run > 0u; run--) {
        let j = thread + (run - 1u) * params.threads;
        let key = keys_get(2u * j);
        let next = second_key(j);
        if (key != params.sentinel) {
            if (next == key) {
                let p = point_of(value_of(2u * j));
                let q = point_of(value_of(2u * j + 1u));
                let own = f_mul(inverse, out_coordinate_load(2u * j));
                inverse = f_mul(inverse, affine_denominator(p, q));
                out_store(j, affine_add(p, q, own));
            } else {
                out_store(j, point_of(value_of(2u * j + u32(next != params.sentinel))));
            }
        }
    }
}
