//! Charts as SVG, which are as light or as dark as what they stand on.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// log₂ of sizes, in ascending order, and what was measured there, which is positive.
    pub(crate) points: Vec<(u32, f64)>,
}

/// What a chart shows over sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What its vertical axis has, with the unit.
    pub(crate) axis: &'static str,
    pub(crate) lines: Vec<Line>,
}

const SIZE: (u32, u32) = (860, 500);

/// What text and axes are drawn in, to be replaced by the colour of what is around.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_TEXT: &str = "#010203";

/// Distinct with reduced colour vision too, on light and on dark (Okabe and Ito, without black and yellow).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];

/// For a chart that stands alone.
const STYLE: &str = "<style>svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#d0d7de}}</style>";

impl Chart {
    /// The chart, or an error of what draws it.
    pub(crate) fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| anyhow!("the chart {}: {error}", self.title))?;
        let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(&self.title));
        let svg = svg.replacen("<svg ", &label, 1).replace(INK_TEXT, "currentColor");
        let end_of_tag = svg.find('>').map_or(0, |at| at + 1);
        Ok(format!("{}{STYLE}{}", &svg[..end_of_tag], &svg[end_of_tag..]))
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let (sizes, values) = self.ranges().ok_or("it has no points")?;
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .caption(&self.title, ("sans-serif", 22, &INK))
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(sizes, values.log_scale())?;
        chart
            .configure_mesh()
            .axis_style(INK.mix(0.7))
            .bold_line_style(INK.mix(0.18))
            .light_line_style(INK.mix(0.05))
            .label_style(("sans-serif", 15, &INK))
            .x_desc("log₂ of the size")
            .y_desc(self.axis)
            .x_labels(16)
            .x_label_formatter(&|size| if size.fract() == 0.0 { format!("{size:.0}") } else { String::new() })
            .y_label_formatter(&|value| crate::section::digits(*value))
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let points = || line.points.iter().map(|(size, value)| (f64::from(*size), *value));
            let style = colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(points(), style))?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .border_style(TRANSPARENT)
            .label_font(("sans-serif", 15, &INK))
            .draw()?;
        root.present()?;
        Ok(())
    }

    /// What its axes cover.
    fn ranges(&self) -> Option<(Range<f64>, Range<f64>)> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let sizes = points().map(|(size, _)| f64::from(*size));
        let (least, most) = (sizes.clone().min_by(f64::total_cmp)?, sizes.max_by(f64::total_cmp)?);
        let values = points().map(|(_, value)| *value).filter(|value| *value > 0.0);
        let (low, high) = (values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?);
        Some((least - 0.5..most + 0.5, low / 1.5..high * 2.5))
    }
}

/// Text inside of HTML or SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_have_their_lines_and_take_the_colour_around() {
        let line = |name: &str, points: &[(u32, f64)]| Line { name: name.into(), points: points.to_vec() };
        let lines = vec![line("a & b", &[(10, 1.0), (12, 4.0)]), line("c", &[(10, 2.0)])];
        let chart = Chart { title: "Sums <of> points".into(), axis: "ms", lines };
        let svg = chart.svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &amp; b") && svg.contains("aria-label=\"Sums &lt;of&gt; points\""), "{svg}");
        assert!(svg.contains("currentColor") && !svg.contains(INK_TEXT), "{svg}");
        let empty = Chart { title: "none".into(), axis: "ms", lines: Vec::new() };
        assert!(empty.svg().unwrap_err().to_string().contains("it has no points"));
    }
}
