// The modes whose blocks do not wait for each other, in place, over many messages or sectors; the twin of aes/blocks.cu,
// which explains the modes. MODE is a constant before it, and `previous_get` where CBC has no previous a stub.


fn find(unit: u32) -> Place {
  if (MODE == MODE_XTS) {
    let sector = unit / max(params.messages, 1u);
    let first = (unit - sector * params.messages) * PER_THREAD;
    return Place(sector * params.stride, params.blocks, first, params.key, 16u, false,
                 xts_tweak(messages_get(sector), first));
  }
  return locate(params.messages, unit);
}

fn load(place: Place, block: u32) -> vec4<u32> {
  if (MODE != MODE_TWEAK && block < place.blocks) {
    return data_get(place.word + block);
  }
  return vec4<u32>();
}

// The block before the first of a unit.
fn previous(place: Place, tile: u32, thread: u32) -> vec4<u32> {
  if (MODE == MODE_CBC && (place.first > 0u || place.chained)) {
    if (thread == 0u) {
      return previous_get(tile);
    }
    return data_get(place.word + place.first - 1u);
  }
  return place.iv;
}

// What is XORed to the cipher's output: x is the block's data, before what precedes it or its tweak.
fn mask_of(x: vec4<u32>, before: vec4<u32>) -> vec4<u32> {
  if (MODE == MODE_CBC || MODE == MODE_XTS) {
    return before;
  }
  if (MODE == MODE_CTR) {
    return x;
  }
  return vec4<u32>();
}

// What comes before the next block.
fn next(x: vec4<u32>, before: vec4<u32>) -> vec4<u32> {
  if (MODE == MODE_XTS) {
    return xts_double(before);
  }
  return x;
}

fn input(place: Place, x: vec4<u32>, before: vec4<u32>, block: u32) -> vec4<u32> {
  if (MODE == MODE_CTR) {
    return add_big_endian(place.iv, block, params.wide != 0u);
  }
  if (MODE == MODE_TWEAK) {
    return add_little_endian(place.iv, block);
  }
  if (MODE == MODE_XTS) {
    return x ^ before;
  }
  return x;
}

fn store(place: Place, block: u32, x: vec4<u32>, y: vec4<u32>) {
  if (block >= place.blocks) {
    return;
  }
  if (MODE == MODE_CTR && block + 1u == place.blocks) {
    data_set(place.word + block, select_bytes(x, y, 0u, place.tail));
  } else {
    data_set(place.word + block, y);
  }
}

@compute @workgroup_size(THREADS)
fn aes_blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  load_tables(thread);
  for (var tile = group.x + group.y * groups.x; tile * THREADS < params.units; tile += groups.x * groups.y) {
    let unit = tile * THREADS + thread;
    let inside = unit < params.units;
    var place = find(select(0u, unit, inside));
    if (!inside) {
      place.blocks = 0u;
    }
    var before = previous(place, tile, thread);
    let x$j = load(place, place.first + $ju);
    let m$j = mask_of(x$j, before); let i$j = input(place, x$j, before, place.first + $ju); before = next(x$j, before);
    let y = cipher_all(Blocks($(i)), place.key);
    if (MODE == MODE_CBC) {
      storageBarrier();
    }
    store(place, place.first + $ju, x$j, y.j$j ^ m$j);
  }
}
