// out[i] = the value at a challenge of the polynomial of degree below 2^FOLDED that has the values x[2^FOLDED i], ... at the
// points first + i of the rows. Comes after fold_row(at, u), which is 2^FOLDED times that, and folded(i, r), which adds what is
// added. One thread a row.

@compute @workgroup_size(THREADS)
fn fri_fold(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let inverse = point_at((params.first + i) << (FOLDED - 1u), params.low_bits);
        let r = fold_row(i << FOLDED, f_by(challenge_load(0u), inverse));
        out_store(i, folded(i, f_by(r, points_load(FOLDED))));
    }
}
