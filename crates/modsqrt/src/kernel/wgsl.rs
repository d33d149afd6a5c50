//! The Montgomery multiplication in WGSL, rendered for a number of limbs.

use std::fmt::Write;

use evariste_field::source;

use crate::{kernel::ROWS, number::lanes};

/// `m_multiply` in WGSL, straight-line over the limbs of one thread, which are named variables as those of the
/// accumulator and of the modulus are: [`ROWS`] rows of products and of their reduction side by side, from the lowest
/// position up. Threads that share an element hand down the limbs that a block of rows pushes out of theirs, and the
/// first one hands out the factors of the modulus for the next block, which its lowest limbs determine, at one barrier
/// a block.
///
/// A row adds a multiple of one factor and a multiple of the modulus limb by limb: "finely integrated operand scanning"
/// of Koç, Acar and Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", IEEE Micro 16 (1996).
pub(super) fn multiplication(limbs: usize, int64: bool) -> String {
    let (lanes, rows) = (lanes(limbs) as usize, ROWS);
    let (shared, own) = (lanes > 1, limbs / lanes);
    let mut text = if int64 { String::new() } else { source::F_MAC.to_owned() };
    let mut line = |of: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "  {of}");
    };
    line(format_args!("fn m_multiply(slot: bool, at: u32) {{"));
    line(format_args!("let n0 = constants_get(own - HEAD);"));
    for j in 0..own {
        line(format_args!("let a{j} = accumulator(lane * {own}u + {j}u);"));
        line(format_args!("let p{j} = constants_get(own + MODULUS * LIMBS + lane * {own}u + {j}u);"));
        line(format_args!("var t{j} = 0u;"));
    }
    line(format_args!("var top = 0u;"));
    for k in 0..rows {
        line(format_args!("var x{k} = factor(slot, at, {k}u);"));
    }
    if shared {
        line(format_args!("var half = 0u;"));
        line(format_args!("if (lane == 0u) {{"));
        multiples(&mut line, rows, int64);
        line(format_args!("}}"));
        line(format_args!("workgroupBarrier();"));
    }
    line(format_args!("for (var i = 0u; i < LIMBS; i += {rows}u) {{"));
    for k in 0..rows {
        if shared {
            line(format_args!("let m{k} = words[half + (thread - lane) * {rows}u + {k}u];"));
            line(format_args!("let y{k} = factor(slot, at, (i + {}u) % LIMBS);", rows + k));
        }
        let zero = if int64 { "u64(0u)" } else { "0u" };
        line(format_args!("var c{k} = {zero}; var d{k} = {zero};"));
    }
    for position in 0..own + rows {
        match position.checked_sub(own) {
            None => line(format_args!("var v{position} = t{position};")),
            // The row that ended brings its carries.
            Some(k) => {
                let above = if k == 0 { "top".to_owned() } else { format!("h{}", k - 1) };
                if int64 {
                    line(format_args!("let s{k} = c{k} + d{k} + u64({above});"));
                    line(format_args!("var v{position} = u32(s{k}); let h{k} = u32(s{k} >> 32u);"));
                } else {
                    line(format_args!("let s{k} = c{k} + d{k};"));
                    line(format_args!("var v{position} = s{k} + {above};"));
                    line(format_args!("let h{k} = u32(s{k} < c{k}) + u32(v{position} < s{k});"));
                }
            }
        }
        for k in 0..rows {
            let Some(j) = position.checked_sub(k).filter(|j| *j < own) else { continue };
            row(
                &mut line,
                [&format!("v{position}"), &format!("x{k}"), &format!("m{k}")],
                [j, k],
                !shared && j == 0,
                int64,
            );
        }
        if let Some(to) = position.checked_sub(rows) {
            line(format_args!("t{to} = v{position};"));
        }
    }
    line(format_args!("top = h{};", rows - 1));
    if shared {
        line(format_args!("half = HALF - half;"));
        (0..rows).for_each(|k| line(format_args!("x{k} = y{k};")));
        line(format_args!("if (lane == 0u) {{"));
        multiples(&mut line, rows, int64);
        line(format_args!("}} else {{"));
        (0..rows).for_each(|k| line(format_args!("words[half + thread * {rows}u + {k}u] = v{k};")));
        line(format_args!("}}"));
        line(format_args!("workgroupBarrier();"));
        line(format_args!("if (lane + 1u < LANES) {{"));
        line(format_args!("var carry = 0u;"));
        for k in 0..rows {
            let t = own - rows + k;
            line(format_args!("let e{k} = words[half + (thread + 1u) * {rows}u + {k}u];"));
            line(format_args!("let f{k} = t{t} + e{k}; let g{k} = f{k} + carry;"));
            line(format_args!("carry = u32(f{k} < e{k}) | u32(g{k} < f{k}); t{t} = g{k};"));
        }
        line(format_args!("top += carry;"));
        line(format_args!("}}"));
    } else {
        (0..rows).for_each(|k| line(format_args!("x{k} = factor(slot, at, (i + {}u) % LIMBS);", rows + k)));
    }
    line(format_args!("}}"));
    // Carries go on to the neighbour as often as there are neighbours.
    if shared {
        line(format_args!("var carry = top; top = 0u;"));
        line(format_args!("for (var step = 1u; step < LANES; step++) {{"));
        line(format_args!("top += carry; carry = m_below(carry, step);"));
        for j in 0..own {
            line(format_args!("t{j} += carry; carry = u32(t{j} < carry);"));
        }
        line(format_args!("}}"));
        line(format_args!("top += carry;"));
    }
    // Less the modulus if that is not negative.
    line(format_args!("var borrow = 0u;"));
    for j in 0..own {
        line(format_args!("let l{j} = t{j} - p{j}; var z{j} = l{j} - borrow;"));
        line(format_args!("borrow = u32(l{j} > t{j}) | u32(l{j} < borrow);"));
    }
    if shared {
        line(format_args!("var lent = borrow;"));
        line(format_args!("for (var step = 1u; step < LANES; step++) {{"));
        line(format_args!("borrow = m_below(borrow, step + LANES - 1u);"));
        for j in 0..own {
            line(format_args!("let b{j} = z{j} - borrow; borrow = u32(z{j} < borrow); z{j} = b{j};"));
        }
        line(format_args!("lent |= borrow;"));
        line(format_args!("}}"));
        line(format_args!("let keep = m_last(u32(lent > top)) == 1u;"));
    } else {
        line(format_args!("let keep = borrow > top;"));
    }
    line(format_args!("if (present) {{"));
    for j in 0..own {
        line(format_args!("state_set(element + (lane * {own}u + {j}u) * params.len, select(z{j}, t{j}, keep));"));
    }
    line(format_args!("}}"));
    line(format_args!("}}"));
    if shared { text + &neighbours(rows) } else { text }
}

/// v = v + x a + m p at limb j of row k, with what the limbs below carried; m is found if it is to be.
fn row(
    line: &mut dyn FnMut(std::fmt::Arguments<'_>),
    [v, x, m]: [&str; 3],
    [j, k]: [usize; 2],
    find: bool,
    int64: bool,
) {
    if int64 {
        line(format_args!("let r{k}_{j} = u64({x}) * u64(a{j}) + u64({v}) + c{k}; c{k} = r{k}_{j} >> 32u;"));
        if find {
            line(format_args!("let {m} = u32(r{k}_{j}) * n0;"));
        }
        line(format_args!("let q{k}_{j} = u64({m}) * u64(p{j}) + u64(u32(r{k}_{j})) + d{k};"));
        line(format_args!("d{k} = q{k}_{j} >> 32u; {v} = u32(q{k}_{j});"));
    } else {
        line(format_args!("let r{k}_{j} = f_mac({x}, a{j}, {v}, c{k}); c{k} = r{k}_{j}.y;"));
        if find {
            line(format_args!("let {m} = r{k}_{j}.x * n0;"));
        }
        line(format_args!("let q{k}_{j} = f_mac({m}, p{j}, r{k}_{j}.x, d{k}); d{k} = q{k}_{j}.y; {v} = q{k}_{j}.x;"));
    }
}

/// The factors of the modulus for the next rows, by their lowest limbs alone.
fn multiples(line: &mut dyn FnMut(std::fmt::Arguments<'_>), rows: usize, int64: bool) {
    let zero = if int64 { "u64(0u)" } else { "0u" };
    line(format_args!("{{"));
    (0..rows).for_each(|k| line(format_args!("var c{k} = {zero}; var d{k} = {zero}; var w{k} = t{k};")));
    for position in 0..rows {
        for k in 0..=position {
            let names = [format!("w{position}"), format!("x{k}"), format!("o{k}")];
            let [v, x, m] = &names;
            row(line, [v, x, m], [position - k, k], k == position, int64);
        }
    }
    (0..rows).for_each(|k| line(format_args!("words[half + thread * {rows}u + {k}u] = o{k};")));
    line(format_args!("}}"));
}

/// What threads that share an element tell each other. There are two places, so that one barrier is enough.
fn neighbours(rows: usize) -> String {
    format!(
        "\
const HALF = THREADS * {rows}u;
var<workgroup> words: array<u32, 2u * HALF>;
var<workgroup> told: array<u32, 2u * THREADS>;
fn m_below(word: u32, turn: u32) -> u32 {{
  let place = turn % 2u * THREADS + thread;
  told[place] = word;
  workgroupBarrier();
  return select(0u, told[place - min(lane, 1u)], lane > 0u);
}}
fn m_last(word: u32) -> u32 {{
  if (lane == LANES - 1u) {{
    words[thread] = word;
  }}
  workgroupBarrier();
  return words[thread - lane + LANES - 1u];
}}
"
    )
}
