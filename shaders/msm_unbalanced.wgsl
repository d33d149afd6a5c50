// Sums of the points of each bucket, from pairs sorted by bucket: see the CUDA twin. One thread a bucket.

@compute @workgroup_size(THREADS)
fn msm_unbalanced(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) local: u32) {
    let bucket = (group.x + group.y * groups.x) * THREADS + local;
    if (bucket >= params.buckets) {
        return;
    }
    // Its pairs: from the first that is not below it to the first above it.
    var start = 0u;
    var above = params.len;
    while (start < above) {
        let middle = start + (above - start) / 2u;
        if (keys_get(middle) < bucket) {
            start = middle + 1u;
        } else {
            above = middle;
        }
    }
    var end = start;
    above = params.len;
    while (end < above) {
        let middle = end + (above - end) / 2u;
        if (keys_get(middle) <= bucket) {
            end = middle + 1u;
        } else {
            above = middle;
        }
    }
    if (start == end) {
        return;
    }
    var sum = buckets_load(bucket);
    for (var i = start; i < end; i++) {
        var value = 2u * i;
        if (params.ordered == 0u) {
            value = values_get(i);
        }
        var point = points_load(value / 2u);
        if (value % 2u == 1u) {
            point = affine_negate(point);
        }
        sum = xyzz_add_affine(sum, point);
    }
    buckets_store(bucket, sum);
}
