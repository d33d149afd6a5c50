// What the kernels of AES share; the twin of aes/header.cuh. A block is a vec4<u32>: word c is column c, byte r of it row r.
//
// Before it stand ROUNDS, DECRYPT, TABLES, COPIES and SCHEDULE_WORDS, after it a method: aes_sbox and aes_words,
// aes_tables and aes_words, or aes_bits; then a kernel. Lines of kernels with $j are repeated for every block of a thread,
// and $(x) lists x0, x1, ….

const ROUND_KEYS = 15u;

fn rotl8(x: u32) -> u32 { return (x << 8u) | (x >> 24u); }
fn rotl16(x: u32) -> u32 { return (x << 16u) | (x >> 16u); }
fn rotl24(x: u32) -> u32 { return (x << 24u) | (x >> 8u); }

fn swap_bytes(x: u32) -> u32 {
  return (x << 24u) | ((x & 0xff00u) << 8u) | ((x >> 8u) & 0xff00u) | (x >> 24u);
}

// The first n bytes of a word.
fn low_bytes(n: u32) -> u32 {
  if (n >= 4u) {
    return 0xffffffffu;
  }
  return (1u << (8u * n)) - 1u;
}

fn byte_mask(word: u32, first: u32, end: u32) -> u32 {
  let at = 4u * word;
  return low_bytes(max(end, at) - at) & ~low_bytes(max(first, at) - at);
}

// Bytes first to end - 1 of y, the others of x.
fn select_bytes(x: vec4<u32>, y: vec4<u32>, first: u32, end: u32) -> vec4<u32> {
  let mask = vec4<u32>(byte_mask(0u, first, end), byte_mask(1u, first, end), byte_mask(2u, first, end),
                       byte_mask(3u, first, end));
  return (x & ~mask) | (y & mask);
}

// A counter block plus n, as a big-endian number of 128 bits, or of its last 32 bits alone.
fn add_big_endian(block: vec4<u32>, n: u32, wide: bool) -> vec4<u32> {
  let d = swap_bytes(block.w) + n;
  if (!wide || d >= n) {
    return vec4<u32>(block.xyz, swap_bytes(d));
  }
  let c = swap_bytes(block.z) + 1u;
  let b = swap_bytes(block.y) + u32(c == 0u);
  let a = swap_bytes(block.x) + u32(c == 0u && b == 0u);
  return vec4<u32>(swap_bytes(a), swap_bytes(b), swap_bytes(c), swap_bytes(d));
}
