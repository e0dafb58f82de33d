//! Output of `plimsoll load` while it runs and at its end.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::{Interrupt, RunPlan, Standing};
use plimsoll_model::{AgentStanding, RunSummary, three_figures};
use plimsoll_report::export::{Exporter, Junit, Markdown, Prometheus};
use plimsoll_report::text::{self, Detail, Progress, SecondsTogether};
use plimsoll_report::{RunRecord, SummaryDocument, samples_csv};

use super::Args;
use super::view::{Screen, View};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// How a run is followed while it goes on.
pub(super) enum Live {
    /// Over the whole terminal.
    Screen(Screen),
    /// One line on standard error, written over each second.
    Line(Progress),
    /// Lines on standard error, which is no terminal, this far apart.
    Log {
        progress: Progress,
        every: Duration,
        next: Duration,
        seconds: SecondsTogether,
    },
}

/// The default time between lines in a log: a run of an hour has 360.
const LOG_EVERY: Duration = Duration::from_secs(10);

impl Live {
    pub(super) fn new(args: &Args, plan: &RunPlan, interrupt: &Arc<Interrupt>) -> Self {
        let duration = plan.stop.duration.map(|duration| plan.warm_up + duration);
        if takes_screen(args) {
            let view = View::new(title(plan), duration, plan.stop.requests, plan.exchanges());
            // A terminal that refuses still shows lines.
            if let Ok(screen) = Screen::open(view, Arc::clone(interrupt)) {
                return Self::Screen(screen);
            }
        }
        let progress = Progress {
            duration,
            requests: plan.stop.requests,
            exchanges: plan.exchanges(),
            ..Progress::default()
        };
        if io::stderr().is_terminal() {
            return Self::Line(progress);
        }
        let every = if args.output.no_tui {
            Duration::ZERO
        } else {
            LOG_EVERY
        };
        Self::Log {
            progress,
            every,
            next: every,
            seconds: SecondsTogether::default(),
        }
    }

    /// - `agents`: side by side; empty where this process makes the run.
    pub(super) fn show(&mut self, standing: &Standing<'_>, agents: &[AgentStanding]) {
        let tick = standing.tick;
        match self {
            Self::Screen(screen) => screen.update(standing, agents),
            Self::Line(progress) => {
                note(progress, standing);
                let line = text::live(tick, progress, terminal::style_of_stderr());
                terminal::overwrite_line(&line);
            }
            Self::Log {
                progress,
                every,
                next,
                seconds,
            } => {
                seconds.add(tick);
                // Seconds end a beat early or late.
                if tick.at + tick.length / 2 >= *next {
                    note(progress, standing);
                    let line = seconds.end_line(tick, standing.latency);
                    terminal::log_line(&text::live(&line, progress, terminal::style_of_stderr()));
                    *next = tick.at + *every;
                }
            }
        }
    }

    /// Says what has happened beside the figures.
    ///
    /// - `stays`: whether it is to be read until something else is said.
    #[cfg(feature = "fleet")]
    pub(super) fn note(&mut self, text: &str, stays: bool) {
        match self {
            Self::Screen(screen) => screen.note(stays.then(|| text.to_owned())),
            Self::Line(_) => {
                terminal::overwrite_line("");
                terminal::log_line(text);
            }
            Self::Log { .. } => terminal::log_line(text),
        }
    }

    /// Leaves the terminal as it was.
    pub(super) fn end(self) {
        if let Self::Line(_) = self {
            terminal::overwrite_line("");
        }
    }
}

/// Whether the whole terminal shows the run.
pub(super) fn takes_screen(args: &Args) -> bool {
    !args.output.no_tui && terminal::can_be_taken_over()
}

fn note(progress: &mut Progress, standing: &Standing<'_>) {
    progress.errors = standing.counts.errors();
    progress.done = standing.counts.ok + standing.counts.failed;
}

/// The run in one line.
pub(super) fn title(plan: &RunPlan) -> String {
    let first = &plan.requests[0];
    let rate = plan.average_rate().map_or(String::new(), |rate| {
        let per_second = three_figures(rate.per_second());
        format!("{per_second} {} on ", plan.exchanges().rate())
    });
    format!(
        "{} {}, {rate}{} connections",
        first.request.method(),
        plan.url(),
        plan.connections
    )
}

/// Prints the summary on standard output.
pub(super) fn print(args: &Args, summary: &RunSummary) -> Result<(), Failed> {
    let samples = args.output.samples_csv.as_deref();
    let text = if samples == Some(Path::new("-")) {
        samples_csv(summary, Duration::from_millis(args.server.sample_ms))
    } else if args.output.json {
        SummaryDocument::from_summary(summary).to_json()
    } else {
        let detail = if args.output.verbose {
            Detail::Full
        } else {
            Detail::Brief
        };
        text::summary(summary, detail, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}

/// Writes the files of single formats.
pub(super) fn export(args: &Args, summary: &RunSummary) -> Result<(), Failed> {
    let files: [(&str, &Option<PathBuf>, &dyn Exporter); 3] = [
        ("--junit", &args.output.junit, &Junit),
        ("--markdown", &args.output.markdown, &Markdown),
        ("--prometheus", &args.output.prometheus, &Prometheus),
    ];
    for (flag, path, exporter) in files {
        let Some(path) = path else { continue };
        let record = RunRecord::from_summary(&args.output.run_name, summary);
        write(flag, path, &exporter.export(&[record]))?;
    }
    match args.output.samples_csv.as_deref() {
        Some(path) if path != Path::new("-") => {
            let csv = samples_csv(summary, Duration::from_millis(args.server.sample_ms));
            write("--samples-csv", path, csv.as_bytes())
        }
        _ => Ok(()),
    }
}

fn write(flag: &str, path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    fs::write(path, bytes).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Problem::with(flag, message).could_not_run()
    })
}
