// A layer of BLAKE3's tree; the twin of hash/blake3_parents.cu, which explains it. One thread a parent.

@compute @workgroup_size(THREADS)
fn blake3_parents(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
  let i = (group.x + group.y * groups.x) * THREADS + thread;
  if (i < params.len) {
    var left = 0u;
    var place = i;
    var copy = false;
    if ((params.flags & TABLE) != 0u) {
      let job = jobs_get(i);
      left = job.x & ~COPY;
      copy = (job.x & COPY) != 0u;
      place = job.y;
    } else {
      let parents = (params.nodes + 1u) / 2u;
      let parent = i % parents;
      left = i / parents * params.nodes + 2u * parent;
      copy = 2u * parent + 1u == params.nodes;
    }
    let a = x_get(2u * left);
    let b = x_get(2u * left + 1u);
    var digest = Digest(a, b);
    if (!copy) {
      let c = x_get(2u * left + 2u);
      let d = x_get(2u * left + 3u);
      let flags = select(PARENT, PARENT | AS_ROOT, (params.flags & ROOT) != 0u);
      let block = Block(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w);
      digest = finish(compress(start(), block, 0u, 64u, flags));
    }
    store_digest(place * params.stride, digest);
  }
}
