//! The steps by which a founding document made AES on a GPU fast, each with its transfers: by method, with and without
//! a grid-stride loop, with copies and kernel in turn or through queues.

use evariste::aes::{Aes, AesConfig, Method};

use super::{
    IV, KEY, case,
    host::{MAX_LOG_N, pinned_in_turn, slice_in_turn, through_queues},
};
use crate::{
    session::{IN_TURN, Session},
    target::Target,
};

/// How data comes to the device and back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From a slice, one copy after the other.
    Slice,
    /// From pinned memory, one copy after the other.
    InTurn,
    /// From pinned memory, through the usual number of queues.
    Queues,
}

/// A step: its method, whether it has a grid-stride loop, and its transfers.
const STEPS: [(Method, bool, Way); 10] = [
    (Method::Sbox, false, Way::Slice),
    (Method::Sbox, false, Way::InTurn),
    (Method::FourTables, false, Way::InTurn),
    (Method::Sbox, false, Way::Queues),
    (Method::Sbox, true, Way::InTurn),
    (Method::Sbox, true, Way::Queues),
    (Method::Table, true, Way::Queues),
    (Method::TwoTables, true, Way::Queues),
    (Method::FourTables, true, Way::Queues),
    (Method::Bitsliced, true, Way::Queues),
];

pub(super) fn run(session: &mut Session, target: &Target, log_n: u32) {
    if log_n > MAX_LOG_N {
        return;
    }
    for (method, grid_stride, way) in STEPS {
        let config = AesConfig::default().method(method).cpu_threshold(0).grid_stride(grid_stride);
        let method = format!("{method:?}").to_lowercase();
        let stride = if grid_stride { "" } else { "-no-stride" };
        let (turn, place) = match way {
            Way::Slice => (IN_TURN, "host"),
            Way::InTurn => (IN_TURN, "pinned"),
            Way::Queues => ("", "pinned"),
        };
        let name = format!("aes-128-ctr-{method}{stride}{turn}/{place}");
        session.measure(case(target, name, log_n), |budget| {
            let mut ctr = Aes::with_keys(&target.device, &[&KEY[..16]], config)?.ctr(&IV)?;
            let len = 1 << log_n;
            match way {
                Way::Slice => slice_in_turn(budget, &ctr, len),
                Way::InTurn => pinned_in_turn(budget, &ctr, len),
                Way::Queues => through_queues(budget, &mut ctr, len),
            }
        });
    }
}
