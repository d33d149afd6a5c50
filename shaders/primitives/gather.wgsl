// out[i] = a[indices[i] - FIRST] for i < count, word by word. Where that is not below len, missing(t, w) does what is to be
// done with word t of out, which is word w of an element of WORDS words. One thread a word of out.

@compute @workgroup_size(THREADS)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let t = (group.x + group.y * groups.x) * THREADS + thread;
    let i = t / WORDS;
    if (i >= params.count) {
        return;
    }
    let index = indices_get(i) - FIRST;
    if (index < params.len) {
        out_set(t, a_get(index * WORDS + t % WORDS));
    } else {
        missing(t, t % WORDS);
    }
}
