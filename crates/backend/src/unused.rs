//! Kernels' texts without the functions that they do not call.
//!
//! A field brings some forty functions, of which a kernel calls five. Compilers read all of them: a host's compiler spent
//! three quarters of its time on that.

use std::collections::{HashMap, HashSet};

/// Returns `text`, CUDA C++, without functions that nothing in it calls. Other lines keep their numbers.
///
/// A function is `__device__`, or a template of one, starts in the first column, and ends with a brace there or with its
/// first line. A function stays if a line outside of functions names it, or a function that stays. So overloads stay
/// or go together. Operators stay, and so does all of a text that pastes names together (`##`).
pub fn without_unused_functions(text: &str) -> String {
    if text.contains("##") {
        return text.to_owned();
    }
    let blocks = blocks(text);
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(name) = block.function {
            by_name.entry(name).or_default().push(i);
        }
    }
    let mut called: HashSet<&str> = HashSet::new();
    let mut unread: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].function.is_none()).collect();
    while let Some(i) = unread.pop() {
        for word in words(blocks[i].text) {
            if let Some((name, functions)) = by_name.get_key_value(word)
                && called.insert(name)
            {
                unread.extend(functions);
            }
        }
    }
    let mut kept = String::with_capacity(text.len());
    for block in &blocks {
        match block.function {
            Some(name) if !called.contains(name) => kept.extend(block.text.matches('\n')),
            _ => kept.push_str(block.text),
        }
    }
    kept
}

/// What may stand before a function's name, with parentheses.
const ATTRIBUTES: [&str; 4] = ["__launch_bounds__", "__attribute__", "decltype", "alignas"];

/// Some lines of a text.
struct Block<'a> {
    text: &'a str,
    /// The name of the function that they define. Without one, they stay.
    function: Option<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut continued = false;
    while at < text.len() {
        let line = line_at(text, at);
        let function = if continued { None } else { definition(&text[at..]) };
        continued = line.trim_end().ends_with('\\');
        let Some((name, len)) = function else {
            at += line.len();
            continue;
        };
        blocks.push(Block { text: &text[start..at], function: None });
        blocks.push(Block { text: &text[at..at + len], function: Some(name) });
        at += len;
        start = at;
    }
    blocks.push(Block { text: &text[start..], function: None });
    blocks
}

/// The line that starts at a place, with its end.
fn line_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.find('\n').map_or(rest.len(), |end| end + 1)]
}

/// The name of the function whose definition `text` starts with, and the length of its lines.
fn definition(text: &str) -> Option<(&str, usize)> {
    let mut head = 0;
    if text.starts_with("template") {
        head = line_at(text, 0).len();
    }
    let signature = line_at(text, head);
    if !signature.starts_with("__device__") {
        return None;
    }
    let before = &signature[..signature.find('(')?];
    let name = words(before).last()?;
    // Operators are called without their names. An attribute has parentheses of its own.
    let is_plain = before.ends_with(name) && !ATTRIBUTES.contains(&name);
    if !is_plain || words(before).any(|word| word == "operator") {
        return None;
    }
    let first = signature.trim_end();
    if first.ends_with(';') {
        return None;
    }
    let mut len = head + signature.len();
    if first.ends_with('}') {
        return Some((name, len));
    }
    while len < text.len() {
        let line = line_at(text, len);
        len += line.len();
        match line.trim_end() {
            "}" if is_balanced(&text[..len]) => return Some((name, len)),
            "}" => return None,
            // Something else starts: this was no definition.
            other if other.starts_with("__device__") || other.starts_with("extern") => return None,
            _ => (),
        }
    }
    None
}

/// Whether the conditions of the preprocessor that start in a text also end there.
fn is_balanced(text: &str) -> bool {
    let lines = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
    lines("#if") == lines("#endif")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::without_unused_functions;

    const TEXT: &str = "\
#define CALL(x) by_macro(x)
__device__ uint32_t constant[2] = { f(1), 2 };
__device__ F declared(F x);
// Used by another.
__device__ __forceinline__ F inner(const F& a) {
    if (a.l[0]) {
    }
    return a;
}
template <typename T>
__device__ F outer(T a) {
    return inner(a);
}
__device__ F unused(F a) { return outer(a) + also_unused(a); }
__device__ F also_unused(F a,
                         F b) {
    return unused(a);
}
template <typename T>
__device__ F never(T a) {
    return a;
}
__device__ F by_macro(F a) { return a; }
__device__ inline F operator^(const F& a, const F& b) { return in_operator(a); }
__device__ F in_operator(F a) {
    return a;
}
__device__ __launch_bounds__(64) F with_attribute(F a) {
    return a;
}
#if SOME
__device__ F in_two_ways(F a) {
    return a;
#else
__device__ F in_two_ways(F b) {
    return b;
#endif
}
#define LONG \\
__device__ F in_macro(F a) { return a; }
#if SOME
__device__ F overloaded(F a) { return a; }
#endif
__device__ F overloaded(F a, F b) {
    return a;
}
__device__ F declared(F x) {
    return x;
}
extern \"C\" __global__ void kernel(F* out) {
    out[0] = outer(overloaded(out[1], CALL(out[2])));
}
";

    #[test]
    fn functions_that_nothing_calls_go_and_lines_keep_their_numbers() {
        let kept = without_unused_functions(TEXT);
        for name in ["unused(F", "also_unused(F", "never(T"] {
            assert!(!kept.contains(&format!(" {name}")), "{name} stays");
        }
        let stay = [
            "operator^(const F& a",
            "in_operator(F a) {",
            "with_attribute(F a)",
            "in_two_ways(F a)",
            "in_two_ways(F b)",
            "inner(const F& a)",
            "outer(T a)",
            "by_macro(F a)",
            "in_macro",
            "overloaded(F a)",
            "overloaded(F a, F b)",
        ];
        for name in stay.into_iter().chain(["constant[2]", "declared(F x);", "declared(F x) {"]) {
            assert!(kept.contains(name), "{name} goes");
        }
        let numbered = |text: &str, part: &str| text.lines().position(|line| line.contains(part));
        for part in ["CALL(x)", "extern \"C\"", "CALL(out[2])"] {
            assert_eq!(numbered(&kept, part), numbered(TEXT, part), "{part}");
        }
        assert_eq!(kept.lines().count(), TEXT.lines().count());
        assert_eq!(without_unused_functions(&kept), kept);
    }

    #[test]
    fn texts_without_functions_stay() {
        let pasted = "#define OP(n) f_##n(1)\n__device__ F f_add(F a) { return a; }\n";
        for text in [
            pasted,
            "",
            "\n",
            "x",
            "__device__",
            "__device__ F f(",
            "__device__ F f(F a) {\n",
            "template <int I>",
            "é\n__device__\n",
        ] {
            assert_eq!(without_unused_functions(text), text, "{text}");
        }
    }
}
