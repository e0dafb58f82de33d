//! Which arguments of `plimsoll load` agents get: all that shape the load, with the files that they name.
//!
//! One table has every flag. The coordinator makes the order by it, and the agent checks the order by it: an order must not have an
//! agent start programs, or read files of its machine.

mod destination;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args as _, FromArgMatches as _};
use plimsoll_fleet::{Argument, MOST_FILE_BYTES, OrderFile};

use self::destination::{Destination, NOT_OF_POD, OF_POD, destination};
use super::super::Args;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The command of an order, with its files.
#[derive(Debug, Default)]
pub(super) struct OrderArguments {
    pub(super) command: Vec<Argument>,
    pub(super) files: Vec<OrderFile>,
}

/// The flags of `load`, without the program and the command.
fn command() -> clap::Command {
    Args::augment_args(clap::Command::new("load").no_binary_name(true))
}

/// The flags of an order together with those of this process, which are the coordinator's.
///
/// Fails if this process has flags of the load: they are those of the run.
pub(super) fn attached(order: &[Argument], folder: &Path) -> Result<Args, Failed> {
    let own = std::env::args_os().skip(2).collect::<Vec<_>>();
    let command = command();
    let matches = command.clone().try_get_matches_from(&own);
    let matches = matches.map_err(|error| Problem::new(error).usage())?;
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if is_given(&matches, id) && destination(id) != Some(Destination::Coordinator) {
            let message = "is a matter of the run, which goes on as it was started (--attach)";
            return Err(Problem::with(&flag_of(argument), message).usage());
        }
    }
    let refused = |reason: String| Problem::with("--attach", reason).could_not_run();
    of_order(order, folder).map_err(refused)?;
    let order = order.iter().map(|argument| match argument {
        Argument::Text(text) => OsString::from(text),
        Argument::File(name) => folder.join(name).into_os_string(),
    });
    let matches = command.try_get_matches_from(own.into_iter().chain(order));
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    let mut args = args.map_err(|error| Problem::new(error).usage())?;
    args.imply();
    Ok(args)
}

/// What agents get of the arguments of this process.
pub(super) fn of_process(args: &Args) -> Result<OrderArguments, Failed> {
    if args.is_embedded() {
        return Err(
            Problem::with("--fleet", "needs the URL of a server that agents can reach").usage(),
        );
    }
    let arguments = std::env::args_os().skip(2).collect::<Vec<_>>();
    of_arguments(&arguments, Reader::Agents)
}

/// What the pod of a coordinator gets of them, for `--kubernetes`.
pub(super) fn of_pod(args: &Args) -> Result<OrderArguments, Failed> {
    if args.is_embedded() {
        let message = "needs the URL of a server that agents can reach";
        return Err(Problem::with("--kubernetes", message).usage());
    }
    let arguments = std::env::args_os().skip(2).collect::<Vec<_>>();
    of_arguments(&arguments, Reader::Pod)
}

/// Who gets arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Agents,
    /// The coordinator in a pod; variables have their values there.
    Pod,
}

fn of_arguments(arguments: &[OsString], reader: Reader) -> Result<OrderArguments, Failed> {
    let command = command();
    let matches = command
        .clone()
        .try_get_matches_from(arguments)
        .map_err(|error| Problem::new(error).usage())?;
    let mut order = OrderArguments::default();
    let mut problems = Vec::new();
    let mut positional = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if !is_given(&matches, id) {
            continue;
        }
        let flag = flag_of(argument);
        let is_pod = reader == Reader::Pod;
        let to = match destination(id) {
            Some(Destination::Coordinator) if is_pod && OF_POD.contains(&id) => {
                Some(Destination::Agents)
            }
            Some(Destination::Coordinator) if is_pod && NOT_OF_POD.contains(&id) => {
                let reason = "needs files of this machine, or writes some that end with the pod";
                Some(Destination::Refused(reason))
            }
            other => other,
        };
        match to {
            Some(Destination::Coordinator) => {}
            Some(Destination::Refused(reason)) => {
                problems.push(Problem::with(&flag, format!("{reason} (--fleet)")));
            }
            Some(Destination::Agents | Destination::File) => {
                for value in values(&matches, argument) {
                    let keeps = is_pod && id == "var";
                    match carry(&mut order, id, &flag, value, keeps) {
                        Ok(Some(text)) if argument.is_positional() => positional.push(text),
                        Ok(Some(text)) => order.command.push(Argument::Text(text)),
                        Ok(None) => {}
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            None => problems.push(Problem::with(&flag, "does not go with --fleet")),
        }
    }
    let bytes = order
        .files
        .iter()
        .map(|file| file.content.len())
        .sum::<usize>();
    if bytes > MOST_FILE_BYTES {
        problems.push(Problem::with(
            "--fleet",
            format!(
                "sends files of at most {} MiB to agents",
                MOST_FILE_BYTES >> 20
            ),
        ));
    }
    if !problems.is_empty() {
        return Err(Failed {
            exit: Exit::Usage,
            problems,
        });
    }
    // A URL may begin with what looks like a flag nowhere else.
    let positional = positional.into_iter().map(Argument::Text);
    order.command.extend(positional);
    Ok(order)
}

/// One value of a flag, as agents get it; `None` if it is a file, which was added.
///
/// - `keeps_variable`: whether a variable of the environment is named and not read.
fn carry(
    order: &mut OrderArguments,
    id: &str,
    flag: &str,
    value: Option<String>,
    keeps_variable: bool,
) -> Result<Option<String>, Problem> {
    let Some(value) = value else {
        return Ok(Some(flag.to_owned()));
    };
    match id {
        "url" => return Ok(Some(value)),
        "data" if value.starts_with('@') => {
            let path = value.trim_start_matches('@').to_owned();
            add_file(order, "--data-file", Path::new(&path))?;
            return Ok(None);
        }
        "form" if names_file(&value) => {
            return Err(Problem::with(
                flag,
                "names a file, which agents do not get (--fleet)",
            ));
        }
        "var" if !value.contains('=') && !keeps_variable => {
            #[expect(clippy::disallowed_methods, reason = "this is the binary")]
            let content = std::env::var(&value);
            // Without one the plan is wrong here already.
            let content = content.unwrap_or_default();
            return Ok(Some(format!("{flag}={value}={content}")));
        }
        _ => {}
    }
    if destination(id) == Some(Destination::File) {
        add_file(order, flag, Path::new(&value))?;
        return Ok(None);
    }
    Ok(Some(format!("{flag}={value}")))
}

fn names_file(form: &str) -> bool {
    let value = form.split_once('=').map_or("", |(_, value)| value);
    value.starts_with(['@', '<'])
}

fn add_file(order: &mut OrderArguments, flag: &str, path: &Path) -> Result<(), Problem> {
    if path == Path::new("-") {
        return Err(Problem::with(flag, "cannot be standard input with --fleet"));
    }
    let content = fs::read(path)
        .map_err(|error| Problem::with(flag, format!("cannot read {}: {error}", path.display())))?;
    // The end of a name says what is in a file.
    let plain = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let plain: String = plain
        .unwrap_or_default()
        .chars()
        .map(|it| {
            if it.is_ascii_alphanumeric() || it == '.' {
                it
            } else {
                '-'
            }
        })
        .rev()
        .take(60)
        .collect();
    let plain: String = plain.chars().rev().collect();
    let name = format!("{}-{plain}", order.files.len());
    order.command.push(Argument::Text(flag.to_owned()));
    order.command.push(Argument::File(name.clone()));
    order.files.push(OrderFile { name, content });
    Ok(())
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches!(
        matches.value_source(id),
        Some(ValueSource::CommandLine | ValueSource::EnvVariable)
    )
}

/// `--name`, or `-o` where there is no more.
fn flag_of(argument: &clap::Arg) -> String {
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => argument.get_id().as_str().to_uppercase(),
    }
}

/// The values of a flag as they were written; one that has none once for each time.
fn values(matches: &ArgMatches, argument: &clap::Arg) -> Vec<Option<String>> {
    let id = argument.get_id().as_str();
    if matches!(
        argument.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse
    ) {
        return vec![None];
    }
    let raw = matches.get_raw(id).into_iter().flatten();
    raw.map(|value| Some(value.to_string_lossy().into_owned()))
        .collect()
}

/// The flags of an order, at an agent.
///
/// - `folder`: with the files of the order.
///
/// Fails with the reason if the order has a flag that agents do not take, or names a file that is not one of its own.
pub(crate) fn of_order(order: &[Argument], folder: &Path) -> Result<Args, String> {
    let paths: BTreeMap<&str, PathBuf> = order
        .iter()
        .filter_map(|argument| match argument {
            Argument::File(name) => Some((name.as_str(), folder.join(name))),
            Argument::Text(_) => None,
        })
        .collect();
    let arguments: Vec<OsString> = order
        .iter()
        .map(|argument| match argument {
            Argument::Text(text) => OsString::from(text),
            Argument::File(name) => paths[name.as_str()].clone().into_os_string(),
        })
        .collect();
    let command = command();
    let matches = command
        .clone()
        .try_get_matches_from(&arguments)
        .map_err(|error| format!("the order has wrong flags: {error}"))?;
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if !is_given(&matches, id) {
            continue;
        }
        let flag = flag_of(argument);
        let values = values(&matches, argument);
        let mut given = values.iter().flatten();
        match destination(id) {
            Some(Destination::Agents) => {
                let is_file = match id {
                    "data" => given.any(|value| value.starts_with('@')),
                    "form" => given.any(|value| names_file(value)),
                    "var" => given.any(|value| !value.contains('=')),
                    _ => false,
                };
                if is_file {
                    return Err(format!(
                        "the order has {flag} with something of this machine"
                    ));
                }
            }
            Some(Destination::File) => {
                let mut own = paths.values();
                let is_own = |value: &String| own.any(|path| path == Path::new(value));
                if !given.all(is_own) {
                    return Err(format!("the order has {flag} with a file of this machine"));
                }
            }
            _ => return Err(format!("the order has {flag}, which agents do not take")),
        }
    }
    let mut args = Args::from_arg_matches(&matches)
        .map_err(|error| format!("the order has wrong flags: {error}"))?;
    if args.is_embedded() {
        return Err("the order has no target".to_owned());
    }
    args.imply();
    Ok(args)
}

#[cfg(test)]
mod tests;
