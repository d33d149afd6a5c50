//! Plain tables.

/// A table whose first columns are text, aligned to the left, and whose others are numbers, aligned to the right.
#[derive(Debug)]
pub struct Table {
    text_columns: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a head, and the number of its columns of text.
    pub fn new(text_columns: usize, head: &[&str]) -> Self {
        Self { text_columns, rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, with a rule below the head.
    pub fn render(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        lines.insert(1, "─".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)));
        lines.join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let pad = |(column, (cell, &width)): (usize, (&String, &usize))| match column < self.text_columns {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        };
        let cells: Vec<String> = row.iter().zip(widths).enumerate().map(pad).collect();
        cells.join("  ").trim_end().to_owned()
    }
}

/// A size in bytes, from its logarithm.
pub fn bytes(log: u32) -> String {
    let (unit, name) =
        [(30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(unit, _)| log >= *unit).unwrap_or((0, "B"));
    format!("{} {name}", 1_u64 << (log - unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_bytes() {
        assert_eq!([0, 10, 19, 20, 32].map(bytes), ["1 B", "1 KiB", "512 KiB", "1 MiB", "4 GiB"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(1, &["name", "n"]);
        table.row(["x".into(), "100".into()]);
        assert_eq!(table.render(), "name    n\n─────────\nx     100");
    }
}
