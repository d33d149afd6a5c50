// Rounds by lookups in TABLES tables (1, 2 or 4) of 256 words, each with COPIES copies side by side, so that neighbouring
// threads find different banks: 1 KiB of workgroup memory a copy.

var<workgroup> copies: array<u32, TABLES * 256u * COPIES>;
var<private> copy: u32;

fn load_tables(thread: u32) {
  copy = thread % COPIES;
  for (var i = thread; i < TABLES * 256u * COPIES; i += THREADS) {
    let number = i / (256u * COPIES);
    var v = tables_get(select(0u, 256u, DECRYPT) + (i / COPIES) % 256u);
    if ((number & 1u) != 0u) {
      v = rotl8(v);
    }
    if ((number & 2u) != 0u) {
      v = rotl16(v);
    }
    copies[i] = v;
  }
  workgroupBarrier();
}

fn look_up(number: u32, x: u32) -> u32 {
  return copies[(number * 256u + (x & 255u)) * COPIES + copy];
}

fn column(a: u32, b: u32, c: u32, d: u32) -> u32 {
  if (TABLES == 4u) {
    return look_up(0u, a) ^ look_up(1u, b >> 8u) ^ look_up(2u, c >> 16u) ^ look_up(3u, d >> 24u);
  }
  if (TABLES == 2u) {
    return look_up(0u, a) ^ look_up(1u, b >> 8u) ^ rotl16(look_up(0u, c >> 16u) ^ look_up(1u, d >> 24u));
  }
  return look_up(0u, a) ^ rotl8(look_up(0u, b >> 8u)) ^ rotl16(look_up(0u, c >> 16u)) ^ rotl24(look_up(0u, d >> 24u));
}

// Byte 1 of an entry for encryption is the S-box's value; for decryption the sum of its bytes is.
fn substitute(x: u32) -> u32 {
  let v = look_up(0u, x);
  if (DECRYPT) {
    let w = v ^ (v >> 16u);
    return (w ^ (w >> 8u)) & 255u;
  }
  return (v >> 8u) & 255u;
}

fn last_column(a: u32, b: u32, c: u32, d: u32) -> u32 {
  return substitute(a) | (substitute(b >> 8u) << 8u) | (substitute(c >> 16u) << 16u) | (substitute(d >> 24u) << 24u);
}
