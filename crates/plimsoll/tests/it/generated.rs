//! What is generated from the flags: completion scripts and manual pages.

use crate::plimsoll::{files_in, plimsoll};

#[test]
fn every_shell_gets_a_script_with_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = plimsoll(&["completions", shell]).exits(0);
        for word in ["loadtest", "objective", "loadtest-origins"] {
            let is_there = output.stdout.contains(word);
            // Commands that plimsoll starts itself are not offered.
            assert_eq!(is_there, word != "loadtest-origins", "{shell} {word}");
        }
    }
}

#[test]
fn every_command_gets_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    plimsoll(&["man", pages.to_str().unwrap()]).exits(0);
    let files = files_in(&pages);
    for page in ["plimsoll.1", "plimsoll-load.1", "plimsoll-mock-import.1"] {
        let is_there = files.iter().any(|it| it == page);
        assert_eq!(is_there, page != "plimsoll-mock-import.1", "{files:?}");
    }
    let load = std::fs::read_to_string(pages.join("plimsoll-load.1")).unwrap();
    assert!(
        load.contains(".TH plimsoll-load 1") && load.contains("\\-\\-threshold"),
        "{load}"
    );
    assert!(!files.iter().any(|it| it.contains("origin")), "{files:?}");
}

#[test]
fn the_page_of_the_program_is_printed() {
    let output = plimsoll(&["man"]).exits(0);
    assert!(output.stdout.contains(".TH plimsoll 1"), "{output}");
}
