//! The pieces of host data that a [`BytePipeline`] takes through a device.

use evariste_backend::{BytePipeline, Secrecy};

use crate::{error::Result, plan::Aes};

/// Pieces of data of known length that a queue takes at least, so that there is something to overlap.
const ROUNDS: usize = 2;

/// Bytes under which pieces are not cut smaller: at 50 GB/s a copy takes as long as its launch then.
const MIN_PIECE: usize = 512 << 10;

/// For data of a known length, in pieces that are multiples of `unit`, itself one of blocks. They are not longer than
/// the configuration says, unless a unit is: a device may copy longer host memory once more.
pub(crate) fn for_len(aes: &Aes, len: usize, unit: usize) -> Result<BytePipeline> {
    let (queues, chunk) = (aes.config().queue_count(), aes.config().piece_bytes());
    // Powers of two, so that rings for data of all lengths find the host memory of earlier ones in its pool.
    let even = len.div_ceil(ROUNDS * queues).next_power_of_two().max(MIN_PIECE);
    let piece_bytes = (chunk.min(even) / unit * unit).max(unit);
    new(aes, piece_bytes, queues.min(len.div_ceil(piece_bytes)))
}

/// For readers.
pub(crate) fn for_stream(aes: &Aes) -> Result<BytePipeline> {
    new(aes, aes.config().piece_bytes(), aes.config().queue_count())
}

fn new(aes: &Aes, piece_bytes: usize, queues: usize) -> Result<BytePipeline> {
    Ok(BytePipeline::new(aes.device(), piece_bytes, queues, Secrecy::Secret)?)
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;

    use super::*;
    use crate::config::AesConfig;

    #[test]
    fn pieces_are_whole_units_and_no_longer_than_they_may_be() {
        let config = AesConfig::default().chunk_bytes(8 << 20);
        let aes = Aes::with_config(&Device::cpu(), &[1; 16], config).unwrap();
        for (len, unit, expected) in [
            (0, 16, 512 << 10),
            (1 << 20, 528, 524_288 / 528 * 528),
            (1 << 30, 16, 8 << 20),
            (1 << 30, 528, 8_388_608 / 528 * 528),
            (1 << 30, 16 << 20, 16 << 20),
        ] {
            assert_eq!(for_len(&aes, len, unit).unwrap().piece_bytes(), expected, "{len} bytes in units of {unit}");
        }
    }
}
