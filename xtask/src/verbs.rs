//! That the trial of queues of other devices calls every verb: a function of a plan that takes memory of a device.

use std::{fs, path::Path};

/// Areas without plans of a crate of their own.
const WITHOUT_PLANS: [&str; 4] = ["device", "groth16", "process", "several"];

/// The types of memory of a device, or of what may be such memory, of which a verb takes one.
const MEMORY: [&str; 7] = ["View<", "ViewMut<", "Buffer<", "HostBuffer", "Vector<F>", "Scalars<", "&Digits<"];

/// Verbs of what takes no queue but that of the device it was made on.
const WITHOUT_QUEUE: [(&str, &str); 6] = [
    ("fri", "folded"),
    ("hash", "nodes"),
    ("hash", "values"),
    ("ntt", "fill"),
    ("ntt", "forward_part"),
    ("ntt", "inverse_part"),
];

#[test]
fn every_verb_is_called_on_a_queue_of_another_device() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let trials = root.join("crates/conformance/src/trials");
    let (mut count, mut missing) = (0, Vec::new());
    for area in areas(&trials) {
        let path = trials.join(&area).join("queues.rs");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let calls = plans(&text).unwrap_or_else(|| panic!("{} has no PLANS", path.display()));
        for verb in sources(&root.join("crates").join(&area).join("src")).iter().flat_map(|text| verbs(text)) {
            count += 1;
            if !calls.contains(&format!(".{verb}(")) && !WITHOUT_QUEUE.contains(&(&area, verb)) {
                missing.push(format!("{area}: {verb}"));
            }
        }
    }
    assert!(count > 100, "only {count} verbs were found");
    assert!(missing.is_empty(), "no trial calls these on a queue of another device:\n{}", missing.join("\n"));
}

#[test]
fn verbs_are_told_from_other_functions() {
    let text = "
    pub fn a<'x>(&self, x: impl Into<View<'x, u32>>) -> Result<()> {
    pub fn b(&mut self, data: &mut HostBuffer) {
    pub fn c(&self, len: usize) {
    pub fn d(x: View<'_, u32>) -> Self {
    pub(crate) fn e(&self, x: View<'_, u32>) {
    pub fn f(
        &self,
        len: usize,
        x: ViewMut<'_, u32>,
    ) -> Result<()>";
    assert_eq!(verbs(text), ["a", "b", "f"]);
}

/// The areas, by the files of trials.
fn areas(trials: &Path) -> Vec<String> {
    let files = fs::read_dir(trials).unwrap_or_else(|error| panic!("{}: {error}", trials.display()));
    let files = files.map(|entry| entry.expect("an entry of a folder").path());
    let names = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let names = names.map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    names.filter(|name| !WITHOUT_PLANS.contains(&name.as_str())).collect()
}

/// The part of a text that lists plans.
fn plans(text: &str) -> Option<&str> {
    let (_, plans) = text.split_once("const PLANS: &[Plan] = &[")?;
    plans.split("\n}").next()?.split("];\n\n").next()
}

/// The names of the public functions of plans in a text that take memory of a device.
fn verbs(text: &str) -> Vec<&str> {
    let functions = text.split("\n    pub fn ").skip(1);
    let verbs = functions.filter_map(|function| {
        let name = function.split(['<', '(']).next()?;
        let signature = function.split(" {\n").next()?.split(") -> Result").next()?;
        let takes = |parameter: &str| signature.contains(parameter);
        (takes("self") && MEMORY.into_iter().any(takes)).then_some(name)
    });
    verbs.collect()
}

/// The texts of a folder's sources, without its tests.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry of a folder").path();
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" || name == "reference" {
            continue;
        }
        if path.is_dir() {
            texts.extend(sources(&path));
        } else {
            texts.push(fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
    texts
}
