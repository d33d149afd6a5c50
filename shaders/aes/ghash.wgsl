// GHASH of segments of blocks; the twin of aes/ghash.cu, which explains it, with a workgroup for each segment: thread t takes
// blocks t, t + 256, … by Horner's rule with H^256, then a tree with H, H^2, H^4, … adds the threads. Products of 32 bits are made of 32-bit
// multiplications of bits four apart: the low half directly, the high half from the reversed operands.

const LOG_THREADS = 8u;

var<workgroup> sums: array<vec4<u32>, THREADS>;

// The low 32 bits of a product.
fn multiply_low(a: u32, b: u32) -> u32 {
  let masks = vec4<u32>(0x11111111u, 0x22222222u, 0x44444444u, 0x88888888u);
  let x = vec4<u32>(a) & masks;
  let y = vec4<u32>(b) & masks;
  let sums = (x.x * y) ^ (x.y * y.wxyz) ^ (x.z * y.zwxy) ^ (x.w * y.yzwx);
  let bits = sums & masks;
  return bits.x | bits.y | bits.z | bits.w;
}

// (low, high).
fn multiply_32(a: u32, b: u32) -> vec2<u32> {
  return vec2<u32>(multiply_low(a, b), reverseBits(multiply_low(reverseBits(a), reverseBits(b))) >> 1u);
}

fn multiply_64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  let l = multiply_32(a.x, b.x);
  let h = multiply_32(a.y, b.y);
  let m = multiply_32(a.x ^ a.y, b.x ^ b.y) ^ l ^ h;
  return vec4<u32>(l.x, l.y ^ m.x, h.x ^ m.y, h.y);
}

fn multiply(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let l = multiply_64(a.xy, b.xy);
  let h = multiply_64(a.zw, b.zw);
  let m = multiply_64(a.xy ^ a.zw, b.xy ^ b.zw) ^ l ^ h;
  let low = vec4<u32>(l.xy, l.zw ^ m.xy);
  let high = vec4<u32>(h.xy ^ m.zw, h.zw);
  // x^128 = x^7 + x^2 + x + 1.
  let below = vec4<u32>(0u, high.xyz);
  let over = (high.w >> 31u) ^ (high.w >> 30u) ^ (high.w >> 25u);
  let folded = over ^ (over << 1u) ^ (over << 2u) ^ (over << 7u);
  return low ^ high ^ ((high << vec4<u32>(1u)) | (below >> vec4<u32>(31u)))
    ^ ((high << vec4<u32>(2u)) | (below >> vec4<u32>(30u))) ^ ((high << vec4<u32>(7u)) | (below >> vec4<u32>(25u)))
    ^ vec4<u32>(folded, 0u, 0u, 0u);
}

// Between the order of bits in memory and that of products.
fn reflect(x: vec4<u32>) -> vec4<u32> {
  let y = reverseBits(x);
  return (y << vec4<u32>(24u)) | ((y & vec4<u32>(0xff00u)) << vec4<u32>(8u)) | ((y >> vec4<u32>(8u)) & vec4<u32>(0xff00u))
    | (y >> vec4<u32>(24u));
}

@compute @workgroup_size(THREADS)
fn ghash(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) thread: u32) {
  let number = group.x + group.y * groups.x;
  var word = 0u;
  var blocks = params.blocks;
  var tail = params.tail;
  var power = params.power;
  // The grid may reach past the last segment.
  if (number >= params.count) {
    return;
  }
  if (params.segment == 0u) {
    let head = messages_get(number * 3u);
    let more = messages_get(number * 3u + 1u);
    word = head.y;
    blocks = head.z;
    tail = more.x;
    power = more.y;
  } else {
    let start = number * params.segment;
    word += start;
    blocks -= start;
    if (blocks > params.segment) {
      blocks = params.segment;
      tail = 16u;
    }
  }
  // What is missing in the first stride counts as zeros.
  let end = (blocks + THREADS - 1u) / THREADS * THREADS;
  let lead = end - blocks;

  let step = powers_get(power + LOG_THREADS);
  var sum = vec4<u32>();
  for (var i = thread; i < end; i += THREADS) {
    var x = vec4<u32>();
    if (i >= lead) {
      x = data_get(word + i - lead);
      if (i - lead + 1u == blocks) {
        x = select_bytes(vec4<u32>(), x, 0u, tail);
      }
    }
    sum = multiply(sum, step) ^ reflect(x);
  }
  sums[thread] = sum;
  workgroupBarrier();

  for (var k = 0u; k < LOG_THREADS; k++) {
    let inside = thread < (THREADS >> (k + 1u));
    if (inside) {
      sum = multiply(sums[2u * thread], powers_get(power + k)) ^ sums[2u * thread + 1u];
    }
    workgroupBarrier();
    if (inside) {
      sums[thread] = sum;
    }
    workgroupBarrier();
  }
  if (thread == 0u) {
    out_set(number, reflect(sum));
  }
}
