//! The WGSL that a driver gets: a kernel's own text, and around it what the backend declares for it.
//!
//! A kernel's text has the entry point; it may rely on these names:
//!
//! - `THREADS: u32`, the size of a workgroup;
//! - the constants that [`constants!`](crate::constants) declared, if the kernel has any;
//! - `params: Params` with the fields that [`params!`](crate::params) declared, unless the kernel has none. It is an
//!   immediate (push constant) if the device has room for it, else a uniform. A struct of `u32` scalars has the same
//!   layout in both;
//! - for each binding `x`: `x_get(i: u32) -> W` and, where it is written, `x_set(i: u32, value: W)`; of atomics
//!   `x_max(i: u32, value: u32)` too.
//!
//! Allocations larger than one binding may be are made of chunks, and each chunk is a binding of its own. The accessors
//! choose by the high bits of `i`. If views start within the bound range, the accessors add the view's place to `i`.
//! These places are fields of `Params` ahead of the others. Workgroup memory starts uninitialised, as in CUDA.
//!
//! `enable`, `requires` and `diagnostic` directives must come first in WGSL. They may stand at the start of any line of
//! the text; the backend moves them to the top. `u64` needs none.

use std::fmt::Write;

use crate::{
    bindings::{Access, Binding, BindingType},
    params,
    spec::{KernelSpec, Language},
};

/// Where the parameters of a launch come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameters {
    /// Immediates, also called push constants.
    Immediate,
    /// A uniform buffer: group 1, binding 0.
    Uniform,
}

/// What the text depends on beside the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The kernel may use `u64`.
    pub int64: bool,
    /// Where the parameters come from.
    pub parameters: Parameters,
    /// How many chunks each binding has, in the order of the bindings; bindings beyond its end have one.
    pub chunks: &'a [u32],
    /// Bytes of a chunk, a power of two of at least 16. The last chunk of a binding may have fewer.
    pub chunk_bytes: u64,
    /// Before the parameters stand words, one for each binding: the number of its word that the kernel calls number 0.
    pub based: bool,
    /// One buffer is behind several bindings, and is written: so all bindings are for writing.
    pub shared: bool,
}

/// Returns the text of a kernel as most devices get it: parameters as immediates, every buffer in one chunk.
pub fn generate(spec: &KernelSpec, int64: bool) -> String {
    let (parameters, chunk_bytes) = (Parameters::Immediate, 1 << 30);
    generate_for(spec, &Layout { int64, parameters, chunks: &[], chunk_bytes, based: false, shared: false })
}

/// Returns the text of a kernel for a given layout.
pub fn generate_for(spec: &KernelSpec, layout: &Layout<'_>) -> String {
    let source = spec.source(Language::Wgsl { int64: layout.int64 });
    let (directives, body): (Vec<_>, Vec<_>) = source.lines().partition(|line| is_directive(line));
    let mut text = String::with_capacity(source.len() + 1024);
    for line in directives.iter().map(|line| line.trim()) {
        push(&mut text, format_args!("{line}"));
    }
    push(&mut text, format_args!("const THREADS: u32 = {}u;", spec.threads));
    if !spec.constants.is_empty() {
        push(&mut text, format_args!("{}", params::wgsl_constants(&spec.constants).trim_end()));
    }
    if !spec.params.is_empty() || layout.based {
        let bases = spec.bindings.iter().filter(|_| layout.based).map(|binding| base(binding) + ": u32, ");
        let fields = bases.collect::<String>() + &params::wgsl(spec.params);
        push(&mut text, format_args!("struct Params {{ {fields}}}"));
        push(
            &mut text,
            match layout.parameters {
                Parameters::Immediate => format_args!("var<immediate> params: Params;"),
                Parameters::Uniform => format_args!("@group(1) @binding(0) var<uniform> params: Params;"),
            },
        );
    }
    let mut first = 0;
    for (index, binding) in spec.bindings.iter().enumerate() {
        let count = layout.chunks.get(index).copied().unwrap_or(1).max(1);
        declare(&mut text, binding, first, count, layout);
        first += count;
    }
    for line in body {
        push(&mut text, format_args!("{line}"));
    }
    text
}

/// The field that says where the view of a binding starts.
fn base(binding: &Binding) -> String {
    format!("{}_base", binding.name)
}

fn is_directive(line: &str) -> bool {
    let line = line.trim();
    let (word, _) = line.split_once(|c: char| !c.is_ascii_alphabetic()).unwrap_or((line, ""));
    line.ends_with(';') && matches!(word, "enable" | "requires" | "diagnostic")
}

/// The chunks of one binding, from binding number `first` on, and its accessors.
fn declare(text: &mut String, binding: &Binding, first: u32, count: u32, layout: &Layout<'_>) {
    let name = binding.name;
    let i = if layout.based { format!("(i + params.{})", base(binding)) } else { "i".into() };
    let word = match binding.binding_type {
        BindingType::U32 | BindingType::Atomic => "u32",
        BindingType::Vec2 => "vec2<u32>",
        BindingType::Vec4 | BindingType::Bytes => "vec4<u32>",
    };
    let is_atomic = binding.binding_type == BindingType::Atomic;
    let stored = if is_atomic { "atomic<u32>" } else { word };
    let access = match binding.access {
        Access::Read if !layout.shared => "read",
        Access::Read | Access::Write => "read_write",
    };
    for chunk in 0..count {
        let number = first + chunk;
        push(
            text,
            format_args!("@group(0) @binding({number}) var<storage, {access}> {name}_chunk{chunk}: array<{stored}>;"),
        );
    }
    let load = |place: String| if is_atomic { format!("atomicLoad(&{place})") } else { place };
    let store = |place: String| match is_atomic {
        true => format!("atomicStore(&{place}, value);"),
        false => format!("{place} = value;"),
    };
    let max = |place: String| format!("atomicMax(&{place}, value);");
    let mut writers: Vec<(&str, &dyn Fn(String) -> String)> = Vec::new();
    if binding.access == Access::Write {
        writers.push(("set", &store));
    }
    if is_atomic {
        writers.push(("max", &max));
    }
    if count == 1 {
        let place = format!("{name}_chunk0[{i}]");
        push(text, format_args!("fn {name}_get(i: u32) -> {word} {{ return {}; }}", load(place.clone())));
        for (suffix, write) in writers {
            push(text, format_args!("fn {name}_{suffix}(i: u32, value: {word}) {{ {} }}", write(place.clone())));
        }
        return;
    }
    let words = (layout.chunk_bytes / binding.binding_type.bytes()).max(1);
    let (shift, mask) = (words.ilog2(), words - 1);
    let cases = |case: &dyn Fn(String) -> String| -> String {
        let case = |chunk: u32| case(format!("{name}_chunk{chunk}[at]"));
        let others: String = (1..count).map(|chunk| format!("    case {chunk}u: {{ {} }}\n", case(chunk))).collect();
        format!("  switch {i} >> {shift}u {{\n{others}    default: {{ {} }}\n  }}", case(0))
    };
    let get = cases(&|place| format!("value = {};", load(place)));
    push(
        text,
        format_args!(
            "fn {name}_get(i: u32) -> {word} {{\n  let at = {i} & {mask}u;\n  var value: {word};\n{get}\n  return value;\n}}"
        ),
    );
    for (suffix, write) in writers {
        let set = cases(write);
        push(text, format_args!("fn {name}_{suffix}(i: u32, value: {word}) {{\n  let at = {i} & {mask}u;\n{set}\n}}"));
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "{line}");
    debug_assert!(written.is_ok(), "writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        struct One {
            n: u32,
        }
    }

    fn spec() -> KernelSpec {
        let bindings = vec![Binding::read("x", BindingType::Vec4), Binding::write("y", BindingType::U32)];
        let source = |_| "enable f16;\nconst N = 1u;\n  diagnostic(off, derivative_uniformity);\nfn k() {}".into();
        KernelSpec::new::<One, _>("k", "", bindings, |_, _| {}, source).threads(64)
    }

    #[test]
    fn directives_come_first_and_the_rest_keeps_its_order() {
        let text = generate(&spec(), false);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["enable f16;", "diagnostic(off, derivative_uniformity);", "const THREADS: u32 = 64u;"]);
        assert_eq!(lines[lines.len() - 2..], ["const N = 1u;", "fn k() {}"]);
        assert!(text.contains("struct Params { n: u32, }\nvar<immediate> params: Params;"));
    }

    #[test]
    fn read_only_bindings_have_no_setter() {
        let text = generate(&spec(), false);
        assert!(text.contains("fn x_get(i: u32) -> vec4<u32> { return x_chunk0[i]; }"));
        assert!(!text.contains("x_set") && text.contains("fn y_set(i: u32, value: u32)"));
    }

    #[test]
    fn atomics_are_loaded_and_stored_as_such() {
        let bindings = vec![Binding::write("x", BindingType::Atomic)];
        let spec = KernelSpec::new::<One, _>("k", "", bindings, |_, _| {}, |_| String::new());
        let text = generate(&spec, false);
        assert!(text.contains("var<storage, read_write> x_chunk0: array<atomic<u32>>;"));
        assert!(text.contains("fn x_get(i: u32) -> u32 { return atomicLoad(&x_chunk0[i]); }"));
        assert!(text.contains("fn x_max(i: u32, value: u32) { atomicMax(&x_chunk0[i], value); }"));
        let (parameters, chunks) = (Parameters::Uniform, &[2]);
        let layout = Layout { int64: false, parameters, chunks, chunk_bytes: 1 << 10, based: false, shared: false };
        let text = generate_for(&spec, &layout);
        assert!(text.contains("case 1u: { value = atomicLoad(&x_chunk1[at]); }"));
        assert!(text.contains("case 1u: { atomicStore(&x_chunk1[at], value); }"));
        assert!(text.contains("case 1u: { atomicMax(&x_chunk1[at], value); }"));
    }

    #[test]
    fn chunks_are_chosen_by_the_high_bits() {
        let (parameters, chunks) = (Parameters::Uniform, &[2, 3]);
        let layout = Layout { int64: false, parameters, chunks, chunk_bytes: 1 << 10, based: false, shared: false };
        let text = generate_for(&spec(), &layout);
        assert!(text.contains("@group(1) @binding(0) var<uniform> params: Params;"));
        assert!(text.contains("@binding(1) var<storage, read> x_chunk1: array<vec4<u32>>;"));
        assert!(text.contains("@binding(4) var<storage, read_write> y_chunk2: array<u32>;"));
        assert!(text.contains("switch i >> 6u") && text.contains("let at = i & 63u;"), "64 vec4 in a KiB");
        assert!(text.contains("switch i >> 8u") && text.contains("let at = i & 255u;"), "256 u32 in a KiB");
        assert!(text.contains("case 2u: { y_chunk2[at] = value; }"));
    }
}
