// Messages of bytes in words of 32 bits, the lowest byte first; the twin of hash/bytes.cuh.

fn rotate_right(x: u32, n: u32) -> u32 {
  return (x >> n) | (x << (32u - n));
}

fn swap_bytes(x: u32) -> u32 {
  return (x << 24u) | ((x & 0xff00u) << 8u) | ((x >> 8u) & 0xff00u) | (x >> 24u);
}

// Word `at` of x, or 0 if it is not needed.
fn fetch(at: u32, needed: bool) -> u32 {
  if (needed) {
    let four = x_get(at / 4u);
    return four[at % 4u];
  }
  return 0u;
}

// The word that starts at byte `within` of two neighbouring ones, of which the message has `left` bytes, of any sign: behind them lies
// the byte `pad`, then zeros.
fn take(low: u32, high: u32, within: u32, left: i32, pad: u32) -> u32 {
  var word = low;
  if (within != 0u) {
    word = (low >> (8u * within)) | (high << (32u - 8u * within));
  }
  if (left < 4) {
    if (left <= 0) {
      word = 0u;
    } else {
      word &= (1u << u32(8 * left)) - 1u;
    }
    if (left >= 0) {
      word |= pad << u32(8 * left);
    }
  }
  return word;
}

struct Digest { a: vec4<u32>, b: vec4<u32> }

fn store_digest(place: u32, digest: Digest) {
  out_set(2u * place, digest.a);
  out_set(2u * place + 1u, digest.b);
}
