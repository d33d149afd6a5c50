// What goes block after block within a message or sector, in place: one thread each; the twin of aes/serial.cu, which
// explains the modes. MODE is a constant before it.

fn cipher_one(x: vec4<u32>, key: u32) -> vec4<u32> {
  let x$j = x;
  return cipher_all(Blocks($(x)), key).j0;
}

fn chain(message: u32) {
  let place = place_of(message, 0u);
  var last = place.iv;
  let end = min(place.blocks, params.first + params.blocks);
  if (params.first < end && (params.first > 0u || place.chained)) {
    last = data_get(place.word + params.first - 1u);
  }
  for (var j = params.first; j < end; j++) {
    last = cipher_one(last ^ data_get(place.word + j), place.key);
    data_set(place.word + j, last);
  }
}

fn steal(sector: u32) {
  let word = sector * params.stride + params.blocks;
  let tweak = xts_tweak(messages_get(sector), params.blocks);
  let following = xts_double(tweak);
  var whole = data_get(word);
  let part = data_get(word + 1u);
  // Encryption takes the tweaks in order, decryption the other way around.
  for (var half = 0u; half < 2u; half++) {
    let now = select(tweak, following, (half == 0u) == DECRYPT);
    let y = cipher_one(whole ^ now, params.key) ^ now;
    if (half == 0u) {
      // The short block gets the head of the result, and gives its own in exchange.
      data_set(word + 1u, select_bytes(part, y, 0u, params.tail));
      whole = select_bytes(y, part, 0u, params.tail);
    } else {
      data_set(word, y);
    }
  }
}

@compute @workgroup_size(THREADS)
fn aes_serial(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  load_tables(thread);
  let stride = groups.x * groups.y * THREADS;
  for (var i = (group.x + group.y * groups.x) * THREADS + thread; i < params.count; i += stride) {
    if (MODE == MODE_CBC_ENCRYPT) {
      chain(i);
    } else {
      steal(i);
    }
  }
}
