//! The ladder of AES-128: methods, grid-stride loops and queues side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::session::Record;

/// Throughput by log₂ of the size.
pub(crate) type Rates = BTreeMap<u32, f64>;

/// One line of the ladder from the plain cipher to the fastest: a case, and its bytes in a second by log₂ of the size.
#[derive(Debug, Serialize)]
pub(crate) struct Rung {
    pub(crate) device: String,
    pub(crate) name: &'static str,
    case: String,
    pub(crate) bytes_per_s: Rates,
}

/// What the ladder has: in its words, the name of the case, and the case that has another name where its method is the
/// fastest.
const LADDER: [(&str, &str, &str); 16] = [
    ("S-box", "aes-128-ctr-sbox-no-stride/device", ""),
    ("S-box, grid stride", "aes-128-ctr-sbox/device", ""),
    ("one T-table", "aes-128-ctr-table-no-stride/device", "aes-128-ctr-no-stride/device"),
    ("one T-table, grid stride", "aes-128-ctr-table/device", "aes-128-ctr/device"),
    ("two T-tables", "aes-128-ctr-twotables-no-stride/device", "aes-128-ctr-no-stride/device"),
    ("two T-tables, grid stride", "aes-128-ctr-twotables/device", "aes-128-ctr/device"),
    ("four T-tables", "aes-128-ctr-fourtables-no-stride/device", "aes-128-ctr-no-stride/device"),
    ("four T-tables, grid stride", "aes-128-ctr-fourtables/device", "aes-128-ctr/device"),
    ("bitsliced", "aes-128-ctr-bitsliced-no-stride/device", ""),
    ("bitsliced, grid stride", "aes-128-ctr-bitsliced/device", ""),
    ("ECB, the fastest of these", "aes-128-ecb/device", ""),
    ("with transfers one after the other", "aes-128-ctr-in-turn/pinned", ""),
    ("with transfers, 1 queue", "aes-128-ctr-queues-1/pinned", ""),
    ("with transfers, 2 queues", "aes-128-ctr-queues-2/pinned", ""),
    ("with transfers, 4 queues", "aes-128-ctr/pinned", ""),
    ("with transfers, 8 queues", "aes-128-ctr-queues-8/pinned", ""),
];

/// The ladder of each device that has been measured with all methods.
pub(crate) fn ladder(records: &[Record]) -> Vec<Rung> {
    let mut devices: Vec<&str> = records.iter().map(|record| record.device.as_str()).collect();
    devices.dedup();
    let rates = |device: &str, case: &str| -> Rates {
        let of_case = |record: &&Record| record.device == device && record.case == case && record.peer.is_none();
        records.iter().filter(of_case).filter_map(|record| Some((record.log_n, record.throughput?))).collect()
    };
    let mut ladder = Vec::new();
    for device in devices {
        if rates(device, LADDER[0].1).is_empty() {
            continue;
        }
        for (name, case, fastest) in LADDER {
            let known = [case, fastest].into_iter().map(|case| (case, rates(device, case)));
            if let Some((case, bytes_per_s)) = known.into_iter().find(|(_, rates)| !rates.is_empty()) {
                ladder.push(Rung { device: device.into(), name, case: case.into(), bytes_per_s });
            }
        }
    }
    ladder
}
