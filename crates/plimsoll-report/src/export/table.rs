//! The figures of runs beside one another, for every format that has tables.

use std::time::Duration;

use plimsoll_model::{Bounded, ByteSize, DurationText, Unit, grouped, percentage, rate_figures};

use crate::RunRecord;
use crate::document::{
    CostDocument, CountsDocument, EventsDocument, SaturationDocument, TargetDocument,
    ThresholdDocument, TimesDocument,
};
use crate::text::{FEW_SAMPLES, margin_of_limit};

/// Stands where there is nothing to show.
pub(super) const NOTHING: &str = "–";

type TimeOf = fn(&TimesDocument) -> Option<Bounded<f64>>;
type PartOf = fn(&RunRecord) -> Option<&TimesDocument>;
type CountOf = fn(&CountsDocument) -> u64;

/// A title, and a row of one cell a run for each label.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// The figures by which runs are compared first.
pub(super) fn principal(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Result");
    if runs.iter().any(|run| run.summary.events.is_some()) {
        table.row("events/s", runs, |run| {
            let events = run.summary.events.as_ref();
            events.map_or(NOTHING.to_owned(), |events| {
                rate_figures(events.received_per_second)
            })
        });
    }
    table.row(&format!("{}/s", exchanges(runs)), runs, |run| {
        rate_figures(run.summary.requests_per_second)
    });
    if runs.iter().any(|run| run.summary.target.is_some()) {
        table.row("server CPU per request", runs, |run| {
            let target = run.summary.target.as_ref();
            target.map_or(NOTHING.to_owned(), of_server)
        });
        table.row("server memory, peak", runs, |run| {
            let target = run.summary.target.as_ref();
            target.map_or(NOTHING.to_owned(), |target| bytes(target.peak_memory_bytes))
        });
    }
    let times: [(&str, TimeOf); 4] = [
        ("latency p50", |times| times.p50_us),
        ("latency p99", |times| times.p99_us),
        ("latency p99.9", |times| times.p99_9_us),
        ("latency max", |times| times.max_us),
    ];
    for (label, value) in times {
        table.row(label, runs, |run| optional(value(honest(run))));
    }
    table.row_if_any("failed", runs, |run| {
        let counts = &run.summary.counts;
        share(counts.failed, counts.started + counts.dropped)
    });
    table.row_if_any("error statuses", runs, |run| {
        let counts = &run.summary.counts;
        share(counts.error_statuses, counts.ok)
    });
    table.row("errors", runs, errors);
    table
}

/// The name of the exchanges of all runs.
pub(super) fn exchanges(runs: &[RunRecord]) -> &str {
    let mut names = runs.iter().map(|run| run.summary.load.exchanges.as_str());
    let first = names.next().unwrap_or("requests");
    if names.all(|name| name == first) {
        first
    } else {
        "exchanges"
    }
}

/// The same with a capital.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Everything else that a report has a row for; without rows where nothing happened.
pub(super) fn details(runs: &[RunRecord]) -> Vec<Table> {
    let mut tables = vec![latency(runs), phases(runs), requests(runs)];
    tables.push(by_name("Statuses", runs, |run| {
        let statuses = run.summary.statuses.iter();
        statuses
            .map(|(status, count)| (status.to_string(), grouped(*count)))
            .collect()
    }));
    tables.push(by_name("gRPC statuses", runs, |run| {
        let grpc = run.summary.grpc.iter();
        grpc.flat_map(|grpc| &grpc.statuses)
            .map(|(status, count)| (status.clone(), grouped(*count)))
            .collect()
    }));
    tables.push(events(runs));
    tables.push(by_name("Failures", runs, |run| {
        let failures = run.summary.failures.iter();
        failures
            .map(|failure| {
                let name = format!("{} during {}", failure.kind, failure.phase);
                (name, grouped(failure.count))
            })
            .collect()
    }));
    tables.push(by_name("Unmet expectations", runs, |run| {
        let unmet = run.summary.unmet.iter();
        unmet
            .map(|(condition, count)| (condition.clone(), grouped(*count)))
            .collect()
    }));
    tables.push(server(runs));
    tables.push(generator(runs));
    tables.push(conditions(runs));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

impl Table {
    fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            rows: Vec::new(),
        }
    }

    fn row(&mut self, label: &str, runs: &[RunRecord], cell: impl Fn(&RunRecord) -> String) {
        self.rows
            .push((label.to_owned(), runs.iter().map(cell).collect()));
    }

    /// The same, unless every run has nothing to show.
    fn row_if_any(&mut self, label: &str, runs: &[RunRecord], cell: impl Fn(&RunRecord) -> String) {
        let cells: Vec<_> = runs.iter().map(cell).collect();
        if cells
            .iter()
            .any(|cell| !matches!(cell.as_str(), NOTHING | "0"))
        {
            self.rows.push((label.to_owned(), cells));
        }
    }
}

/// A row for each name that occurs in any run, in the order of their first occurrence.
fn by_name(
    title: &'static str,
    runs: &[RunRecord],
    named: impl Fn(&RunRecord) -> Vec<(String, String)>,
) -> Table {
    let columns: Vec<_> = runs.iter().map(named).collect();
    let mut table = Table::new(title);
    for (name, _) in columns.iter().flatten() {
        if table.rows.iter().any(|(known, _)| known == name) {
            continue;
        }
        let cells = columns.iter().map(|column| {
            let found = column.iter().find(|(known, _)| known == name);
            found.map_or(NOTHING.to_owned(), |(_, cell)| cell.clone())
        });
        table.rows.push((name.clone(), cells.collect()));
    }
    table
}

fn latency(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Latency");
    let number = |run: &RunRecord| honest(run).count + honest(run).censored_count;
    if runs.iter().any(|run| number(run) < FEW_SAMPLES) {
        table.row("samples", runs, |run| grouped(number(run)));
    }
    let values: [(&str, TimeOf); 9] = [
        ("min", |times| times.min_us),
        ("mean", |times| times.mean_us),
        ("p50", |times| times.p50_us),
        ("p75", |times| times.p75_us),
        ("p90", |times| times.p90_us),
        ("p95", |times| times.p95_us),
        ("p99", |times| times.p99_us),
        ("p99.9", |times| times.p99_9_us),
        ("max", |times| times.max_us),
    ];
    for (label, value) in values {
        table.row(label, runs, |run| optional(value(honest(run))));
    }
    let parts: [(&str, PartOf); 2] = [
        ("of ok", |run| run.summary.latency.of_ok.as_ref()),
        ("of errors", |run| run.summary.latency.of_errors.as_ref()),
    ];
    for (name, part) in parts {
        for (label, value) in [values[2], values[6]] {
            table.row_if_any(&format!("{label} {name}"), runs, |run| {
                optional(part(run).and_then(value))
            });
        }
    }
    if runs
        .iter()
        .any(|run| run.summary.latency.from_intended.is_some())
    {
        for (label, value) in [values[2], values[6], values[8]] {
            let label = format!("{label} from the actual start");
            table.row(&label, runs, |run| {
                optional(value(&run.summary.latency.from_started))
            });
        }
    }
    table
}

fn phases(runs: &[RunRecord]) -> Table {
    by_name("Phases, p50 / p99", runs, |run| {
        let phases = run.summary.phases.iter();
        phases
            .map(|phase| {
                let times = [phase.times.p50_us, phase.times.p99_us].map(optional);
                (phase.phase.clone(), times.join(" / "))
            })
            .collect()
    })
}

fn requests(runs: &[RunRecord]) -> Table {
    let mut table = Table::new(capital(exchanges(runs)));
    table.row("started", runs, |run| grouped(run.summary.counts.started));
    table.row("ok", runs, |run| grouped(run.summary.counts.ok));
    let counts: [(&str, CountOf); 11] = [
        ("failed", |counts| counts.failed),
        ("aborted", |counts| counts.aborted),
        ("failed status", |counts| counts.failed_status),
        ("unmet", |counts| counts.unmet),
        ("broken", |counts| counts.broken),
        ("dropped", |counts| counts.dropped),
        ("missed", |counts| counts.missed),
        ("reconnects", |counts| counts.reconnects),
        ("redirects", |counts| counts.redirects),
        ("in warm-up", |counts| counts.warm_up),
        ("completed in window", |counts| counts.completed_in_window),
    ];
    for (label, count) in counts {
        table.row_if_any(label, runs, |run| grouped(count(&run.summary.counts)));
    }
    let of_run = |run: &RunRecord, size: u64| {
        let without = if run.summary.bytes_exclude_tls {
            " without TLS"
        } else {
            ""
        };
        format!("{}{without}", bytes(size))
    };
    table.row("received", runs, |run| {
        of_run(run, run.summary.received_bytes)
    });
    table.row("sent", runs, |run| of_run(run, run.summary.sent_bytes));
    table.row("connections opened", runs, |run| {
        grouped(run.summary.connections_opened)
    });
    table
}

/// Figures of event streams.
fn events(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Events");
    let mut row = |label: &str, value: &dyn Fn(&EventsDocument) -> String| {
        table.row_if_any(label, runs, |run| {
            run.summary
                .events
                .as_ref()
                .map_or(NOTHING.to_owned(), value)
        });
    };
    row("received", &|events| grouped(events.received));
    row("gap p50", &|events| optional(events.gaps.p50_us));
    row("gap p99", &|events| optional(events.gaps.p99_us));
    row("gap max", &|events| optional(events.gaps.max_us));
    row("streams opened", &|events| grouped(events.opened));
    row("ended by the server", &|events| grouped(events.ended));
    row("broken", &|events| grouped(events.broken));
    row("left at the end", &|events| grouped(events.left));
    table
}

fn server(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Server");
    let mut row = |label: &str, value: &dyn Fn(&TargetDocument) -> String| {
        table.row_if_any(label, runs, |run| {
            run.summary
                .target
                .as_ref()
                .map_or(NOTHING.to_owned(), value)
        });
    };
    row("processes", &|target| {
        format!("{} ({})", target.name, target.processes)
    });
    row("CPU per request", &of_server);
    row("CPU", &|target| cpu(&target.cost));
    row("memory", &|target| bytes(target.memory_bytes));
    row("memory, peak", &|target| bytes(target.peak_memory_bytes));
    row("descriptors, peak", &|target| {
        target.peak_fds.map_or(NOTHING.to_owned(), grouped)
    });
    row("threads", &|target| grouped(target.threads));
    table
}

fn generator(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Generator");
    table.row("CPU per request", runs, |run| {
        per_request(&run.summary.generator.cost)
    });
    table.row("busiest worker", runs, |run| {
        percentage(run.summary.generator.busiest_worker_percent)
    });
    table.row("timer lag p99", runs, |run| {
        time(run.summary.generator.lag_p99_us)
    });
    table.row("memory, peak", runs, |run| {
        let peak = run.summary.generator.peak_memory_bytes;
        peak.map_or(NOTHING.to_owned(), bytes)
    });
    table
}

fn conditions(runs: &[RunRecord]) -> Table {
    let mut table = Table::new("Conditions");
    table.row("load", runs, shape);
    table.row("started", runs, |run| {
        run.summary.conditions.started.clone()
    });
    table.row("plimsoll", runs, |run| {
        run.summary.conditions.plimsoll.clone()
    });
    let some = |text: &Option<String>| text.clone().unwrap_or(NOTHING.to_owned());
    table.row_if_any("kernel", runs, |run| some(&run.summary.conditions.kernel));
    table.row_if_any("processor", runs, |run| {
        some(&run.summary.conditions.cpu_model)
    });
    table.row("cores", runs, |run| grouped(run.summary.conditions.cores));
    table.row_if_any("governor", runs, |run| {
        some(&run.summary.conditions.governor)
    });
    table.row_if_any("congestion control", runs, |run| {
        some(&run.summary.conditions.congestion_control)
    });
    table.row_if_any("target", runs, |run| {
        let text = run.summary.conditions.co_located.map(|same| {
            if same {
                "on the same machine"
            } else {
                "on another machine"
            }
        });
        text.unwrap_or(NOTHING).to_owned()
    });
    table.row_if_any("cpu limit", runs, |run| {
        let cpus = run.summary.conditions.cpu_limit;
        cpus.map_or(NOTHING.to_owned(), |cpus| format!("{cpus} cores"))
    });
    table.row_if_any("memory limit", runs, |run| {
        let limit = run.summary.conditions.memory_limit_bytes;
        limit.map_or(NOTHING.to_owned(), |limit| ByteSize(limit).to_string())
    });
    table.row_if_any("load before", runs, |run| {
        let load = run.summary.conditions.load_before;
        load.map_or(NOTHING.to_owned(), |[one, ..]| format!("{one:.2}"))
    });
    table.row_if_any("stolen", runs, |run| {
        let steal = run.summary.conditions.steal_percent;
        steal.map_or(NOTHING.to_owned(), percentage)
    });
    table
}

/// Latency from the intended start where there is one.
pub(super) fn honest(run: &RunRecord) -> &TimesDocument {
    let latency = &run.summary.latency;
    latency
        .from_intended
        .as_ref()
        .unwrap_or(&latency.from_started)
}

/// `closed loop, 64 connections, 1 worker; 10.0 s measured`.
pub(super) fn shape(run: &RunRecord) -> String {
    let load = &run.summary.load;
    let model = match load.rate_per_second {
        Some(arrivals) => format!("open loop, {} arrivals/s", rate_figures(arrivals)),
        None => "closed loop".to_owned(),
    };
    let plural = |number: usize, noun: &str| {
        let ending = if number == 1 { "" } else { "s" };
        format!("{} {noun}{ending}", grouped(number))
    };
    format!(
        "{model}, {}, {}; {} measured",
        plural(load.connections, "connection"),
        plural(load.workers, "worker"),
        time(run.summary.window_us)
    )
}

/// Why the figures describe the generator, if they do.
pub(super) fn saturation(run: &RunRecord) -> Option<String> {
    let saturated = run.summary.generator.saturated.as_ref()?;
    let is_fleet = !run.summary.agents.is_empty();
    Some(saturation_text(saturated, is_fleet))
}

/// Why the generator was the limit, and what to do; the same in every format.
///
/// - `is_fleet`: agents made the run.
pub(crate) fn saturation_text(saturated: &SaturationDocument, is_fleet: bool) -> String {
    let reason = match (saturated.percent, saturated.lag_p99_us) {
        (Some(used), _) => format!("a worker used {} of its core", percentage(used)),
        (None, Some(late)) => format!(
            "its timers fired {} late (p99) although connections were free",
            time(late)
        ),
        (None, None) => format!("by its {}", saturated.by),
    };
    let remedy = if is_fleet {
        "Add agents (--agents), give them more cores, or lower the load"
    } else {
        "Add threads (-t) or cores, or lower the load"
    };
    format!(
        "the generator was the limit: {reason}. Throughput and latency describe it, and the target may carry more. \
         {remedy}"
    )
}

pub(super) fn errors(run: &RunRecord) -> String {
    let counts = &run.summary.counts;
    share(counts.errors, counts.started + counts.dropped)
}

/// `12 (1.20 %)`.
fn share(count: u64, all: u64) -> String {
    match (count, all) {
        (0, _) | (_, 0) => grouped(count),
        (count, all) => format!(
            "{} ({})",
            grouped(count),
            percentage(count as f64 / all as f64 * 100.0)
        ),
    }
}

/// `2.47 ms`, or that there was nothing.
pub(super) fn threshold_value(threshold: &ThresholdDocument) -> String {
    let Some(value) = threshold.bounded() else {
        return "no data".to_owned();
    };
    let unit = Unit::named(&threshold.unit);
    value.text(|value| unit.map_or_else(|| value.to_string(), |unit| unit.show(value)))
}

fn per_request(cost: &CostDocument) -> String {
    optional_us(cost.cpu_us_per_request)
}

/// Processor time per request of a server, with how far it may be off: `128 µs ± 5.83 µs`.
pub(super) fn of_server(server: &TargetDocument) -> String {
    let cost = per_request(&server.cost);
    match server.cpu_us_per_request_error {
        Some(error) => format!("{cost} ± {}", Unit::Microseconds.show(error)),
        None => cost,
    }
}

fn cpu(cost: &CostDocument) -> String {
    cost.cpu_percent.map_or(NOTHING.to_owned(), |value| {
        format!("{} of a core", percentage(value))
    })
}

/// `2.36 times the limit`, `12.0 % of the limit to spare`.
pub(super) fn margin(percent: f64) -> String {
    let margin = margin_of_limit(percent);
    if percent < 0.0 {
        margin
    } else {
        format!("{margin} to spare")
    }
}

pub(super) fn bytes(size: u64) -> String {
    ByteSize(size).to_string()
}

pub(super) fn time(micros: f64) -> String {
    DurationText(Duration::try_from_secs_f64(micros / 1e6).unwrap_or_default()).to_string()
}

pub(super) fn optional_us(micros: Option<f64>) -> String {
    micros.map_or(NOTHING.to_owned(), |micros| Unit::Microseconds.show(micros))
}

pub(super) fn optional(micros: Option<Bounded<f64>>) -> String {
    micros.map_or(NOTHING.to_owned(), |micros| micros.text(time))
}
