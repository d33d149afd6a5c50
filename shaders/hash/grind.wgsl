// found[0] = the largest 2^32 - 1 - i for i < len, or what was there if that is larger, of all i for which the state with the
// integer start + i as its element `position`, permuted, has an element RATE - 1 whose integer is 0 in the bits of `mask`.
// `state` has a state, then R and 1 / R for R = 2^(32 LIMBS): products by them bring integers into Montgomery form, and back.
// Comes after integer(low, high), with_element(s, x), last_of_rate(s), and drawn_bits(x), the bits of x in the mask. One thread
// an i.

@compute @workgroup_size(THREADS)
fn grind(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let x = f_mul(integer(params.start_0 + i, params.start_1), state_load(WIDTH));
        let s = permute_state(with_element(state_load_state(0u), x));
        if (drawn_bits(f_mul(last_of_rate(s), state_load(WIDTH + 1u))) == 0u) {
            found_max(0u, 0xffffffffu - i);
        }
    }
}
