// AES on bits: 8 blocks a thread in 32 words, for the bitsliced method; the twin of aes/bits.cuh, which explains it.

const PER_THREAD = 8u;

struct Row { b0: u32, b1: u32, b2: u32, b3: u32, b4: u32, b5: u32, b6: u32, b7: u32 }
struct Sliced { r0: Row, r1: Row, r2: Row, r3: Row }
struct Blocks {
  j0: vec4<u32>, j1: vec4<u32>, j2: vec4<u32>, j3: vec4<u32>,
  j4: vec4<u32>, j5: vec4<u32>, j6: vec4<u32>, j7: vec4<u32>,
}

fn load_tables(thread: u32) {}

// (a, b) with the bits of a under mask << shift and those of b under mask exchanged.
fn swap_bits(a: u32, b: u32, mask: u32, shift: u32) -> vec2<u32> {
  let t = ((a >> shift) ^ b) & mask;
  return vec2<u32>(a ^ (t << shift), b ^ t);
}

// Bit i of byte c of word j becomes bit j of byte c of word i.
fn transpose_bits(x: Row) -> Row {
  let a = swap_bits(x.b0, x.b1, 0x55555555u, 1u); let b = swap_bits(x.b2, x.b3, 0x55555555u, 1u);
  let c = swap_bits(x.b4, x.b5, 0x55555555u, 1u); let d = swap_bits(x.b6, x.b7, 0x55555555u, 1u);
  let e = swap_bits(a.x, b.x, 0x33333333u, 2u); let f = swap_bits(a.y, b.y, 0x33333333u, 2u);
  let g = swap_bits(c.x, d.x, 0x33333333u, 2u); let h = swap_bits(c.y, d.y, 0x33333333u, 2u);
  let i = swap_bits(e.x, g.x, 0x0f0f0f0fu, 4u); let j = swap_bits(f.x, h.x, 0x0f0f0f0fu, 4u);
  let k = swap_bits(e.y, g.y, 0x0f0f0f0fu, 4u); let l = swap_bits(f.y, h.y, 0x0f0f0f0fu, 4u);
  return Row(i.x, j.x, k.x, l.x, i.y, j.y, k.y, l.y);
}

// Byte c of word r becomes byte r of word c.
fn transpose_bytes(x: vec4<u32>) -> vec4<u32> {
  let a = (x.x & 0x00ff00ffu) | ((x.y & 0x00ff00ffu) << 8u); let b = ((x.x >> 8u) & 0x00ff00ffu) | (x.y & 0xff00ff00u);
  let c = (x.z & 0x00ff00ffu) | ((x.w & 0x00ff00ffu) << 8u); let d = ((x.z >> 8u) & 0x00ff00ffu) | (x.w & 0xff00ff00u);
  return vec4<u32>((a & 0xffffu) | (c << 16u), (b & 0xffffu) | (d << 16u), (a >> 16u) | (c & 0xffff0000u),
                   (b >> 16u) | (d & 0xffff0000u));
}

fn slice(x: Blocks) -> Sliced {
  let a = transpose_bytes(x.j0); let b = transpose_bytes(x.j1); let c = transpose_bytes(x.j2);
  let d = transpose_bytes(x.j3); let e = transpose_bytes(x.j4); let f = transpose_bytes(x.j5);
  let g = transpose_bytes(x.j6); let h = transpose_bytes(x.j7);
  return Sliced(
    transpose_bits(Row(a.x, b.x, c.x, d.x, e.x, f.x, g.x, h.x)), transpose_bits(Row(a.y, b.y, c.y, d.y, e.y, f.y, g.y, h.y)),
    transpose_bits(Row(a.z, b.z, c.z, d.z, e.z, f.z, g.z, h.z)), transpose_bits(Row(a.w, b.w, c.w, d.w, e.w, f.w, g.w, h.w)));
}

fn unslice(s: Sliced) -> Blocks {
  let a = transpose_bits(s.r0); let b = transpose_bits(s.r1); let c = transpose_bits(s.r2); let d = transpose_bits(s.r3);
  return Blocks(
    transpose_bytes(vec4<u32>(a.b0, b.b0, c.b0, d.b0)),
    transpose_bytes(vec4<u32>(a.b1, b.b1, c.b1, d.b1)),
    transpose_bytes(vec4<u32>(a.b2, b.b2, c.b2, d.b2)),
    transpose_bytes(vec4<u32>(a.b3, b.b3, c.b3, d.b3)),
    transpose_bytes(vec4<u32>(a.b4, b.b4, c.b4, d.b4)),
    transpose_bytes(vec4<u32>(a.b5, b.b5, c.b5, d.b5)),
    transpose_bytes(vec4<u32>(a.b6, b.b6, c.b6, d.b6)),
    transpose_bytes(vec4<u32>(a.b7, b.b7, c.b7, d.b7)));
}

fn sub_bytes(x: Row) -> Row {
  let u7 = x.b0; let u6 = x.b1; let u5 = x.b2; let u4 = x.b3; let u3 = x.b4; let u2 = x.b5; let u1 = x.b6; let u0 = x.b7;
  let y14 = u3 ^ u5; let y13 = u0 ^ u6; let y12 = y13 ^ y14; let t1 = u4 ^ y12; let y15 = t1 ^ u5;
  let t2 = y12 & y15; let y6 = y15 ^ u7; let y20 = t1 ^ u1; let y9 = u0 ^ u3; let y11 = y20 ^ y9; let t12 = y9 & y11;
  let y7 = u7 ^ y11; let y8 = u0 ^ u5; let t0 = u1 ^ u2; let y10 = y15 ^ t0; let y17 = y10 ^ y11;
  let t13 = y14 & y17; let t14 = t13 ^ t12; let y19 = y10 ^ y8; let t15 = y8 & y10; let t16 = t15 ^ t12;
  let y16 = t0 ^ y11; let y21 = y13 ^ y16; let t7 = y13 & y16; let y18 = u0 ^ y16; let y1 = t0 ^ u7;
  let y4 = y1 ^ u3; let t5 = y4 & u7; let t6 = t5 ^ t2; let t18 = t6 ^ t16; let t22 = t18 ^ y19; let y2 = y1 ^ u0;
  let t10 = y2 & y7; let t11 = t10 ^ t7; let t20 = t11 ^ t16; let t24 = t20 ^ y18; let y5 = y1 ^ u6;
  let t8 = y5 & y1; let t9 = t8 ^ t7; let t19 = t9 ^ t14; let t23 = t19 ^ y21; let y3 = y5 ^ y8; let t3 = y3 & y6;
  let t4 = t3 ^ t2; let t17 = t4 ^ y20; let t21 = t17 ^ t14; let t26 = t21 & t23; let t27 = t24 ^ t26;
  let t31 = t22 ^ t26; let t25 = t21 ^ t22; let t28 = t25 & t27; let t29 = t28 ^ t22; let z14 = t29 & y2;
  let z5 = t29 & y7; let t30 = t23 ^ t24; let t32 = t31 & t30; let t33 = t32 ^ t24; let t35 = t27 ^ t33;
  let t36 = t24 & t35; let t38 = t27 ^ t36; let t39 = t29 & t38; let t40 = t25 ^ t39; let t43 = t29 ^ t40;
  let z3 = t43 & y16; let tc12 = z3 ^ z5; let z12 = t43 & y13; let z13 = t40 & y5; let z4 = t40 & y1;
  let tc6 = z3 ^ z4; let t34 = t23 ^ t33; let t37 = t36 ^ t34; let t41 = t40 ^ t37; let z8 = t41 & y10;
  let z17 = t41 & y8; let t44 = t33 ^ t37; let z0 = t44 & y15; let z9 = t44 & y12; let z10 = t37 & y3;
  let z1 = t37 & y6; let tc5 = z1 ^ z0; let tc11 = tc6 ^ tc5; let z11 = t33 & y4; let t42 = t29 ^ t33;
  let t45 = t42 ^ t41; let z7 = t45 & y17; let tc8 = z7 ^ tc6; let z16 = t45 & y14; let z6 = t42 & y11;
  let tc16 = z6 ^ tc8; let z15 = t42 & y9; let tc20 = z15 ^ tc16; let tc1 = z15 ^ z16; let tc2 = z10 ^ tc1;
  let tc21 = tc2 ^ z11; let tc3 = z9 ^ tc2; let s0 = tc3 ^ tc16; let s3 = tc3 ^ tc11; let s1 = s3 ^ tc16;
  let tc13 = z13 ^ tc1; let z2 = t33 & u7; let tc4 = z0 ^ z2; let tc7 = z12 ^ tc4; let tc9 = z8 ^ tc7;
  let tc10 = tc8 ^ tc9; let tc17 = z14 ^ tc10; let s5 = tc21 ^ tc17; let tc26 = tc17 ^ tc20; let s2 = tc26 ^ z17;
  let tc14 = tc4 ^ tc12; let tc18 = tc13 ^ tc14; let s6 = tc10 ^ tc18; let s7 = z12 ^ tc18; let s4 = tc14 ^ s3;
  return Row(s7, s6, s5, s4, s3, s2, s1, s0);
}

fn row_xor(x: Row, y: Row) -> Row {
  return Row(x.b0 ^ y.b0, x.b1 ^ y.b1, x.b2 ^ y.b2, x.b3 ^ y.b3, x.b4 ^ y.b4, x.b5 ^ y.b5, x.b6 ^ y.b6, x.b7 ^ y.b7);
}

// Every byte c of a row's words takes the place of byte c + bytes.
fn row_turn(x: Row, bytes: u32) -> Row {
  let l = 8u * bytes; let r = 32u - l;
  return Row((x.b0 << l) | (x.b0 >> r), (x.b1 << l) | (x.b1 >> r), (x.b2 << l) | (x.b2 >> r), (x.b3 << l) | (x.b3 >> r),
             (x.b4 << l) | (x.b4 >> r), (x.b5 << l) | (x.b5 >> r), (x.b6 << l) | (x.b6 >> r), (x.b7 << l) | (x.b7 >> r));
}

// Twice a field element on bits.
fn row_times_two(x: Row) -> Row {
  return Row(x.b7, x.b0 ^ x.b7, x.b1, x.b2 ^ x.b7, x.b3 ^ x.b7, x.b4, x.b5, x.b6);
}

// The inverse of the linear part of SubBytes.
fn inverse_affine(x: Row) -> Row {
  return Row(x.b2 ^ x.b5 ^ x.b7, x.b3 ^ x.b6 ^ x.b0, x.b4 ^ x.b7 ^ x.b1, x.b5 ^ x.b0 ^ x.b2, x.b6 ^ x.b1 ^ x.b3,
             x.b7 ^ x.b2 ^ x.b4, x.b0 ^ x.b3 ^ x.b5, x.b1 ^ x.b4 ^ x.b6);
}

fn sub_row(x: Row) -> Row {
  if (DECRYPT) {
    return inverse_affine(sub_bytes(inverse_affine(x)));
  }
  return sub_bytes(x);
}

fn sub_and_shift(s: Sliced) -> Sliced {
  let first = select(3u, 1u, DECRYPT);
  return Sliced(sub_row(s.r0), row_turn(sub_row(s.r1), first), row_turn(sub_row(s.r2), 2u),
                row_turn(sub_row(s.r3), 4u - first));
}

// 2 t + x + u
fn mixed_row(t: Row, x: Row, u: Row) -> Row {
  return row_xor(row_xor(row_times_two(t), x), u);
}

fn mix_columns(x: Sliced) -> Sliced {
  var s = x;
  if (DECRYPT) {
    let even = row_times_two(row_times_two(row_xor(s.r0, s.r2)));
    let odd = row_times_two(row_times_two(row_xor(s.r1, s.r3)));
    s = Sliced(row_xor(s.r0, even), row_xor(s.r1, odd), row_xor(s.r2, even), row_xor(s.r3, odd));
  }
  let t0 = row_xor(s.r0, s.r1); let t1 = row_xor(s.r1, s.r2); let t2 = row_xor(s.r2, s.r3); let t3 = row_xor(s.r3, s.r0);
  return Sliced(mixed_row(t0, s.r1, t2), mixed_row(t1, s.r2, t3), mixed_row(t2, s.r3, t0), mixed_row(t3, s.r0, t1));
}

fn add_key_row(x: Row, at: u32) -> Row {
  let low = schedule_get(at); let high = schedule_get(at + 1u);
  return Row(x.b0 ^ low.x, x.b1 ^ low.y, x.b2 ^ low.z, x.b3 ^ low.w,
             x.b4 ^ high.x, x.b5 ^ high.y, x.b6 ^ high.z, x.b7 ^ high.w);
}

fn add_key(s: Sliced, at: u32) -> Sliced {
  return Sliced(add_key_row(s.r0, at), add_key_row(s.r1, at + 2u), add_key_row(s.r2, at + 4u), add_key_row(s.r3, at + 6u));
}

fn cipher_all(blocks: Blocks, key: u32) -> Blocks {
  let keys = key * SCHEDULE_WORDS + select(0u, 8u * ROUND_KEYS, DECRYPT);
  var s = add_key(slice(blocks), keys);
  for (var i = 1u; i <= ROUNDS; i++) {
    s = sub_and_shift(s);
    if (i < ROUNDS) {
      s = mix_columns(s);
    }
    s = add_key(s, keys + 8u * i);
  }
  return unslice(s);
}
