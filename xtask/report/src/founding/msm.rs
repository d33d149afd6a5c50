//! Load-balanced sums of points.

use super::{Comparison, Run, Scale, System, sizes_head};
use crate::{
    Figures, Table,
    section::{cell, range, ratio},
};

pub(super) static SYSTEM: System = System {
    name: "msm",
    title: "Load-balanced multi-scalar multiplication",
    source: "Chen, Peng, Dai, Luo and He, \"Load-Balanced Parallel Implementation on GPUs for Multi-Scalar Multiplication \
             Algorithm\", TCHES 2024/2, pp. 522–544.",
    hardware: "NVIDIA V100, RTX 3090, RTX 4090.",
    notes: "Its parts are methods of this library (`Tuning`, `Precompute`). Accumulation is balanced, or a thread has as many points as \
            any other with the ends of its slice moved to borders of buckets (the source's Algorithm 2), or one bucket. Digits are all \
            signed ones, or odd ones with doublings of the bases in memory: larger exponents have buckets of their own (odd digits), \
            or are doubled on the way to the bucket (τ, the source's Algorithm 4). Points are added one by one, or two by two: with \
            shared inversions, or as the source has it (double addition), two affine points first and then their sum to the bucket. \
            Buckets are added up in layers or by running sums. The default is what the library chooses itself. All coordinates are XYZZ. \
            Scalars are random.",
    runs,
    compare,
};

/// log₂ of the sizes of the source's table 3.
const SIZES: [u32; 6] = [19, 20, 21, 22, 23, 24];

/// Table 3 of the source: BLS12-381, ms, for each card cuZK's times and the source's own.
const PUBLISHED: [(&str, [f64; 6], [f64; 6]); 3] = [
    ("V100", [115.39, 195.94, 321.92, 574.47, 1128.36, 2022.47], [44.97, 84.28, 161.08, 315.51, 620.74, 1233.87]),
    ("RTX 3090", [69.17, 112.37, 183.02, 326.13, 645.15, 1181.98], [29.89, 56.91, 110.82, 214.94, 425.78, 843.18]),
    ("RTX 4090", [51.18, 77.43, 113.94, 185.33, 355.22, 1385.76], [17.95, 32.86, 62.92, 124.21, 250.68, 500.07]),
];

/// Curves that methods are compared over.
const CURVES: [(&str, &str); 2] = [("BLS12-381 G1", "bls12-381-g1"), ("BLS24-315 G1", "bls24-315-g1")];

/// What the source puts together and what it compares with, by title and by name of a case.
const METHODS: [(&str, &str); 14] = [
    ("balanced", "balanced"),
    ("slices of whole buckets", "whole-buckets"),
    ("one thread a bucket", "per-bucket"),
    ("balanced, odd digits", "balanced-odd-digits"),
    ("slices of whole buckets, odd digits", "whole-buckets-odd-digits"),
    ("one thread a bucket, odd digits", "per-bucket-odd-digits"),
    ("balanced, τ = 0", "balanced-doublings-0"),
    ("balanced, τ = 3", SOURCE),
    ("balanced, τ = 7", "balanced-doublings-7"),
    ("slices of whole buckets, τ = 3", "whole-buckets-doublings-3"),
    ("balanced, two by two", "balanced-two-by-two"),
    ("balanced, double addition", "balanced-double-addition"),
    ("balanced, running sums", "balanced-running-sums"),
    ("slices of whole buckets, running sums", "whole-buckets-running-sums"),
];

/// The source's own method.
const SOURCE: &str = "balanced-doublings-3";

/// Slower methods and faster ones, and what the ratio is called.
const RATIOS: [(&str, &str, &str); 7] = [
    ("whole-buckets", "balanced", "slices of whole buckets ÷ balanced"),
    ("whole-buckets-odd-digits", "balanced-odd-digits", "slices of whole buckets ÷ balanced, odd digits"),
    ("whole-buckets-doublings-3", SOURCE, "slices of whole buckets ÷ balanced, τ = 3"),
    ("per-bucket", "balanced", "one thread a bucket ÷ balanced"),
    ("per-bucket-odd-digits", "balanced-odd-digits", "one thread a bucket ÷ balanced, odd digits"),
    ("balanced-running-sums", "balanced", "running sums ÷ layers"),
    ("balanced-double-addition", "balanced", "double addition ÷ single"),
];

fn case(curve: &str, method: Option<&str>) -> String {
    match method {
        Some(method) => format!("{curve}/random/{method}/device"),
        None => format!("{curve}/random/device"),
    }
}

fn sizes(scale: Scale) -> Vec<u32> {
    scale.pick(SIZES.to_vec(), vec![10, 12])
}

fn runs(scale: Scale) -> Vec<Run> {
    let cases = CURVES.iter().flat_map(|(_, curve)| METHODS.iter().map(|(_, method)| case(curve, Some(method))));
    let (default, tables) = (case(CURVES[0].1, None), case(CURVES[0].1, Some("tables")));
    vec![Run { algorithm: "msm", cases: cases.chain([default, tables]).collect(), sizes: sizes(scale) }]
}

fn compare(figures: &Figures<'_>, scale: Scale) -> Comparison {
    let sizes = sizes(scale);
    let mut verdicts = Vec::new();
    let published = |times: &[f64; 6], log_n: u32| SIZES.iter().position(|size| *size == log_n).map(|i| times[i]);
    let row = |name: &str, time: &dyn Fn(u32) -> Option<f64>| {
        let cells: Vec<String> = sizes.iter().map(|log_n| cell(time(*log_n))).collect();
        [name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>()
    };

    let mut table = Table::new("Sums over BLS12-381 G1, ms", sizes_head("card", &sizes));
    for (card, cuzk, theirs) in &PUBLISHED {
        table.row(row(&format!("{card}, cuZK, published"), &|log_n| published(cuzk, log_n)));
        table.row(row(&format!("{card}, source, published"), &|log_n| published(theirs, log_n)));
    }
    let curve = CURVES[0].1;
    let ways =
        [("the source's method, τ = 3", Some(SOURCE)), ("default", None), ("with tables of multiples", Some("tables"))];
    for (name, method) in ways {
        let name = format!("{}, ours, {name}", figures.device_name());
        table.row(row(&name, &|log_n| figures.time(&case(curve, method), log_n)));
    }
    let (fastest, _, theirs) = &PUBLISHED[2];
    let gain = |log_n: u32| Some(published(theirs, log_n)? / figures.time(&case(curve, None), log_n)?);
    let gains = sizes.iter().map(|log_n| ratio(published(theirs, *log_n), figures.time(&case(curve, None), *log_n)));
    table.row([format!("{fastest}, source ÷ ours, default")].into_iter().chain(gains));
    let gains: Vec<f64> = sizes.iter().filter_map(|log_n| gain(*log_n)).collect();
    if let Some(gains) = range(&gains, "×") {
        verdicts.push(format!(
            "A sum over BLS12-381 on one {} is {gains} as fast as the source's on its fastest card, an {fastest}.",
            figures.device_name()
        ));
    }
    let mut tables = vec![table];

    for (name, curve) in CURVES {
        let time = |method: &str, log_n: u32| figures.time(&case(curve, Some(method)), log_n);
        let mut table = Table::new(format!("Methods over {name}, ms"), sizes_head("method", &sizes));
        for (name, method) in METHODS {
            table.row(row(name, &|log_n| time(method, log_n)));
        }
        for (slow, fast, title) in RATIOS {
            let ratios = sizes.iter().map(|log_n| ratio(time(slow, *log_n), time(fast, *log_n)));
            table.row([title.to_owned()].into_iter().chain(ratios));
            let ratios = sizes.iter().filter_map(|log_n| Some(time(slow, *log_n)? / time(fast, *log_n)?));
            if let Some(all) = range(&ratios.collect::<Vec<_>>(), "×") {
                verdicts.push(format!("Over {name}, {title} is {all}."));
            }
        }
        tables.push(table);
    }
    Comparison { tables, verdicts }
}
