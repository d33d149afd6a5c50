// Which elements become which of the next list: see the CUDA twin. One thread an element of either list.

@compute @workgroup_size(THREADS)
fn msm_places(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.out_len) {
        if (i >= offsets_get(params.sentinel)) {
            places_set(i, 0xffffffffu);
        }
    }
    if (i >= params.len) {
        return;
    }
    let key = keys_get(i);
    if (key >= params.sentinel) {
        return;
    }
    let number = i - firsts_get(key);
    if (number % 2u == 0u) {
        places_set(offsets_get(key) + number / 2u, i);
    }
}
