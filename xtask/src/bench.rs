//! `cargo xtask bench NAME`: a benchmark of bench/, by `plimsoll compare` and nothing else.

mod fleet;
mod monitor;
mod network;
mod peers;
mod plan;
mod process;
mod table;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use clap::Args;
use serde_json::Value;

use crate::packages;
use crate::step;
use crate::{Failure, Outcome};
use network::Network;
use plan::{Case, Plan};

pub(crate) use self::monitor::GATUS;
pub(crate) use self::peers::{go, install as install_peers, k6 as install_k6};

/// Which benchmark, and how
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// bench/NAME.toml, `monitor`: checks beside Gatus and `blackbox_exporter`, or `fleet`: load from several agents
    name: String,

    /// Install the programs that it compares with
    #[arg(long)]
    install_peers: bool,

    /// A short run, to see that it works; its figures mean little and are not written
    #[arg(long)]
    quick: bool,

    /// Only the cases whose names begin with this; repeatable
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,

    /// Replace the section NAME of docs/benchmarks.md
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

/// Runs the task; fails if a limit of the plan is not met.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    if arguments.name == "monitor" {
        return monitor::run(root, arguments);
    }
    if arguments.name == "fleet" {
        return fleet::run(root, arguments);
    }
    let mut plan = Plan::read(&root.join("bench"), &arguments.name)?;
    plan.select(&arguments.cases)?;
    let bench = Bench::prepare(root, &plan, arguments)?;
    let mut results = Vec::new();
    for case in &plan.cases {
        results.push((case, bench.compare(case)?));
    }
    let limited = table::limited(&plan, &results)?;
    let text = table::render(
        &plan,
        &results,
        &limited,
        &bench.versions()?,
        &bench.paths(),
    )?;
    println!("\n{text}");
    if arguments.write {
        write_section(&root.join("docs/benchmarks.md"), &arguments.name, &text)?;
    }
    let missed = limited.iter().filter(|limit| !limit.met).count();
    match missed {
        0 => Ok(()),
        _ => Err(format!("{missed} of {} limits not met", limited.len()).into()),
    }
}

/// A benchmark whose programs are built and whose files are in place.
struct Bench<'a> {
    root: &'a Path,
    plan: &'a Plan,
    quick: bool,
    /// Release programs of this workspace.
    release: PathBuf,
    /// Peers that are installed by us.
    peers: PathBuf,
    /// The server's files; removed with the value.
    directory: PathBuf,
    /// The first is that of the URL; the others are for servers that need more.
    ports: [u16; 6],
    /// Where the operands run, if the system permits one of their own.
    network: Option<Network>,
    /// What runs through all trials; stopped with the value.
    background: Vec<Child>,
}

impl<'a> Bench<'a> {
    fn prepare(root: &'a Path, plan: &'a Plan, arguments: &Arguments) -> Result<Self, Failure> {
        let target = target_directory(root)?;
        let ports = free_ports()?;
        let mut bench = Self {
            root,
            plan,
            quick: arguments.quick,
            release: target.join("dist"),
            peers: target.join("peers"),
            directory: target.join(format!("bench-{}", std::process::id())),
            ports,
            network: None,
            background: Vec::new(),
        };
        if arguments.install_peers {
            peers::install(root, &bench.peers, &plan.programs())?;
        }
        for build in &plan.build {
            let mut command = step::cargo(&["build", "--locked"]);
            if !build.iter().any(|argument| argument == "--profile") {
                command.args(["--profile", "dist"]);
            }
            step::run(root, command.args(build))?;
        }
        bench.check_programs()?;
        fs::create_dir_all(&bench.directory)
            .map_err(|error| cannot("create", &bench.directory, &error))?;
        for (name, text) in &plan.server.files {
            let file = bench.directory.join(name);
            fs::write(&file, bench.filled(text)).map_err(|error| cannot("write", &file, &error))?;
        }
        for words in &plan.server.prepare {
            bench.prepare_server(words)?;
        }
        bench.network = Network::new(root);
        for words in &plan.server.background {
            let child = bench.start(words)?;
            bench.background.push(child);
        }
        Ok(bench)
    }

    fn start(&self, words: &[String]) -> Result<Child, Failure> {
        let (program, arguments) = words
            .split_first()
            .ok_or("an empty command in background")?;
        let arguments = arguments.iter().map(|argument| self.filled(argument));
        let mut command = self.command(self.filled(program));
        command.args(arguments).env("PATH", self.search_path()?);
        let child = command.spawn();
        child.map_err(|error| format!("cannot run `{program}`: {error}").into())
    }

    fn prepare_server(&self, words: &[String]) -> Outcome {
        let Some((program, arguments)) = words.split_first() else {
            return Ok(());
        };
        let arguments = arguments.iter().map(|argument| self.filled(argument));
        let mut command = Command::new(self.filled(program));
        step::output(self.root, command.args(arguments)).map(drop)
    }

    /// A command that runs where the operands do.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.network {
            Some(network) => network.enter(program),
            None => Command::new(program),
        }
    }

    /// Every operand's program, and the server's, can be found.
    fn check_programs(&self) -> Outcome {
        for program in self.plan.programs() {
            let program = self.filled(program);
            if packages::find(&program, &[self.peers.join("bin")]).is_none() {
                return Err(format!("`{program}` is not installed; add --install-peers").into());
            }
        }
        Ok(())
    }

    /// Runs `plimsoll compare` for one case and returns its JSON document.
    fn compare(&self, case: &Case) -> Result<Value, Failure> {
        let (trials, seconds) = if self.quick {
            (3, 1)
        } else {
            (self.plan.trials, self.plan.seconds)
        };
        let seconds = case.seconds.unwrap_or(seconds);
        let server = &self.plan.server;
        let mut command = self.command(self.release.join("plimsoll"));
        command
            .args(["compare", "--json"])
            .args(["--trials", &trials.to_string()])
            .args(["--seconds", &seconds.to_string()])
            .args(["--connections", &case.connections.to_string()])
            .args(["--port", &self.ports[0].to_string()])
            .args(["--pin", &self.plan.pin]);
        if server.drives {
            let driver = case.driver.as_ref().map(|driver| &driver.command);
            let driver = driver.unwrap_or(&server.command);
            command
                .args(["--drive", &self.plan.url])
                .args(["--driver-command", &self.filled(driver)])
                .args(["--driver-pin", &server.pin]);
        } else {
            command
                .args(["--url", &self.plan.url])
                .args(["--server", &self.filled(&server.command)])
                .args(["--server-pin", &server.pin])
                .args(["--ready", &self.filled(&server.ready)]);
        }
        for (_, operand) in case.operands(self.plan) {
            command.arg(self.filled(operand));
        }
        command.env("PATH", self.search_path()?);
        println!("$ {}", step::shown(&command));
        let json = step::output(self.root, &mut command)?;
        serde_json::from_str(&json).map_err(|error| format!("plimsoll compare: {error}").into())
    }

    /// What each program says of its version, by name.
    fn versions(&self) -> Result<Vec<(String, String)>, Failure> {
        let operands = self
            .plan
            .operands
            .iter()
            .map(|operand| (&operand.name, &operand.version));
        let drivers = self.plan.drivers();
        let drivers = drivers.map(|driver| (&driver.name, &driver.version));
        let server = (&self.plan.server.name, &self.plan.server.version);
        let mut versions: Vec<(String, String)> = Vec::new();
        for (name, words) in operands.chain([server]).chain(drivers) {
            if versions.iter().any(|(known, _)| known == name) {
                continue;
            }
            let Some((program, arguments)) = words.split_first() else {
                continue;
            };
            let program = self.filled(program);
            let output = Command::new(&program)
                .args(arguments)
                .env("PATH", self.search_path()?)
                .output()
                .map_err(|error| format!("cannot run `{program}`: {error}"))?;
            // Some print it to standard error, and some then fail.
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            let line = text.lines().find(|line| !line.trim().is_empty());
            versions.push((name.clone(), line.unwrap_or("unknown").trim().to_owned()));
        }
        Ok(versions)
    }

    /// Paths of this checkout and what is shown for them: elsewhere they mean nothing.
    fn paths(&self) -> [(String, &'static str); 3] {
        [
            (format!("{}/examples/", self.release.display()), ""),
            (format!("{}/", self.release.display()), ""),
            (self.directory.display().to_string(), "{dir}"),
        ]
    }

    /// `{dir}`, `{release}` and `{port}` to `{port6}` are ours to fill in; the rest is compare's.
    fn filled(&self, text: &str) -> String {
        let text = text
            .replace("{dir}", &self.directory.to_string_lossy())
            .replace("{release}", &self.release.to_string_lossy())
            .replace("{port}", &self.ports[0].to_string());
        let others = (2..).zip(&self.ports[1..]);
        others.fold(text, |text, (number, port)| {
            text.replace(&format!("{{port{number}}}"), &port.to_string())
        })
    }

    fn search_path(&self) -> Result<std::ffi::OsString, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = std::iter::once(self.peers.join("bin"))
            .chain(std::env::split_paths(&path))
            .chain(["/usr/sbin".into()]);
        std::env::join_paths(directories).map_err(|error| error.to_string().into())
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        for child in &mut self.background {
            let ended = child.kill().and_then(|()| child.wait());
            if let Err(error) = ended {
                eprintln!("cannot stop process {}: {error}", child.id());
            }
        }
        // It may not have been made; a leftover lies in the target directory.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// The jar of WireMock, which is fetched if it is missing.
pub(crate) fn wiremock_jar(root: &Path, peers: &Path) -> Result<PathBuf, Failure> {
    peers::wiremock_jar(root, peers)
}

pub(crate) fn target_directory(root: &Path) -> Result<PathBuf, Failure> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = step::output(root, &mut step::cargo(&arguments))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let directory = metadata.get("target_directory").and_then(Value::as_str);
    Ok(directory
        .ok_or("cargo metadata names no target directory")?
        .into())
}

/// Free ports.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Failure> {
    Ok(crate::free_port::free_ports().map_err(|error| format!("no free port: {error}"))?)
}

/// Replaces what stands between the two marks of `name`, or appends it with its marks.
fn write_section(file: &Path, name: &str, text: &str) -> Outcome {
    let before = fs::read_to_string(file).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    fs::write(file, with_section(&before, name, text))
        .map_err(|error| cannot("write", file, &error))
}

fn with_section(document: &str, name: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- bench {name} -->"),
        format!("<!-- end of bench {name} -->"),
    );
    let section = format!("{begin}\n{text}{end}");
    let parts = document
        .split_once(&begin)
        .and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    match parts {
        Some((head, tail)) => format!("{head}{section}{tail}"),
        None => format!("{}\n\n{section}\n", document.trim_end()),
    }
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    format!("cannot {verb} {}: {error}", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_added_once_and_replaced_after() {
        let first = with_section("# Benchmarks\n", "load", "one\n");
        assert_eq!(
            first,
            "# Benchmarks\n\n<!-- bench load -->\none\n<!-- end of bench load -->\n"
        );
        let other = with_section(&first, "line", "other\n");
        let second = with_section(&other, "load", "two\n");
        assert!(second.contains("two\n") && second.contains("other\n"));
        assert!(!second.contains("one\n"));
    }
}
