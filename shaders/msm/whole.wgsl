// Sums of the points of each bucket, from pairs sorted by bucket, each bucket by one thread: see the CUDA twin.
// Comes after one of msm_slice_pairs and msm_bucket_pairs, and one of msm_add_single, msm_add_double and msm_add_doubled.

// The first of the pairs from `start` to `end` whose bucket is not below `bucket`, or `end`.
fn first_of(start: u32, end: u32, bucket: u32) -> u32 {
    var at = start;
    var above = end;
    while (at < above) {
        let middle = at + (above - at) / 2u;
        if (keys_get(middle) < bucket) {
            at = middle + 1u;
        } else {
            above = middle;
        }
    }
    return at;
}

@compute @workgroup_size(THREADS)
fn msm_whole(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    if (thread >= params.threads) {
        return;
    }
    let own = pairs_of(thread);
    if (own.x >= own.y) {
        return;
    }
    var key = keys_get(own.x);
    var sum = buckets_load(key);
    for (var i = own.x; i < own.y;) {
        let next = keys_get(i);
        let value = value_of(i);
        let point = point_of(value);
        if (next != key) {
            buckets_store(key, sum);
            key = next;
            sum = buckets_load(key);
        }
        let added = add_point(sum, point, value, i, own.y);
        sum = added.sum;
        i = added.next;
    }
    buckets_store(key, sum);
}
