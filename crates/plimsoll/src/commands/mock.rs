//! `plimsoll mock`: a folder or rules that answer requests.

mod asking;

mod get;

mod import;

mod match_test;

mod set_rule;

mod starter;

mod validate;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_mock::MockPlan;
use plimsoll_mock::config::{self, FileProblem, MockFile};
use plimsoll_model::counted;
use plimsoll_model::document::readable_toml_string;

use crate::commands::serving::Brought;
use crate::exit::Exit;
use crate::flags::{Preferred, ServingArgs, quoted_path};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Serve a mock API from a folder of files or from rules
///
/// Without an argument, use apimock.toml, or the current folder if there is none.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<MockCommand>,

    /// Folder, or rule file (TOML)
    #[arg(value_name = "DIR or FILE")]
    what: Option<PathBuf>,

    /// Serve a WireMock folder, an OpenAPI document, a HAR file, a Mockoon environment, a Postman collection or a db.json
    #[arg(long, value_name = "FILE or DIR", conflicts_with = "what")]
    import: Option<PathBuf>,

    /// Proxy requests to this server and record its responses as rules into --out
    #[arg(long, value_name = "URL", requires = "out", conflicts_with_all = ["what", "import", "init", "no_cors"])]
    record: Option<String>,

    /// Folder for recordings; `plimsoll mock FOLDER` replays them
    #[arg(short, long, value_name = "FOLDER", requires = "record")]
    out: Option<PathBuf>,

    /// Redact values of this name in recordings, repeatable; common secrets are redacted anyway
    #[arg(long, value_name = "NAME", requires = "record")]
    redact: Vec<String>,

    /// Accept any certificate of the recorded server
    #[arg(long, requires = "record", conflicts_with = "ca")]
    insecure: bool,

    /// Trust only the CA certificates in this PEM file
    #[arg(long, value_name = "FILE", requires = "record")]
    ca: Option<PathBuf>,

    /// Write an example rule file, unless it exists
    #[arg(long)]
    init: bool,

    /// Disable CORS headers (folders only)
    #[arg(long)]
    no_cors: bool,

    /// Answer requests that an OpenAPI document does not allow, too
    #[arg(long, conflicts_with = "record")]
    no_validate: bool,

    /// Send callbacks of OpenAPI documents to this host, `HOST`, `HOST:PORT` or `*`; repeatable [default: none]
    #[arg(long, value_name = "HOST", conflicts_with = "record")]
    callbacks: Vec<String>,

    /// Number of requests kept for the admin port; 0 for none [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "record")]
    journal: Option<u32>,

    /// Report all errors, print what would be served and exit
    #[arg(long, visible_alias = "validate", conflicts_with = "print_config")]
    check: bool,

    #[command(flatten)]
    serving: ServingArgs,
}

#[derive(Debug, clap::Subcommand)]
enum MockCommand {
    Import(import::Args),
    Validate(validate::Args),
    MatchTest(match_test::Args),
    Get(get::Args),
    /// Change rule files
    #[command(subcommand)]
    Set(SetCommand),
}

#[derive(Debug, clap::Subcommand)]
enum SetCommand {
    Rule(set_rule::Args),
}

/// The file that is taken if none is given.
const FILE: &str = "apimock.toml";

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    match &args.command {
        Some(MockCommand::Import(args)) => return import::run(args),
        Some(MockCommand::Validate(args)) => return validate::run(args),
        Some(MockCommand::MatchTest(args)) => return match_test::run(args),
        Some(MockCommand::Get(args)) => return get::run(args),
        Some(MockCommand::Set(SetCommand::Rule(args))) => return set_rule::run(args),
        None => {}
    }
    if args.init {
        return starter::write(args.what.as_deref().unwrap_or(Path::new(".")));
    }
    let serving = args.serving.or_check(args.check);
    if let Some(path) = &args.import {
        terminal::print_notes(&import::notes(&import::read(path)?));
        if args.check {
            describe(&open(path)?.plan)?;
        }
        let action = format!("file = {}", quoted_path(path));
        return serving.serve(&route(&action, args));
    }
    if let (Some(url), Some(out)) = (&args.record, &args.out) {
        let names: Vec<String> = args
            .redact
            .iter()
            .map(|name| readable_toml_string(name))
            .collect();
        let mut action = format!(
            "record = {}, dir = {}, redact = [{}]",
            readable_toml_string(url),
            quoted_path(out),
            names.join(", ")
        );
        if let Some(file) = &args.ca {
            action.push_str(", ca = ");
            action.push_str(&quoted_path(file));
        }
        if args.insecure {
            action.push_str(", insecure = true");
        }
        return serving.serve(&route(&action, args));
    }
    let what = what(args.what.as_deref());
    if what.is_dir() {
        for (flag, is_given) in [
            ("--no-validate", args.no_validate),
            ("--callbacks", !args.callbacks.is_empty()),
        ] {
            if is_given {
                let problem = Problem::with(flag, "only of rules and OpenAPI documents");
                return Err(problem.usage());
            }
        }
        if args.check {
            print(&format!("folder {}", what.display()))?;
        }
        let mut action = format!("dir = {}", quoted_path(&what));
        if args.no_cors {
            action.push_str(", cors = false");
        }
        return serving.serve(&route(&action, args));
    }
    if args.no_cors {
        let problem = Problem::with("--no-cors", "only of a folder");
        return Err(problem.usage());
    }
    let file = open(&what)?;
    if args.check {
        describe(&file.plan)?;
    }
    let preferred = preferred(&file)?;
    let action = format!("file = {}", quoted_path(&what));
    serving.serve_preferring(&route(&action, args), &preferred, Brought::all())
}

fn route(action: &str, args: &Args) -> String {
    let journal = args.journal.map(|journal| format!(", journal = {journal}"));
    let journal = journal.unwrap_or_default();
    let validate = if args.no_validate {
        ", validate = false"
    } else {
        ""
    };
    let mut callbacks = String::new();
    if !args.callbacks.is_empty() {
        let hosts: Vec<_> = args
            .callbacks
            .iter()
            .map(|host| readable_toml_string(host))
            .collect();
        callbacks = format!(", callbacks = [{}]", hosts.join(", "));
    }
    format!("[[route]]\nmock = {{ {action}{journal}{validate}{callbacks} }}")
}

/// Prints what answers, a line for each part.
fn describe(plan: &MockPlan) -> Result<(), Failed> {
    let mut text = String::new();
    for set in &plan.sets {
        let rules = set.rules().len() as u64;
        text.extend(["rules: ", &rules.to_string(), "\n"]);
    }
    for collection in &plan.collections {
        let count = counted(collection.count() as u64, "row");
        text.extend(["collection ", collection.path(), ": ", &count, "\n"]);
    }
    for document in &plan.openapi {
        let file = document.file().display();
        let operations = document.operations();
        writeln!(text, "{file}: {operations} operations").expect("texts take everything");
        for (method, path) in document.requests() {
            text.extend(["  ", method, " ", path, "\n"]);
        }
    }
    if let Some(folder) = &plan.folder {
        writeln!(text, "folder {}", folder.root().display()).expect("texts take everything");
    }
    print(text.trim_end())
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// The mock to serve.
fn what(given: Option<&Path>) -> PathBuf {
    let file = Path::new(FILE);
    match given {
        Some(given) if given.join(FILE).is_file() => given.join(FILE),
        Some(given) => given.to_owned(),
        None if file.is_file() => file.to_owned(),
        None => PathBuf::from("."),
    }
}

/// Compiles a file of rules, telling all that is wrong with it.
fn open(file: &Path) -> Result<MockFile, Failed> {
    config::open(file).map_err(|problems| failed(Exit::Usage, &problems))
}

fn failed(exit: Exit, problems: &[FileProblem]) -> Failed {
    Failed {
        exit,
        problems: problems
            .iter()
            .map(|problem| Problem::from(problem.notice()))
            .collect(),
    }
}

/// Where the file wants to be served.
fn preferred(file: &MockFile) -> Result<Preferred, Failed> {
    let listener = &file.listener;
    let address = listener.resolve().map_err(|error| {
        let host = listener.address.as_ref().map_or("", |(host, _)| host);
        Problem::new(format!("cannot find the address of `{host}`: {error}")).could_not_run()
    })?;
    let Some(address) = address else {
        return Ok(Preferred::default());
    };
    let mut preferred = Preferred::default();
    let Some(tls) = &listener.tls else {
        preferred.listen.push((address, None));
        return Ok(preferred);
    };
    let files = Some((tls.certificate.clone(), tls.key.clone()));
    match tls.port {
        None => preferred.listen.push((address, files)),
        Some(port) => {
            let mut encrypted = address;
            encrypted.set_port(port);
            preferred.listen.push((address, None));
            preferred.listen.push((encrypted, files));
        }
    }
    let limits = &mut preferred.limits;
    let mut limit = |key: &str, value: String| {
        writeln!(limits, "{key} = {value}").expect("texts take everything");
    };
    if let Some(timeout) = tls.handshake_timeout {
        limit("handshake_timeout", format!("\"{}s\"", timeout.as_secs()));
    }
    if let Some(connections) = tls.connections {
        limit("connections", connections.to_string());
    }
    Ok(preferred)
}
