// What the 256 threads of a workgroup compute together.

var<workgroup> group_sums: array<u32, 512>;

// x: the sum of `value` over the threads before this one; y: that over all. Modulo 2^32. All threads call it.
fn group_scan(thread: u32, value: u32) -> vec2<u32> {
    var sum = value;
    // Each step reads one half of `group_sums` and writes the other.
    var half = 0u;
    group_sums[thread] = sum;
    workgroupBarrier();
    for (var distance = 1u; distance < THREADS; distance *= 2u) {
        if (thread >= distance) {
            sum += group_sums[half + thread - distance];
        }
        half = THREADS - half;
        group_sums[half + thread] = sum;
        workgroupBarrier();
    }
    let total = group_sums[half + THREADS - 1u];
    workgroupBarrier();
    return vec2<u32>(sum - value, total);
}
