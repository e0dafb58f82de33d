//! Which arguments of `plimsoll load` agents get: all that shape the load, with the files that they name.
//!
//! One table has every flag. The coordinator makes the order by it, and the agent checks the order by it: an order must not have an
//! agent start programs, or read files of its machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args as _, FromArgMatches as _};
use plimsoll_fleet::{Argument, MOST_FILE_BYTES, OrderFile};

use super::super::Args;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// What becomes of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// Agents get it as it is.
    Agents,
    /// Agents get a copy of the file that it names.
    File,
    /// The coordinator does it.
    Coordinator,
    /// It cannot be had on agents, for this reason.
    Refused(&'static str),
}

const ON_ITS_MACHINE: &str = "names something of one machine, which agents do not have";

/// Every flag of `load`, by its id.
const FLAGS: &[(&str, Destination)] = &[
    ("url", Destination::Agents),
    ("connections", Destination::Agents),
    ("streams", Destination::Agents),
    ("requests", Destination::Agents),
    ("duration", Destination::Agents),
    ("rate", Destination::Agents),
    ("pace", Destination::Agents),
    ("arrivals", Destination::Agents),
    ("burst", Destination::Agents),
    ("burst_delay", Destination::Agents),
    ("jitter", Destination::Agents),
    ("stages", Destination::Agents),
    ("ramp_up", Destination::Agents),
    ("warm_up", Destination::Agents),
    (
        "threads",
        Destination::Refused(
            "is set by agents: each has a worker for every core (`plimsoll agent --cores N`)",
        ),
    ),
    ("think", Destination::Agents),
    ("max_in_flight", Destination::Agents),
    ("on_full", Destination::Agents),
    ("timeout", Destination::Agents),
    ("grace", Destination::Agents),
    ("seed", Destination::Agents),
    ("method", Destination::Agents),
    ("headers", Destination::Agents),
    ("data", Destination::Agents),
    ("data_file", Destination::File),
    ("content_type", Destination::Agents),
    ("compress_body", Destination::Agents),
    ("form", Destination::Agents),
    ("basic_auth", Destination::Agents),
    ("bearer", Destination::Agents),
    ("digest", Destination::Agents),
    ("host", Destination::Agents),
    ("user_agent", Destination::Agents),
    ("location", Destination::Agents),
    ("output_of_body", Destination::Agents),
    ("disable_keepalive", Destination::Agents),
    ("urls", Destination::File),
    ("from", Destination::File),
    ("from_format", Destination::Agents),
    ("only", Destination::Agents),
    ("pick", Destination::Agents),
    ("feeder", Destination::File),
    ("feeder_order", Destination::Agents),
    ("var", Destination::Agents),
    (
        "env",
        Destination::Refused(
            "reads files beside the file of requests, which agents do not get: give values with --var",
        ),
    ),
    ("cookies", Destination::Agents),
    ("max_redirs", Destination::Agents),
    ("compressed", Destination::Agents),
    ("expect", Destination::Agents),
    ("threshold", Destination::Coordinator),
    ("abort_on_breach", Destination::Coordinator),
    ("fail_status", Destination::Agents),
    ("pid", Destination::Refused(ON_ITS_MACHINE)),
    ("observe", Destination::Coordinator),
    ("observe_token_file", Destination::Coordinator),
    ("observe_ca", Destination::Coordinator),
    ("spawn", Destination::Refused(ON_ITS_MACHINE)),
    ("spawn_timeout", Destination::Refused(ON_ITS_MACHINE)),
    ("server_cores", Destination::Refused(ON_ITS_MACHINE)),
    ("sample_ms", Destination::Coordinator),
    ("cores", Destination::Refused(ON_ITS_MACHINE)),
    ("resolve", Destination::Agents),
    ("ipv4", Destination::Agents),
    ("ipv6", Destination::Agents),
    ("source", Destination::Refused(ON_ITS_MACHINE)),
    ("unix_socket", Destination::Refused(ON_ITS_MACHINE)),
    ("proxy", Destination::Agents),
    ("http2", Destination::Agents),
    ("http3", Destination::Agents),
    ("udp_payload", Destination::Agents),
    ("early_data", Destination::Agents),
    ("insecure", Destination::Agents),
    ("cacert", Destination::File),
    ("cert", Destination::File),
    ("key", Destination::File),
    ("tls_min", Destination::Agents),
    ("tls_max", Destination::Agents),
    ("ciphers", Destination::Agents),
    ("no_sessionid", Destination::Agents),
    (
        "tls_key_log",
        Destination::Refused("writes secrets to a file, which stays on its machine"),
    ),
    ("haproxy_protocol", Destination::Agents),
    ("haproxy_clientip", Destination::Agents),
    ("h2_window", Destination::Agents),
    ("h2_connection_window", Destination::Agents),
    ("message_size", Destination::Agents),
    ("binary", Destination::Agents),
    ("sse", Destination::Agents),
    ("grpc", Destination::Agents),
    ("proto_set", Destination::File),
    ("json", Destination::Coordinator),
    ("check", Destination::Coordinator),
    ("verbose", Destination::Coordinator),
    ("no_tui", Destination::Coordinator),
    ("dashboard", Destination::Coordinator),
    ("out", Destination::Coordinator),
    ("append", Destination::Coordinator),
    ("profile", Destination::Refused(ON_ITS_MACHINE)),
    (
        "samples_csv",
        Destination::Refused("has samples of one machine"),
    ),
    ("junit", Destination::Coordinator),
    ("prometheus", Destination::Coordinator),
    ("otlp", Destination::Coordinator),
    ("prometheus_remote_write", Destination::Coordinator),
    ("push_header", Destination::Coordinator),
    ("run_name", Destination::Coordinator),
    ("markdown", Destination::Coordinator),
    ("fleet", Destination::Coordinator),
    ("agents", Destination::Coordinator),
    ("attach", Destination::Coordinator),
    ("agent_wait", Destination::Coordinator),
    ("agent_group", Destination::Coordinator),
    ("agent_timeout", Destination::Coordinator),
    ("on_agent_loss", Destination::Coordinator),
    ("most_spread", Destination::Coordinator),
    ("sign", Destination::Coordinator),
    ("fleet_cacert", Destination::Coordinator),
    ("fleet_log", Destination::Coordinator),
    ("keep", Destination::Coordinator),
];

fn destination(id: &str) -> Option<Destination> {
    let found = FLAGS.iter().find(|(name, _)| *name == id);
    found.map(|(_, destination)| *destination)
}

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
    of_arguments(&arguments)
}

fn of_arguments(arguments: &[OsString]) -> Result<OrderArguments, Failed> {
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
        match destination(id) {
            Some(Destination::Coordinator) => {}
            Some(Destination::Refused(reason)) => {
                problems.push(Problem::with(&flag, format!("{reason} (--fleet)")));
            }
            Some(Destination::Agents | Destination::File) => {
                for value in values(&matches, argument) {
                    match carry(&mut order, id, &flag, value) {
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
fn carry(
    order: &mut OrderArguments,
    id: &str,
    flag: &str,
    value: Option<String>,
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
        "var" if !value.contains('=') => {
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
mod tests {
    use super::*;

    fn order(line: &str) -> Result<OrderArguments, Failed> {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        of_arguments(&words)
    }

    fn texts(order: &OrderArguments) -> Vec<String> {
        let texts = order.command.iter().map(|argument| match argument {
            Argument::Text(text) => text.clone(),
            Argument::File(name) => format!("<{name}>"),
        });
        texts.collect()
    }

    #[test]
    fn the_table_has_every_flag_and_no_other() {
        let command = command();
        let ids: Vec<_> = command
            .get_arguments()
            .map(|it| it.get_id().as_str())
            .collect();
        for id in &ids {
            assert!(destination(id).is_some(), "{id}");
        }
        for (id, _) in FLAGS {
            let is_of_feature = matches!(*id, "append" | "profile") && !cfg!(feature = "lab");
            assert!(ids.contains(id) || is_of_feature, "{id}");
        }
    }

    #[test]
    fn agents_get_the_load_and_the_coordinator_keeps_the_rest() {
        let order = order(
            "--fleet nats://127.0.0.1 --agents 2 --json -c 8 -z 2s -k --threshold errors:rate<1% -H a:1 -H b:2 http://127.0.0.1/",
        )
        .unwrap();
        assert_eq!(
            texts(&order),
            [
                "--connections=8",
                "--duration=2s",
                "--header=a:1",
                "--header=b:2",
                "--insecure",
                "http://127.0.0.1/"
            ]
        );
        let folder = Path::new("/nowhere");
        let args = of_order(&order.command, folder).unwrap();
        assert_eq!(args.shape.connections, Some(8));
        assert_eq!(args.url.as_deref(), Some("http://127.0.0.1/"));
    }

    #[test]
    fn files_go_along_under_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("the users.csv");
        fs::write(&path, "name\nann\n").unwrap();
        let words = [
            "--feeder",
            path.to_str().unwrap(),
            "--fleet",
            "nats://a",
            "--agents",
            "1",
            "http://127.0.0.1/{{name}}",
        ];
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let order = of_arguments(&words).unwrap();
        assert_eq!(
            texts(&order),
            ["--feeder", "<0-the-users.csv>", "http://127.0.0.1/{{name}}"]
        );
        assert_eq!(order.files[0].content, b"name\nann\n");
        let args = of_order(&order.command, Path::new("/tmp/order")).unwrap();
        assert_eq!(
            args.requests.feeder,
            [PathBuf::from("/tmp/order/0-the-users.csv")]
        );
    }

    #[test]
    fn what_only_one_machine_has_is_refused_with_its_flag() {
        let failed =
            order("--fleet nats://a --agents 1 -t 2 --cores 0 http://127.0.0.1/").unwrap_err();
        let about: Vec<_> = failed
            .problems
            .iter()
            .map(|it| it.about.clone().unwrap())
            .collect();
        assert_eq!(about, ["--threads", "--cores"]);
    }

    #[test]
    fn an_agent_takes_no_order_that_reaches_for_its_machine() {
        let check = |words: &[&str], expected: &str| {
            let order: Vec<_> = words
                .iter()
                .map(|it| Argument::Text((*it).to_owned()))
                .collect();
            let refused = of_order(&order, Path::new("/tmp/order")).unwrap_err();
            assert!(refused.contains(expected), "{words:?}: {refused}");
        };
        check(
            &["--spawn=rm -rf /", "http://127.0.0.1/"],
            "--spawn, which agents do not take",
        );
        check(
            &["--pid=1", "http://127.0.0.1/"],
            "--pid, which agents do not take",
        );
        check(
            &["--out=/tmp/x", "http://127.0.0.1/"],
            "--out, which agents do not take",
        );
        check(
            &["--data-file=/etc/passwd", "http://127.0.0.1/"],
            "a file of this machine",
        );
        check(
            &["--data=@/etc/passwd", "http://127.0.0.1/"],
            "something of this machine",
        );
        check(
            &["--form=a=@/etc/passwd", "http://127.0.0.1/"],
            "something of this machine",
        );
        check(
            &["--var=HOME", "http://127.0.0.1/"],
            "something of this machine",
        );
        check(&["--from=/etc/passwd"], "a file of this machine");
        check(&["-c", "1"], "no target");
        check(&["--unknown"], "wrong flags");
    }
}
