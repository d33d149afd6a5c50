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
            that nothing else differs. The default splits evenly and has all twiddles in a table, with Shoup's quotients where \
            they serve.",
    runs,
    compare,
};

const FIELD: &str = "bls12-381-fr";
const BITS: f64 = 255.0;

/// The default, how the transform is split, and where twiddles come from.
const WAYS: [(&str, &str); 7] = [
    ("default", "forward/natural/device"),
    ("square", "forward/natural/device/square"),
    ("rectangular", "forward/natural/device/rectangular"),
    ("three-way", "forward/natural/device/three-way"),
    ("two tables of √n", "forward/natural/device/two-level"),
    ("from ω^(2^k)", "forward/natural/device/binary-powers"),
    ("in the kernel", ON_THE_FLY),
];
const DEFAULT: &str = "forward/natural/device";
const ON_THE_FLY: &str = "forward/natural/device/on-the-fly";

const SEVEN: &str = "plan-and-seven/host";
const SEVEN_IN_TURN: &str = "plan-and-seven-in-turn/host";

/// Kyber's transform, scaled from an RTX 2060 SUPER to an RTX 3060: the best of the works that the source compares with.
const KYBER_EFFICIENCY: f64 = 2.86e11;

/// The least and the greatest speed-up over Bellperson's kernel, overlap included.
const SPEEDUP: (f64, f64) = (1.7, 9.0);

fn case(task: &str) -> String {
    format!("{FIELD}/{task}")
}

fn sizes(scale: Scale) -> Vec<u32> {
    scale.pick(vec![16, 18, 20, 22, 24], vec![12, 13])
}

fn runs(scale: Scale) -> Vec<Run> {
    let tasks: Vec<&str> = WAYS.iter().map(|(_, task)| *task).chain([SEVEN, SEVEN_IN_TURN]).collect();
    let cases = names(&tasks).iter().map(|task| case(task)).collect();
    vec![Run { algorithm: "ntt", cases, sizes: sizes(scale) }]
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
    let gain = |log_n: &u32| Some(time(ON_THE_FLY, *log_n)? / time(DEFAULT, *log_n)?);
    let gains = sizes.iter().map(|log_n| ratio(time(ON_THE_FLY, *log_n), time(DEFAULT, *log_n)));
    ways.row(["in the kernel ÷ default".to_owned()].into_iter().chain(gains));
    let gains: Vec<f64> = sizes.iter().filter_map(gain).collect();
    if let Some(gains) = range(&gains, "×") {
        let (least, greatest) = SPEEDUP;
        verdicts.push(format!(
            "Twiddles that are there before make a transform {gains} as fast as those that the kernel computes, on one device \
             ({}); the source tells of {least} to {greatest}× over Bellperson's kernel, which computes them, with its set-up \
             hidden.",
            figures.device_name()
        ));
    }

    let mut efficiency = Table::new("Relative efficiency, N·log₂N·bits² in a second", head.clone());
    let of = |log_n: &u32| {
        let n = f64::from(*log_n).exp2() * f64::from(*log_n) * BITS * BITS;
        time(DEFAULT, *log_n).map(|milliseconds| n / milliseconds * 1e3)
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
    Comparison { tables: vec![ways, efficiency, overlap], verdicts }
}

fn cell_of(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.2e}"))
}
