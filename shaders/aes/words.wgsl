// The rounds on words, for methods with `column` and `last_column`.

const PER_THREAD = 1u;

struct Blocks { j0: vec4<u32> }

fn cipher(x: vec4<u32>, key: u32) -> vec4<u32> {
  let keys = key * SCHEDULE_WORDS + select(0u, ROUND_KEYS, DECRYPT);
  var s = x ^ schedule_get(keys);
  for (var i = 1u; i < ROUNDS; i++) {
    let k = schedule_get(keys + i);
    if (DECRYPT) {
      s = vec4<u32>(column(s.x, s.w, s.z, s.y), column(s.y, s.x, s.w, s.z), column(s.z, s.y, s.x, s.w),
                    column(s.w, s.z, s.y, s.x)) ^ k;
    } else {
      s = vec4<u32>(column(s.x, s.y, s.z, s.w), column(s.y, s.z, s.w, s.x), column(s.z, s.w, s.x, s.y),
                    column(s.w, s.x, s.y, s.z)) ^ k;
    }
  }
  let k = schedule_get(keys + ROUNDS);
  if (DECRYPT) {
    return vec4<u32>(last_column(s.x, s.w, s.z, s.y), last_column(s.y, s.x, s.w, s.z), last_column(s.z, s.y, s.x, s.w),
                     last_column(s.w, s.z, s.y, s.x)) ^ k;
  }
  return vec4<u32>(last_column(s.x, s.y, s.z, s.w), last_column(s.y, s.z, s.w, s.x), last_column(s.z, s.w, s.x, s.y),
                   last_column(s.w, s.x, s.y, s.z)) ^ k;
}

fn cipher_all(blocks: Blocks, key: u32) -> Blocks {
  return Blocks(cipher(blocks.j0, key));
}
