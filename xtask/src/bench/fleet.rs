//! `cargo xtask bench fleet`: what a load from several agents carries, and what being one of a fleet costs.
//!
//! Each agent is in a network namespace of its own; broker, coordinator and two nginx are in another one. Agents have a core, and
//! everything else has the others. It takes root.
//!
//! - Two agents with four tenths of a core each beside one: pairs of runs in turns, the median of their ratios. A script is
//!   dearer for an agent than for the server, so that agents are the limit; with a URL alone two agents and the server may need
//!   more than this machine has, which is printed and not judged.
//! - The processor time of an agent beside that of `plimsoll load` with the same load, from /proc/PID/stat.
//! - Reading and merging the ticks of a hundred agents: the benchmark `fleet_merge` of `plimsoll-bench`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::process::cpu_seconds;
use super::{Arguments, cannot, peers, target_directory, write_section};
use crate::clock::wait;
use crate::control_group::ControlGroup;
use crate::fleet::network::{HUB, Network};
use crate::fleet::{BROKER, IP, keys, nginx, quiet, url};
use crate::packages::{self, Package};
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// Debian's, which is used where there is no Go.
const NATS: Package = Package {
    program: "nats-server",
    name: "nats-server",
};

/// The newest broker, built by Go with `--install-peers`.
const NEWEST: (&str, &str) = ("github.com/nats-io/nats-server/v2", "v2.15.3");

/// Of a core, for each agent.
const QUOTA_PERCENT: u32 = 40;

/// What two agents have to carry of one.
const LEAST_RATIO: f64 = 1.9;

/// The most that being an agent may add to the time of a load, of an agent's quota.
const MOST_OF_AGENT: f64 = 0.01;

/// Requests per second of the load whose cost is compared.
const RATE: u32 = 2_000;

/// Agents at most, each in a namespace of its own.
const AGENTS: usize = 2;

/// A script that prints its rate.
const SCRIPT: &str = "import http from 'k6/http';
import { check } from 'k6';
export default function () {
  check(http.get(__ENV.TARGET), { 'is 200': (r) => r.status === 200 });
}
export function handleSummary(data) {
  return { stdout: String(data.metrics.http_reqs.values.rate) };
}
";

/// The core of the agents, which have less than one together, and the cores of servers, broker and coordinator.
const AGENTS_CORE: &str = "0";
const HUB_CORES: &str = "1-1023";

/// What agents send in the runs whose rates are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// Requests for a URL.
    Url,
    /// Those of a script of k6.
    Script,
}

/// A program with its broker and a server.
struct Bench<'a> {
    program: &'a Path,
    folder: &'a Path,
    seconds: u32,
    _processes: [Server; 3],
    network: Network,
}

/// Runs the task.
pub(super) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let target = target_directory(root)?;
    let peers = target.join("peers");
    if arguments.install_peers {
        peers::go(root, &peers, NEWEST, NATS.program)?;
    }
    let found = packages::find(NATS.program, &[peers.join("bin")]);
    let broker = if let Some(broker) = found {
        broker
    } else {
        packages::install(root, &[NATS])?;
        NATS.program.into()
    };
    let version = step::output(root, Command::new(&broker).arg("--version"))?;
    packages::install(root, &[IP, packages::NGINX, packages::OPENSSL])?;
    // What a quick run shows is that everything works.
    let (profile, path) = if arguments.quick {
        ("dev", "debug/plimsoll")
    } else {
        ("dist", "dist/plimsoll")
    };
    let build = ["build", "--profile", profile, "--locked", "-p", "plimsoll"];
    step::run(root, &mut step::cargo(&build))?;
    let directory = target.join(format!("bench-fleet-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| cannot("create", &directory, &error))?;
    let program = target.join(path);
    let measured = Bench::start(root, &program, &broker, &directory, arguments.quick)
        .and_then(|bench| measure(&bench, if arguments.quick { 1 } else { 5 }));
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    let (mut text, mut missed) = measured?;
    text.extend(["- broker: ", version.trim(), "\n"]);
    let mut merge = step::cargo(&["bench", "--locked", "-p", "plimsoll-bench"]);
    merge.args(["--bench", "fleet_merge", "--profile", profile]);
    if arguments.quick {
        merge.args(["--", "--test"]);
    }
    let printed = step::output(root, &mut merge)?;
    println!("{printed}");
    let figures = printed.lines().filter(|line| {
        let starts = ["a tick of", "100 agents", "1,000 agents"];
        starts.iter().any(|start| line.starts_with(start))
    });
    for line in figures {
        text.extend(["- ", line, "\n"]);
    }
    missed.extend(merging(&printed));
    println!("\n{text}");
    if arguments.write {
        write_section(&root.join("docs/benchmarks.md"), "fleet", &text)?;
    }
    if missed.is_empty() {
        Ok(())
    } else if arguments.quick {
        println!(
            "limits not met, which means little of a short run: {}",
            missed.join("; ")
        );
        Ok(())
    } else {
        Err(format!("limits not met: {}", missed.join("; ")).into())
    }
}

/// Whether the ticks of a hundred agents, ten a second, take at most a tenth of a core.
fn merging(printed: &str) -> Option<String> {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix("100 agents with ten ticks a second: "));
    let percent = line.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    match percent {
        None => Some("fleet_merge printed no share of a core".to_owned()),
        Some(percent) if percent > 10.0 => Some(format!("merging takes {percent} % of a core")),
        Some(_) => None,
    }
}

/// The figures as a section of docs/benchmarks.md, and limits that are not met.
fn measure(bench: &Bench<'_>, pairs: usize) -> Result<(String, Vec<String>), Failure> {
    let mut missed = Vec::new();
    let (ratio, rate) = ratio(bench, Sent::Script, pairs)?;
    if ratio < LEAST_RATIO {
        missed.push(format!("two agents carry {ratio:.2} times what one does"));
    }
    let (url_ratio, url_rate) = self::ratio(bench, Sent::Url, pairs)?;
    let (alone, agent) = costs(bench, pairs)?;
    let added = (agent - alone).max(0.0);
    let share = added / (f64::from(QUOTA_PERCENT) / 100.0);
    if share > MOST_OF_AGENT {
        missed.push(format!(
            "being an agent takes {:.1} % of its time",
            share * 100.0
        ));
    }
    let text = format!(
        "## A load from several agents\n\n\
         - two agents, {QUOTA_PERCENT} % of a core each, with a script of k6: {ratio:.2} times the rate of one ({rate:.0}/s), median of {pairs} pairs; at least {LEAST_RATIO}\n\
         - the same with a URL alone: {url_ratio:.2} times ({url_rate:.0}/s); the servers have the other cores of this machine\n\
         - {RATE} requests a second: {:.1} ms of CPU a second as an agent, {:.1} ms as `plimsoll load`; medians; the difference is {:.1} % of such an agent\n",
        agent * 1e3,
        alone * 1e3,
        share * 100.0,
    );
    Ok((text, missed))
}

/// Processor time of a second of an open loop by `plimsoll load` and by an agent, in seconds; medians.
fn costs(bench: &Bench<'_>, pairs: usize) -> Result<(f64, f64), Failure> {
    let (mut alone, mut agent) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (one, other) = (bench.cost(false)?, bench.cost(true)?);
        println!(
            "a second of {RATE}/s takes {:.1} ms, as an agent {:.1} ms",
            one * 1e3,
            other * 1e3
        );
        alone.push(one);
        agent.push(other);
    }
    Ok((median(&mut alone), median(&mut agent)))
}

/// How many times the rate of one agent two have, and the rate of one; medians.
fn ratio(bench: &Bench<'_>, sent: Sent, pairs: usize) -> Result<(f64, f64), Failure> {
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for pair in 0..pairs {
        let (first, second) = if pair % 2 == 0 { (1, 2) } else { (2, 1) };
        let one = bench.rate(sent, first)?;
        let other = bench.rate(sent, second)?;
        let (one, two) = if first == 1 {
            (one, other)
        } else {
            (other, one)
        };
        println!(
            "{sent:?}: one agent {one:.0}/s, two {two:.0}/s, {:.3} times",
            two / one
        );
        ratios.push(two / one);
        rates.push(one);
    }
    Ok((median(&mut ratios), median(&mut rates)))
}

impl<'a> Bench<'a> {
    fn start(
        root: &Path,
        program: &'a Path,
        nats: &Path,
        folder: &'a Path,
        is_quick: bool,
    ) -> Result<Self, Failure> {
        let network = Network::new(root, AGENTS)?;
        keys(root, folder)?;
        let configuration = folder.join("nginx.conf");
        fs::write(&configuration, nginx(folder, false))
            .map_err(|error| cannot("write", &configuration, &error))?;
        let script = folder.join("get.js");
        fs::write(&script, SCRIPT).map_err(|error| cannot("write", &script, &error))?;
        // Each is one process: together they have the cores that agents leave.
        let nginx = || {
            let mut server = network.in_hub("taskset");
            server.args(["-c", HUB_CORES, "nginx", "-c"]);
            Server::start(quiet(server.arg(&configuration)))
        };
        let mut broker = network.in_hub("taskset");
        broker.args(["-c", HUB_CORES]).arg(nats);
        broker.args(["-js", "-a", "0.0.0.0", "-p", &BROKER.to_string(), "-sd"]);
        broker.arg(folder.join("broker"));
        let processes = [nginx()?, nginx()?, Server::start(quiet(&mut broker))?];
        // They listen in another namespace, where this process cannot see when they are ready.
        wait(Duration::from_secs(2));
        Ok(Self {
            program,
            folder,
            seconds: if is_quick { 2 } else { 5 },
            _processes: processes,
            network,
        })
    }

    /// An agent that ends after one run, in the namespace of this number.
    fn agent(&self, number: usize) -> Result<Server, Failure> {
        let mut agent = self.network.in_agent(number, "taskset");
        agent.args(["-c", AGENTS_CORE]).arg(self.program);
        agent.args(["agent", "--once", "--cores", "1", "--allow", HUB]);
        agent.args(["--name", &format!("agent-{number}")]);
        agent.args(["--nats", &format!("nats://{HUB}:{BROKER}"), "--trust"]);
        agent.arg(self.folder.join("trust.pem"));
        Server::start(quiet(&mut agent))
    }

    /// The coordinator of a run.
    fn load(&self, agents: usize, load: &[&str], sent: Sent) -> Command {
        let mut command = self.network.in_hub("taskset");
        command.args(["-c", HUB_CORES]).arg(self.program);
        let broker = format!("nats://127.0.0.1:{BROKER}");
        command.args(["load", "--fleet", &broker, "--sign"]);
        command.arg(self.folder.join("key.pem"));
        command.args(["--agents", &agents.to_string(), "--most-spread", "5s"]);
        command.args(load);
        match sent {
            Sent::Url => command.args(["--json", &url()]),
            Sent::Script => {
                let target = format!("TARGET={}", url());
                command
                    .args(["-e", &target])
                    .arg(self.folder.join("get.js"))
            }
        };
        command
    }

    /// Requests per second of so many agents, each within its quota, over a closed loop of 16 connections each.
    fn rate(&self, sent: Sent, agents: usize) -> Result<f64, Failure> {
        let mut groups = Vec::new();
        for number in 0..agents {
            let group = ControlGroup::limited_to(QUOTA_PERCENT);
            let group = group.ok_or("no control group can be limited on this machine")?;
            let agent = self.agent(number)?;
            group.add(&agent.0)?;
            // The group ends after its process.
            groups.push((agent, group));
        }
        let connections = (16 * agents).to_string();
        let time = format!("{}s", self.seconds);
        let (connections_flag, time_flag) = match sent {
            Sent::Url => ("-c", "-z"),
            Sent::Script => ("-u", "-d"),
        };
        let load = [connections_flag, &connections, time_flag, &time];
        // The generator is the limit here, which is a caution and no failure.
        let printed = step::output(Path::new("/"), &mut self.load(agents, &load, sent))?;
        if sent == Sent::Script {
            // The agents side by side follow.
            let rate = printed.lines().next().unwrap_or_default().parse();
            return rate
                .map_err(|_| format!("no rate in what the script printed: {printed}").into());
        }
        let summary: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
        let rate = summary["requests_per_second"].as_f64();
        Ok(rate.ok_or("the summary has no requests_per_second")?)
    }

    /// Processor time of a second of an open loop, in seconds: what a longer run takes more than a shorter one.
    ///
    /// - `is_agent`: of an agent; otherwise of `plimsoll load` with the same load.
    fn cost(&self, is_agent: bool) -> Result<f64, Failure> {
        let (short, long) = (self.seconds, 3 * self.seconds);
        let spent = |seconds: u32| -> Result<f64, Failure> {
            let rate = RATE.to_string();
            let time = format!("{seconds}s");
            let load = ["-c", "16", "-q", &rate, "-z", &time];
            if is_agent {
                let agent = self.agent(0)?;
                let mut coordinator = self.load(1, &load, Sent::Url);
                let coordinator = Server::start(coordinator.stdout(Stdio::null()))?;
                spent_beside(agent, coordinator)
            } else {
                let mut alone = self.network.in_agent(0, "taskset");
                alone
                    .args(["-c", AGENTS_CORE])
                    .arg(self.program)
                    .args(["load", "--json", "-t", "1"])
                    .args(load)
                    .arg(url());
                let alone = Server::start(alone.stdout(Stdio::null()))?;
                spent_until_end(alone)
            }
        };
        let (short_spent, long_spent) = (spent(short)?, spent(long)?);
        Ok((long_spent - short_spent) / f64::from(long - short))
    }
}

/// Processor time of a process until it ends, in seconds.
fn spent_until_end(mut process: Server) -> Result<f64, Failure> {
    let mut last = 0.0;
    loop {
        if process
            .0
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_some()
        {
            return Ok(last);
        }
        // A process that has ended meanwhile has no figures.
        last = cpu_seconds(process.0.id()).unwrap_or(last);
        wait(Duration::from_millis(20));
    }
}

/// The same of an agent, whose coordinator is waited for too.
fn spent_beside(agent: Server, mut coordinator: Server) -> Result<f64, Failure> {
    let spent = spent_until_end(agent)?;
    let status = coordinator.0.wait().map_err(|error| error.to_string())?;
    if status.success() {
        Ok(spent)
    } else {
        Err(format!("the coordinator ended with {status}").into())
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_core_is_read_from_what_the_benchmark_prints() {
        let printed = |percent: &str| {
            format!("a\n100 agents with ten ticks a second: {percent} % of a core\nb\n")
        };
        assert_eq!(merging(&printed("9.9")), None);
        assert!(merging(&printed("10.4")).unwrap().contains("10.4"));
        assert!(merging("").is_some());
    }
}
