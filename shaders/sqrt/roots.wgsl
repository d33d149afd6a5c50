// The results and verdicts[i] = what a program makes of element i. `inputs` loads it into slots, and `outputs` stores what is
// in slots. One thread an element.

@compute @workgroup_size(THREADS)
fn sqrt_roots(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    inputs(i);
    let verdict = m_run(params.want);
    outputs(i, verdict);
    verdicts_set(i, verdict);
}
