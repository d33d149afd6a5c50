//! The model's tables, in Markdown.

use crate::model::{
    Coefficients, H200, Link, NETWORK, NVLINK, PCIE, sum, transform, transform_bytes, transform_on_one, zero_check,
};

/// GPUs of one host, and of sixteen hosts of eight.
const DEVICES: [u32; 4] = [1, 2, 4, 8];
const HOSTS: u32 = 16;

/// All tables, with an empty line in between.
pub(crate) fn all() -> String {
    [large(), links(), sizes(), hosts()].join("\n")
}

/// A table from its header and rows.
fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    let rows = rows.into_iter().map(|row| line(&row));
    [line(&header), rule].into_iter().chain(rows).collect()
}

fn milliseconds(seconds: f64) -> String {
    let time = 1e3 * seconds;
    match time {
        0.0..1.0 => format!("{time:.3}"),
        1.0..100.0 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    }
}

/// A time, and how many times faster it is than that of one device.
fn with_ratio(time: f64, one: f64) -> String {
    format!("{} ({:.2}×)", milliseconds(time), one / time)
}

/// Large problems on the GPUs of one host.
fn large() -> String {
    let row = |name: &str, time: &dyn Fn(u32) -> f64| {
        let times = DEVICES.map(|devices| with_ratio(time(devices), time(1)));
        [vec![name.to_owned()], times.to_vec()].concat()
    };
    let ntt = |coefficients| move |devices| transform(H200, NVLINK, devices, 28, coefficients);
    table(
        &["One host, ms", "1 GPU", "2", "4", "8"],
        [
            row("MSM 2^26, BLS12-381 G1", &|devices| sum(devices, 26)),
            row("NTT 2^28, BLS12-381 Fr, block-cyclic coefficients", &ntt(Coefficients::BlockCyclic)),
            row("NTT 2^28, cyclic coefficients", &ntt(Coefficients::Cyclic)),
            row("sumcheck of eq·(ab − c), 2^28 rows", &|devices| zero_check(H200, devices, 28)),
        ],
    )
}

/// One transform by what joins the GPUs.
fn links() -> String {
    let one = transform_on_one(H200, 28);
    let row = |link: Link| {
        let times = [2, 4, 8].map(|d| with_ratio(transform(H200, link, d, 28, Coefficients::BlockCyclic), one));
        [vec![format!("{}, {:.0} GB/s a GPU", link.name, link.rate / 1e9)], times.to_vec()].concat()
    };
    table(&["NTT 2^28, ms", "2 GPUs", "4", "8"], [NVLINK, PCIE, NETWORK].map(row))
}

/// Where two GPUs of one host pay.
fn sizes() -> String {
    let row = |log_n: u32| {
        let one = [transform_on_one(H200, log_n), sum(1, log_n), zero_check(H200, 1, log_n)];
        let two =
            [transform(H200, NVLINK, 2, log_n, Coefficients::BlockCyclic), sum(2, log_n), zero_check(H200, 2, log_n)];
        let ratios = one.iter().zip(two).map(|(one, two)| format!("{:.2}×", one / two));
        [vec![format!("2^{log_n}")], ratios.collect()].concat()
    };
    table(&["Two GPUs against one", "NTT", "MSM", "sumcheck"], [16, 18, 20, 22, 24, 26, 28].map(row))
}

/// Sixteen hosts of eight GPUs, and what travels.
fn hosts() -> String {
    let devices = HOSTS * 8;
    let row = |log_n: u32| {
        let time = transform(H200, NETWORK, devices, log_n, Coefficients::BlockCyclic);
        let eight = transform(H200, NVLINK, 8, log_n, Coefficients::BlockCyclic);
        vec![
            format!("2^{log_n}"),
            milliseconds(eight),
            with_ratio(time, eight),
            format!("{:.2}", transform_bytes(devices, log_n) / 1e9),
        ]
    };
    let header = ["NTT over 16 hosts of 8", "8 GPUs of one host, ms", "128 GPUs, ms", "GB sent by each of 128"];
    table(&header, [26, 28, 30, 32].map(row))
}
