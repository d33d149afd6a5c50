//! What a device can do at most, as measured: the bandwidth of its memory and its rate of multiplications.

use std::time::Duration;

use anyhow::Result;
use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste::backend::{Buffer, Device, Kind};
use evariste::field::Mont;
use evariste_microbench::{MULTIPLICATIONS, MulChain, Step};
use serde::Serialize;

use crate::{input, timing::Budget};

/// Limits of a device.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Limits {
    /// Bytes read and bytes written in a second by a copy within the device.
    pub(crate) copy_bytes_per_s: f64,
    /// Multiplications in BLS12-381 Fr in a second.
    pub(crate) mul_per_s: f64,
}

/// What an algorithm cannot do without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) multiplications: f64,
    /// Bytes read and written.
    pub(crate) bytes: f64,
}

/// The limit that a device's work is closest to.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bound {
    Multiplications,
    Copy,
}

impl Limits {
    pub(crate) fn measure(device: &Device, budget: &Budget) -> Result<Self> {
        Ok(Self { copy_bytes_per_s: copy_bandwidth(device, budget)?, mul_per_s: mul_rate(device)? })
    }

    /// The shortest time in seconds in which the device could do `work`, and what bounds it.
    pub(crate) fn floor(&self, work: Work) -> (f64, Bound) {
        let arithmetic = work.multiplications / self.mul_per_s;
        let memory = work.bytes / self.copy_bytes_per_s;
        if arithmetic >= memory { (arithmetic, Bound::Multiplications) } else { (memory, Bound::Copy) }
    }
}

/// Bytes of a buffer that no cache of the device holds.
fn uncached_bytes(device: &Device) -> u64 {
    let info = device.info();
    let wanted = match info.id.kind {
        _ if info.features.software => 64 << 20,
        Kind::Cpu => 256 << 20,
        _ => 1 << 30,
    };
    wanted.min(info.limits.buffer_bytes).min(info.memory_bytes.unwrap_or(u64::MAX) / 8)
}

fn copy_bandwidth(device: &Device, budget: &Budget) -> Result<f64> {
    let len = (uncached_bytes(device) / 4) as usize;
    let source: Buffer<u32> = device.zeros(len)?;
    let mut target: Buffer<u32> = device.zeros(len)?;
    let timing = budget.time_queued(|| Ok(target.copy_from(&source)?), || Ok(device.sync()?))?;
    Ok(2.0 * source.bytes() as f64 / timing.median.as_secs_f64())
}

/// Elements at first and at most. With the most, the largest GPUs work for some 10 ms, many times over what it takes
/// to fill them.
const CHAINS: [usize; 2] = [1 << 10, 1 << 20];

/// Elements enough: what takes this long.
const ENOUGH: Duration = Duration::from_millis(30);

fn mul_rate(device: &Device) -> Result<f64> {
    let chain = MulChain::new(device, Step::Mul, Fr::ONE)?;
    let budget = Budget { time: Duration::ZERO, runs: 5 };
    let mut len = CHAINS[0];
    loop {
        let x = device.upload::<Mont<Fr>>(&input::random(len))?;
        let mut out = device.alloc(len)?;
        let timing = budget.time_queued(|| Ok(chain.run(&x, &mut out)?), || Ok(device.sync()?))?;
        if len == CHAINS[1] || timing.median > ENOUGH {
            return Ok(len as f64 * f64::from(MULTIPLICATIONS) / timing.median.as_secs_f64());
        }
        len *= 4;
    }
}
