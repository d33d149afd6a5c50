// out[k] = the sum of values[i] over all i with keys[i] = k, for ascending keys, one level of it. One thread a slice of
// `slice` values. It stores the sums of the segments between its first and its last, and leaves those two to the next
// level, as elements 2 t and 2 t + 1; if they are one, the second is the identity. On the last level, which has one
// slice, it stores all.

fn leave(place: u32, key: u32, sum: M) {
    next_keys_set(place, key);
    next_values_store(place, sum);
}

@compute @workgroup_size(THREADS)
fn segmented_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    if (thread >= params.slices) {
        return;
    }
    let begin = thread * params.slice;
    let end = min(begin + params.slice, params.len);
    var key = keys_get(begin);
    var first = true;
    var sum = m_zero();
    for (var i = begin; i < end; i++) {
        let next = keys_get(i);
        if (next != key) {
            if (first && params.last == 0u) {
                leave(2u * thread, key, sum);
            } else if (key < params.segments) {
                out_store(key, sum);
            }
            first = false;
            key = next;
            sum = m_zero();
        }
        sum = m_add(sum, values_load(i));
    }
    if (params.last == 1u) {
        if (key < params.segments) {
            out_store(key, sum);
        }
        return;
    }
    if (first) {
        leave(2u * thread, key, sum);
        sum = m_zero();
    }
    leave(2u * thread + 1u, key, sum);
}
