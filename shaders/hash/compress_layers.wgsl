// Layers of nodes over two children, one after the other. `nodes` has digests that follow each other, from the element `start` on:
// 2 len children, then len nodes over each two of them, len / 2 nodes over these, and so on for `layers` layers. len is a power
// of two. LANES threads a node of the first layer, one for each element of a state; those beyond WIDTH are not read. The
// threads of a workgroup tell each other their elements by its memory.

var<workgroup> elements: array<F, THREADS>;

fn tell(thread: u32, x: F) {
    workgroupBarrier();
    elements[thread] = x;
    workgroupBarrier();
}

// This thread's element of the matrix of full rounds. With four elements x0 to x3, 2 x0 + 3 x1 + x2 + x3 is the sum of all, x0,
// and twice x1. The matrix takes these of each four and, once more, of the sums of all fours.
fn mix_told(thread: u32, x: F) -> F {
    tell(thread, x);
    let first = thread / LANES * LANES;
    let four = thread / 4u * 4u;
    let next = (thread + 1u) % 4u;
    var all = f_add(f_add(elements[four], elements[four + 1u]), f_add(elements[four + 2u], elements[four + 3u]));
    var own = x;
    var second = elements[four + next];
    for (var at = first; at < first + WIDTH; at += 4u) {
        all = f_add(all, f_add(f_add(elements[at], elements[at + 1u]), f_add(elements[at + 2u], elements[at + 3u])));
        own = f_add(own, elements[at + thread % 4u]);
        second = f_add(second, elements[at + next]);
    }
    return f_add(f_add(all, own), f_add(second, second));
}

fn permute_told(thread: u32, a: F) -> F {
    let element = min(thread % LANES, WIDTH - 1u);
    let first = thread / LANES * LANES;
    let rows = params.half * WIDTH;
    var x = mix_told(thread, a);
    for (var at = 0u; at < rows; at += WIDTH) {
        x = mix_told(thread, power(x, constants_load(at + element)));
    }
    let factor = constants_load(2u * rows + element);
    for (var i = 0u; i < params.partial; i++) {
        if (thread == first) {
            x = power(x, constants_load(2u * rows + WIDTH + i));
        }
        tell(thread, x);
        var sum = elements[first];
        for (var k = 1u; k < WIDTH; k++) {
            sum = f_add(sum, elements[first + k]);
        }
        x = f_add(sum, p_mul(x, factor));
    }
    for (var at = rows; at < 2u * rows; at += WIDTH) {
        x = mix_told(thread, power(x, constants_load(at + element)));
    }
    return x;
}

@compute @workgroup_size(THREADS)
fn compress_layers(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) thread: u32) {
    let element = thread % LANES;
    let node = thread / LANES;
    var children = params.start;
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
        x = permute_told(thread, x);
        if (is_node && element < DIGEST) {
            nodes_store(parents + i * DIGEST + element, x);
        }
        storageBarrier();
        children = parents;
        len /= 2u;
    }
}
