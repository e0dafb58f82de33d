//! External commands, shown before they run.

use std::path::Path;
use std::process::Command;

use crate::{Failure, Outcome};

/// Runs `command` in `root` with the terminal as its output; fails unless it succeeds.
pub(crate) fn run(root: &Path, command: &mut Command) -> Outcome {
    println!("$ {}", shown(command));
    let status = command
        .current_dir(root)
        .status()
        .map_err(|error| cannot_run(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})", shown(command)).into())
    }
}

/// Runs `command` in `root`, shown only if `visible`, and returns what it wrote to standard output.
pub(crate) fn output(root: &Path, command: &mut Command) -> Result<String, Failure> {
    let output = command
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| cannot_run(command, &error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("`{}` failed ({})", shown(command), output.status).into())
    }
}

/// Cargo as the one that started us, so toolchains do not mix.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    // What cargo sets for this task are other values to build scripts than a cargo by hand
    // gives them, and they would run anew each time, with all that depends on them.
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// The command as one would type it, with the variables that were set for it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        // A search path is long and says little.
        let value = value.filter(|_| name != "PATH")?;
        Some(format!(
            "{}={}",
            name.display(),
            quoted(&value.to_string_lossy())
        ))
    });
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// `word` in single quotes where a shell would otherwise take it apart.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn cannot_run(command: &Command, error: &std::io::Error) -> Failure {
    format!("cannot run `{}`: {error}", shown(command)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .args(["test", "two words", "it's", "--x=1"])
            .env("A", "b c");
        assert_eq!(
            shown(&command),
            r"A='b c' cargo test 'two words' 'it'\''s' --x=1"
        );
    }
}
