//! `cargo xtask fleet`: a load from four machines, as far as one machine can stand for them.
//!
//! Four agents, each in a network namespace of its own with a relay that delays what goes between it and the broker; the
//! clock of one of them is three seconds ahead. nginx, the broker and the coordinator are in a fifth namespace. Then:
//!
//! - Requests in nginx's log are those that the run counts.
//! - All agents begin within 5 ms, although their clocks and their ways to the broker differ.
//! - Percentiles are near those of a single generator in one of the namespaces.
//! - What `--observe` finds from another namespace is what `--pid` finds.
//! - A run that loses an agent, stopped or killed, names it and ends with exit code 4, or 3 before its start.
//! - A broker that restarts in the middle loses nothing.
//! - `handleSummary()` of a script is called once, with the requests of all agents.

mod faults;
pub(crate) mod network;
pub(crate) mod relay;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use self::network::{HUB, Network};
use crate::bench::target_directory;
use crate::clock::wait;
use crate::packages::{self, Package};
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

const NATS: Package = Package {
    program: "nats-server",
    name: "nats-server",
};

pub(crate) const IP: Package = Package {
    program: "ip",
    name: "iproute2",
};

/// The ways of the agents to the broker, in milliseconds, each way.
const DELAYS: [u64; 4] = [0, 5, 20, 50];

/// The agent whose clock is ahead, and by how much.
const AHEAD: (usize, &str) = (3, "+3s");

/// Ports in the namespace of the servers.
pub(crate) const NGINX: u16 = 8080;
pub(crate) const BROKER: u16 = 4222;
const OBSERVER: u16 = 7070;

/// The load of each run.
const RATE: u32 = 400;
const SECONDS: u32 = 5;

/// Agents begin no further apart than this, beside the time between their arrivals.
const MOST_SPREAD: Duration = Duration::from_millis(5);

/// What a coordinator may permit: it knows a clock to half of a round trip.
const PERMITTED_SPREAD: &str = "200ms";

/// How far figures of another namespace may be from those taken here.
const NEAR: f64 = 0.02;

/// With which program
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Test this program instead of building one with the profile `dist`
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the task; fails if anything is not as it should be.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let needed = [
        NATS,
        IP,
        packages::NGINX,
        packages::FAKETIME,
        packages::OPENSSL,
    ];
    packages::install(root, &needed)?;
    let target = target_directory(root)?;
    let program = if let Some(program) = &arguments.program {
        program.clone()
    } else {
        let build = ["build", "--profile", "dist", "--locked", "-p", "plimsoll"];
        step::run(root, &mut step::cargo(&build))?;
        target.join("dist/plimsoll")
    };
    let program = program
        .canonicalize()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let folder = target.join(format!("fleet-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let found = Scene::start(root, &program, &folder).and_then(|scene| scene.judge());
    // A leftover lies in the target directory.
    fs::remove_dir_all(&folder).ok();
    let rows = found?;
    println!();
    let mut wrong = Vec::new();
    for Row {
        what,
        found,
        is_met,
    } in &rows
    {
        let verdict = if *is_met { "ok" } else { "WRONG" };
        println!("{what:<46}{found:<44}{verdict}");
        if !is_met {
            wrong.push(*what);
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("not as it should be: {}", wrong.join(", ")).into())
    }
}

/// Something that was looked at.
struct Row {
    what: &'static str,
    found: String,
    is_met: bool,
}

/// The namespaces with everything that runs throughout.
struct Scene<'a> {
    program: &'a Path,
    folder: &'a Path,
    /// Of nginx, which is one process here.
    nginx: u32,
    _servers: Vec<Server>,
    broker: RefCell<Option<Server>>,
    network: Network,
}

impl<'a> Scene<'a> {
    fn start(root: &Path, program: &'a Path, folder: &'a Path) -> Result<Self, Failure> {
        let network = Network::new(root, DELAYS.len())?;
        keys(root, folder)?;
        fs::write(folder.join("nginx.conf"), nginx(folder, true))
            .map_err(|error| error.to_string())?;
        let mut servers = Vec::new();
        let mut nginx = network.in_hub("nginx");
        nginx.arg("-c").arg(folder.join("nginx.conf"));
        servers.push(Server::start(&mut nginx)?);
        let nginx = servers[0].0.id();
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        for (number, delay) in DELAYS.iter().enumerate() {
            let mut relay = network.in_agent(number, &own);
            relay.args(["relay", "--listen", &format!("127.0.0.1:{BROKER}")]);
            relay.args(["--to", &format!("{HUB}:{BROKER}")]);
            relay.args(["--delay-ms", &delay.to_string()]);
            servers.push(Server::start(&mut relay)?);
        }
        let scene = Self {
            program,
            folder,
            nginx,
            _servers: servers,
            broker: RefCell::default(),
            network,
        };
        scene.start_broker()?;
        // They listen in other namespaces, where this process cannot see when they are ready.
        wait(Duration::from_secs(2));
        Ok(scene)
    }

    fn start_broker(&self) -> Outcome {
        let mut broker = self.network.in_hub("nats-server");
        broker.args(["-js", "-a", "0.0.0.0", "-p", &BROKER.to_string(), "-sd"]);
        broker.arg(self.folder.join("broker"));
        let broker = Server::start(quiet(&mut broker))?;
        self.broker.replace(Some(broker));
        Ok(())
    }

    /// Ends the broker; what it keeps stays.
    fn stop_broker(&self) -> Outcome {
        if let Some(mut broker) = self.broker.take() {
            faults::kill("-TERM", broker.0.id())?;
            broker.0.wait().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn judge(&self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        let fleet = self.fleet_run(&mut rows)?;
        self.single_run(&fleet, &mut rows)?;
        self.observed_run(&mut rows)?;
        self.script(&mut rows)?;
        self.restarted_broker(&mut rows)?;
        self.lost_agents(&mut rows)?;
        Ok(rows)
    }

    /// A run of all agents; returns its summary.
    fn fleet_run(&self, rows: &mut Vec<Row>) -> Result<Value, Failure> {
        let agents = self.agents()?;
        let output = finished(spawn(self.coordinator(&[]))?)?;
        drop(agents);
        let summary = json(&output)?;
        let log = self.log()?;
        let logged = log.lines().count() as u64;
        let started = summary["counts"]["started"].as_u64().unwrap_or(0);
        rows.push(Row {
            what: "requests that are counted, and in nginx's log",
            found: format!("{started}, {logged}"),
            is_met: started == logged && started == u64::from(RATE * SECONDS),
        });
        let first = first_requests(&log);
        let least = first.values().copied().fold(f64::INFINITY, f64::min);
        let spread = first.values().copied().fold(0.0, f64::max) - least;
        // Arrivals of agents come in turns: those of the last one begin with the fourth.
        let turns = (DELAYS.len() - 1) as f64 / f64::from(RATE);
        rows.push(Row {
            what: "first requests of the agents in nginx's log",
            found: format!(
                "{} agents, {:.0} ms apart, {:.1} of them by turns",
                first.len(),
                spread * 1e3,
                turns * 1e3
            ),
            is_met: first.len() == DELAYS.len()
                && (spread - turns).abs() <= MOST_SPREAD.as_secs_f64(),
        });
        Ok(summary)
    }

    /// The same load by one generator.
    fn single_run(&self, fleet: &Value, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let mut single = self.network.in_agent(0, self.program);
        single.args(["load", "--json"]).args(load());
        let single = json(&finished(spawn(single)?)?)?;
        let times = |summary: &Value| {
            ["p50_us", "p99_us"].map(|key| {
                let value = summary["latency"]["from_intended"][key].as_f64();
                value.unwrap_or(f64::NAN) / 1e3
            })
        };
        let ([p50, p99], [own_p50, own_p99]) = (times(fleet), times(&single));
        rows.push(Row {
            what: "p50 and p99 of all, and of a single generator",
            found: format!("{p50:.2} and {p99:.2} ms, {own_p50:.2} and {own_p99:.2} ms"),
            // The latencies of a server at leisure are scheduling: the merge itself is held by tests.
            is_met: (p50 - own_p50).abs() <= 0.5 && (p99 - own_p99).abs() <= 5.0,
        });
        Ok(())
    }

    /// nginx, observed from another namespace and here in one run.
    fn observed_run(&self, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let mut observer = self.network.in_hub(self.program);
        observer.args(["observe", "--listen", &format!("{HUB}:{OBSERVER}")]);
        observer.args(["--allow", "pid"]);
        for (flag, file) in [
            ("--token-file", "token"),
            ("--cert", "cert.pem"),
            ("--key", "cert-key.pem"),
        ] {
            observer.arg(flag).arg(self.folder.join(file));
        }
        let _observer = Server::start(quiet(&mut observer))?;
        wait(Duration::from_secs(1));
        let pid = self.nginx.to_string();
        let mut load = self.network.in_agent(0, self.program);
        load.args(["load", "--json", "-c", "8", "-z", "5s", "--pid", &pid]);
        load.args([
            "--observe",
            &format!("web=https://{HUB}:{OBSERVER}/?pid={pid}"),
        ]);
        load.arg("--observe-token-file")
            .arg(self.folder.join("token"));
        load.arg("--observe-ca").arg(self.folder.join("cert.pem"));
        load.arg(url());
        let summary = json(&finished(spawn(load)?)?)?;
        let cost = |cost: &Value| cost["cpu_us_per_request"].as_f64().unwrap_or(f64::NAN);
        let (here, there) = (
            cost(&summary["target"]),
            cost(&summary["observed"][0]["cost"]),
        );
        rows.push(Row {
            what: "CPU per request here, and from elsewhere",
            found: format!("{here:.2} and {there:.2} µs"),
            is_met: (there / here - 1.0).abs() <= NEAR,
        });
        Ok(())
    }

    /// One agent in each namespace, which ends after a run.
    fn agents(&self) -> Result<Vec<Server>, Failure> {
        (0..DELAYS.len()).map(|number| self.agent(number)).collect()
    }

    fn agent(&self, number: usize) -> Result<Server, Failure> {
        let mut agent = if number == AHEAD.0 {
            let mut shifted = self.network.in_agent(number, "faketime");
            shifted.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            shifted.args(["-f", AHEAD.1]).arg(self.program);
            shifted
        } else {
            self.network.in_agent(number, self.program)
        };
        agent.args(["agent", "--once", "--cores", "1"]);
        agent.args(["--name", &format!("agent-{number}"), "--allow", HUB]);
        agent.args(["--nats", &format!("nats://127.0.0.1:{BROKER}"), "--trust"]);
        agent.arg(self.folder.join("trust.pem"));
        Server::start(quiet(&mut agent))
    }

    /// The coordinator of the load.
    fn coordinator(&self, more: &[&str]) -> Command {
        let mut coordinator = self.fleet(&["--json"]);
        coordinator.args(more).args(load());
        coordinator
    }

    /// A coordinator of all agents, without what they are to do.
    fn fleet(&self, more: &[&str]) -> Command {
        let mut coordinator = self.network.in_hub(self.program);
        let broker = format!("nats://127.0.0.1:{BROKER}");
        coordinator.args(["load", "--fleet", &broker, "--sign"]);
        coordinator.arg(self.folder.join("key.pem"));
        coordinator.args(["--agents", &DELAYS.len().to_string()]);
        coordinator.args(["--most-spread", PERMITTED_SPREAD]);
        coordinator.args(more);
        coordinator
    }

    /// nginx's log.
    fn log(&self) -> Result<String, Failure> {
        let log = fs::read_to_string(self.folder.join("access.log"));
        log.map_err(|error| format!("nginx's log: {error}").into())
    }
}

/// When the first request of each address came, in seconds.
fn first_requests(log: &str) -> BTreeMap<&str, f64> {
    let mut first = BTreeMap::new();
    for line in log.lines() {
        if let Some((time, address)) = line.split_once(' ')
            && let Ok(time) = time.parse()
        {
            first.entry(address).or_insert(time);
        }
    }
    first
}

/// The load of each run, for the command line.
fn load() -> Vec<String> {
    let words = format!("-c 32 -q {RATE} -z {SECONDS}s {}", url());
    words.split(' ').map(str::to_owned).collect()
}

/// Of nginx.
pub(crate) fn url() -> String {
    format!("http://{HUB}:{NGINX}/")
}

/// Keys of the run, a certificate of the observer, and its token.
pub(crate) fn keys(root: &Path, folder: &Path) -> Outcome {
    let openssl = |words: &str| {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(folder).args(words.split(' '));
        step::run(folder, &mut openssl)
    };
    openssl("genpkey -algorithm ed25519 -out key.pem")?;
    openssl("pkey -in key.pem -pubout -out trust.pem")?;
    openssl(&format!(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout cert-key.pem -out cert.pem -days 1 -subj /CN=hub \
         -addext subjectAltName=IP:{HUB} -addext basicConstraints=critical,CA:FALSE"
    ))?;
    let token = step::output(root, Command::new("openssl").args(["rand", "-hex", "32"]))?;
    fs::write(folder.join("token"), token.trim()).map_err(|error| error.to_string().into())
}

/// The configuration of an nginx that gives one short answer.
///
/// - `has_log`: whether it logs the time and the address of each request. One without a log shares its port with others.
pub(crate) fn nginx(folder: &Path, has_log: bool) -> String {
    let folder = folder.display();
    let log = if has_log {
        format!("{folder}/access.log times")
    } else {
        "off".to_owned()
    };
    let shared = if has_log { "" } else { " reuseport" };
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  log_format times '$msec $remote_addr';\n  access_log {log};\n  keepalive_requests 1000000;\n\
         client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n\
         server {{ listen {NGINX}{shared}; location / {{ return 200 \"hello\\n\"; }} }}\n}}\n"
    )
}

pub(crate) fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// A command whose output is read.
fn spawn(mut command: Command) -> Result<std::process::Child, Failure> {
    println!("$ {}", step::shown(&command));
    command.stdout(Stdio::piped());
    let child = command.spawn();
    child.map_err(|error| format!("cannot start `{}`: {error}", step::shown(&command)).into())
}

/// Its output, once it has ended well.
fn finished(child: std::process::Child) -> Result<Output, Failure> {
    let output = child.wait_with_output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(format!("the run ended with {}", output.status).into())
    }
}

fn json(output: &Output) -> Result<Value, Failure> {
    serde_json::from_slice(&output.stdout).map_err(|error| format!("the summary: {error}").into())
}
