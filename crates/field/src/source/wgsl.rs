//! The arithmetic of a prime field in WGSL.

use std::fmt::Write;

use super::{limbs29, list, wgsl_words};
use crate::field::constants::Constants;

pub(super) struct Wgsl {
    pub(super) constants: Constants,
    pub(super) limbs: usize,
    pub(super) int64: bool,
}

impl Wgsl {
    pub(super) fn render(&self) -> String {
        let n = self.limbs;
        let one = &self.constants.one;
        let mut text = format!("struct F {{ {} }}\n", list(n, |i| format!("l{i}: u32")));
        text += &format!("fn f_zero() -> F {{ return F({}); }}\n", list(n, |_| "0u".into()));
        text += &format!("fn f_one() -> F {{ return F({}); }}\n", wgsl_words(one));
        let any = (0..n).map(|i| format!("a.l{i}")).collect::<Vec<_>>().join(" | ");
        text += &format!("fn f_is_zero(a: F) -> bool {{ return ({any}) == 0u; }}\n");
        text += &self.reduce();
        text += &self.add();
        text += &self.sub();
        text += &match (self.int64, limbs29::count(n)) {
            (true, Some(parts)) => limbs29::mul(&self.constants, parts),
            (true, None) => self.mul_u64(),
            (false, _) => self.mul_u32(),
        };
        text
    }

    /// `d0… = x0… − p` and `borrow`, for scalars `x0…` named by `x`.
    fn subtract_modulus(&self, x: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for (i, p) in self.constants.modulus.iter().enumerate() {
            let x = x(i);
            if i == 0 {
                let _ = writeln!(text, "  let d0 = {x} - {p}u;\n  var borrow = u32({x} < {p}u);");
            } else {
                let _ = writeln!(text, "  let e{i} = {x} - {p}u;\n  let d{i} = e{i} - borrow;");
                let _ = writeln!(text, "  borrow = u32({x} < {p}u) | u32(e{i} < borrow);");
            }
        }
        text
    }

    /// `f_reduce(a, carry)`: carry · 2^(32 limbs) + a, less p if that is not negative.
    fn reduce(&self) -> String {
        let limbs = list(self.limbs, |i| format!("select(d{i}, a.l{i}, keep)"));
        format!(
            "fn f_reduce(a: F, carry: u32) -> F {{\n{}  let keep = borrow > carry;\n  return F({limbs});\n}}\n",
            self.subtract_modulus(|i| format!("a.l{i}")),
        )
    }

    fn add(&self) -> String {
        let mut text =
            String::from("fn f_add(a: F, b: F) -> F {\n  let s0 = a.l0 + b.l0;\n  var carry = u32(s0 < a.l0);\n");
        for i in 1..self.limbs {
            let _ = writeln!(text, "  let t{i} = a.l{i} + b.l{i};\n  let s{i} = t{i} + carry;");
            let _ = writeln!(text, "  carry = u32(t{i} < a.l{i}) | u32(s{i} < carry);");
        }
        let _ = writeln!(text, "  return f_reduce(F({}), carry);\n}}", list(self.limbs, |i| format!("s{i}")));
        text
    }

    fn sub(&self) -> String {
        let mut text =
            String::from("fn f_sub(a: F, b: F) -> F {\n  let s0 = a.l0 - b.l0;\n  var borrow = u32(a.l0 < b.l0);\n");
        for i in 1..self.limbs {
            let _ = writeln!(text, "  let t{i} = a.l{i} - b.l{i};\n  let s{i} = t{i} - borrow;");
            let _ = writeln!(text, "  borrow = u32(a.l{i} < b.l{i}) | u32(t{i} < borrow);");
        }
        text += "  let mask = 0u - borrow;\n";
        for (i, p) in self.constants.modulus.iter().enumerate() {
            if i == 0 {
                let _ = writeln!(text, "  let r0 = s0 + ({p}u & mask);\n  var carry = u32(r0 < s0);");
            } else {
                let _ = writeln!(text, "  let u{i} = s{i} + ({p}u & mask);\n  let r{i} = u{i} + carry;");
                let _ = writeln!(text, "  carry = u32(u{i} < s{i}) | u32(r{i} < carry);");
            }
        }
        let _ = writeln!(text, "  return F({});\n}}", list(self.limbs, |i| format!("r{i}")));
        text
    }

    /// The frame of multiplication around `row`, which adds a0 · b to t and reduces one limb.
    fn mul(&self, row: &str) -> String {
        let n = self.limbs;
        let mut text = String::from("fn f_mul(a: F, b: F) -> F {\n");
        for i in 0..n {
            let _ = writeln!(text, "  var a{i} = a.l{i};\n  var t{i} = 0u;");
        }
        let rotate = (1..n).map(|i| format!("a{} = a{i};", i - 1)).collect::<Vec<_>>().join(" ");
        let limbs = list(n, |i| format!("t{i}"));
        let _ = write!(
            text,
            "  var top = 0u;\n  for (var i = 0u; i < {n}u; i++) {{\n{row}    {rotate}\n  }}\n\
             \x20 return f_reduce(F({limbs}), top);\n}}\n"
        );
        text
    }

    /// Whether limb i of the modulus times m = −s needs no product, where s is the limb that is made zero. If p0 = 1,
    /// m·p0 + s is 2^32 unless s = 0. If p1 = 2^32 − 1 as well, the words of m·p1 = 2^32·m − m are s and ¬s, unless s =
    /// 0.
    fn is_known(&self, i: usize) -> bool {
        self.constants.modulus[0] == 1 && (i == 0 || i == 1 && self.constants.modulus[1] == u32::MAX)
    }

    fn mul_u64(&self) -> String {
        let n = self.limbs;
        let (p, n0) = (&self.constants.modulus, self.constants.n0);
        let low = match self.is_known(0) {
            true => "u64(u32(s != 0u))".to_owned(),
            false => format!("(m * u64({}u) + u64(s)) >> 32u", p[0]),
        };
        let mut row = format!(
            "    let ai = u64(a0);\n    var r = ai * u64(b.l0) + u64(t0);\n    var c = r >> 32u;\n\
             \x20   let s = u32(r);\n    let m = u64(s * {n0}u);\n    var d = {low};\n    var q = 0lu;\n",
        );
        for (i, &limb) in p.iter().enumerate().skip(1) {
            let product = match self.is_known(i) {
                true => "((u64(select(0u, ~s, s != 0u)) << 32u) | u64(s))".to_owned(),
                false => format!("m * u64({limb}u)"),
            };
            let _ = write!(
                row,
                "    r = ai * u64(b.l{i}) + u64(t{i}) + c; c = r >> 32u;\n\
                 \x20   q = {product} + u64(u32(r)) + d; d = q >> 32u; t{} = u32(q);\n",
                i - 1,
            );
        }
        row += &if self.constants.full {
            format!("    let h = c + d + u64(top); t{} = u32(h); top = u32(h >> 32u);\n", n - 1)
        } else {
            format!("    t{} = u32(c) + u32(d);\n", n - 1)
        };
        self.mul(&row)
    }

    fn mul_u32(&self) -> String {
        let n = self.limbs;
        let (p, n0) = (&self.constants.modulus, self.constants.n0);
        let mut row = format!(
            "    var r = f_mac(a0, b.l0, t0, 0u);\n    var c = r.y;\n    let m = r.x * {n0}u;\n\
             \x20   var q = f_mac(m, {}u, r.x, 0u);\n    var d = q.y;\n",
            p[0],
        );
        for (i, p) in p.iter().enumerate().skip(1) {
            let _ = write!(
                row,
                "    r = f_mac(a0, b.l{i}, t{i}, c); c = r.y;\n    q = f_mac(m, {}u, r.x, d); d = q.y; t{} = q.x;\n",
                p,
                i - 1,
            );
        }
        row += &if self.constants.full {
            format!("    let h = c + d; let g = h + top; t{} = g; top = u32(h < c) + u32(g < h);\n", n - 1)
        } else {
            format!("    t{} = c + d;\n", n - 1)
        };
        F_MAC.to_owned() + &self.mul(&row)
    }
}

/// `f_mac(a, b, c, d)` in WGSL without 64-bit integers, by halves of 16 bits. It is a · b + c + d as (low, high), a sum
/// below 2^64.
pub const F_MAC: &str = "\
fn f_mac(a: u32, b: u32, c: u32, d: u32) -> vec2<u32> {
  let al = a & 0xffffu; let ah = a >> 16u;
  let bl = b & 0xffffu; let bh = b >> 16u;
  let ll = al * bl; let lh = al * bh; let hl = ah * bl;
  let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
  let high = ah * bh + (lh >> 16u) + (hl >> 16u) + (mid >> 16u);
  let low = (ll & 0xffffu) | (mid << 16u);
  let s = low + c;
  let t = s + d;
  return vec2<u32>(t, high + u32(s < c) + u32(t < d));
}
";
