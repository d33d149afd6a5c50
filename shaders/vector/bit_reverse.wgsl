// go(i, reverse(i)) for i < 2^log_len, where reverse turns the bits of an index around. One thread an element.

@compute @workgroup_size(THREADS)
fn bit_reverse(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < (1u << params.log_len)) {
        go(i, (reverseBits(i) >> 1u) >> (31u - params.log_len));
    }
}
