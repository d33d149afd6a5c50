//! PreNTT: transforms with twiddles that are computed before.

use super::{Comparison, Run, Scale, System, names, sizes_head};
use crate::{
    Figures, Table,
    section::{cell, digits, range, ratio},
};

pub(super) static SYSTEM: System = System {
    name: "prentt",
    title: "PreNTT: transforms with precomputed twiddles",
    source: "\"PreNTT: a GPU-based acceleration method for number theoretic transforms of zk-SNARKs\". Its text gives ranges of \
             speed-ups over Bellperson's kernel; of its tables and figures only these numbers are at hand.",
    hardware: "NVIDIA RTX 3060, AMD Ryzen 9 5900X, CUDA 11.8.",
    notes: "Bellperson's way is computing twiddles in the kernel, which is one of our methods here and in the same kernel as the others, so \
            that nothing else differs: as a power of the root, or as two powers one of the other, as its own kernel has them. The \
            default splits evenly and has all twiddles in a table, with Shoup's quotients where they serve. Where log₂ n is odd, \
            halves are the source's split: a first round of butterflies with its factors, then two squares. Its completion, half of \
            the powers and the others by one product, is one by −1 here.",
    runs,
    compare,
};

const FIELD: &str = "bls12-381-fr";
const BITS: f64 = 255.0;

/// The default, how the transform is split, and where twiddles come from.
const WAYS: [(&str, &str); 9] = [
    ("default", "forward/natural/device"),
    ("square", "forward/natural/device/square"),
    ("rectangular", "forward/natural/device/rectangular"),
    ("three-way", "forward/natural/device/three-way"),
    ("two tables of √n", "forward/natural/device/two-level"),
    ("half of the powers", "forward/natural/device/half-stored"),
    ("from ω^(2^k)", "forward/natural/device/binary-powers"),
    ("in the kernel", ON_THE_FLY),
    ("in the kernel, by two powers", TWO_POWERS),
];
const DEFAULT: &str = "forward/natural/device";
const ON_THE_FLY: &str = "forward/natural/device/on-the-fly";
const TWO_POWERS: &str = "forward/natural/device/two-powers";

/// What is measured where log₂ n is odd.
const ODD: [(&str, &str); 6] = [
    ("default", DEFAULT),
    ("square, one half a level more", "forward/natural/device/square"),
    ("halves", HALVES),
    ("– first round with its factors", PRE_KERNEL),
    ("– two squares of n/2", MAIN_KERNEL),
    ("in the kernel, by two powers", TWO_POWERS),
];
const HALVES: &str = "forward/natural/device/halves";
const PRE_KERNEL: &str = "halves/pre-kernel/device";
const MAIN_KERNEL: &str = "halves/main-kernel/device";

/// Factors alone.
const ALONE: [(&str, &str); 5] = [
    ("two powers, one of the other (Bellperson)", ALONE_BY_TWO),
    ("a power of the root", "twiddles-alone/on-the-fly/device"),
    ("from ω^(2^k) (PreNTT)", ALONE_BINARY),
    ("two tables of √n (our tables)", ALONE_TWO_LEVEL),
    ("half of the powers", "twiddles-alone/half-stored/device"),
];
const ALONE_BY_TWO: &str = "twiddles-alone/two-powers/device";
const ALONE_BINARY: &str = "twiddles-alone/binary-powers/device";
const ALONE_TWO_LEVEL: &str = "twiddles-alone/two-level/device";

/// The source's speed-up of factors alone, at 2^16 and at 2^21.
const ALONE_SPEEDUP: [(u32, f64); 2] = [(16, 1.6), (21, 2.5)];

const PREPARATION: &str = "preparation/pinned";

const SEVEN: &str = "plan-and-seven/host";
const SEVEN_IN_TURN: &str = "plan-and-seven-in-turn/host";

/// Kyber's transform, scaled from an RTX 2060 SUPER to an RTX 3060: the best of the works that the source compares
/// with.
const KYBER_EFFICIENCY: f64 = 2.86e11;

/// The least and the greatest speed-up over Bellperson's kernel, overlap included.
const SPEEDUP: (f64, f64) = (1.7, 9.0);

fn case(task: &str) -> String {
    format!("{FIELD}/{task}")
}

fn sizes(scale: Scale) -> Vec<u32> {
    scale.pick(vec![16, 18, 20, 22, 24], vec![12, 13])
}

fn odd_sizes(scale: Scale) -> Vec<u32> {
    scale.pick(vec![17, 19, 21, 23], vec![13])
}

/// The sizes of what is measured of factors alone.
fn alone_sizes(scale: Scale) -> Vec<u32> {
    scale.pick(vec![16, 18, 20, 21], vec![12, 13])
}

fn runs(scale: Scale) -> Vec<Run> {
    let of = |tasks: &[(&str, &str)], more: &[&str], sizes| {
        let tasks: Vec<&str> = tasks.iter().map(|(_, task)| *task).chain(more.iter().copied()).collect();
        Run { algorithm: "ntt", cases: names(&tasks).iter().map(|task| case(task)).collect(), sizes }
    };
    vec![
        of(&WAYS, &[SEVEN, SEVEN_IN_TURN], sizes(scale)),
        of(&ODD, &[], odd_sizes(scale)),
        of(&ALONE, &[PREPARATION], alone_sizes(scale)),
    ]
}

fn compare(figures: &Figures<'_>, scale: Scale) -> Comparison {
    let sizes = sizes(scale);
    let time = |task: &str, log_n: u32| figures.time(&case(task), log_n);
    let mut verdicts = Vec::new();

    let head = sizes_head("twiddles and split", &sizes);
    let mut ways = Table::new("One transform of BLS12-381 Fr in device memory, ms", head.clone());
    for (name, task) in WAYS {
        ways.row([name.to_owned()].into_iter().chain(sizes.iter().map(|log_n| cell(time(task, *log_n)))));
    }
    let gain = |log_n: &u32| Some(time(TWO_POWERS, *log_n)? / time(DEFAULT, *log_n)?);
    let gains = sizes.iter().map(|log_n| ratio(time(TWO_POWERS, *log_n), time(DEFAULT, *log_n)));
    ways.row(["in the kernel, by two powers ÷ default".to_owned()].into_iter().chain(gains));
    let gains: Vec<f64> = sizes.iter().filter_map(gain).collect();
    if let Some(gains) = range(&gains, "×") {
        let (least, greatest) = SPEEDUP;
        verdicts.push(format!(
            "Twiddles that are there before, with their quotients, make a transform {gains} as fast as those that the kernel computes, on one device \
             ({}); the source tells of {least} to {greatest}× over Bellperson's kernel, which computes them, with its set-up \
             hidden.",
            figures.device_name()
        ));
    }

    let (odd, alone) = (odd_sizes(scale), alone_sizes(scale));
    let mut halves = Table::new("Odd sizes: one transform of BLS12-381 Fr in device memory, ms", sizes_head("", &odd));
    for (name, task) in ODD {
        halves.row([name.to_owned()].into_iter().chain(odd.iter().map(|log_n| cell(time(task, *log_n)))));
    }
    let shares = odd.iter().map(|log_n| ratio(time(PRE_KERNEL, *log_n), time(HALVES, *log_n)));
    halves.row(["first round ÷ halves".to_owned()].into_iter().chain(shares));
    let gains: Vec<f64> = odd.iter().filter_map(|log_n| Some(time(HALVES, *log_n)? / time(DEFAULT, *log_n)?)).collect();
    if let Some(gains) = range(&gains, "×") {
        verdicts.push(format!(
            "At odd sizes halves take {gains} the time of our default, whose passes need not be of one size."
        ));
    }

    let mut factors = Table::new("Factors alone, n of them, ms", sizes_head("method", &alone));
    for (name, task) in ALONE {
        factors.row([name.to_owned()].into_iter().chain(alone.iter().map(|log_n| cell(time(task, *log_n)))));
    }
    let speedup = |log_n: &u32| Some(time(ALONE_BY_TWO, *log_n)? / time(ALONE_BINARY, *log_n)?);
    let speedups = alone.iter().map(|log_n| ratio(time(ALONE_BY_TWO, *log_n), time(ALONE_BINARY, *log_n)));
    factors.row(["two powers ÷ from ω^(2^k)".to_owned()].into_iter().chain(speedups));
    let published = |log_n: &u32| ALONE_SPEEDUP.iter().find(|(of, _)| of == log_n).map(|(_, speedup)| *speedup);
    let published = alone.iter().map(|log_n| published(log_n).map_or_else(|| "–".into(), |x| format!("{x}×")));
    factors.row(["the source's".to_owned()].into_iter().chain(published));
    if let Some(speedups) = range(&alone.iter().filter_map(speedup).collect::<Vec<_>>(), "×") {
        let [(_, least), (_, greatest)] = ALONE_SPEEDUP;
        verdicts.push(format!(
            "Factors alone are computed {speedups} as fast from the stored ω^(2^k) as by two powers, one of the other; the source \
             measured {least}× at 2^16 and {greatest}× at 2^21."
        ));
    }

    let mut prepared = Table::new(
        "What a transform waits for: device memory and upload of its data, and its factors, ms",
        sizes_head("", &alone),
    );
    for (name, task) in [
        ("memory and upload", PREPARATION),
        ("factors from ω^(2^k)", ALONE_BINARY),
        ("factors from two tables", ALONE_TWO_LEVEL),
    ] {
        prepared.row([name.to_owned()].into_iter().chain(alone.iter().map(|log_n| cell(time(task, *log_n)))));
    }
    let longer = |log_n: &u32| Some(time(PREPARATION, *log_n)? / time(ALONE_BINARY, *log_n)?);
    let shares = alone.iter().map(|log_n| ratio(time(PREPARATION, *log_n), time(ALONE_BINARY, *log_n)));
    prepared.row(["upload ÷ factors from ω^(2^k)".to_owned()].into_iter().chain(shares));
    if let (Some(longer), false) = (range(&alone.iter().filter_map(longer).collect::<Vec<_>>(), "×"), figures.is_host())
    {
        verdicts.push(format!(
            "Memory for the data and its upload take {longer} as long as the factors from ω^(2^k); in the source they mostly take \
             longer, so that factors cost nothing beside them."
        ));
    }

    let mut efficiency = Table::new("Relative efficiency, N·log₂N·bits² in a second", head.clone());
    let of = |log_n: &u32| {
        let n = f64::from(*log_n).exp2() * f64::from(*log_n) * BITS * BITS;
        let record = figures.record(&case(DEFAULT), *log_n)?;
        Some(record.relative_efficiency.unwrap_or(n / record.median_ms * 1e3))
    };
    efficiency.row(["ours".to_owned()].into_iter().chain(sizes.iter().map(|log_n| cell_of(of(log_n)))));
    efficiency.row(
        ["Kyber, scaled to an RTX 3060 by the source".to_owned()]
            .into_iter()
            .chain(sizes.iter().map(|_| cell_of(Some(KYBER_EFFICIENCY)))),
    );
    let efficiencies: Vec<f64> = sizes.iter().filter_map(of).map(|ours| ours / KYBER_EFFICIENCY).collect();
    if let Some(efficiencies) = range(&efficiencies, "") {
        verdicts.push(format!(
            "By the source's measure of relative efficiency a transform here is {efficiencies} times Kyber's, which the source \
             scaled to its own card. The measure counts a product by the square of its bits, and so favours long operands."
        ));
    }

    let mut overlap = Table::new("A plan and the seven transforms of a proof from host memory, ms", head);
    for (name, task) in [("set-up beside copies", SEVEN), ("in turn", SEVEN_IN_TURN)] {
        overlap.row([name.to_owned()].into_iter().chain(sizes.iter().map(|log_n| cell(time(task, *log_n)))));
    }
    let shares = sizes.iter().map(|log_n| ratio(time(SEVEN_IN_TURN, *log_n), time(SEVEN, *log_n)));
    overlap.row(["in turn ÷ beside".to_owned()].into_iter().chain(shares));
    let best = sizes.iter().filter_map(|log_n| Some((log_n, time(SEVEN_IN_TURN, *log_n)? / time(SEVEN, *log_n)?)));
    match best.max_by(|a, b| a.1.total_cmp(&b.1)) {
        None => {}
        Some(_) if figures.is_host() => {
            verdicts.push("Host and device are the same here, so that there are no copies to hide twiddles behind.".into());
        }
        Some((log_n, best)) => verdicts.push(format!(
            "Twiddles beside allocation and copies, on another queue, save most at 2^{log_n}, where both in turn take {}× as \
             long. The source hides its pre-kernel in the same way.",
            digits(best)
        )),
    }
    Comparison { tables: vec![ways, halves, factors, prepared, efficiency, overlap], verdicts }
}

fn cell_of(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.2e}"))
}
