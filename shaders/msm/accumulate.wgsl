// Sums of the points of each bucket, from pairs sorted by bucket: see the CUDA twin. One thread a slice of the pairs.
// Comes after one of msm_add_single, msm_add_double and msm_add_doubled.

// What a bucket's sum starts from.
fn started(key: u32) -> Xyzz {
    if (params.fresh == 1u) {
        return xyzz_infinity();
    }
    return buckets_load(key);
}

@compute @workgroup_size(THREADS)
fn msm_accumulate(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    if (thread >= params.slices) {
        return;
    }
    // Pairs before the sentinels.
    var count = 0u;
    var above = params.len;
    while (count < above) {
        let middle = count + (above - count) / 2u;
        if (keys_get(middle) < params.sentinel) {
            count = middle + 1u;
        } else {
            above = middle;
        }
    }
    let slice = max((count + params.slices - 1u) / params.slices, params.least);
    // Slices with pairs; the product below does not overflow for them.
    if (thread >= (count + slice - 1u) / slice) {
        node_keys_set(2u * thread, params.sentinel);
        node_keys_set(2u * thread + 1u, params.sentinel);
        return;
    }
    let start = thread * slice;
    let end = min(count - start, slice) + start;
    var key = keys_get(start);
    node_keys_set(2u * thread, key);
    var first = true;
    var sum = xyzz_infinity();
    var begins = start == 0u;
    if (!begins) {
        begins = keys_get(start - 1u) != key;
    }
    if (begins) {
        sum = started(key);
    }
    for (var i = start; i < end;) {
        let next = keys_get(i);
        let value = value_of(i);
        let point = point_of(value);
        if (next != key) {
            if (first) {
                node_sums_store(2u * thread, sum);
            } else {
                buckets_store(key, sum);
            }
            first = false;
            key = next;
            sum = started(key);
        }
        let added = add_point(sum, point, value, i, end);
        sum = added.sum;
        i = added.next;
    }
    node_keys_set(2u * thread + 1u, key);
    node_sums_store(2u * thread + u32(!first), sum);
}
