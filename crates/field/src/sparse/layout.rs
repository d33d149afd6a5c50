//! How a sparse matrix lies on a device: short rows of entries, ordered so that neighbours take equally long.

use std::collections::HashMap;

use ark_ff::Field;
use evariste_backend::constants;

/// Most entries of a row. A longer row becomes a row of sums over this many entries each, and so on. A sum costs a
/// line, an entry, and an element that is written and read: with elements of 256 bits, 80 bytes for each 1280.
pub(super) const LONGEST: usize = 32;

/// Neighbouring rows among which those of one length come together. On a GPU the threads of a warp then take equally
/// long, and what they write stays in the cache. On the CPU it is what one thread takes at a time.
pub(super) const WINDOW: usize = 1 << 10;

constants! {
    /// What the code of an entry says of its term.
    pub(super) mod codes {
        /// The element of the vector.
        CODE_ONE = 0,
        /// Its negative.
        CODE_MINUS_ONE = 1,
        /// The sum of a part of the row, by its number.
        CODE_SUM = 2,
        /// From here on: the element times a coefficient of the table, the first one of it.
        CODE_FIRST = 3,
    }
}

/// The rows of a matrix, with rows that add parts of long ones before them.
///
/// Row i is a line: its place in the output, and the number of its first entry. The entries lie in the order of the
/// lines, so that a row ends where the next line begins. One more line ends the last row.
#[derive(Debug)]
pub(super) struct Layout<F> {
    /// Pairs of a place and a first entry.
    pub(super) lines: Vec<u64>,
    /// Pairs of a column, or the number of a sum, and a code.
    pub(super) entries: Vec<u64>,
    /// The different coefficients other than 1 and −1.
    pub(super) coefficients: Vec<F>,
    /// How many sums each level has. A level adds entries and sums of the levels before it.
    pub(super) levels: Vec<usize>,
}

impl<F: Field> Layout<F> {
    /// Lays out the rows of `lengths` entries each, of columns and coefficients.
    pub(super) fn new(mut lengths: Vec<usize>, entries: impl Iterator<Item = (u32, F)>) -> Self {
        let mut codes = Codes::default();
        let mut rest: Vec<u64> = entries.map(|(column, value)| pair(column, codes.of(value))).collect();
        let (mut lines, mut entries, mut levels) = (Vec::new(), Vec::new(), Vec::new());
        while lengths.iter().any(|len| *len > LONGEST) {
            let before = lines.len();
            rest = take_parts(&mut lengths, &rest, &mut |part| {
                let number = lines.len() as u32;
                lines.push(pair(number - before as u32, entries.len() as u32));
                entries.extend_from_slice(part);
                pair(number, codes::CODE_SUM)
            });
            levels.push(lines.len() - before);
        }
        let (mut rest, mut row) = (&rest[..], 0u32);
        for window in lengths.chunks(WINDOW) {
            let mut rows: Vec<(u32, &[u64])> = Vec::with_capacity(WINDOW);
            for len in window {
                let (own, next) = rest.split_at(*len);
                rows.push((row, own));
                (rest, row) = (next, row + 1);
            }
            rows.sort_by_key(|(_, own)| own.len());
            for (row, own) in rows {
                lines.push(pair(row, entries.len() as u32));
                entries.extend_from_slice(own);
            }
        }
        lines.push(pair(0, entries.len() as u32));
        Self { lines, entries, coefficients: codes.coefficients, levels }
    }
}

/// Has `sum` put the parts of rows that are too long elsewhere, and returns the rows with what it gives in place of
/// them. The last part, which is shorter, stays if the row is then short enough.
fn take_parts(lengths: &mut [usize], entries: &[u64], sum: &mut impl FnMut(&[u64]) -> u64) -> Vec<u64> {
    let mut kept = Vec::with_capacity(entries.len());
    let mut rest = entries;
    for len in lengths {
        let (row, next) = rest.split_at(*len);
        rest = next;
        if *len <= LONGEST {
            kept.extend_from_slice(row);
            continue;
        }
        let (parts, tail) = row.as_chunks::<LONGEST>();
        let before = kept.len();
        kept.extend(parts.iter().map(|part| sum(part)));
        match parts.len() + tail.len() <= LONGEST {
            true => kept.extend_from_slice(tail),
            false if tail.is_empty() => {}
            false => kept.push(sum(tail)),
        }
        *len = kept.len() - before;
    }
    kept
}

/// Two words, the first one low.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// The codes of coefficients, by value.
#[derive(Debug)]
struct Codes<F> {
    codes: HashMap<F, u32>,
    coefficients: Vec<F>,
}

impl<F> Default for Codes<F> {
    fn default() -> Self {
        Self { codes: HashMap::new(), coefficients: Vec::new() }
    }
}

impl<F: Field> Codes<F> {
    fn of(&mut self, value: F) -> u32 {
        // Most coefficients are one of these.
        if value == F::ONE {
            return codes::CODE_ONE;
        }
        if value == -F::ONE {
            return codes::CODE_MINUS_ONE;
        }
        *self.codes.entry(value).or_insert_with(|| {
            self.coefficients.push(value);
            codes::CODE_FIRST + self.coefficients.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;

    use super::*;

    /// The rows in order, by place, with sums in place of what they add.
    fn rows(layout: &Layout<Fr>) -> Vec<Vec<(u32, u32)>> {
        let words = |pair: u64| (pair as u32, (pair >> 32) as u32);
        let sums: usize = layout.levels.iter().sum();
        let mut rows: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
        let mut whole: Vec<Vec<(u32, u32)>> = Vec::new();
        for (i, lines) in layout.lines.windows(2).enumerate() {
            let [(place, start), (_, end)] = [lines[0], lines[1]].map(words);
            assert!((end - start) as usize <= LONGEST);
            let terms = layout.entries[start as usize..end as usize].iter().map(|entry| words(*entry));
            let of = |(index, code)| match code {
                codes::CODE_SUM => whole[index as usize].clone(),
                _ => vec![(index, code)],
            };
            let terms = terms.flat_map(of).collect();
            if i < sums { whole.push(terms) } else { rows.push((place, terms)) }
        }
        rows.sort_by_key(|(place, _)| *place);
        assert!((0..).zip(&rows).all(|(i, (place, _))| i == *place), "each row has a place of its own");
        rows.into_iter().map(|(_, row)| row).collect()
    }

    #[test]
    fn long_rows_are_sums_of_parts() {
        let lengths = vec![0, 3, LONGEST, LONGEST + 1, 2 * LONGEST - 1, 0, LONGEST * LONGEST, 40_000, 1, 0];
        let count = lengths.iter().sum::<usize>() as u32;
        let layout = Layout::new(lengths.clone(), (0..count).map(|i| (i, Fr::from(1))));
        let mut columns = 0..count;
        for (row, len) in rows(&layout).into_iter().zip(&lengths) {
            assert_eq!(row, columns.by_ref().take(*len).map(|i| (i, codes::CODE_ONE)).collect::<Vec<_>>());
        }
        // 1 + 1 + 32 + 1250 parts; 40 of the last 1250 sums; one of these 40, beside 8.
        assert_eq!(layout.levels, [1284, 40, 1]);
        assert!(layout.coefficients.is_empty());
        assert_eq!(layout.entries.len(), count as usize + 1284 + 40 + 1);
    }

    #[test]
    fn rows_of_a_window_are_ordered_by_length() {
        let lengths: Vec<usize> = (0..3 * WINDOW).map(|i| i * 7 % 5).collect();
        let count = lengths.iter().sum::<usize>();
        let values = (0..count).map(|i| (9, Fr::from(i as u64 % 4) - Fr::from(1)));
        let layout = Layout::new(lengths.clone(), values);
        for window in layout.lines[..3 * WINDOW].chunks(WINDOW) {
            assert!(window.windows(2).all(|rows| {
                let [a, b] = [rows[0], rows[1]].map(|line| (line as u32, lengths[line as u32 as usize]));
                (a.1, a.0) < (b.1, b.0)
            }));
        }
        // −1, 0, 1, 2 in turn.
        assert_eq!(layout.coefficients, [0, 2].map(Fr::from));
        let [one, minus_one, first] = [codes::CODE_ONE, codes::CODE_MINUS_ONE, codes::CODE_FIRST];
        let found: Vec<u32> = rows(&layout).concat().into_iter().map(|(_, code)| code).collect();
        assert!(found.chunks(4).all(|found| [minus_one, first, one, first + 1].starts_with(found)));
    }

    #[test]
    fn nothing_has_one_line() {
        let layout = Layout::<Fr>::new(Vec::new(), std::iter::empty());
        assert_eq!((layout.lines.len(), layout.entries.len(), layout.levels.len()), (1, 0, 0));
    }
}
