// out[stride i] = the digest of message i of x; the twin of hash/hash_messages.cu, which explains it. One thread a message.

@compute @workgroup_size(THREADS)
fn hash_messages(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
  let i = (group.x + group.y * groups.x) * THREADS + thread;
  if (i < params.len) {
    var at = params.at + i * params.pitch;
    var bytes = params.bytes;
    if ((params.flags & TABLE) != 0u) {
      let first = offsets_get(i);
      at = params.at + first;
      bytes = offsets_get(i + 1u) - first;
    }
    var s = start();
    var rest = i32(bytes);
    for (var last = false; !last; rest -= i32(BLOCK)) {
      last = is_last(rest);
      s = absorb(s, load_block(at, rest, params.pad), last, rest, bytes);
      at += BLOCK;
    }
    store_digest(i * params.stride, finish(s));
  }
}
