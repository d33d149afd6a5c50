// Which pairs are a thread's: see msm/whole.cu. A slice of all pairs, but that its ends move on to the next border of buckets.

fn pairs_of(thread: u32) -> vec2<u32> {
    let count = first_of(0u, params.len, params.sentinel);
    let slice = max((count + params.threads - 1u) / params.threads, params.least);
    // Slices with pairs; the product below does not overflow for them.
    if (thread >= (count + slice - 1u) / slice) {
        return vec2<u32>(0u, 0u);
    }
    var start = thread * slice;
    var end = min(count - start, slice) + start;
    if (start > 0u) {
        start = first_of(start, count, keys_get(start - 1u) + 1u);
    }
    end = first_of(end, count, keys_get(end - 1u) + 1u);
    return vec2<u32>(start, end);
}
