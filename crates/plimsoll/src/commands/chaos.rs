//! `plimsoll chaos`: hostile clients for a server of one's own, and how it fares.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::Endpoint;
use plimsoll_client::chaos::{
    Bounds, ChaosError, ChaosOutcome, ChaosPlan, Class, may_be_attacked, prepare,
};
use plimsoll_load::Interrupt;
use plimsoll_model::{
    ByteSize, ChaosMemory, ChaosObjective, ChaosSummary, Clock as _, DurationText, Moment,
    parse_byte_size, parse_duration,
};
use plimsoll_observe::{NotReady, Pid, Readiness, Sampler, Samples, Spawned, SpawnedPlan, Target};
use plimsoll_report::{ChaosDocument, text};
use plimsoll_wire::tls::Trust;
use plimsoll_wire::{SystemClock, descriptors};

use crate::exit::Exit;
use crate::flags::{Problems, number};
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// Attack your own server with hostile clients and report how it copes
///
/// Meanwhile a healthy client sends a request every 10 ms. The exit code is 0 if it was served within the
/// objectives, otherwise 1. Without a name, list the attacks. Only loopback and private addresses are
/// allowed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Attack to run
    #[arg(value_name = "NAME", requires = "url")]
    class: Option<Class>,

    /// URL of the server, which should respond to GET and POST
    #[arg(value_name = "URL")]
    url: Option<String>,

    /// Concurrent hostile connections, at most 2000
    #[arg(short = 'c', long, value_name = "N")]
    connections: Option<u32>,

    /// Hostile actions per second in total, at most 50000; opening a connection counts
    #[arg(short = 'q', long, value_name = "N")]
    rate: Option<u32>,

    /// Hostile actions in total, at most 1000000
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,

    /// Attack for this time, at most 60s
    #[arg(short = 'z', long, value_name = "TIME", value_parser = number::positive_duration)]
    duration: Option<Duration>,

    /// Watch the memory of this process and its descendants
    #[arg(long, value_name = "PID|NAME", conflicts_with = "spawn",
          value_parser = number::process)]
    pid: Option<u32>,

    /// Start the server with this command and stop it at the end
    #[arg(long, value_name = "COMMAND")]
    spawn: Option<String>,

    /// Maximum p99 latency of the healthy client
    // The limit below which people take a response for immediate.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    max_p99: Duration,

    /// Maximum resident memory of the server; needs --pid or --spawn
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    max_rss: Option<ByteSize>,

    /// Maximum failed requests of the healthy client
    // An attack must not cost a healthy client one request.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_failures: u64,

    /// Accept any certificate
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,

    /// Trust only the CA certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Allow addresses that are neither loopback nor private
    #[arg(long)]
    i_own_this_host: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll chaos
  plimsoll chaos slow-headers http://127.0.0.1:8080/ --pid nginx
  plimsoll chaos rapid-reset https://127.0.0.1:8443/ -k -z 10s --max-p99 50ms --max-rss 100MiB --pid 4711
  plimsoll chaos smuggling http://127.0.0.1:8080/ --json | jq '.cases[] | select(.safe | not)'";

/// How often the server's memory is looked at.
const SAMPLED: Duration = Duration::from_millis(50);

/// How long a started command may take to accept connections: most listen within a second.
const START: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let Some(class) = args.class else {
        return list();
    };
    let plan = plan(args, class)?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    // Each connection is an open file; a limit that cannot be raised shows as refused connections.
    descriptors::raise().ok();
    let url = format!(
        "{}://{}{}",
        plan.endpoint.scheme(),
        plan.endpoint.authority(),
        plan.endpoint.path_and_query()
    );
    let target = target(args, &plan.endpoint, &interrupt)?;
    let ran = attack(&plan, target.as_deref(), &interrupt);
    let name = target.as_ref().map(|target| target.name().to_owned());
    if let Some(target) = target {
        target.stop();
    }
    let ran = ran?;
    let memory = name.and_then(|name| memory(name, &ran.samples));
    let summary = ChaosSummary {
        class: class.name().to_owned(),
        about: class.about().to_owned(),
        url,
        address: ran.address,
        at: ran.at,
        elapsed: ran.outcome.elapsed,
        objectives: objectives(args, &ran.outcome, memory.as_ref()),
        hostile: ran.outcome.hostile,
        cases: ran.outcome.cases,
        healthy: ran.outcome.healthy,
        memory,
        interrupted: interrupt.is_set(),
    };
    let text = if args.json {
        ChaosDocument::from_summary(&summary).to_json()
    } else {
        text::chaos(&summary, terminal::style_of_stdout())
    };
    print(text.trim_end())?;
    Ok(match summary.is_healthy() {
        _ if summary.interrupted => Exit::Interrupted,
        true => Exit::Fine,
        false => Exit::Objective,
    })
}

fn list() -> Result<Exit, Failed> {
    let widest = Class::ALL.map(|class| class.name().len());
    let widest = widest.into_iter().max().unwrap_or(0);
    let lines = Class::ALL.map(|class| format!("{class:widest$}  {}", class.about()));
    print(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

fn plan(args: &Args, class: Class) -> Result<ChaosPlan, Failed> {
    let mut problems = Problems::default();
    let url = args.url.as_deref().unwrap_or_default();
    let endpoint = problems.value("URL", Endpoint::parse(url));
    let usual = class.bounds();
    let bounds = Bounds {
        connections: args.connections.unwrap_or(usual.connections),
        rate: args.rate.unwrap_or(usual.rate),
        count: args.count.unwrap_or(usual.count),
        duration: args.duration.unwrap_or(usual.duration),
    };
    for problem in bounds.problems() {
        problems.add("-c, -q, -n, -z", problem);
    }
    if args.max_rss.is_some() && args.pid.is_none() && args.spawn.is_none() {
        problems.add("--max-rss", "needs --pid or --spawn");
    }
    let plan = endpoint.map(|endpoint| ChaosPlan {
        class,
        endpoint,
        trust: match &args.cacert {
            Some(file) => Trust::Only(file.clone()),
            None if args.insecure => Trust::Anyone,
            None => Trust::PublicRoots,
        },
        bounds,
        is_own_host: args.i_own_this_host,
    });
    problems.unless_any(plan)
}

/// The server's processes, if they are to be watched.
fn target(
    args: &Args,
    endpoint: &Endpoint,
    interrupt: &Interrupt,
) -> Result<Option<Box<dyn Target>>, Failed> {
    if let Some(pid) = args.pid {
        let target = Pid::new(pid)
            .map_err(|error| Problem::caused_by(&error).about("--pid").could_not_run())?;
        return Ok(Some(Box::new(target)));
    }
    let Some(command) = &args.spawn else {
        return Ok(None);
    };
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| Problem::with("--spawn", "is not a command").usage())?;
    let addresses = (endpoint.host().to_string(), endpoint.port()).to_socket_addrs();
    let addresses: Vec<_> = addresses
        .map_err(|error| Problem::with("--spawn", error.to_string()).could_not_run())?
        .collect();
    // Nothing is connected to, be it only to see whether it serves, that must not be.
    if let Some(address) = addresses.iter().find(|it| !may_be_attacked(it.ip())) {
        let message = format!("{address} is not an address of this machine");
        return Err(Problem::with("--spawn", message).usage());
    }
    let plan = SpawnedPlan {
        name: None,
        argv: words,
        cores: Vec::new(),
        ready: Readiness::Accepts(addresses),
        timeout: START,
        grace: STOP,
    };
    let target = Spawned::start(&plan, &|| interrupt.is_set()).map_err(|error| Failed {
        exit: match error {
            NotReady::Interrupted { .. } => Exit::Interrupted,
            _ => Exit::CouldNotRun,
        },
        problems: vec![Problem::caused_by(&error).about("--spawn")],
    })?;
    Ok(Some(Box::new(target)))
}

/// The outcome.
struct Ran {
    address: SocketAddr,
    at: std::time::SystemTime,
    outcome: ChaosOutcome,
    samples: Samples,
}

fn attack(
    plan: &ChaosPlan,
    target: Option<&dyn Target>,
    interrupt: &Arc<Interrupt>,
) -> Result<Ran, Failed> {
    let source = target.map(Target::source).transpose();
    let source = source.map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let prepared = prepare(plan.clone()).map_err(|error| failed(&error))?;
    let address = prepared.address();
    let at = SystemClock.wall();
    let start = SystemClock.now();
    let watching = Sampler::start(source, None, start, SAMPLED, || (0, Moment::default()));
    let outcome = prepared.run(|| interrupt.is_set());
    let samples = watching.stop();
    let outcome = outcome.map_err(|error| failed(&error))?;
    Ok(Ran {
        address,
        at,
        outcome,
        samples,
    })
}

fn failed(error: &ChaosError) -> Failed {
    let problem = Problem::caused_by(error);
    match error {
        ChaosError::NotPermitted { .. } => problem
            .about("URL")
            .hint("hostile clients are for servers of your own; if this one is, say so by --i-own-this-host")
            .usage(),
        ChaosError::Tls(_) => problem.about("--cacert").usage(),
        _ => problem.could_not_run(),
    }
}

fn memory(target: String, samples: &Samples) -> Option<ChaosMemory> {
    let bytes = || samples.target.iter().map(|it| it.memory.total_bytes());
    Some(ChaosMemory {
        target,
        before_bytes: bytes().next()?,
        peak_bytes: bytes().max()?,
        after_bytes: bytes().next_back()?,
        ended: samples.target_ended.is_some(),
    })
}

fn objectives(
    args: &Args,
    outcome: &ChaosOutcome,
    memory: Option<&ChaosMemory>,
) -> Vec<ChaosObjective> {
    let healthy = &outcome.healthy;
    let p99 = healthy.latency.quantile(0.99);
    let mut objectives = vec![
        ChaosObjective {
            objective: format!("failures of the healthy client <= {}", args.max_failures),
            observed: format!(
                "{} of {}",
                healthy.failed(),
                healthy.served + healthy.failed()
            ),
            met: healthy.failed() <= args.max_failures && healthy.served > 0,
        },
        ChaosObjective {
            objective: format!(
                "p99 of the healthy client <= {}",
                DurationText(args.max_p99)
            ),
            observed: p99.map_or("none".to_owned(), |p99| DurationText(p99).to_string()),
            met: p99.is_some_and(|p99| p99 <= args.max_p99),
        },
    ];
    if !outcome.cases.is_empty() {
        let unsafe_cases = outcome.cases.iter().filter(|case| !case.is_safe()).count();
        objectives.push(ChaosObjective {
            objective: "cases that are not answered safely = 0".to_owned(),
            observed: unsafe_cases.to_string(),
            met: unsafe_cases == 0,
        });
    }
    if let Some(memory) = memory {
        objectives.push(ChaosObjective {
            objective: "the server's processes go on".to_owned(),
            observed: if memory.ended { "ended" } else { "yes" }.to_owned(),
            met: !memory.ended,
        });
        if let Some(most) = args.max_rss {
            objectives.push(ChaosObjective {
                objective: format!("resident memory <= {most}"),
                observed: ByteSize(memory.peak_bytes).to_string(),
                met: memory.peak_bytes <= most.0,
            });
        }
    }
    objectives
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| Problem::caused_by(&error).could_not_run())
}
