//! The first page shows the program that runs as the documentation test of `evariste`.

fn program(text: &str) -> Option<&str> {
    text.split_once("```rust\n")?.1.split_once("```").map(|(program, _)| program)
}

#[test]
fn the_first_page_shows_the_program_that_is_tested() {
    let shown = program(include_str!("../../README.md"));
    assert!(shown.is_some_and(|shown| shown.contains("Device::best()")));
    assert_eq!(shown, program(include_str!("../../crates/evariste/README.md")));
}
