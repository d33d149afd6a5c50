// One pass of a radix sort: keys and their values to `keys_out` and `values_out`, in the order of the digit
// (key >> shift) & mask, and among equal digits in the order they had. The CUDA twin says what `totals` is.
//
// There, workgroups wait for each other, which WebGPU does not allow. Here the first workgroup does all the tiles, one
// after the other: slow, but it waits for nobody. Devices without forward progress sort by `sort_scatter`. Thread d
// owns digit d.

// Half a tile of the CUDA twin, as keys and values stand side by side.
const PART = TILE / 2u;

var<workgroup> part_keys: array<u32, PART>;
var<workgroup> part_values: array<u32, PART>;

@compute @workgroup_size(THREADS)
fn sort_sweep(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    if (group.x + group.y * groups.x > 0u) {
        return;
    }
    var place = 0u;
    for (var digit = 0u; digit < min(thread, params.mask + 1u); digit++) {
        place += totals_get(params.totals + digit);
    }
    for (var start = 0u; start < params.len; start += PART) {
        let valid = min(params.len - start, PART);
        for (var i = thread; i < valid; i += THREADS) {
            part_keys[i] = keys_get(start + i);
            part_values[i] = values_get(start + i);
        }
        workgroupBarrier();
        for (var i = 0u; i < valid; i++) {
            let key = part_keys[i];
            if (((key >> params.shift) & params.mask) == thread) {
                // Totals of other keys, where these have changed since, lead anywhere.
                if (place < params.len) {
                    keys_out_set(place, key);
                    values_out_set(place, part_values[i]);
                }
                place++;
            }
        }
        workgroupBarrier();
    }
}
