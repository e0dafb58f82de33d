//! Zero, and more than any machine can do, for every flag that takes a number: refused with a
//! message or harmless, and never a panic.

use std::process::{Output, Stdio};

use plimsoll_testkit::refused_address;

use crate::plimsoll::{CommandOutput, command, plimsoll};

/// The commands that have such flags, with operands that let each of them fail at once.
fn commands(url: &str) -> Vec<(&'static str, Vec<String>)> {
    let missing = "/nonexistent/plimsoll".to_owned();
    let url = url.to_owned();
    vec![
        ("load", vec![url.clone()]),
        ("check", vec![url.clone()]),
        ("compare", vec![url.clone(), url.clone()]),
        ("lab", vec![missing.clone()]),
        ("line", vec![url.clone()]),
        ("profile", vec![url.clone()]),
        ("chaos", vec!["slow-headers".to_owned(), url.clone()]),
        ("crawl", vec![url]),
        ("report", vec![missing.clone()]),
        ("pack", vec![missing.clone()]),
        ("serve", vec![missing.clone()]),
        ("mock", vec![missing.clone()]),
        ("up", vec![missing]),
    ]
}

/// The long flags of a command that take a number of something, with what they call it.
fn numeric_flags(name: &str) -> Vec<(String, String)> {
    const KINDS: [&str; 10] = [
        "N", "TIME", "RATE", "RATES", "SIZE", "S", "HZ", "PID", "PORT", "PERCENT",
    ];
    let help = plimsoll(&[name, "--help"]).exits(0).stdout;
    let mut flags = Vec::new();
    for line in help
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('-'))
    {
        let Some((_, name)) = line.split_once("--") else {
            continue;
        };
        let flag = format!("--{name}");
        let mut words = flag.split_whitespace();
        let (Some(flag), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        let kind = kind.trim_matches(['<', '>', '[', ']']);
        if KINDS.contains(&kind) {
            flags.push((flag.to_owned(), kind.to_owned()));
        }
    }
    flags
}

#[test]
fn no_number_makes_a_command_panic() {
    let url = format!("http://{}/", refused_address());
    let mut tried = 0;
    for (name, operands) in commands(&url) {
        let flags = numeric_flags(name);
        // Several at a time: each is a process.
        for some in flags.chunks(8) {
            let mut running = Vec::new();
            for (flag, kind) in some {
                for value in [
                    "0",
                    "18446744073709551615",
                    "1e400",
                    "99999999999999999999999d",
                ] {
                    let mut arguments = vec![name, flag.as_str(), value];
                    arguments.extend(operands.iter().map(String::as_str));
                    // What these need beside them to be looked at.
                    match flag.as_str() {
                        "--burst" => arguments.extend(["-q", "10"]),
                        "--burst-delay" => arguments.extend(["--burst", "2"]),
                        "--max-in-flight" => arguments.extend(["-q", "5"]),
                        "--streams" => arguments.push("--http2"),
                        _ => {}
                    }
                    let child = command(&arguments)
                        .stdout(Stdio::piped())
                        .stderr(Stdio::piped())
                        .spawn()
                        .unwrap();
                    running.push((format!("{name} {flag} {value} ({kind})"), child));
                }
            }
            for (what, child) in running {
                let output: Output = child.wait_with_output().unwrap();
                let output = CommandOutput::from_output(output);
                let is_fine =
                    matches!(output.code, Some(0..=3)) && !output.stderr.contains("panicked");
                assert!(is_fine, "{what}\n{output}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "only {tried} were found");
}

#[test]
fn zero_of_what_there_must_be_some_is_a_usage_error() {
    let url = format!("http://{}/", refused_address());
    for arguments in [
        "load -c 0",
        "load -n 0",
        "load -t 0",
        "load -p 0 --http2",
        "load -q 0",
        "load -z 0s",
        "load --timeout 0",
        "load -q 5 --max-in-flight 0",
        "load -q 5 --burst 0",
        "load --burst 2 --burst-delay 0s",
        "load --stages 10s:0",
        "load --stages 10s:1000000000000",
        "load -c 1000000 -p 100000 --http2",
        "line -c 0",
        "line --first 0",
        "line --window 0s",
        "line --rounds 0",
        "check --timeout 0",
        "compare --trials 0",
        "compare --seconds 0",
        "compare -c 0",
        "profile -z 0s",
        "chaos -c 0 slow-headers",
    ] {
        let mut words: Vec<&str> = arguments.split(' ').collect();
        words.push(&url);
        let output = plimsoll(&words).exits(2);
        assert!(
            output.stderr.starts_with("error: "),
            "{arguments}: {output}"
        );
    }
}
