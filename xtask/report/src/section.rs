//! A comparison as text, for a terminal and for a document.

use evariste_machine::table;

/// The section of one founding system.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// What is compared with: authors, title, where it was published.
    pub source: &'static str,
    /// On what the source measured.
    pub hardware: &'static str,
    /// What the tables show, and how it differs from what the source did.
    pub notes: &'static str,
    /// The comparison.
    pub tables: Vec<Table>,
    /// What the numbers say, a sentence each.
    pub verdicts: Vec<String>,
    /// What was not measured, a line each.
    pub lacking: Vec<String>,
    /// The files that figures are from, and the commits that they measured.
    pub files: Vec<(String, String)>,
}

/// Figures side by side.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows, with the unit.
    pub title: String,
    /// The heads of its columns. The first is text.
    pub head: Vec<String>,
    /// As many cells a row as there are heads.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { title: title.into(), head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.head.len(), "{}", self.title);
        self.rows.push(cells);
    }

    /// The table as plain text, behind an empty line.
    pub(crate) fn text(&self) -> String {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let mut plain = table::Table::new(1, &head);
        self.rows.iter().for_each(|row| plain.row(row.iter().cloned()));
        format!("\n{}\n\n{}\n", self.title, plain.render())
    }

    /// The table as Markdown, behind an empty line.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("\n{}:\n\n", self.title);
        text += &format!("| {} |\n|{}\n", self.head.join(" | "), "---|".repeat(self.head.len()));
        self.rows.iter().for_each(|row| text += &format!("| {} |\n", row.join(" | ")));
        text
    }
}

impl Section {
    /// The section as plain text.
    pub fn text(&self) -> String {
        let mut text =
            format!("{}\n\n{}\nMeasured there: {}\n\n{}\n", self.title, self.source, self.hardware, self.notes);
        self.tables.iter().for_each(|table| text += &table.text());
        let lines = |title: &str, lines: &[String]| match lines {
            [] => String::new(),
            lines => format!("\n{title}\n{}", lines.iter().map(|line| format!("  {line}\n")).collect::<String>()),
        };
        text += &lines("What the numbers say:", &self.verdicts);
        text += &lines("Not measured:", &self.lacking);
        text
    }

    /// The section as Markdown, with links to the files relative to a folder.
    pub fn markdown(&self, folder: &str) -> String {
        let mut text =
            format!("## {}\n\n{} Measured there: {}\n\n{}\n", self.title, self.source, self.hardware, self.notes);
        if !self.verdicts.is_empty() {
            text += "\n";
            self.verdicts.iter().for_each(|verdict| text += &format!("- {verdict}\n"));
        }
        self.tables.iter().for_each(|table| text += &table.markdown());
        if !self.files.is_empty() {
            let link = |(file, commit): &(String, String)| {
                format!("[`{file}`]({folder}/{file}) ({})", commit.chars().take(7).collect::<String>())
            };
            text += &format!("\nRecorded in {}.\n", self.files.iter().map(link).collect::<Vec<_>>().join(", "));
        }
        if !self.lacking.is_empty() {
            text += &format!("\nNot measured yet: {}.\n", self.lacking.join("; "));
        }
        text
    }
}

/// A figure in a few digits, or a dash where there is none.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), digits)
}

/// A ratio, or a dash where one of both lacks.
pub(crate) fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    a.zip(b).map_or_else(|| "–".into(), |(a, b)| format!("{}×", digits(a / b)))
}

/// A number in three digits, and whole if it has more.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.000_999_5 => {
            let decimals = 2 - size.log10().floor() as i32;
            format!("{value:.*}", decimals.max(0) as usize)
        }
        _ => format!("{value:.2e}"),
    }
}

/// The least and the greatest of some numbers in words, with the same unit behind both.
pub(crate) fn range(values: &[f64], unit: &str) -> Option<String> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let greatest = values.iter().copied().max_by(f64::total_cmp)?;
    let (a, b) = (digits(least), digits(greatest));
    Some(if a == b { format!("{a}{unit}") } else { format!("{a} to {b}{unit}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let digits = [1234.5, 99.96, 12.34, 1.0, 0.012_345, 0.001, 1e-9, 0.0].map(digits);
        assert_eq!(digits, ["1234", "100", "12.3", "1.00", "0.0123", "0.00100", "1.00e-9", "0"]);
        assert_eq!(
            (cell(None), ratio(Some(3.0), Some(2.0)), ratio(None, Some(1.0))),
            ("–".into(), "1.50×".into(), "–".into())
        );
        assert_eq!(range(&[2.0, 1.0, 3.0], "×").as_deref(), Some("1.00 to 3.00×"));
        assert_eq!((range(&[2.0], " ms").as_deref(), range(&[], "")), (Some("2.00 ms"), None));
    }

    #[test]
    fn sections_are_text_and_markdown() {
        let mut table = Table::new("Times, ms", ["size", "ours"]);
        table.row(["2^4".into(), "1.00".into()]);
        let section = Section {
            title: "Sums",
            source: "A paper.",
            hardware: "a card.",
            notes: "Data on the device.",
            tables: vec![table],
            verdicts: vec!["Ours is faster.".into()],
            lacking: vec!["b/device at 2^5".into()],
            files: vec![("file.json".into(), "0123456789".into())],
        };
        let text = section.text();
        assert!(text.contains("Times, ms\n\nsize  ours\n──────────\n2^4   1.00\n"), "{text}");
        assert!(text.ends_with("Not measured:\n  b/device at 2^5\n"), "{text}");
        let markdown = section.markdown("results");
        assert!(markdown.contains("| size | ours |\n|---|---|\n| 2^4 | 1.00 |\n"), "{markdown}");
        assert!(markdown.contains("[`file.json`](results/file.json) (0123456)"), "{markdown}");
        assert!(markdown.contains("- Ours is faster.\n"), "{markdown}");
    }
}
