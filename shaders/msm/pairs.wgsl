// Adds neighbours of a list of points that is sorted by bucket: see the CUDA twin. Thread t owns the elements t, t + threads,
// t + 2 threads, … of the next list. Comes after `value_of(i)`, the value of element i.

fn point_of(value: u32) -> Affine {
    let point = points_load(value / 2u);
    if (value % 2u == 1u) {
        return affine_negate(point);
    }
    return point;
}

// Whether element i has a neighbour in its bucket behind it.
fn is_pair(i: u32) -> bool {
    if (i + 1u < params.len) {
        return keys_get(i) == keys_get(i + 1u);
    }
    return false;
}

@compute @workgroup_size(THREADS)
fn msm_pairs(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    var runs = 0u;
    if (thread < params.threads && thread < params.out_len) {
        runs = (params.out_len - 1u - thread) / params.threads + 1u;
    }
    var product = f_one();
    for (var run = 0u; run < runs; run++) {
        let j = thread + run * params.threads;
        let i = places_get(j);
        var key = params.sentinel;
        if (i != 0xffffffffu) {
            key = keys_get(i);
            if (is_pair(i)) {
                out_coordinate_store(2u * j, product);
                product = f_mul(product, affine_denominator(point_of(value_of(i)), point_of(value_of(i + 1u))));
            }
        }
        out_keys_set(j, key);
    }
    var inverse = group_inverse(product, local);
    for (var run = runs; run > 0u; run--) {
        let j = thread + (run - 1u) * params.threads;
        let i = places_get(j);
        if (i != 0xffffffffu) {
            let p = point_of(value_of(i));
            if (is_pair(i)) {
                let q = point_of(value_of(i + 1u));
                let own = f_mul(inverse, out_coordinate_load(2u * j));
                inverse = f_mul(inverse, affine_denominator(p, q));
                out_store(j, affine_add(p, q, own));
            } else {
                out_store(j, p);
            }
        }
    }
}
