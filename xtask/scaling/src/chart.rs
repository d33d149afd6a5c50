//! The chart of speed-ups, as SVG.

use std::fmt::Write;

use crate::model::{Coefficients, H200, NVLINK, sum, transform, zero_check};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 340.0;
const TOP: f64 = 30.0;
const RIGHT: f64 = 600.0;

/// log₂ of the largest problem and of the most devices.
const LARGEST: u32 = 28;
const MOST: f64 = 3.0;

/// Speed-up over one GPU against the number of GPUs of one host, both by powers of two.
pub(crate) fn speedups() -> String {
    let x = |devices: u32| LEFT + f64::from(devices).log2() / MOST * (RIGHT - LEFT);
    let y = |ratio: f64| BOTTOM - ratio.log2() / MOST * (BOTTOM - TOP);
    let ntt = |devices| transform(H200, NVLINK, devices, LARGEST, Coefficients::BlockCyclic);
    type Time<'a> = &'a dyn Fn(u32) -> f64;
    let lines: [(&str, &str, Time<'_>); 4] = [
        ("as many times as GPUs", "#999999", &|devices| 1.0 / f64::from(devices)),
        ("MSM 2^26", "#1b6ca8", &|devices| sum(devices, 26)),
        ("sumcheck 2^28", "#2e8b57", &|devices| zero_check(H200, devices, LARGEST)),
        ("NTT 2^28", "#b03a2e", &ntt),
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for devices in [1, 2, 4, 8] {
        let (x, y) = (x(devices), y(f64::from(devices)));
        // Writing to a string does not fail.
        let _ = writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(svg, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{devices}</text>", BOTTOM + 20.0);
        let _ =
            writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{devices}×</text>", LEFT - 8.0, y + 4.0);
    }
    let middle = (LEFT + RIGHT) / 2.0;
    let _ =
        writeln!(svg, "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">GPUs of one host</text>", BOTTOM + 44.0);
    for (i, (name, colour, time)) in lines.into_iter().enumerate() {
        let point = |devices: u32| format!("{:.1},{:.1}", x(devices), y(time(1) / time(devices)));
        let points = [1, 2, 4, 8].map(point).join(" ");
        let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        let y = TOP + 20.0 + 20.0 * i as f64;
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>", LEFT + 16.0);
    }
    svg + "</svg>\n"
}
