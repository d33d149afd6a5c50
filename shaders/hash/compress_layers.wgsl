// Layers of nodes over two children, one after the other: see the CUDA twin. LANES threads a node of the first layer, one for
// each element of a state; those beyond WIDTH are not read. The threads of a workgroup exchange elements by its memory.

fn exchange(thread: u32, x: F) {
    workgroupBarrier();
    tile_store(thread, x);
    workgroupBarrier();
}

fn sum_of_four(at: u32) -> F {
    return f_add(f_add(tile_load(at), tile_load(at + 1u)), f_add(tile_load(at + 2u), tile_load(at + 3u)));
}

// This thread's element of the matrix of full rounds. With four elements x0 to x3, 2 x0 + 3 x1 + x2 + x3 is the sum of all, x0,
// and twice x1. The matrix takes these of each four and, once more, of the sums of all fours.
fn mix_lanes(thread: u32, x: F) -> F {
    exchange(thread, x);
    let first = thread / LANES * LANES;
    let four = thread / 4u * 4u;
    let next = (thread + 1u) % 4u;
    var all = sum_of_four(four);
    var own = x;
    var second = tile_load(four + next);
    for (var at = first; at < first + WIDTH; at += 4u) {
        all = f_add(all, sum_of_four(at));
        own = f_add(own, tile_load(at + thread % 4u));
        second = f_add(second, tile_load(at + next));
    }
    return f_add(f_add(all, own), f_add(second, second));
}

fn permute_lanes(thread: u32, a: F) -> F {
    let element = min(thread % LANES, WIDTH - 1u);
    let first = thread / LANES * LANES;
    let rows = params.half * WIDTH;
    var x = mix_lanes(thread, a);
    for (var at = 0u; at < rows; at += WIDTH) {
        x = mix_lanes(thread, power(x, constants_load(at + element)));
    }
    let factor = constants_load(2u * rows + element);
    for (var i = 0u; i < params.partial; i++) {
        if (thread == first) {
            x = power(x, constants_load(2u * rows + WIDTH + i));
        }
        exchange(thread, x);
        var sum = tile_load(first);
        for (var k = 1u; k < WIDTH; k++) {
            sum = f_add(sum, tile_load(first + k));
        }
        x = f_add(sum, p_mul(x, factor));
    }
    for (var at = rows; at < 2u * rows; at += WIDTH) {
        x = mix_lanes(thread, power(x, constants_load(at + element)));
    }
    return x;
}

@compute @workgroup_size(THREADS)
fn compress_layers(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) thread: u32) {
    let element = thread % LANES;
    let node = thread / LANES;
    var children = 0u;
    var len = params.len;
    for (var layer = 0u; layer < params.layers; layer++) {
        let parents = children + len * 2u * DIGEST;
        let own = (THREADS / LANES) >> layer;
        let i = (group.x + group.y * groups.x) * own + node;
        let is_node = node < own && i < len;
        var x = f_zero();
        if (is_node && element < 2u * DIGEST) {
            x = nodes_load(children + i * 2u * DIGEST + element);
        }
        x = permute_lanes(thread, x);
        if (is_node && element < DIGEST) {
            nodes_store(parents + i * DIGEST + element, x);
        }
        storageBarrier();
        children = parents;
        len /= 2u;
    }
}
