//! AES with its transfers, and the timers that it was measured with.

use evariste_machine::table::bytes;

use super::{Comparison, Run, Scale, System, names};
use crate::{
    Figures, Table,
    section::{cell, digits, range, ratio},
};

pub(super) static SYSTEM: System = System {
    name: "aes",
    title: "AES on GPUs, transfers included",
    source: "A course project of Wuhan University (moep0/aes_gpu). Its table has no unit. By the bandwidth of its bus it must be \
             Gbit/s; here it is read as GB/s, which is harder to beat.",
    hardware: "an NVIDIA GPU of 2020 that its text shows in a picture, CUDA 11.0 and 11.1.",
    notes: "Its rows are what it put together step by step; ours beside each do the same with kernels of ours: S-box or T-tables, a \
            thread a block or a grid-stride loop, copies in turn or through four queues, pinned memory but for the first version.",
    runs,
    compare,
};

/// log₂ of the source's sizes, from 1 KiB to 1 GiB.
const SIZES: [u32; 9] = [10, 13, 16, 18, 20, 23, 26, 28, 30];

/// A row of the source's table, and the case that does the same here.
struct Variant {
    name: &'static str,
    published: [f64; 9],
    case: &'static str,
}

const VARIANTS: [Variant; 5] = [
    Variant {
        name: "first version",
        published: [0.014328, 0.063005, 0.488063, 2.663895, 4.191975, 5.832871, 6.411677, 6.798704, 6.637807],
        case: "aes-128-ctr-sbox-no-stride-in-turn/host",
    },
    Variant {
        name: "S-box",
        published: [0.013542, 0.080709, 0.574532, 1.998942, 4.558811, 7.057882, 8.15135, 9.601574, 9.311551],
        case: "aes-128-ctr-sbox-no-stride-in-turn/pinned",
    },
    Variant {
        name: "T-tables",
        published: [0.011335, 0.07783, 0.592553, 1.538841, 3.465513, 6.086978, 7.951356, 6.59061, 7.65414],
        case: "aes-128-ctr-fourtables-no-stride-in-turn/pinned",
    },
    Variant {
        name: "streams",
        published: [0.005618, 0.03228, 0.271411, 0.970752, 2.86876, 9.736423, 16.725221, 17.952856, 15.269693],
        case: "aes-128-ctr-sbox-no-stride/pinned",
    },
    Variant {
        name: "grid-stride loops",
        published: [0.035037, 0.207516, 1.172966, 3.622536, 5.571409, 7.230005, 8.061637, 9.36902, 9.088143],
        case: "aes-128-ctr-sbox-in-turn/pinned",
    },
];

/// What else passes through the device, with its transfers.
const OURS: [(&str, &str); 7] = [
    ("S-box, 4 queues", "aes-128-ctr-sbox/pinned"),
    ("one T-table, 4 queues", "aes-128-ctr-table/pinned"),
    ("two T-tables, 4 queues", "aes-128-ctr-twotables/pinned"),
    ("four T-tables, 4 queues", "aes-128-ctr-fourtables/pinned"),
    ("bitsliced, 4 queues", "aes-128-ctr-bitsliced/pinned"),
    ("default, 4 queues", DEFAULT),
    ("default, from and to slices", SLICES),
];
const DEFAULT: &str = "aes-128-ctr/pinned";
const SLICES: &str = "aes-128-ctr/host";

/// Decryption apart, on the device.
const BOTH_WAYS: [(&str, &str, &str); 3] = [
    ("ECB", "aes-128-ecb/device", "aes-128-ecb-decrypt/device"),
    ("XTS, sectors of 4 KiB", "aes-128-xts/device", "aes-128-xts-decrypt/device"),
    ("GCM", "aes-128-gcm-seal/device", "aes-128-gcm-open/device"),
];

/// Timers of the source, its variance and mean in milliseconds, and the case of ours that measures in the same way.
const TIMERS: [(&str, (f64, f64), &str); 5] = [
    ("clock(): the process's", (29.21111, 92.1), "process-clock"),
    ("chrono: the monotonic clock", (4.045949, 85.80937), "monotonic-clock"),
    ("GetTickCount: the system's", (69.43333, 85.9), "system-clock"),
    ("QueryPerformanceCounter: the time stamp counter", (20.67642, 88.13518), "time-stamp-counter"),
    ("cudaEvent: the device's", (2.802127, 67.20199), "device-events"),
];

/// log₂ of the additions, rounded up.
const ADDITIONS: u32 = 25;

fn sizes(scale: Scale) -> Vec<u32> {
    scale.pick(SIZES.to_vec(), SIZES[..5].to_vec())
}

fn timer(name: &str) -> String {
    format!("20000000-additions/{name}")
}

fn runs(scale: Scale) -> Vec<Run> {
    let variants = VARIANTS.iter().map(|variant| variant.case).chain(OURS.iter().map(|(_, case)| *case));
    let mut cases: Vec<&str> = variants.chain(BOTH_WAYS.iter().flat_map(|(_, there, back)| [*there, *back])).collect();
    cases.sort_unstable();
    cases.dedup();
    vec![
        Run { algorithm: "aes", cases: names(&cases), sizes: sizes(scale) },
        Run {
            algorithm: "timers",
            cases: TIMERS.iter().map(|(.., name)| timer(name)).collect(),
            sizes: vec![ADDITIONS],
        },
    ]
}

fn compare(figures: &Figures<'_>, scale: Scale) -> Comparison {
    let sizes = sizes(scale);
    let mut verdicts = Vec::new();
    let rate = |case: &str, log_n: u32| figures.rate(case, log_n).map(|rate| rate / 1e9);
    let of = |name: String, cells: &dyn Fn(u32) -> String| {
        [name].into_iter().chain(sizes.iter().map(|log_n| cells(*log_n))).collect::<Vec<_>>()
    };
    let head = || ["variant".to_owned()].into_iter().chain(sizes.iter().map(|log_n| bytes(*log_n))).collect::<Vec<_>>();

    let mut table = Table::new("AES-128-CTR with its transfers, GB/s", head());
    let published =
        |variant: &Variant, log_n: u32| SIZES.iter().position(|size| *size == log_n).map(|i| variant.published[i]);
    let best = |log_n: u32| VARIANTS.iter().filter_map(|variant| published(variant, log_n)).max_by(f64::total_cmp);
    for variant in &VARIANTS {
        table.row(of(format!("{}, published", variant.name), &|log_n| cell(published(variant, log_n))));
        table.row(of(format!("{}, ours", variant.name), &|log_n| cell(rate(variant.case, log_n))));
    }
    for (name, case) in OURS {
        table.row(of(format!("ours, {name}"), &|log_n| cell(rate(case, log_n))));
    }
    table.row(of("ours, default ÷ the best published".into(), &|log_n| ratio(rate(DEFAULT, log_n), best(log_n))));
    let ratios: Vec<(u32, f64)> =
        sizes.iter().filter_map(|log_n| Some((*log_n, rate(DEFAULT, *log_n)? / best(*log_n)?))).collect();
    let told = |beaten: bool| -> Option<(String, String)> {
        let of: Vec<&(u32, f64)> = ratios.iter().filter(|(_, ratio)| (*ratio > 1.0) == beaten).collect();
        let at: Vec<String> = of.iter().map(|(log_n, _)| bytes(*log_n)).collect();
        Some((range(&of.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>(), "×")?, at.join(", ")))
    };
    if let Some((times, at)) = told(true) {
        verdicts.push(format!(
            "With transfers the default beats every published figure, read as GB/s, at {at}, by {times}."
        ));
    }
    if let Some((times, at)) = told(false) {
        verdicts.push(format!(
            "At {at} it is {times} the best published figure if that is in GB/s, and eight times as much if it is in Gbit/s."
        ));
    }
    let queues = |log_n: &u32| Some(rate(VARIANTS[3].case, *log_n)? / rate(VARIANTS[1].case, *log_n)?);
    let known: Vec<(u32, f64)> = sizes.iter().filter_map(|log_n| Some((*log_n, queues(log_n)?))).collect();
    let gain = known.iter().position(|(_, gain)| *gain > 1.0);
    match gain.map(|first| (first, known[first].0)) {
        _ if figures.is_host() || known.is_empty() => {}
        Some((0, _)) => verdicts.push("Several queues lose at none of these sizes, unlike in the source.".into()),
        Some((_, log_n)) => verdicts
            .push(format!("As in the source, several queues lose on small files: they gain from {} on.", bytes(log_n))),
        None => verdicts.push("Several queues lose at all of these sizes; in the source they do on small ones.".into()),
    }

    let mut ways = Table::new("Encryption and decryption on the device, GB/s", head());
    for (name, there, back) in BOTH_WAYS {
        let rate = |case: &str, log_n: u32| (least(case) <= log_n).then(|| rate(case, log_n)).flatten();
        ways.row(of(format!("{name}, encryption"), &|log_n| cell(rate(there, log_n))));
        ways.row(of(format!("{name}, decryption"), &|log_n| cell(rate(back, log_n))));
    }

    let mut timers = Table::new(
        "20,000,000 additions by five timers, ten runs after one that is dropped",
        ["timer", "mean there, ms", "variance there, ms²", "mean here, ms", "variance here, ms²"],
    );
    let measured = TIMERS.map(|(.., name)| figures.record(&timer(name), ADDITIONS));
    for ((name, (variance, mean), _), record) in TIMERS.iter().zip(measured) {
        timers.row([
            (*name).to_owned(),
            cell(Some(*mean)),
            cell(Some(*variance)),
            cell(record.and_then(|record| record.mean_ms.or(Some(record.median_ms)))),
            cell(record.and_then(|record| record.variance_ms2)),
        ]);
    }
    if let Some((events, clock)) = measured[4].zip(measured[1]) {
        let (events, clock) = (events.mean_ms.unwrap_or(events.median_ms), clock.mean_ms.unwrap_or(clock.median_ms));
        let (told, times) =
            (format!("{} ms where the monotonic clock tells {}", digits(events), digits(clock)), clock / events);
        verdicts.push(match times > 1.02 {
            true => format!(
                "The device's events tell {told}: as in the source, they leave out the host's part of the work."
            ),
            false => format!("The device's events tell {told}: here they leave out nothing, unlike in the source."),
        });
    }
    Comparison { tables: vec![table, ways, timers], verdicts }
}

/// log₂ of the least bytes of a case.
fn least(case: &str) -> u32 {
    if case.contains("-xts") { 12 } else { 0 }
}
