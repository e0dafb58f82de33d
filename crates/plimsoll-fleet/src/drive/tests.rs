//! Coordinator and agents in one process, over the transport in memory.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_load::Interrupt;
use plimsoll_load::harness::interval_of;
use plimsoll_model::{AgentStanding, LoadtestFound, LoadtestTick};

use super::coordinate::{FleetOutcome, FleetRun, FoundRun, coordinate, find_run, new_run_name};
use super::serve::{AgentEnd, AgentSettings, OrderTrust, serve};
use crate::coordinator::FleetPlan;
use crate::merge::{LoadtestEnd, LoadtestMerger};
use crate::message::{AgentReport, ReportedProcesses};
use crate::order::{Argument, OrderFile, RunOrder, Work};
use crate::part::{PartControl, PartError, PartMaker, PartTick, PreparedPart};
use crate::share::Share;
use crate::transport::TransportError;
use crate::transport::memory::MemoryTransport;

/// Workers of the run.
const WORKERS: usize = 9;

/// Makes parts that count one check of each worker a second, and nothing else.
#[derive(Clone, Copy)]
struct Maker {
    /// The part with the first worker ends there, after this second.
    breaks_after: Option<u64>,
    /// Parts go on until they are stopped, and take no time for a second.
    is_endless: bool,
}

struct Part {
    workers: usize,
    breaks_after: Option<u64>,
    is_endless: bool,
}

impl PartMaker for Maker {
    fn prepare(
        &self,
        order: &RunOrder,
        _: Vec<OrderFile>,
        share: Share,
    ) -> Result<Box<dyn PreparedPart>, PartError> {
        assert_eq!(order.work, Work::Loadtest);
        assert_eq!(order.command, [Argument::Text("--http2".to_owned())]);
        Ok(Box::new(Part {
            workers: share.part_of(WORKERS),
            breaks_after: self.breaks_after.filter(|_| share.first == 0),
            is_endless: self.is_endless,
        }))
    }
}

impl PreparedPart for Part {
    fn run(
        self: Box<Self>,
        control: PartControl<'_>,
    ) -> Result<Option<Box<AgentReport>>, PartError> {
        let Some(_) = (control.start)() else {
            return Ok(None);
        };
        for second in 1.. {
            if self.is_endless {
                thread::park_timeout(Duration::from_millis(20));
            }
            let is_last = if self.is_endless {
                control.interrupt.is_set()
            } else {
                second == 4
            };
            let mut found = LoadtestFound::default();
            found.counts.started = self.workers as u64;
            // One of the last second was never heard of again.
            found.counts.ok = found.counts.started - u64::from(is_last);
            for number in 1..=found.counts.ok {
                found.latency.record(Duration::from_millis(number));
            }
            let interval = interval_of(&found, self.workers as u64);
            let at = Duration::from_secs(second);
            (control.on_tick)(PartTick::from_interval(&interval, at, false, is_last));
            if self.breaks_after == Some(second) {
                return Err("a process that checks has ended".into());
            }
            if is_last {
                break;
            }
        }
        let times = (Duration::from_secs(4), Duration::ZERO);
        let processes = ReportedProcesses::default();
        let report = AgentReport::of_loadtest(times, Some(1 << 20), processes);
        Ok(Some(Box::new(report)))
    }
}

/// Two agents that make a part each, and end.
fn agents(
    transport: &MemoryTransport,
    maker: Maker,
    orphan_timeout: Duration,
) -> Vec<JoinHandle<Result<AgentEnd, TransportError>>> {
    let agents = [("one", 2), ("two", 1)].into_iter().map(|(name, cores)| {
        let transport = transport.clone();
        thread::spawn(move || {
            let settings = AgentSettings {
                name: name.to_owned(),
                instance: format!("process-{name}"),
                group: "default".to_owned(),
                cores,
                program: "1".to_owned(),
                orphan_timeout,
                once: true,
                trust: OrderTrust::Everyone,
            };
            serve(
                &transport,
                &settings,
                Arc::new(maker),
                &Interrupt::default(),
                &mut |_| {},
            )
        })
    });
    agents.collect()
}

/// Coordinates a new run, or an attached one.
fn coordinated(
    transport: &MemoryTransport,
    (run, attached): (&str, Option<FoundRun>),
    broker_timeout: Duration,
    on_tick: &mut dyn FnMut(LoadtestTick, &[AgentStanding]),
) -> (FleetOutcome, LoadtestEnd) {
    let mut merger = LoadtestMerger::new(WORKERS, on_tick);
    let outcome = coordinate(
        transport,
        FleetRun {
            run: run.to_owned(),
            group: "default".to_owned(),
            fleet: FleetPlan {
                agents: 2,
                agent_wait: Duration::from_mins(1),
                ready_wait: Duration::from_mins(1),
                agent_timeout: Duration::from_mins(1),
                broker_timeout,
                goes_on_without: true,
                most_spread: Duration::from_secs(10),
                connections: WORKERS,
                is_dry: false,
            },
            program: "1".to_owned(),
            work: Work::Loadtest,
            tick_seconds: 1,
            command: vec![Argument::Text("--http2".to_owned())],
            files: Vec::new(),
            attached,
            key: None,
            most_log_bytes: 64 << 20,
            keep: false,
            interrupt: Arc::default(),
            on_note: &mut |_| {},
        },
        &mut merger,
    );
    let outcome = outcome.unwrap();
    let end = merger.finish(&outcome.members).unwrap();
    (outcome, end)
}

fn run(breaks_after: Option<u64>) -> (FleetOutcome, LoadtestEnd, Vec<LoadtestTick>) {
    let transport = MemoryTransport::default();
    let maker = Maker {
        breaks_after,
        is_endless: false,
    };
    let agents = agents(&transport, maker, Duration::from_mins(1));
    let mut ticks = Vec::new();
    let mut on_tick = |tick: LoadtestTick, agents: &[AgentStanding]| {
        assert_eq!(agents.len(), 2);
        ticks.push(tick);
    };
    let run = new_run_name();
    let patience = Duration::from_mins(1);
    let (outcome, end) = coordinated(&transport, (&run, None), patience, &mut on_tick);
    assert_eq!(outcome.left, None);
    for agent in agents {
        let end = agent.join().unwrap().unwrap();
        assert!(matches!(end, AgentEnd::Made | AgentEnd::Failed), "{end:?}");
    }
    assert_eq!(transport.names(), [""; 0]);
    (outcome, end, ticks)
}

#[test]
fn checks_of_two_agents_are_merged_as_those_of_one() {
    let (outcome, end, ticks) = run(None);
    assert_eq!(outcome.incomplete(), [""; 0]);
    // Six workers and three, four seconds.
    let agents: Vec<_> = end
        .agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.workers, agent.counts.started))
        .collect();
    assert_eq!(agents, [("one", 6, 24), ("two", 3, 12)]);
    let counts = end.found.counts;
    assert_eq!((counts.started, counts.ok, counts.aborted), (36, 34, 2));
    assert_eq!(end.found.latency.len(), 34);
    let max = end.found.latency.max().unwrap();
    assert_eq!(max.as_millis(), 6);
    assert_eq!(end.peak_memory_bytes, Some(2 << 20));
    let of_ticks: Vec<_> = ticks.iter().map(|it| (it.ok, it.in_flight)).collect();
    assert_eq!(of_ticks, [(9, 9), (18, 9), (27, 9)]);
}

#[test]
fn an_agent_that_breaks_off_leaves_what_it_had_counted() {
    let (outcome, end, _) = run(Some(2));
    assert_eq!(outcome.incomplete().len(), 1);
    assert!(
        end.cautions[0].starts_with("incomplete: agent one: "),
        "{:?}",
        end.cautions
    );
    assert!(end.cautions[0].contains("has ended"), "{:?}", end.cautions);
    let started: Vec<_> = end.agents.iter().map(|it| it.counts.started).collect();
    assert_eq!(started, [12, 12]);
    assert_eq!(end.found.counts.ok, 23);
    assert_eq!(end.elapsed, Duration::from_secs(4));
}

#[test]
fn a_broker_that_stays_away_leaves_what_was_counted_and_the_log_has_the_rest_later() {
    let transport = MemoryTransport::default();
    let maker = Maker {
        breaks_after: None,
        is_endless: true,
    };
    // The coordinator sends a beat each second.
    let agents = agents(&transport, maker, Duration::from_secs(4));
    let run = new_run_name();
    let mut cut = |_: LoadtestTick, _: &[AgentStanding]| transport.cut(true);
    let patience = Duration::from_millis(300);
    let (outcome, first) = coordinated(&transport, (&run, None), patience, &mut cut);
    assert!(outcome.is_early);
    let lack = "agent one: the broker was away for 300ms";
    assert_eq!(outcome.incomplete()[0], lack);
    assert_eq!(first.cautions[0], format!("incomplete: {lack}"));
    let counted = first.found.counts.started;
    assert!(counted >= WORKERS as u64, "{counted}");
    assert!(outcome.left.unwrap().contains("the broker is away"));
    // When it is back, agents send what they have counted since; they stop, as there is no coordinator.
    transport.cut(false);
    for agent in agents {
        assert_eq!(agent.join().unwrap().unwrap(), AgentEnd::Made);
    }
    let found = find_run(&transport, &run).unwrap();
    let mut quiet = |_: LoadtestTick, _: &[AgentStanding]| {};
    let attached = (run.as_str(), Some(found));
    let (outcome, whole) = coordinated(&transport, attached, patience, &mut quiet);
    let lack = "agent one: nothing was heard of the coordinator for 4s";
    assert_eq!(outcome.incomplete()[0], lack);
    assert!(whole.found.counts.started > counted);
    // Both have made the same seconds, six workers and three, and each was counted once.
    let started: Vec<_> = whole.agents.iter().map(|it| it.counts.started).collect();
    assert!(started[0] % 6 == 0 && started[1] % 3 == 0, "{started:?}");
    assert_eq!(transport.names(), [""; 0]);
}
