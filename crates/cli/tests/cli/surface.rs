//! Help, devices and completions.

use crate::program::Folder;

#[test]
fn help_lists_commands_and_exit_codes() {
    let folder = Folder::new("help");
    let run = folder.run(&["--help"]);
    run.expect(0, &[]);
    for text in ["demo", "prove", "verify", "setup", "encrypt", "decrypt", "bench", "devices", "Exit codes:"] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    for command in ["prove", "verify", "encrypt", "decrypt"] {
        assert!(folder.run(&[command, "--help"]).out.contains("Exit codes:"), "{command}");
    }
    folder.run(&["--version"]).expect(0, &[]);
}

#[test]
fn wrong_arguments_exit_with_2() {
    let folder = Folder::new("usage");
    for arguments in [
        &[][..],
        &["what"],
        &["prove"],
        &["prove", "--zkey", "k"],
        &["prove", "--zkey", "k", "--wtns", "w", "--tables", "much"],
        &["prove", "--zkey", "k", "--wtns", "w", "--device", "abacus"],
        &["prove", "--zkey", "k", "--wtns", "w", "--check", "full", "--trusted"],
        &["prove", "--zkey", "k", "--wtns", "w", "--out-dir", "o", "--proof", "p"],
        &["prove", "--zkey", "k", "--wtns", "w", "x"],
        &["prove", "--zkey", "k", "--wtns", "w", "--proof", "same", "--public", "same"],
        &["prove", "--zkey", "k", "--wtns", "a/w.wtns", "b/w.wtns", "--out-dir", "o"],
        &["bench"],
        &["bench", "--zkey", "k"],
        &["bench", "--log-size", "1"],
        &["encrypt", "in", "out"],
        &["decrypt", "--key", "00", "in", "out"],
        &["completions", "tcl"],
    ] {
        folder.run(arguments).expect(2, &[]);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn devices_have_the_cpu() {
    let folder = Folder::new("devices");
    assert!(folder.run(&["devices"]).out.lines().any(|line| line.starts_with("cpu ")));
    let json = folder.run(&["devices", "--json"]).json();
    assert_eq!(json["devices"][0]["device"], "cpu");
    assert!(json["devices"][0]["parallelism"].as_u64().is_some_and(|threads| threads > 0));
    assert_eq!(json["exit_code"], 0);
}

#[test]
fn every_shell_has_completions() {
    let folder = Folder::new("completions");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = folder.run(&["completions", shell]);
        run.expect(0, &[]);
        assert!(run.out.contains("evariste") && run.out.contains("zkey"), "{shell}: {}", run.out);
    }
}

#[test]
fn a_missing_device_exits_with_5() {
    let folder = Folder::new("missing");
    folder.run(&["demo", "--device", "cuda:99"]).expect(5, &["--device cuda:99"]);
    let json = folder.run(&["demo", "--device", "cuda:99", "--json"]).json();
    assert_eq!(json["exit_code"], 5);
    assert!(json["error"].as_str().is_some_and(|error| error.contains("--device cuda:99")));
}
