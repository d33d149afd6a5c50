// All rounds that are left, each as sumcheck_round does it, and then what sumcheck_finish does, by one workgroup: for pairs so
// few that it takes less time for them than a launch takes. `bring_back` is rendered before: where neighbours are folded to
// where others are still read, it brings them from where they were put.

// The parameters of the next round. Those of the last one have none.
fn next_round() {
    let at = now.partials_at;
    now.partials_at = now.previous_at;
    now.previous_at = at;
    now.previous_chunks = 1u;
    now.previous_at_one = now.at_one;
    now.ones >>= 1u;
    now.at_one = now.ones & 1u;
    now.parity ^= 1u;
    now.weights_at += 2u;
    now.message_at += DEGREE;
    if (now.log_chunk == 0u) {
        return;
    }
    now.pairs /= 2u;
    now.log_chunk -= 1u;
    if (WEIGHTED) {
        let left = now.log_chunk;
        let bound = now.variables - left;
        let low = select(now.eq_low - min(bound, now.eq_low), min(left, now.eq_low), HIGH);
        now.low_at = 1u << low;
        now.low_bits = low;
        now.high_at = (2u << now.eq_low) + (1u << (left - low));
        now.both = u32(left > low);
    }
}

@compute @workgroup_size(THREADS)
fn sumcheck_tail(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x + group.y > 0u) {
        return;
    }
    now = params;
    for (var done = 0u; done <= params.rounds; done++) {
        let challenge = draw(thread, true);
        if (done < params.rounds) {
            chunk_sums(thread, 0u, challenge);
            storageBarrier();
            workgroupBarrier();
            bring_back(thread);
            next_round();
        } else {
            table_values(thread, challenge);
        }
    }
}
