//! The sumcheck of HyperPlonk: is it bound by memory?

use super::{Comparison, Run, Scale, System, sizes_head};
use crate::{
    Figures, Record, Table,
    section::{cell, digits},
};

pub(super) static SYSTEM: System = System {
    name: "hyperplonk",
    title: "The sumcheck of HyperPlonk",
    source: "Ingonyama, \"Hardware-friendliness of HyperPlonk, Part 2\", 2025-04-01: four tables of 2^25, eq·(A·B − C), the first 13 \
             rounds of ICICLE's kernels under Nsight Compute. It gives no times; its finding is that sumchecks are bound by memory.",
    hardware: "NVIDIA L4.",
    notes: "The source's strategy is the textbook's: eq as a fourth table, each round evaluated at all points. Others take s(1) from \
            the claim, or eq as a point whose factor of each round is taken out (Gruen), and leave out what cancels in round 0 of a \
            zero-check; proofs are the same bytes. Shares are what the work that cannot be spared takes at the device's rates. Two \
            rounds in one pass over tables on the device are not there: by count they take 18 multiplications for four elements \
            where two passes take 12. Tables that the device does not hold are passed over once for two rounds or more.",
    runs,
    compare,
};

/// Rounds that the source shows.
const ROUNDS: u32 = 13;

/// Strategies, with the source of challenges. The textbook's is the source's.
const STRATEGIES: [(&str, &str); 6] = [
    ("textbook, challenges from the host", "textbook/host-transcript"),
    ("s(1) from the claim, challenges from the host", "claim/host-transcript"),
    ("zero-check, challenges from the host", "zero-check/host-transcript"),
    ("split eq", "split-eq/device"),
    ("zero-check", ZERO_CHECK),
    ("zero-check, tables consumed", "zero-check/consumed/device"),
];
const ZERO_CHECK: &str = "zero-check/device";
const TRANSFORM: &str = "bls12-381-fr/forward/natural/device";

/// A card by what it copies, bytes read and written in a second, and multiplies in BLS12-381 Fr.
struct Card {
    name: &'static str,
    bytes_per_s: f64,
    mul_per_s: f64,
    from: &'static str,
}

/// Multiplications in a second of a multiprocessor at one hertz, as measured on an H200 with 132 multiprocessors at
/// 1.98 GHz. Taken to be that of the cards below, since their multiprocessors have the same number of integer
/// multipliers.
const MUL_PER_CLOCK: f64 = 62.7e9 / (132.0 * 1.98e9);

/// The share of its peak that memory reaches in a copy, as an H200's does.
const COPIED: f64 = 0.88;

const CARDS: [Card; 4] = [
    Card {
        name: "L4 (the source's)",
        bytes_per_s: COPIED * 300e9,
        mul_per_s: MUL_PER_CLOCK * 58.0 * 2.04e9,
        from: "estimate: 58 multiprocessors at 2.04 GHz, 300 GB/s",
    },
    Card {
        name: "RTX 4060 Laptop",
        bytes_per_s: COPIED * 256e9,
        mul_per_s: MUL_PER_CLOCK * 24.0 * 2.0e9,
        from: "estimate: 24 multiprocessors at some 2 GHz, 256 GB/s",
    },
    Card {
        name: "H100 SXM",
        bytes_per_s: 3.0e12,
        mul_per_s: 62.7e9,
        from: "copies measured, multiplications as an H200",
    },
    Card { name: "H200", bytes_per_s: 4.24e12, mul_per_s: 62.7e9, from: "measured" },
];

/// The share in percent of a limit from which on it is said to bind.
const HALF: f64 = 50.0;

/// What a pair of each of the four tables takes in a round of the textbook's strategy: bytes read and written, and
/// multiplications. Round 1 reads eight elements and evaluates two products at four points; a later one reads sixteen,
/// folds them by eight products, and writes eight.
const TEXTBOOK: [(&str, f64, f64); 2] = [("round 1", 8.0 * 32.0, 8.0), ("later rounds", 24.0 * 32.0, 16.0)];

/// Elements that a whole zero-check reads and writes for each of its domain: four in round 1, and half of eighteen,
/// halved each time, in the others. Those of the source's experiment are eight and twenty-four.
const ZERO_CHECK_ELEMENTS: f64 = 2.0 + 9.0;
const TEXTBOOK_ELEMENTS: f64 = 4.0 + 12.0;

/// What binds a round that reaches these shares, in percent.
fn finding(copy: f64, mul: f64) -> &'static str {
    match copy.max(mul) {
        most if most < HALF => "neither binds it",
        _ if copy > mul => "it is bound by memory, as the source found on its card",
        _ => "it is bound by multiplications, the opposite of what the source found on its card",
    }
}

fn sizes(scale: Scale) -> Vec<u32> {
    scale.pick(vec![18, 20, 22, 24], vec![10, 12])
}

fn round_size(scale: Scale) -> u32 {
    scale.pick(25, 14)
}

fn case(task: &str) -> String {
    format!("bls12-381-fr/{task}")
}

/// Statements and strategies of the proofs whose rounds are shown one by one: the source's experiment, and ours in the
/// same form.
const FORMS: [(&str, &str); 4] = [
    ("eq as a fourth table, at all points (the source's)", FOUR_TABLES),
    ("eq as our table, s(1) from the claim", "claim"),
    ("split eq", "split-eq"),
    ("zero-check", OURS),
];
const FOUR_TABLES: &str = "four-tables";
const OURS: &str = "zero-check";

fn round_case(form: &str, round: u32) -> String {
    case(&format!("{form}/round-{round:02}/host-transcript"))
}

fn runs(scale: Scale) -> Vec<Run> {
    let rounds = FORMS.iter().flat_map(|(_, form)| (1..=ROUNDS).map(|round| round_case(form, round))).collect();
    let strategies = STRATEGIES.iter().map(|(_, task)| case(task)).collect();
    vec![
        Run { algorithm: "sumcheck", cases: rounds, sizes: vec![round_size(scale)] },
        Run { algorithm: "sumcheck", cases: strategies, sizes: sizes(scale) },
        Run { algorithm: "sumcheck", cases: vec![case(ZERO_CHECK)], sizes: vec![round_size(scale)] },
        Run { algorithm: "ntt", cases: vec![TRANSFORM.into()], sizes: vec![round_size(scale)] },
    ]
}

/// A share in percent that a record's check tells of, such as `81.2% of copy bandwidth`.
fn share(record: &Record, of: &str) -> Option<f64> {
    let (before, _) = record.checked.split_once(&format!("% of {of}"))?;
    before.rsplit(' ').next()?.parse().ok()
}

fn compare(figures: &Figures<'_>, scale: Scale) -> Comparison {
    let log_n = round_size(scale);
    let mut verdicts = Vec::new();

    let shares = |form: &str, round: u32| {
        let record = figures.record(&round_case(form, round), log_n);
        ["copy bandwidth", "multiplications"].map(|of| record.and_then(|record| share(record, of)))
    };
    let mut by_form = Vec::new();
    for (name, form) in FORMS {
        let mut rounds = Table::new(
            format!("Rounds over 2^{log_n} elements of BLS12-381 Fr, each with a read by the host: {name}"),
            ["round", "ms", "of copy bandwidth, %", "of multiplications, %"],
        );
        for round in 1..=ROUNDS {
            let ([copy, mul], time) = (shares(form, round), figures.time(&round_case(form, round), log_n));
            rounds.row([format!("{round}"), cell(time), cell(copy), cell(mul)]);
        }
        by_form.push(rounds);
    }
    if let [Some(copy), Some(mul)] = shares(FOUR_TABLES, 1) {
        let finding = finding(copy, mul);
        verdicts.push(format!(
            "Round 1 of the source's experiment reaches {}% of the copy bandwidth of one {} and {}% of its multiplications: {finding}.",
            digits(copy),
            figures.device_name(),
            digits(mul)
        ));
        if let [Some(copy_of_second), Some(mul_of_second)] = shares(FOUR_TABLES, 2) {
            verdicts.push(format!(
                "In its round 2, which folds too, these are {}% and {}%: the share of multiplications is {}× that of round 1, where the \
                 source's counters of arithmetic doubled.",
                digits(copy_of_second),
                digits(mul_of_second),
                digits(mul_of_second / mul)
            ));
        }
    }
    if let [Some(copy), Some(mul)] = shares(OURS, 1) {
        verdicts.push(format!(
            "Round 1 of our zero-check, with eq as a point, reaches {}% of the copy bandwidth of one {} and {}% of its \
             multiplications: {}.",
            digits(copy),
            figures.device_name(),
            digits(mul),
            finding(copy, mul)
        ));
    }

    let sizes = sizes(scale);
    let mut strategies = Table::new("A whole zero-check by strategy, ms", sizes_head("strategy", &sizes));
    for (name, task) in STRATEGIES {
        let times = sizes.iter().map(|log_n| cell(figures.time(&case(task), *log_n)));
        strategies.row([name.to_owned()].into_iter().chain(times));
    }

    let mut beside = Table::new(
        format!(
            "A sumcheck beside a transform of as many elements, 2^{log_n}: a round is a pass that waits for the one before"
        ),
        ["", "ms", "launches", "rounds or passes", "elements read and written, each"],
    );
    let (sumcheck, transform) = (figures.time(&case(ZERO_CHECK), log_n), figures.time(TRANSFORM, log_n));
    let launches =
        |case: &str| figures.record(case, log_n).and_then(|record| record.launches).map(|count| count as f64);
    let whole = |count: Option<f64>| count.map_or_else(|| "–".into(), |count| format!("{count}"));
    let passes = launches(TRANSFORM);
    let textbook = rounds_time(figures, FOUR_TABLES, log_n);
    beside.row([
        "zero-check of A·B − C".into(),
        cell(sumcheck),
        whole(launches(&case(ZERO_CHECK))),
        format!("{log_n}"),
        digits(ZERO_CHECK_ELEMENTS),
    ]);
    beside.row([
        format!("the source's experiment, its first {ROUNDS} rounds"),
        cell(textbook),
        "–".into(),
        format!("{ROUNDS}"),
        digits(TEXTBOOK_ELEMENTS),
    ]);
    beside.row([
        "one transform".into(),
        cell(transform),
        whole(passes),
        whole(passes),
        whole(passes.map(|passes| 2.0 * passes)),
    ]);
    if let Some((sumcheck, transform)) = sumcheck.zip(transform) {
        let finding = match sumcheck < transform {
            true => {
                "by time the sumcheck is the lighter one, though the source calls the transform friendlier to hardware"
            }
            false => "as the source says, the transform is the friendlier one to this hardware",
        };
        verdicts.push(format!(
            "A zero-check of 2^{log_n} takes {} ms and one transform of as many elements {}: {finding}.",
            digits(sumcheck),
            digits(transform)
        ));
    }

    let mut cards = Table::new(
        "What binds the textbook's strategy, by rates alone: time for bytes ÷ time for multiplications",
        ["card", "copies, GB/s", "multiplies, G/s", TEXTBOOK[0].0, TEXTBOOK[1].0, "rates from"],
    );
    let quotient = |card: &Card, (_, bytes, mul): (&str, f64, f64)| bytes / card.bytes_per_s / (mul / card.mul_per_s);
    for card in &CARDS {
        let [first, later] = TEXTBOOK.map(|round| quotient(card, round));
        let (copies, multiplies) = (digits(card.bytes_per_s / 1e9), digits(card.mul_per_s / 1e9));
        cards.row([card.name.into(), copies, multiplies, digits(first), digits(later), card.from.into()]);
    }
    let names = |by_memory: bool| {
        let is_it = |card: &&Card| TEXTBOOK.iter().all(|round| (quotient(card, *round) > 1.0) == by_memory);
        CARDS.iter().filter(is_it).map(|card| card.name).collect::<Vec<_>>().join(" and an ")
    };
    verdicts.push(format!(
        "By rates alone, which are estimates for cards that were not at hand, an {} is bound by memory in round 1 of the textbook's \
         strategy and in rounds that fold, and an {} by multiplications: the source's finding is one of its card, not of the \
         protocol.",
        names(true),
        names(false)
    ));
    if let Some(device) = figures.device() {
        let measured = Card { name: "", bytes_per_s: device.copy_bytes_per_s, mul_per_s: device.mul_per_s, from: "" };
        let [first, later] = TEXTBOOK.map(|round| quotient(&measured, round));
        cards.row([
            format!("{}, here", device.name),
            digits(device.copy_bytes_per_s / 1e9),
            digits(device.mul_per_s / 1e9),
            digits(first),
            digits(later),
            "this run".into(),
        ]);
    }
    by_form.extend([strategies, beside, cards]);
    Comparison { tables: by_form, verdicts }
}

/// The time of all rounds of a form that are shown, in milliseconds, if all were measured.
fn rounds_time(figures: &Figures<'_>, form: &str, log_n: u32) -> Option<f64> {
    (1..=ROUNDS).map(|round| figures.time(&round_case(form, round), log_n)).sum()
}
