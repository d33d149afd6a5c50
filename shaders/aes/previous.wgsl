// What CBC decryption in place of one workgroup may overwrite and the next needs; the twin of aes/previous.cu.

@compute @workgroup_size(THREADS)
fn aes_previous(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
  let tile = (group.x + group.y * groups.x) * THREADS + thread;
  if (tile >= params.tiles) {
    return;
  }
  let place = locate(params.messages, tile * params.tile_units);
  if (place.first > 0u || place.chained) {
    previous_set(tile, data_get(place.word + place.first - 1u));
  }
}
