// Half of the elements of each bucket: see the CUDA twin. One thread a bucket.

@compute @workgroup_size(THREADS)
fn msm_halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.buckets) {
        halves_set(i, (ends_get(i) - firsts_get(i) + 1u) / 2u);
    }
}
