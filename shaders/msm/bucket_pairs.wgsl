// Which pairs are a thread's: see msm/whole.cu. Those of one bucket.

fn pairs_of(thread: u32) -> vec2<u32> {
    let start = first_of(0u, params.len, thread);
    return vec2<u32>(start, first_of(start, params.len, thread + 1u));
}
