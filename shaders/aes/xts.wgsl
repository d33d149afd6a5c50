// Tweaks of XTS; the twin of aes/xts.cuh.

// Times x.
fn xts_double(t: vec4<u32>) -> vec4<u32> {
  return vec4<u32>((t.x << 1u) ^ ((t.w >> 31u) * 0x87u), (t.y << 1u) | (t.x >> 31u), (t.z << 1u) | (t.y >> 31u),
                   (t.w << 1u) | (t.z >> 31u));
}

// Times x^32.
fn xts_shift_word(t: vec4<u32>) -> vec4<u32> {
  let over = t.w;
  let high = (over >> 31u) ^ (over >> 30u) ^ (over >> 25u);
  return vec4<u32>(over ^ (over << 1u) ^ (over << 2u) ^ (over << 7u), t.x ^ high, t.y, t.z);
}

// Times x^block.
fn xts_tweak(tweak: vec4<u32>, block: u32) -> vec4<u32> {
  var t = tweak;
  for (var i = 0u; i < block / 32u; i++) {
    t = xts_shift_word(t);
  }
  for (var i = 0u; i < block % 32u; i++) {
    t = xts_double(t);
  }
  return t;
}

// A little-endian number of 128 bits plus n.
fn add_little_endian(t: vec4<u32>, n: u32) -> vec4<u32> {
  let a = t.x + n;
  let b = t.y + u32(a < n);
  let c = t.z + u32(a < n && b == 0u);
  return vec4<u32>(a, b, c, t.w + u32(a < n && b == 0u && c == 0u));
}
