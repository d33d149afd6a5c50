// All rounds that are left, each as sumcheck_round does it, and then what sumcheck_finish does, by one workgroup: for pairs so
// few that it takes less time for them than a launch takes. Here a thread does less for a pair: it folds an element, and then
// evaluates at one point. Folded elements are in the tables, or where neighbours are folded, in turn there and in `folded`, which
// `load_of` and `store_of` know, rendered before like `point_at`; values of rounds stay in workgroup memory.

@compute @workgroup_size(THREADS)
fn sumcheck_tail(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (workgroup.x + workgroup.y > 0u) {
        return;
    }
    now = params;
    previous_values(thread);
    for (var round = 0u; round <= params.rounds; round++) {
        let challenge = draw(thread, round, true);
        if (round == params.rounds) {
            table_values(thread, round, challenge);
            continue;
        }
        let pairs = params.pairs >> round;
        let at_one = (params.ones >> (round + 1u)) & 1u;
        for (var i = thread; i < COLUMNS * 2u * pairs; i += THREADS) {
            let table = i / (2u * pairs);
            let x = i % (2u * pairs);
            let a = load_of(table, round, select(2u * x, x, HIGH));
            let b = load_of(table, round, select(2u * x + 1u, x + 2u * pairs, HIGH));
            store_of(table, round + 1u, x, f_add(a, f_mul(f_sub(b, a), challenge)));
        }
        storageBarrier();
        workgroupBarrier();
        for (var first = 0u; first < POINTS; first += THREADS / GROUP) {
            let p = first + thread / GROUP;
            var total = f_zero();
            if (p < POINTS) {
                for (var x = thread % GROUP; x < pairs; x += GROUP) {
                    total = f_add(total, weighted(point_at(p, x, pairs, round + 1u, at_one), pairs + x));
                }
            }
            total = group_sum(total, thread, GROUP, pairs);
            if (thread % GROUP == 0u && p < POINTS) {
                values[1u + p] = total;
            }
        }
    }
}
