//! The page in a real browser: on a phone and on a desk, light and dark.
//!
//! It takes Chromium or Chrome; `EVARISTE_BROWSER` may name the program. With that variable a missing browser is a
//! failure. Without it the test says that it was skipped.

use std::{env, fs, path::Path, process::Command};

use serde::Deserialize;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// What a frame of the page is asked for.
const PROBE: &str = r#"<!DOCTYPE html><pre id="result"></pre><script>
addEventListener("load", () => {
    const luminance = (color) => {
        const [r, g, b] = color.match(/\d+/g).slice(0, 3).map((c) => c / 255).map((c) =>
            c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [...document.querySelectorAll("iframe")].map((frame) => {
        const page = frame.contentDocument, style = (of) => frame.contentWindow.getComputedStyle(of);
        const root = page.documentElement, ink = style(page.body).color, paper = style(page.body).backgroundColor;
        const [a, b] = [luminance(ink), luminance(paper)].sort((a, b) => b - a);
        const charts = [...page.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect());
        return {
            overflow: root.scrollWidth - root.clientWidth,
            contrast: (a + 0.05) / (b + 0.05),
            paper: luminance(paper),
            charts: charts.length,
            narrowest: Math.min(...charts.map((chart) => chart.width)),
            outside: Math.max(...charts.map((chart) => chart.right)) - root.clientWidth,
            inked: [...page.querySelectorAll("svg text")].every((text) => style(text).fill === ink),
        };
    });
    document.getElementById("result").textContent = JSON.stringify(found);
});
</script>"#;

/// What was found in a frame; lengths are in pixels.
#[derive(Debug, Deserialize)]
struct Found {
    /// By how much the page is wider than the frame.
    overflow: f64,
    /// Of text to what it stands on.
    contrast: f64,
    /// The luminance of what it stands on.
    paper: f64,
    charts: usize,
    /// The width of the narrowest chart.
    narrowest: f64,
    /// By how much a chart sticks out at the right.
    outside: f64,
    /// Whether all text of charts has the page's colour.
    inked: bool,
}

fn browser() -> Option<String> {
    if let Ok(named) = env::var("EVARISTE_BROWSER") {
        return Some(named);
    }
    let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    BROWSERS.iter().find(works).map(ToString::to_string)
}

/// Widths of frames: a phone's, a desk's.
const WIDTHS: [u32; 2] = [360, 1200];

fn look(browser: &str, folder: &Path, dark: bool) -> Vec<Found> {
    let frame = |width: &u32| format!("<iframe src=\"report.html\" width=\"{width}\" height=\"800\"></iframe>");
    let probe = PROBE.to_owned() + &WIDTHS.iter().map(frame).collect::<String>();
    fs::write(folder.join("probe.html"), probe).unwrap();
    let scheme = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom", &scheme])
        .arg("--allow-file-access-from-files")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--window-size=1600,1800", "--virtual-time-budget=10000"])
        .arg(format!("file://{}", folder.join("probe.html").display()))
        .output()
        .unwrap_or_else(|error| panic!("{browser} could not be started: {error}"));
    let page = String::from_utf8_lossy(&output.stdout);
    let found = page.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("{browser}: {}", String::from_utf8_lossy(&output.stderr))).0;
    serde_json::from_str(found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

#[test]
fn the_page_is_readable_on_a_phone_and_on_a_desk_light_and_dark() {
    let Some(browser) = browser() else {
        println!("skipped: there is no {}", BROWSERS.join(", "));
        return;
    };
    let folder = env::temp_dir().join(format!("evariste-report-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    evariste_report::page::write(&root, &folder.join("report.html")).unwrap();
    for dark in [false, true] {
        let found = look(&browser, &folder, dark);
        assert_eq!(found.len(), WIDTHS.len());
        for (width, found) in WIDTHS.iter().zip(found) {
            let told = format!("{width} pixels, dark: {dark}: {found:?}");
            assert!(found.overflow <= 0.0 && found.outside <= 0.0, "nothing sticks out at the right: {told}");
            assert!(found.charts > 5 && found.narrowest > 0.7 * f64::from(width.min(&860) - 40), "charts: {told}");
            assert!(found.contrast > 7.0 && found.inked, "text is readable: {told}");
            assert_eq!(found.paper < 0.2, dark, "{told}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
