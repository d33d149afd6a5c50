//! The permutation of a thread in WGSL: straight-line text on named elements, since arrays that are indexed by variables are
//! slow.

use evariste_backend::author::{Access, Binding};
use evariste_field::{DeviceField, source};

/// `power`, the S-box after the addition of a constant, and `p_mul`, after the arithmetic of the field.
pub(super) fn power<F: DeviceField>(alpha: u32, int64: bool) -> String {
    let power = match alpha {
        3 => "p_mul(p_mul(y, y), y)",
        5 => "p_mul(p_mul(p_mul(y, y), p_mul(y, y)), y)",
        _ => "p_mul(p_mul(y2, y2), p_mul(y2, y))",
    };
    let square = if alpha == 7 { "  let y2 = p_mul(y, y);\n" } else { "" };
    product::<F>(int64)
        + &format!("fn power(x: F, c: F) -> F {{\n  let y = f_add(x, c);\n{square}  return {power};\n}}\n")
}

/// The text of the permutation, after the arithmetic of the field and the accessors of `constants`.
pub(super) fn permutation<F: DeviceField>(width: usize, alpha: u32, int64: bool) -> String {
    let all = |element: &dyn Fn(usize) -> String| list(width, element);
    let fields = all(&|i| format!("s{i}: F"));
    let full = all(&|i| format!("power(a.s{i}, constants_load(at + {i}u))"));
    let sum = (1..width).fold("x".to_owned(), |sum, i| format!("f_add({sum}, a.s{i})"));
    let partial = all(&|i| {
        let x = if i == 0 { "x".to_owned() } else { format!("a.s{i}") };
        format!("f_add(sum, p_mul({x}, constants_load(diagonal + {i}u)))")
    });
    format!(
        "{}struct State {{ {fields} }}\n\
         {}\
         fn full_round(a: State, at: u32) -> State {{\n  return mix(State({full}));\n}}\n\
         fn partial_round(a: State, diagonal: u32, at: u32) -> State {{\n\
         \x20 let x = power(a.s0, constants_load(at));\n  let sum = {sum};\n  return State({partial});\n}}\n\
         fn permute_state(a: State) -> State {{\n  var s = mix(a);\n  let rows = params.half * WIDTH;\n\
         \x20 for (var at = 0u; at < rows; at += WIDTH) {{ s = full_round(s, at); }}\n\
         \x20 let ones = 2u * rows + WIDTH;\n\
         \x20 for (var i = 0u; i < params.partial; i++) {{ s = partial_round(s, 2u * rows, ones + i); }}\n\
         \x20 for (var at = rows; at < 2u * rows; at += WIDTH) {{ s = full_round(s, at); }}\n  return s;\n}}\n",
        power::<F>(alpha, int64),
        mix(width),
    )
}

/// `p_mul`, the product of elements: without a loop over limbs where there is one.
fn product<F: DeviceField>(int64: bool) -> String {
    if !is_single::<F>() {
        return "fn p_mul(a: F, b: F) -> F { return f_mul(a, b); }\n".to_owned();
    }
    let (modulus, n0) = (modulus::<F>(), negated_inverse(modulus::<F>()));
    let product = match int64 {
        true => format!(
            "  let t = u64(a.l0) * u64(b.l0);\n  let m = u32(t) * {n0}u;\n\
             \x20 let r = u32((t + u64(m) * u64({modulus}u)) >> 32u);\n"
        ),
        // The low words add up to 0, with a carry unless they are 0.
        false => format!(
            "  let t = f_mac(a.l0, b.l0, 0u, 0u);\n\
             \x20 let r = f_mac(t.x * {n0}u, {modulus}u, t.x, 0u).y + t.y;\n"
        ),
    };
    format!("fn p_mul(a: F, b: F) -> F {{\n{product}  return F(min(r, r - {modulus}u));\n}}\n")
}

/// Whether elements are one word below 2^31.
pub(super) fn is_single<F: DeviceField>() -> bool {
    F::LIMBS == 1 && F::tower().is_empty() && modulus::<F>() < 1 << 31
}

/// The lowest word of the modulus.
fn modulus<F: DeviceField>() -> u32 {
    use ark_ff::PrimeField;
    <F::BasePrimeField as PrimeField>::MODULUS.as_ref()[0] as u32
}

/// −1/p mod 2^32, by Newton's iteration.
fn negated_inverse(p: u32) -> u32 {
    (0..5).fold(1u32, |x, _| x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x)))).wrapping_neg()
}

/// `mix`: the matrix of full rounds.
fn mix(width: usize) -> String {
    let mut text = String::from("fn mix(a: State) -> State {\n");
    for i in (0..width).step_by(4) {
        let [x0, x1, x2, x3] = [0, 1, 2, 3].map(|k| format!("a.s{}", i + k));
        text += &format!(
            "  let a{i} = f_add({x0}, {x1});\n  let b{i} = f_add({x2}, {x3});\n  let c{i} = f_add(a{i}, b{i});\n\
             \x20 let d{i} = f_add(c{i}, {x1});\n  let e{i} = f_add(c{i}, {x3});\n\
             \x20 let m{} = f_add(d{i}, a{i});\n  let m{} = f_add(d{i}, f_add({x2}, {x2}));\n\
             \x20 let m{} = f_add(e{i}, b{i});\n  let m{} = f_add(e{i}, f_add({x0}, {x0}));\n",
            i,
            i + 1,
            i + 2,
            i + 3,
        );
    }
    for k in 0..4 {
        let sum = (k + 4..width).step_by(4).fold(format!("m{k}"), |sum, i| format!("f_add({sum}, m{i})"));
        text += &format!("  let t{k} = {sum};\n");
    }
    text + &format!("  return State({});\n}}\n", list(width, &|i| format!("f_add(m{i}, t{})", i % 4)))
}

/// `x_load_state(at)` and, for a binding that is written, `x_store_state(at, s)`.
pub(super) fn states(binding: &Binding, width: usize) -> String {
    let store = match binding.access {
        Access::Read => String::new(),
        Access::Write => store(binding.name, "state", width),
    };
    load(binding.name, "state", width, width) + &store
}

/// `x_load_digests(at)`: digests of so many elements, and zeros.
pub(super) fn children(binding: &Binding, width: usize, elements: usize) -> String {
    load(binding.name, "digests", elements, width)
}

/// `x_store_digest(at, s)`.
pub(super) fn digests(binding: &Binding, digest: usize) -> String {
    store(binding.name, "digest", digest)
}

fn load(name: &str, what: &str, count: usize, width: usize) -> String {
    let element = |i: usize| if i < count { format!("{name}_load(at + {i}u)") } else { "f_zero()".to_owned() };
    format!("fn {name}_load_{what}(at: u32) -> State {{\n  return State({});\n}}\n", list(width, &element))
}

fn store(name: &str, what: &str, count: usize) -> String {
    let lines: String = (0..count).map(|i| format!("  {name}_store(at + {i}u, s.s{i});\n")).collect();
    format!("fn {name}_store_{what}(at: u32, s: State) {{\n{lines}}}\n")
}

/// `absorb(s, row, base, columns)`: the elements base to base + RATE of a row, those of them that it has.
pub(super) fn absorb(rate: usize) -> String {
    let lines: String = (0..rate)
        .map(|k| {
            format!("  if (base + {k} >= 0 && base + {k} < columns) {{ s.s{k} = x_load(row + u32(base + {k})); }}\n")
        })
        .collect();
    format!(
        "fn absorb(a: State, row: u32, base: i32, columns: i32) -> State {{\n  var s = a;\n{lines}  return s;\n}}\n"
    )
}

/// `sponge_start` and `sponge_end` of `hash_rows`.
pub(super) fn sponge(width: usize, carried: bool) -> String {
    let zeros = list(width, &|_| "f_zero()".to_owned());
    let digest = "out_store_digest(i * params.stride * DIGEST, s);";
    let (start, end) = match carried {
        true => (
            "  if ((params.flags & FIRST) == 0u) { return states_load_state(i * WIDTH); }\n",
            format!("  if ((params.flags & LAST) != 0u) {{ {digest} }} else {{ states_store_state(i * WIDTH, s); }}\n"),
        ),
        false => ("", format!("  {digest}\n")),
    };
    format!(
        "fn sponge_start(i: u32) -> State {{\n{start}  return State({zeros});\n}}\n\
         fn sponge_end(i: u32, s: State) {{\n{end}}}\n"
    )
}

/// What `grind` needs: integers as elements, a state with such an element, and what is drawn from a state.
pub(super) fn candidates<F: DeviceField>(rate: usize) -> String {
    let [set, bits] = match F::LIMBS {
        1 => ["", ""],
        _ => ["  x.l1 = high;\n", " | (x.l1 & params.mask_1)"],
    };
    let elements: String = (0..rate).map(|k| format!("  if (params.position == {k}u) {{ s.s{k} = x; }}\n")).collect();
    format!(
        "fn integer(low: u32, high: u32) -> F {{\n  var x = f_zero();\n  x.l0 = low;\n{set}  return x;\n}}\n\
         fn with_element(a: State, x: F) -> State {{\n  var s = a;\n{elements}  return s;\n}}\n\
         fn last_of_rate(s: State) -> F {{ return s.s{}; }}\n\
         fn drawn_bits(x: F) -> u32 {{ return (x.l0 & params.mask_0){bits}; }}\n",
        rate - 1
    )
}

/// The bindings' accessors of elements.
pub(super) fn accessors<F: DeviceField>(bindings: &[Binding]) -> String {
    bindings.iter().map(source::wgsl_accessors::<F>).collect()
}

fn list(count: usize, element: &dyn Fn(usize) -> String) -> String {
    (0..count).map(element).collect::<Vec<_>>().join(", ")
}
