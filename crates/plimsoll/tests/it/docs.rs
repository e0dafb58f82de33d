//! The commands of README.md and docs/: each `$ plimsoll …` line of a fenced block runs here, in the order of its page, or has
//! `<!-- not run: REASON -->` on the line before its block.
//!
//! The addresses, process ids and durations of the pages are replaced by those of the test. That all other commands of the
//! pages have valid flags is a test of the command line (`src/docs.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plimsoll::{command, plimsoll, run};
use crate::served::Served;

pub(crate) const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// One `$ …` line with its continuations.
#[derive(Debug)]
struct Example {
    page: String,
    line: usize,
    text: String,
}

/// The pages that have commands, README.md first.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(Path::new(WORKSPACE).join("docs")).unwrap();
    let mut pages: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|it| it == "md"));
    pages.sort();
    pages.insert(0, Path::new(WORKSPACE).join("README.md"));
    pages
}

/// The commands of a page's fenced blocks that are to run.
fn examples(page: &Path) -> Vec<Example> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.file_name().unwrap().to_string_lossy().into_owned();
    let (mut found, mut in_block, mut is_run) = (Vec::<Example>::new(), false, true);
    let mut continues = false;
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block;
            if in_block {
                is_run = !before.starts_with("<!-- not run: ");
            }
            continues = false;
        } else if in_block && is_run {
            if continues {
                let example: &mut Example = found.last_mut().unwrap();
                example.text.push('\n');
                example.text.push_str(line);
                continues = line.ends_with('\\');
            } else if let Some(command) = line.strip_prefix("$ ") {
                let is_ours = command.split_whitespace().any(|word| word == "plimsoll");
                if is_ours {
                    found.push(Example {
                        page: name.clone(),
                        line: number + 1,
                        text: command.to_owned(),
                    });
                }
                continues = is_ours && line.ends_with('\\');
            }
        }
        before = line;
    }
    found
}

/// What the pages presume: a site in `public`, two results, the examples of the repository, and a server.
struct Surroundings {
    folder: tempfile::TempDir,
    server: Served,
}

impl Surroundings {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["public", "docs", ".local", ".config"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("public/index.html"), "<a href=\"a.html\">a</a>\n").unwrap();
        fs::write(at("public/a.html"), "a\n").unwrap();
        for name in ["examples", "docs/examples"] {
            let from = Path::new(WORKSPACE).join(name).canonicalize().unwrap();
            std::os::unix::fs::symlink(from, at(name)).unwrap();
        }
        for name in [
            ".local/share/bash-completion/completions",
            ".config/fish/completions",
            ".zfunc",
        ] {
            fs::create_dir_all(at(name)).unwrap();
        }
        // Whatever path a page uses is there.
        let rules = r#"
[[rules]]
when.request.url_path = { op = "starts_with", value = "/" }
respond.text = "{}"
"#;
        fs::write(at("server.toml"), rules).unwrap();
        let rules = at("server.toml").to_string_lossy().into_owned();
        let server = Served::start(&["mock", &rules, "--listen", "127.0.0.1:0"]);
        for name in ["before", "after"] {
            let out = at(name).to_string_lossy().into_owned();
            plimsoll(&["load", &server.url, "-n", "50", "-c", "2", "--out", &out]).exits(0);
        }
        Self { folder, server }
    }

    /// A command as this test can run it: here, and in a moment.
    fn adapt(&self, text: &str, serves: bool) -> String {
        let address = self.server.url.trim_start_matches("http://");
        let address = address.trim_end_matches('/');
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            let replaced = match words[at - 1].as_str() {
                "-z" => "300ms",
                "--warm-up" => "0s",
                "--pid" => &self.server.child.id().to_string(),
                "-c" => "4",
                "--listen" | "--admin" => "127.0.0.1:0",
                _ => continue,
            };
            words[at] = String::from(replaced);
        }
        // What a busy machine cannot promise is no matter of the page.
        let text = words
            .join(" ")
            .replace("latency:p(99)<5ms", "latency:p(99)<60s")
            .replace("plimsoll chaos ", "plimsoll chaos --max-p99 60s ");
        if !serves {
            let text = text.replace("127.0.0.1:8080", address);
            return text.replace("127.0.0.1:18097", address);
        }
        let listen = if text.contains("--listen") || text.contains(" up ") {
            ""
        } else {
            " --listen 127.0.0.1:0"
        };
        format!("exec {text}{listen}")
    }
}

/// A shell that finds the program, without the user's variables, with its own home directory.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell finds its own programs where this process does"
)]
pub(crate) fn shell(text: &str, home: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    // The variables that `command` takes away are the user's; so is the home directory.
    for (name, value) in command(&[]).get_envs() {
        if value.is_none() {
            shell.env_remove(name);
        }
    }
    for role in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{role}_NAME"), "a reader");
        shell.env(format!("GIT_{role}_EMAIL"), "reader@example.org");
    }
    shell
        .args(["-c", text])
        .current_dir(home)
        .env("HOME", home)
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        );
    shell
}

/// Whether the command serves until it is ended.
pub(crate) fn serves(text: &str) -> bool {
    let mut words = text.split_whitespace().skip_while(|it| *it != "plimsoll");
    let (name, next) = (words.nth(1), words.next());
    let ends = [
        "import",
        "get",
        "set",
        "validate",
        "match-test",
        "list",
        "token",
        "incident",
    ];
    matches!(name, Some("mock" | "serve" | "gateway" | "up" | "monitor"))
        && !next.is_some_and(|next| ends.contains(&next))
        && !["--print-config", "--check", "--init"]
            .iter()
            .any(|flag| text.contains(flag))
}

#[test]
fn commands_of_the_docs_run() {
    let mut count = 0;
    for page in pages() {
        let examples = examples(&page);
        if examples.is_empty() {
            continue;
        }
        let surroundings = Surroundings::new();
        for Example { page, line, text } in examples {
            let serves = serves(&text);
            let adapted = surroundings.adapt(&text, serves);
            if serves {
                // The port of a file is the reader's; another program may have it here.
                let plan = surroundings.folder.path().join("plimsoll.toml");
                if let Ok(text) = fs::read_to_string(&plan) {
                    fs::write(&plan, text.replace(":8080", ":0").replace(":9090", ":0")).unwrap();
                }
                drop(Served::start_program(&mut shell(
                    &adapted,
                    surroundings.folder.path(),
                )));
            } else {
                let output = run(&mut shell(&adapted, surroundings.folder.path()));
                assert_eq!(output.code, Some(0), "{page}:{line}: {adapted}\n{output}");
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count} commands were found");
}
