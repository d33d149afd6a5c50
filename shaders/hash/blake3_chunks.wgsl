// The values of chunks, the leaves of BLAKE3's tree; the twin of hash/blake3_chunks.cu, which explains it. One thread a chunk.

@compute @workgroup_size(THREADS)
fn blake3_chunks(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
  let i = (group.x + group.y * groups.x) * THREADS + thread;
  if (i < params.len) {
    var at = 0u;
    var bytes = 0u;
    var number = 0u;
    var place = i;
    if ((params.flags & TABLE) != 0u) {
      let job = jobs_get(i);
      at = params.at + job.x;
      bytes = job.y;
      number = job.z;
      place = job.w;
    } else {
      let message = i / params.chunks;
      let chunk = i % params.chunks;
      at = params.at + message * params.pitch + chunk * 1024u;
      bytes = min(params.bytes - chunk * 1024u, 1024u);
      number = params.first + chunk;
    }
    var end = CHUNK_END;
    if ((params.flags & ROOT) != 0u) {
      end |= AS_ROOT;
    }
    var flags = CHUNK_START;
    var h = start();
    var rest = i32(bytes);
    for (var last = false; !last; rest -= i32(BLOCK)) {
      last = rest <= i32(BLOCK);
      flags |= select(0u, end, last);
      h = compress(h, load_block(at, rest, 0u), number, min(u32(rest), BLOCK), flags);
      flags = 0u;
      at += BLOCK;
    }
    store_digest(place * params.stride, finish(h));
  }
}
