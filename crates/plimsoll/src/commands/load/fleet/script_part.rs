//! A part of a script's run, at an agent: the iterations of its execution segment.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args as _, FromArgMatches as _};
use plimsoll_fleet::{
    AgentReport, Argument, CheckFigures, Checksum, Counted, FiguresError, PartControl, PartError,
    PartTick, PreparedPart, RunOrder, ScriptFigures, Share,
};
use plimsoll_k6::{
    ExitCode as K6ExitCode, Invocation, LineSource, Overrides, PartCheck, PartFigures, RunServers,
    ScriptPart, SummaryMode, run,
};
use plimsoll_model::Clock as _;
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;
use serde_json::json;

use super::super::script::flags::{RunFlags, TestType};
use super::super::script::load::Loaded;
use super::super::script::{load, speaks};
use crate::temporary_folder::TemporaryFolder;
use crate::terminal;

/// Flags that an order of a script may have.
const FLAGS: [&str; 3] = ["--http2", "--http3", "--exact-trends"];

/// In an order: the coordinator makes a record, for which ticks have the exchanges. No flag of a command line.
pub(super) const RECORDS: &str = "record exchanges";

struct ScriptJob {
    loaded: Loaded,
    flags: RunFlags,
    workers: usize,
    /// As options of k6 have them.
    segment: String,
    sequence: String,
    /// Whether ticks have the exchanges.
    records: bool,
    _folder: TemporaryFolder,
}

/// The flags of an order, and whether the coordinator makes a record.
pub(super) fn flags_of(order: &RunOrder) -> Result<(Vec<String>, bool), PartError> {
    let mut flags = Vec::new();
    let mut records = false;
    for argument in &order.command {
        match argument {
            Argument::Text(word) if word == RECORDS => records = true,
            Argument::Text(flag) if FLAGS.contains(&flag.as_str()) => flags.push(flag.clone()),
            _ => return Err("the order has flags that scripts do not take".into()),
        }
    }
    Ok((flags, records))
}

/// Compiles the script of an order.
pub(super) fn prepare(
    order: &RunOrder,
    folder: TemporaryFolder,
    share: Share,
) -> Result<Box<dyn PreparedPart>, PartError> {
    let archive = order.files.first().ok_or("the order has no script")?;
    let (mut arguments, records) = flags_of(order)?;
    let path = folder.path().join(&archive.name);
    arguments.push(path.to_string_lossy().into_owned());
    let command = RunFlags::augment_args(clap::Command::new("load").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments);
    let flags = matches.and_then(|matches| RunFlags::from_arg_matches(&matches));
    let flags = flags.map_err(|error| format!("the order has wrong flags: {error}"))?;
    let loaded = load(&flags.source, &flags.global, Some(TestType::Archive), false);
    let loaded = loaded.map_err(|(problem, _)| problem.message)?;
    let mut bounds: Vec<_> = order.shares.values().map(|share| share.first).collect();
    bounds.push(share.of);
    bounds.sort_unstable();
    let bound = |number: usize| format!("{number}/{}", share.of);
    let sequence = bounds.into_iter().map(bound).collect::<Vec<_>>().join(",");
    Ok(Box::new(ScriptJob {
        loaded,
        flags,
        workers: share.workers,
        segment: format!(
            "{}:{}",
            bound(share.first),
            bound(share.first + share.workers)
        ),
        sequence,
        records,
        _folder: folder,
    }))
}

impl PreparedPart for ScriptJob {
    fn run(
        self: Box<Self>,
        control: PartControl<'_>,
    ) -> Result<Option<Box<AgentReport>>, PartError> {
        let interrupt = Arc::clone(&control.interrupt);
        let is_interrupted = || interrupt.is_set();
        let control = RefCell::new(control);
        let began = Cell::new(None);
        let start = || {
            let start = (control.borrow_mut().start)()?;
            wait_until(start.at);
            began.set(Some((start.at, SystemClock.now())));
            Some(start.data)
        };
        let on_tick = |figures: &PartFigures| {
            let tick = tick(figures);
            (control.borrow_mut().on_tick)(tick);
        };
        let lines = Arc::new(|level: Level, text: &str, _: LineSource| {
            if level != Level::Debug {
                terminal::log_line(text);
            }
        });
        let mut overrides = Overrides::default();
        for (key, value) in [
            ("executionSegment", &self.segment),
            ("executionSegmentSequence", &self.sequence),
        ] {
            overrides.options.insert(key.to_owned(), json!(value));
        }
        let invocation = Invocation {
            overrides,
            summary_mode: SummaryMode::Disabled,
            exact_trends: self.flags.exact_trends,
            workers: self.workers,
            speaks: speaks(&self.flags),
            servers: RunServers::Elsewhere,
            part: Some(ScriptPart {
                start: &start,
                on_tick: &on_tick,
                records: self.records,
            }),
            ..self.loaded.invocation(lines, &is_interrupted)
        };
        let outcome = run(&invocation);
        let Some((agreed, began)) = began.get() else {
            // Without a start it has failed, or was called off.
            return if interrupt.is_set() || outcome.message.is_empty() {
                Ok(None)
            } else {
                Err(outcome.message.into())
            };
        };
        let (mut abort, mut failed) = (None, None);
        match outcome.exit {
            K6ExitCode::ScriptAborted => abort = Some(outcome.message),
            K6ExitCode::MarkedAsFailed => failed = Some(outcome.message),
            // Thresholds are judged over all agents, elsewhere.
            K6ExitCode::Fine | K6ExitCode::ExternalAbort | K6ExitCode::ThresholdsFailed => {}
            _ if outcome.message.is_empty() => {}
            _ => return Err(outcome.message.into()),
        }
        let stopped = SystemClock.now().saturating_duration_since(agreed);
        let late = began.saturating_duration_since(agreed);
        let report = outcome.report.as_deref();
        Ok(Some(Box::new(AgentReport::of_script(
            report,
            (stopped, late),
            abort,
            failed,
        ))))
    }
}

/// The figures as messages have them.
pub(super) fn script_figures(figures: &PartFigures) -> ScriptFigures {
    let checks = figures.checks.iter().map(|check| CheckFigures {
        group: check.group.clone(),
        name: check.name.clone(),
        passes: check.passes,
        fails: check.fails,
    });
    let mut script = ScriptFigures::new(
        &figures.series,
        checks.collect(),
        figures.groups.clone(),
        &figures.scenarios,
        figures.exchanges.as_ref(),
    );
    script.busiest_worker_percent = figures.busiest_worker_percent.round();
    script
}

/// The same as a run has them.
pub(super) fn part_figures(script: &ScriptFigures) -> Result<PartFigures, FiguresError> {
    let checks = script.checks.iter().map(|check| PartCheck {
        group: check.group.clone(),
        name: check.name.clone(),
        passes: check.passes,
        fails: check.fails,
    });
    Ok(PartFigures {
        series: script.series()?,
        checks: checks.collect(),
        groups: script.groups.clone(),
        scenarios: script.scenarios(),
        exchanges: script.exchanges()?,
        busiest_worker_percent: script.busiest_worker_percent,
        ..PartFigures::default()
    })
}

fn tick(figures: &PartFigures) -> PartTick {
    let script = script_figures(figures);
    PartTick {
        at_us: u64::try_from(figures.at.as_micros()).unwrap_or(u64::MAX),
        grace: false,
        is_last: figures.is_last,
        checksum: Checksum::of_script(&script),
        figures: Counted::Script(Box::new(script)),
    }
}

fn wait_until(start: Instant) {
    loop {
        let left = start.saturating_duration_since(SystemClock.now());
        if left == Duration::ZERO {
            return;
        }
        thread::park_timeout(left);
    }
}
