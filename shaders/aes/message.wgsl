// Where the blocks of independent messages lie; the twin of aes/message.cuh.

const MESSAGE_WORDS = 3u;

struct Place {
  word: u32,
  blocks: u32,
  first: u32,
  key: u32,
  tail: u32,
  chained: bool,
  iv: vec4<u32>,
}

fn place_of(message: u32, unit: u32) -> Place {
  let head = messages_get(message * MESSAGE_WORDS);
  let more = messages_get(message * MESSAGE_WORDS + 1u);
  return Place(head.y, head.z, (unit - head.x) * PER_THREAD, head.w, more.x, more.w != 0u,
               messages_get(message * MESSAGE_WORDS + 2u));
}

// The last message that starts at or before the unit.
fn locate(count: u32, unit: u32) -> Place {
  var low = 0u;
  var high = count;
  while (high - low > 1u) {
    let middle = low + (high - low) / 2u;
    if (messages_get(middle * MESSAGE_WORDS).x <= unit) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return place_of(low, unit);
}
