//! The time of one problem on D GPUs, from rates that were measured.
//!
//! A GPU is its memory's rate, its rate of multiplications and the time of a launch. A link is the bytes that a GPU sends
//! in a second while it receives as many, and the time until a short exchange is done. An exchange of B bytes a GPU takes
//!
//! ```text
//! latency + B / rate
//! ```
//!
//! in which half of the rate is reached at B = latency · rate.

/// A GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gpu {
    /// Bytes read and written in a second by a copy within the device.
    pub(crate) memory: f64,
    /// Multiplications in BLS12-381 Fr in a second.
    pub(crate) multiplications: f64,
    /// Seconds of a launch behind another one.
    pub(crate) launch: f64,
    /// Seconds of a short round of a sumcheck, with the challenge drawn by the device.
    pub(crate) round: f64,
}

/// What joins GPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    /// Bytes that each GPU sends in a second, while all do.
    pub(crate) rate: f64,
    /// Seconds of the shortest exchange.
    pub(crate) latency: f64,
}

/// An H200, by docs/results: `copy_bytes_per_s` and `mul_per_s`, and sumchecks of 2^10 rows (h200-sumcheck.json).
pub(crate) const H200: Gpu = Gpu { memory: 4.26e12, multiplications: 62.7e9, launch: 3.3e-6, round: 20e-6 };

/// Seconds by which a round of a sumcheck is longer where several GPUs do it, and by which each of them makes it longer: sums
/// go to the first one and from there to all, and each adds up those of all. Fitted, as the next two, to proofs of 2^20 to
/// 2^28 rows by two and four H200s.
const EXCHANGED: f64 = 10e-6;
const COMBINED: f64 = 35e-6;

/// Seconds that a proof by several GPUs takes besides, and that each of them adds: the host gets them started, and one gets
/// the tables of the others.
const STARTED: f64 = 0.24e-3;
const STARTED_EACH: f64 = 0.14e-3;

/// log₂ of the rows from which on one GPU does the rounds of a sumcheck.
const LOG_JOINED: u32 = 18;

/// NVLink of one host: exchanges by NCCL between two H100s, 34 µs at 1 MiB and 317 GB/s at 2 GiB.
pub(crate) const NVLINK: Link = Link { name: "NVLink", rate: 317e9, latency: 31e-6 };

/// PCIe 5 with 16 lanes, by pinned host memory: 55 GB/s each way was measured. Two GPUs that copy through it share it.
pub(crate) const PCIE: Link = Link { name: "PCIe 5", rate: 55e9, latency: 20e-6 };

/// A network of 400 Gb/s for each GPU. It was not measured: nine tenths of the line rate, and 10 µs a message.
pub(crate) const NETWORK: Link = Link { name: "400 Gb/s", rate: 45e9, latency: 10e-6 };

impl Link {
    /// Seconds in which each of D GPUs sends `bytes` in all to the others, a part to each.
    pub(crate) fn exchange(self, devices: u32, bytes: f64) -> f64 {
        match devices {
            1 => 0.0,
            _ => self.latency * f64::from(devices.ilog2().max(1)) + bytes / self.rate,
        }
    }
}

/// Bytes of an element of BLS12-381 Fr, and of a point of G1.
const ELEMENT: f64 = 32.0;

/// Seconds of a transform of 2^`log_n` elements of BLS12-381 Fr on one GPU: the larger of (n/2) log₂ n multiplications at
/// 97% of the measured rate, and passes of 2^10 points that read and write the data.
pub(crate) fn transform_on_one(gpu: Gpu, log_n: u32) -> f64 {
    let n = 2f64.powi(log_n as i32);
    let passes = passes(log_n);
    let arithmetic = n / 2.0 * f64::from(log_n) / (0.97 * gpu.multiplications);
    arithmetic.max(2.0 * ELEMENT * n * passes / gpu.memory) + passes * gpu.launch
}

fn passes(log_n: u32) -> f64 {
    f64::from(log_n.div_ceil(9).max(1))
}

/// How coefficients of a transform over several GPUs are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coefficients {
    Cyclic,
    BlockCyclic,
}

/// Pieces in which data is computed and sent.
const PIECES: f64 = 8.0;

/// Seconds of a transform over D GPUs: inner sums with their twiddles, the exchange, and the transform of n/D elements. Of
/// cyclic coefficients, the exchange runs in pieces beside the inner sums, and a transposition follows. Of block-cyclic
/// ones, it runs beside the first pass of the transform.
pub(crate) fn transform(gpu: Gpu, link: Link, devices: u32, log_n: u32, coefficients: Coefficients) -> f64 {
    let (d, log_d) = (f64::from(devices), devices.ilog2());
    if devices == 1 {
        return transform_on_one(gpu, log_n);
    }
    let bytes = ELEMENT * 2f64.powi((log_n - log_d) as i32);
    let sent = bytes * (d - 1.0) / d;
    // Read and written by the inner sums; twiddles, and the rows that they are multiplied by.
    let inner = (2.0 * bytes + 3.0 * sent) / gpu.memory + 2.0 * gpu.launch;
    let exchange = link.exchange(devices, sent);
    let outer = transform_on_one(gpu, log_n - log_d);
    match coefficients {
        Coefficients::Cyclic => {
            let transposed = 2.0 * bytes / gpu.memory + gpu.launch;
            inner.max(exchange) + inner.min(exchange) / PIECES + transposed + outer
        }
        Coefficients::BlockCyclic => {
            let first = outer / passes(log_n - log_d);
            inner + first.max(exchange) + first.min(exchange) / PIECES + outer - first
        }
    }
}

/// Bytes that a GPU sends for a transform.
pub(crate) fn transform_bytes(devices: u32, log_n: u32) -> f64 {
    let d = f64::from(devices);
    ELEMENT * 2f64.powi(log_n as i32) / d * (d - 1.0) / d
}

/// Seconds of a sum of 2^`log_n` points of BLS12-381 G1 with windows of the best size. The constants are fitted to five
/// measured sizes: a part for each point and digit, a part for each bucket, and what does not depend on either.
pub(crate) fn sum_on_one(log_n: f64) -> f64 {
    let n = 2f64.powf(log_n);
    let windows = |c: f64| (255.0 / c).ceil();
    let time = |c: i32| {
        let c = f64::from(c);
        windows(c) * (POINT * n + BUCKET * 2f64.powf(c - 1.0))
    };
    (8..=24).map(time).fold(f64::INFINITY, f64::min) + SUM_FIXED
}

/// Seconds for a point and a digit, and for a bucket; and of the stages of the shortest sum.
const POINT: f64 = 0.35e-9;
const BUCKET: f64 = 3.5e-9;
const SUM_FIXED: f64 = 1.5e-3;

/// Seconds of a sum over D GPUs: each has a part of the bases. The host adds one point of each.
pub(crate) fn sum(devices: u32, log_n: u32) -> f64 {
    sum_on_one(f64::from(log_n) - f64::from(devices).log2()) + if devices > 1 { 20e-6 } else { 0.0 }
}

/// Seconds of a zero-check of a·b − c over 2^`log_n` rows, by D GPUs: 11 elements a row are read and written, 6
/// multiplications are made, at 78% of the rate that bounds them. All draw their challenges themselves. Several exchange sums in
/// each round, until the first one goes on with what is left.
pub(crate) fn zero_check(gpu: Gpu, devices: u32, log_n: u32) -> f64 {
    let work = |rows: f64| (11.0 * ELEMENT * rows / gpu.memory).max(6.0 * rows / gpu.multiplications) / 0.78;
    let alone = |log_n: u32| work(2f64.powi(log_n as i32)) + f64::from(log_n) * gpu.round;
    if devices == 1 {
        return alone(log_n);
    }
    let joined = LOG_JOINED.min(log_n.saturating_sub(2));
    let round = EXCHANGED + f64::from(devices) * COMBINED;
    let start = STARTED + f64::from(devices) * STARTED_EACH;
    work(2f64.powi(log_n as i32) / f64::from(devices)) + f64::from(log_n - joined) * round + start + alone(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the model is within a share of a measurement, both in milliseconds.
    #[track_caller]
    fn expect(what: &str, model: f64, measured: f64, share: f64) {
        let error = (1e3 * model / measured - 1.0).abs();
        assert!(error <= share, "{what}: the model says {:.3} ms, measured were {measured} ms", 1e3 * model);
    }

    #[test]
    fn exchanges_are_those_that_were_measured() {
        // Two H100s, NCCL: bytes that each sends, and the time.
        for (bytes, measured, share) in [
            (1u64 << 20, 0.034, 0.05),
            (16 << 20, (16u64 << 20) as f64 / 150e9 * 1e3, 0.30),
            (256 << 20, (256u64 << 20) as f64 / 265e9 * 1e3, 0.15),
            (2 << 30, (2u64 << 30) as f64 / 317e9 * 1e3, 0.02),
        ] {
            expect(&format!("{bytes} bytes"), NVLINK.exchange(2, bytes as f64), measured, share);
        }
    }

    #[test]
    fn one_device_takes_what_was_measured() {
        // docs/results/h200-ntt.json, h200-ntt-26.json, h200-ntt-28.json
        for (log_n, measured) in [(22, 0.782), (24, 3.179), (25, 6.891), (26, 14.432), (28, 61.964)] {
            expect(&format!("a transform of 2^{log_n}"), transform_on_one(H200, log_n), measured, 0.08);
        }
        // docs/results/h200-msm.json
        for (log_n, measured) in [(18.0, 3.533), (20.0, 8.944), (22.0, 27.393), (24.0, 91.966), (26.0, 334.281)] {
            expect(&format!("a sum of 2^{log_n}"), sum_on_one(log_n), measured, 0.05);
        }
        // docs/results/h200-sumcheck.json, h200-sumcheck-28.json
        for (log_n, measured) in [(20, 0.542), (22, 0.998), (24, 2.759), (25, 4.704), (28, 33.531)] {
            expect(&format!("a zero-check of 2^{log_n}"), zero_check(H200, 1, log_n), measured, 0.10);
        }
    }

    #[test]
    fn two_and_four_devices_take_what_was_measured() {
        // docs/results/h200-x4.json
        let block = |d| transform(H200, NVLINK, d, 28, Coefficients::BlockCyclic);
        let cyclic = |d| transform(H200, NVLINK, d, 28, Coefficients::Cyclic);
        for (devices, [summed, in_blocks, in_turn]) in [(2, [168.0, 34.9, 41.7]), (4, [92.8, 20.0, 23.4])] {
            expect(&format!("a sum by {devices}"), sum(devices, 26), summed, 0.07);
            expect(&format!("a transform by {devices}"), block(devices), in_blocks, 0.13);
            expect(&format!("one of cyclic coefficients by {devices}"), cyclic(devices), in_turn, 0.13);
        }
        // docs/results/h200-x4-sumcheck.json
        for (log_n, two, four) in [(20, 1.123, 1.561), (24, 2.436, 2.560), (26, 5.726, 4.398), (28, 18.822, 10.987)] {
            expect(&format!("a zero-check of 2^{log_n} by two"), zero_check(H200, 2, log_n), two, 0.05);
            expect(&format!("a zero-check of 2^{log_n} by four"), zero_check(H200, 4, log_n), four, 0.05);
        }
    }

    #[test]
    fn more_devices_never_take_longer_where_the_problem_is_large() {
        // Over a network, two take longer than one; from there on, more take less.
        let times = |link| [1, 2, 4, 8].map(|d| transform(H200, link, d, 28, Coefficients::BlockCyclic));
        let (near, far) = (times(NVLINK), times(NETWORK));
        assert!(near.is_sorted_by(|a, b| a > b) && far[1..].is_sorted_by(|a, b| a > b), "{near:?}, {far:?}");
        assert!([1, 2, 4, 8, 16].map(|d| sum(d, 26)).is_sorted_by(|a, b| a > b));
        assert!([1, 2, 4, 8].map(|d| zero_check(H200, d, 28)).is_sorted_by(|a, b| a > b));
    }
}
