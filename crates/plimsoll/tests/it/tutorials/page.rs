//! A tutorial as steps that a test can take, in the order of the page.
//!
//! A comment on the last line before a block marks its kind, unless it holds commands:
//!
//! | mark | the block |
//! |---|---|
//! | `<!-- file: NAME -->` | is the content of a file |
//! | `<!-- terminal: COMMAND -->` | are lines that the server started by a command of that beginning prints by now |
//! | `<!-- eventually -->` | has commands that are run until they print this |
//! | `<!-- not run: REASON -->` | is not for the test |
//!
//! `<!-- stop: COMMAND -->` alone, between blocks, is Ctrl-C in the terminal of that server.

/// What a reader does next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Saves a file.
    File { name: String, content: String },
    /// Types a command; these lines appear.
    Command {
        text: String,
        prints: Vec<String>,
        is_repeated: bool,
    },
    /// Looks at the terminal of a server.
    Terminal {
        command: String,
        prints: Vec<String>,
    },
    /// Presses Ctrl-C in the terminal of a server.
    Stop { command: String },
}

/// The steps of a page, each with the number of its line.
pub(super) fn steps(text: &str) -> Vec<(usize, Step)> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    let mut mark = String::new();
    while let Some((at, line)) = lines.next() {
        if let Some(command) = marked(line, "stop") {
            steps.push((at + 1, Step::Stop { command }));
        }
        if !line.starts_with("```") {
            line.clone_into(&mut mark);
            continue;
        }
        let block: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.starts_with("```"))
            .collect();
        if let Some(name) = marked(&mark, "file") {
            let content = block.join("\n") + "\n";
            steps.push((at + 1, Step::File { name, content }));
        } else if let Some(command) = marked(&mark, "terminal") {
            let prints = block.iter().map(|line| (*line).to_owned()).collect();
            steps.push((at + 1, Step::Terminal { command, prints }));
        } else if marked(&mark, "not run").is_none() {
            let commands = commands(&block, mark.starts_with("<!-- eventually"));
            steps.extend(commands.into_iter().map(|(below, it)| (at + 2 + below, it)));
        }
        mark.clear();
    }
    steps
}

/// The value of `<!-- KEY: VALUE -->`.
fn marked(line: &str, key: &str) -> Option<String> {
    let rest = line.strip_prefix("<!-- ")?.strip_prefix(key)?;
    let value = rest.strip_prefix(": ")?.strip_suffix(" -->")?;
    Some(value.to_owned())
}

/// The commands of a block, each with its line in it: `$ …`, continued by `\` at the end.
fn commands(block: &[&str], is_repeated: bool) -> Vec<(usize, Step)> {
    let mut found: Vec<(usize, String, Vec<String>)> = Vec::new();
    let mut continues = false;
    for (at, line) in block.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((at, command.to_owned(), Vec::new()));
            continues = line.ends_with('\\');
        } else if let Some((_, text, prints)) = found.last_mut() {
            if continues {
                text.push('\n');
                text.push_str(line);
                continues = line.ends_with('\\');
            } else {
                prints.push((*line).to_owned());
            }
        }
    }
    let step = |(at, text, prints)| {
        let step = Step::Command {
            text,
            prints,
            is_repeated,
        };
        (at, step)
    };
    found.into_iter().map(step).collect()
}

#[test]
fn a_page_is_read_in_steps() {
    let page = "# A\n\n<!-- not run: r -->\n```\n$ no\n```\n\n<!-- file: a/b.toml -->\n```toml\na = 1\n```\ntext\n```\n$ one \\\n  more\nout\n$ two\n```\n\
        <!-- stop: plimsoll mock -->\n\n<!-- terminal: plimsoll monitor -->\n```\nnote\n```\n<!-- eventually -->\n```\n$ three\nx\n```\n";
    let command = |text: &str, prints: &[&str], is_repeated| Step::Command {
        text: text.to_owned(),
        prints: prints.iter().map(|line| (*line).to_owned()).collect(),
        is_repeated,
    };
    let expected = [
        (
            9,
            Step::File {
                name: "a/b.toml".to_owned(),
                content: "a = 1\n".to_owned(),
            },
        ),
        (14, command("one \\\n  more", &["out"], false)),
        (17, command("two", &[], false)),
        (
            19,
            Step::Stop {
                command: "plimsoll mock".to_owned(),
            },
        ),
        (
            22,
            Step::Terminal {
                command: "plimsoll monitor".to_owned(),
                prints: vec!["note".to_owned()],
            },
        ),
        (27, command("three", &["x"], true)),
    ];
    assert_eq!(steps(page), expected);
}
