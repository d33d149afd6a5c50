// SubBytes byte by byte from 256 bytes of workgroup memory, MixColumns computed.

var<workgroup> sbox: array<u32, 64>;

fn load_tables(thread: u32) {
  for (var i = thread; i < 64u; i += THREADS) {
    sbox[i] = tables_get(512u + select(0u, 64u, DECRYPT) + i);
  }
  workgroupBarrier();
}

fn substitute(x: u32) -> u32 {
  return (sbox[(x >> 2u) & 63u] >> (8u * (x & 3u))) & 255u;
}

fn times_two(x: u32) -> u32 {
  return ((x & 0x7f7f7f7fu) << 1u) ^ (((x >> 7u) & 0x01010101u) * 0x1bu);
}

fn last_column(a: u32, b: u32, c: u32, d: u32) -> u32 {
  return substitute(a & 255u) | (substitute((b >> 8u) & 255u) << 8u) | (substitute((c >> 16u) & 255u) << 16u)
    | (substitute(d >> 24u) << 24u);
}

fn column(a: u32, b: u32, c: u32, d: u32) -> u32 {
  var x = last_column(a, b, c, d);
  if (DECRYPT) {
    x ^= times_two(times_two(x ^ rotl16(x)));
  }
  return times_two(x ^ rotl24(x)) ^ rotl24(x) ^ rotl16(x) ^ rotl8(x);
}
