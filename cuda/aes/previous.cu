// previous[t] = the block before the first block of unit t * TILE_UNITS, where it is chained to that: what CBC decryption in
// place of the workgroup before may overwrite. One thread an entry.

extern "C" __global__ void __launch_bounds__(THREADS)
aes_previous(const Params params, BUFFERS(uint4, uint4, uint4)) {
    wait_for_previous();
    uint32_t tile = blockIdx.x * THREADS + threadIdx.x;
    if (tile >= params.tiles) return;
    Place place = locate(messages, params.messages, tile * params.tile_units);
    if (place.first > 0 || place.chained) previous[tile] = data[place.word + place.first - 1];
}
