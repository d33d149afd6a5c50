// A layer of BLAKE3's tree from the one below: the values of parents, or digests (ROOT). TABLE: parent i has the children
// jobs[2 i] and the next one, and its value is out[stride jobs[2 i + 1]]; if COPY is in the first word, it has one child, and is it.
// Else each message has `nodes` children; their parents follow each other, and the last of an odd number of children is its own
// parent.
// Grid: one thread a parent. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) blake3_parents(const Params params, BUFFERS(uint4, uint2, uint4)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    size_t left, target = i;
    bool copy;
    if (params.flags & TABLE) {
        uint2 job = jobs[i];
        left = job.x & ~COPY;
        copy = job.x & COPY;
        target = job.y;
    } else {
        uint32_t parents = (params.nodes + 1) / 2, message = (uint32_t)i / parents, parent = (uint32_t)i % parents;
        left = (size_t)message * params.nodes + 2 * parent;
        copy = 2 * parent + 1 == params.nodes;
    }
    uint4 *place = out + 2 * target * params.stride;
    const uint4* children = x + 2 * left;
    uint4 a = children[0], b = children[1];
    if (copy) {
        place[0] = a;
        place[1] = b;
        return;
    }
    uint4 c = children[2], d = children[3];
    uint32_t h[8], m[16] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
    start(h);
    compress(h, m, 0, 64, params.flags & ROOT ? PARENT | AS_ROOT : PARENT);
    store_digest(place, h);
}
