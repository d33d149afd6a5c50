// Absorbs the first `columns` elements of each row of x, which lie `pitch` apart, into a sponge of which `position` elements of a
// block are there already. FIRST: the sponge is new, else it is in `states`. LAST: out[stride i] is the digest of row i, else the
// sponge goes to `states`.
// Comes after sponge_start(i) and sponge_end(i, s), which tell the two apart. One thread a row.

@compute @workgroup_size(THREADS)
fn hash_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        var s = sponge_start(i);
        let columns = i32(params.columns);
        for (var base = -i32(params.position); base < columns; base += i32(RATE)) {
            s = absorb(s, i * params.pitch, base, columns);
            if (base + i32(RATE) <= columns || (params.flags & LAST) != 0u) {
                s = permute_state(s);
            }
        }
        sponge_end(i, s);
    }
}
