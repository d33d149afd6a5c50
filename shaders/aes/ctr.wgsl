// XORs the keystream of one message onto it, in place; the twin of aes/ctr.cu. A thread takes PER_THREAD neighbouring
// blocks at a time and strides.

fn counter_of(k: u32) -> vec4<u32> {
  let counter = vec4<u32>(params.counter_0, params.counter_1, params.counter_2, params.counter_3);
  return add_big_endian(counter, k, params.wide != 0u);
}

fn add_keystream(k: u32, stream: vec4<u32>) {
  if (k >= params.blocks) {
    return;
  }
  let x = data_get(k);
  let first = select(0u, params.skip, k == 0u);
  let end = select(16u, params.tail, k == params.blocks - 1u);
  data_set(k, select_bytes(x, x ^ stream, first, end));
}

@compute @workgroup_size(THREADS)
fn aes_ctr(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) thread: u32) {
  load_tables(thread);
  let units = (params.blocks + PER_THREAD - 1u) / PER_THREAD;
  let stride = groups.x * groups.y * THREADS;
  for (var unit = (group.x + group.y * groups.x) * THREADS + thread; unit < units; unit += stride) {
    let k = unit * PER_THREAD;
    let x$j = counter_of(k + $ju);
    let y = cipher_all(Blocks($(x)), 0u);
    add_keystream(k + $ju, y.j$j);
  }
}
