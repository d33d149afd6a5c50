// out[i] = a[indices[i] - FIRST] for i < count, word by word. Where that is not below len, out[i] is what missing() tells, or
// with KEEP what it was.
// Comes after Word, the type of a word; WORDS, how many of them an element has; FIRST, what the first element of a is called;
// and without KEEP missing(w), word w of what stands for an element that is not there.
// Grid: one thread a word of out. No shared memory.

extern "C" __global__ void gather(const Params params, BUFFERS(Word, uint32_t, Word)) {
    wait_for_previous();
    uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t i = t / WORDS, word = t % WORDS;
    if (i >= params.count) return;
    uint32_t index = indices[i] - FIRST;
    if (index < params.len) {
        out[t] = a[(size_t)index * WORDS + word];
    } else {
#if !defined(KEEP)
        out[t] = missing(word);
#endif
    }
}
