// Copies bytes between places of any alignment; the twin of aes/move_bytes.cu, which explains it.

fn source(at: u32) -> vec4<u32> {
  // at counts from one word before the source.
  if (at >= 1u && at - 1u < params.src_words) {
    return src_get(at - 1u);
  }
  return vec4<u32>();
}

fn funnel(low: u32, high: u32, bits: u32) -> u32 {
  if (bits == 0u) {
    return low;
  }
  return (low >> bits) | (high << (32u - bits));
}

@compute @workgroup_size(THREADS)
fn move_bytes(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  let stride = groups.x * groups.y * THREADS;
  for (var t = (group.x + group.y * groups.x) * THREADS + thread; t < params.words; t += stride) {
    // The target's word t starts with the source's byte 16 (t + 1) + from - to, counted from one word before the source.
    let byte = 16u + params.from_byte - params.to;
    let a = source(t + byte / 16u);
    let b = source(t + byte / 16u + 1u);
    var low = vec4<u32>();
    var next = 0u;
    switch ((byte % 16u) / 4u) {
      case 1u: { low = vec4<u32>(a.yzw, b.x); next = b.y; }
      case 2u: { low = vec4<u32>(a.zw, b.xy); next = b.z; }
      case 3u: { low = vec4<u32>(a.w, b.xyz); next = b.w; }
      default: { low = a; next = b.x; }
    }
    let bits = 8u * (byte % 4u);
    var y = vec4<u32>(funnel(low.x, low.y, bits), funnel(low.y, low.z, bits), funnel(low.z, low.w, bits),
                      funnel(low.w, next, bits));
    let first = select(0u, params.to, t == 0u);
    let end = select(16u, params.tail, t + 1u == params.words);
    if (first > 0u || end < 16u) {
      var around = vec4<u32>();
      if (params.fresh == 0u) {
        around = dst_get(t);
      }
      y = select_bytes(around, y, first, end);
    }
    dst_set(t, y);
  }
}
