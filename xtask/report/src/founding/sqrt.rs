//! Square roots by many processors.

use super::{Comparison, Run, Scale, System};
use crate::{
    Figures, Table,
    section::{cell, digits, range},
};

pub(super) static SYSTEM: System = System {
    name: "sqrt",
    title: "Square roots modulo a prime",
    source: "A thesis of the Università Roma Tre on square roots in finite fields on GPUs, for Rabin's cryptosystem: Tonelli and \
             Shanks inside one root, Sze's deterministic algorithm, products modulo n. Of roots it shows curves alone, and in all of \
             them the serial program on a CPU is faster.",
    hardware: "Pentium Dual-Core, AMD Athlon II X4 640, NVIDIA Tesla C2070, AMD Radeon 6800, OpenCL.",
    notes: "The source has the powers of one root brought up to date by many processors: here by the 32 threads of a warp. The methods \
            with a matrix of powers do the same products by one thread a root. Default is powers from tables without branches. One \
            root alone, where parallelism inside it could help, and many, where a thread each is enough. With transfers, elements \
            and roots lie in the host's memory; one core is arkworks' serial loop on the host for one root. Moduli of 16 to 1024 bits \
            are given to the program when it runs, as the source's are.",
    runs,
    compare,
};

/// Table 1 of the source: nanoseconds a product modulo n over 10,000 of them, on a CPU, an NVIDIA and an AMD GPU, and a
/// CPU without OpenCL; and the case that does the same here.
const PRODUCTS: [(&str, [Option<f64>; 4], &str); 4] = [
    ("one after the other, global memory", [Some(107.0), Some(8569.0), Some(13700.0), Some(59.0)], "global/serial"),
    ("one after the other, results not copied", [Some(3.0), Some(1379.0), Some(26.0), None], "kept/serial"),
    ("at once, global memory", [Some(3.0), Some(2.0), Some(31.0), None], "global/parallel"),
    ("at once, local memory", [Some(3.0), Some(2.0), Some(29.0), None], "shared/parallel"),
];

/// log₂ of the products, rounded down.
const LOG_PRODUCTS: u32 = 13;

/// Fields, from short to long moduli: name, bits, two-adicity.
const FIELDS: [(&str, &str, u32, u32); 4] = [
    ("BabyBear", "baby-bear", 31, 27),
    ("Goldilocks", "goldilocks", 64, 32),
    ("BN254 Fr", "bn254-fr", 254, 28),
    ("BLS12-381 Fr", "bls12-381-fr", 255, 32),
];

/// A root by a warp.
const WARP: &str = "roots/warp/device";

/// Methods: ours, and those of the source.
const METHODS: [(&str, &str); 7] = [
    ("default", "roots/device"),
    ("serial", "roots/serial/device"),
    ("needed columns", "roots/needed-columns/device"),
    ("power matrix", "roots/power-matrix/device"),
    ("warp", WARP),
    ("Sze", "roots/sze/device"),
    ("Cipolla", "roots/cipolla/device"),
];

/// Roots from and to the host's memory, and one of them by one core of the host.
const FROM_HOST: &str = "roots/host";
const ONE_CORE: &str = "roots/one-core/host";

/// One root by the matrices of the source's Algorithm 3.
const MATRICES: &str = "roots/host-matrices";

/// Bits of primes that are known at run time.
const RUN_TIME: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// One root modulo a run-time prime, and many.
fn run_time_sizes(scale: Scale) -> [u32; 2] {
    [0, scale.pick(16, 6)]
}

fn run_time(bits: u32, place: &str) -> String {
    format!("mod-{bits}/roots/{place}")
}

/// One root, and the number that fills a device.
fn sizes(scale: Scale) -> [u32; 2] {
    [0, scale.pick(20, 10)]
}

/// Fields of the products: name, bits.
const PRODUCTS_OVER: [(&str, u32); 3] = [("baby-bear", 31), ("goldilocks", 64), ("bls12-381-fr", 255)];

fn products(field: &str, place: &str) -> String {
    format!("{field}/10000-products/{place}")
}

fn runs(scale: Scale) -> Vec<Run> {
    let roots = FIELDS.iter().flat_map(|(_, field, ..)| METHODS.iter().map(move |(_, task)| format!("{field}/{task}")));
    let of_fields = |task: &'static str| FIELDS.iter().map(move |(_, field, ..)| format!("{field}/{task}"));
    let modular = RUN_TIME.iter().flat_map(|bits| ["device", "host"].map(|place| run_time(*bits, place)));
    let matrices =
        FIELDS.iter().flat_map(|(_, field, ..)| ["device", "host"].map(|place| format!("{field}/{MATRICES}/{place}")));
    vec![
        Run { algorithm: "sqrt", cases: roots.chain(of_fields(FROM_HOST)).collect(), sizes: sizes(scale).to_vec() },
        Run { algorithm: "sqrt", cases: of_fields(ONE_CORE).chain(matrices).collect(), sizes: vec![0] },
        Run { algorithm: "modsqrt", cases: modular.collect(), sizes: run_time_sizes(scale).to_vec() },
        Run {
            algorithm: "field",
            cases: PRODUCTS_OVER
                .iter()
                .flat_map(|(field, _)| PRODUCTS.map(|(.., place)| products(field, place)))
                .collect(),
            sizes: vec![LOG_PRODUCTS],
        },
    ]
}

fn compare(figures: &Figures<'_>, scale: Scale) -> Comparison {
    let mut verdicts = Vec::new();
    let mut table = Table::new(
        "A product modulo n over 10,000 of them, ns",
        ["how", "Athlon II X4", "Tesla C2070", "Radeon 6800", "Pentium, no OpenCL"]
            .map(str::to_owned)
            .into_iter()
            .chain(PRODUCTS_OVER.map(|(_, bits)| format!("here, {bits} bits"))),
    );
    let nanoseconds = |field, place| figures.rate(&products(field, place), LOG_PRODUCTS).map(|rate| 1e9 / rate);
    for (how, published, place) in PRODUCTS {
        let here = PRODUCTS_OVER.map(|(field, _)| nanoseconds(field, place));
        table.row([how.to_owned()].into_iter().chain(published.into_iter().chain(here).map(cell)));
    }
    let [.., (widest, bits)] = PRODUCTS_OVER;
    let ours = PRODUCTS.map(|(.., place)| nanoseconds(widest, place));
    if let Some(((alone, at_once), published)) = ours[0].zip(ours[2]).zip(PRODUCTS[2].1[1]) {
        verdicts.push(format!(
            "A product of {bits} bits takes {} ns where all are computed at once and {} one after the other; the source's best is {} ns.",
            digits(at_once),
            digits(alone),
            digits(published)
        ));
    }

    let [one, many] = sizes(scale);
    let head = ["field", "bits", "two-adicity", "roots"].into_iter().chain(METHODS.iter().map(|(name, _)| *name));
    let mut roots = Table::new("Roots in device memory, ms", head);
    let time = |field: &str, task: &str, log_n| figures.time(&format!("{field}/{task}"), log_n);
    for (name, field, bits, adicity) in FIELDS {
        for log_n in [one, many] {
            let count = if log_n == 0 { "1".to_owned() } else { format!("2^{log_n}") };
            let times = METHODS.iter().map(|(_, task)| cell(time(field, task, log_n)));
            roots.row([name.to_owned(), bits.to_string(), adicity.to_string(), count].into_iter().chain(times));
        }
    }
    let mut transfers = Table::new(
        "Roots from and to the host's memory, ms: default method",
        ["field", "bits", "roots", "device alone", "with transfers", "transfers' share", "one core of the host"],
    );
    let mut with = Vec::new();
    for (name, field, bits, _) in FIELDS {
        let core = time(field, ONE_CORE, 0);
        for log_n in [one, many] {
            let count = if log_n == 0 { "1".to_owned() } else { format!("2^{log_n}") };
            let (alone, host) = (time(field, METHODS[0].1, log_n), time(field, FROM_HOST, log_n));
            let share = alone.zip(host).map(|(alone, host)| (100.0 * (1.0 - alone / host)).max(0.0));
            let share = share.map_or_else(|| "–".to_owned(), |share| format!("{} %", digits(share)));
            // A core takes as long for each of many.
            let core = core.map(|core| core * f64::from(log_n).exp2());
            if log_n == one {
                with.extend(core.zip(host).map(|(core, host)| host / core));
            }
            let numbers = [cell(alone), cell(host), share, cell(core)];
            transfers.row([name.to_owned(), bits.to_string(), count].into_iter().chain(numbers));
        }
    }
    let mut matrices = Table::new(
        "One root by the source's Algorithm 3, ms: matrices that the host makes, the device multiplies and the host searches",
        ["field", "rows", "products alone", "with all that the host does", "one core of the host"],
    );
    for (name, field, _, adicity) in FIELDS {
        let [alone, with] = ["device", "host"].map(|place| cell(time(field, &format!("{MATRICES}/{place}"), 0)));
        matrices.row([name.to_owned(), adicity.to_string(), alone, with, cell(time(field, ONE_CORE, 0))]);
    }
    let mut moduli = Table::new(
        "Roots modulo primes that are known at run time, ms",
        ["bits", "roots", "device alone", "with transfers"],
    );
    for bits in RUN_TIME {
        for log_n in run_time_sizes(scale) {
            let count = if log_n == 0 { "1".to_owned() } else { format!("2^{log_n}") };
            let times = ["device", "host"].map(|place| cell(figures.time(&run_time(bits, place), log_n)));
            moduli.row([bits.to_string(), count].into_iter().chain(times));
        }
    }
    let gains = |log_n| -> Vec<f64> {
        let gain = |(_, field, ..): &(&str, &str, u32, u32)| {
            Some(time(field, METHODS[1].1, log_n)? / time(field, METHODS[0].1, log_n)?)
        };
        FIELDS.iter().filter_map(gain).collect()
    };
    if let Some((one, many)) = range(&gains(one), "×").zip(range(&gains(many), "×")) {
        verdicts.push(format!(
            "Powers from tables without branches are {one} as fast as the serial loop for one root and {many} for many."
        ));
    }
    let warp = |by: usize| -> Vec<f64> {
        let gain =
            |(_, field, ..): &(&str, &str, u32, u32)| Some(time(field, METHODS[by].1, one)? / time(field, WARP, one)?);
        FIELDS.iter().filter_map(gain).collect()
    };
    if let Some((serial, same)) = range(&warp(1), "×").zip(range(&warp(2), "×")) {
        verdicts.push(format!(
            "For one root, a warp is {serial} as fast as the serial loop by one thread, and {same} as fast as one thread that has \
             the powers up to date as the warp does."
        ));
    }
    if let Some(slower) = range(&with, "×") {
        verdicts.push(format!("One root with transfers takes {slower} the time of one core of the host."));
    }
    Comparison { tables: vec![table, roots, transfers, matrices, moduli], verdicts }
}
