// The elements of a matrix as parts of longer rows; the twin of hash/serialize.cu. Comes after serialized(value). One thread an
// element.

@compute @workgroup_size(THREADS)
fn serialize(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let i = (group.x + group.y * groups.x) * THREADS + thread;
  if (i < params.len) {
    let row = i / params.columns;
    out_store(row * params.pitch + params.place + i % params.columns, serialized(x_load(i)));
  }
}
