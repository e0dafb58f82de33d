//! The sections that `-v` adds: every figure of the run, its phases, its conditions.

use std::time::Duration;

use plimsoll_model::{
    Cost, EventFigures, ExchangeKind, Generator, GeneratorShare, GrpcFigures, JudgedThreshold,
    Phase, RunSummary, ServerCost, ThresholdVerdict, Times, Unit, percentage, rate_figures,
    three_figures,
};

use super::FEW_SAMPLES;
use super::conditions::conditions;
use crate::text::WIDTH;
use crate::text::numbers::{
    NOTHING, bounded, bytes, count, duration, margin_of_limit, optional, plural, share,
};
use crate::text::page::{Page, shortened};
use crate::text::requests::requests as by_request;
use crate::text::spread;
use crate::text::style::Emphasis;

/// Adds the sections.
pub(super) fn details(page: &mut Page, run: &RunSummary) {
    thresholds(page, run);
    by_request(page, run);
    if let Some(target) = &run.target {
        server(page, run, target);
    }
    requests(page, run);
    latency(page, run);
    phases(page, run);
    statuses(page, run);
    if let Some(grpc) = &run.grpc {
        calls(page, run, grpc);
    }
    if let Some(figures) = &run.events {
        events(page, run, figures);
    }
    failures(page, run);
    generator(page, &run.generator);
    conditions(page, &run.conditions);
}

fn thresholds(page: &mut Page, run: &RunSummary) {
    if run.thresholds.is_empty() {
        return;
    }
    page.heading("thresholds", "");
    for judged in &run.thresholds {
        let verdict = judged.verdict();
        let (mark, emphasis) = match verdict {
            ThresholdVerdict::Met => ("✓", None),
            ThresholdVerdict::Breached => ("✗", Some(Emphasis::Error)),
            ThresholdVerdict::NoData => ("?", Some(Emphasis::Error)),
        };
        let text = shortened(judged.threshold.text(), WIDTH - 4);
        let text = format!("{mark} {text}");
        let text = emphasis.map_or(text.clone(), |emphasis| page.style().apply(emphasis, &text));
        page.line(&format!("  {text}"));
        page.line(&format!("      {}", found(judged)));
    }
}

/// `2.47 ms: met with 50.6 % of the limit to spare`.
pub(super) fn found(judged: &JudgedThreshold) -> String {
    let Some(value) = judged.value else {
        return if judged.threshold.metric().needs_server() {
            "no data: the server was not observed throughout".to_owned()
        } else {
            "no data: nothing was measured".to_owned()
        };
    };
    let margin = judged.margin_percent().map_or(String::new(), |percent| {
        let margin = margin_of_limit(percent);
        if percent < -100.0 {
            format!(": {margin}")
        } else if percent < 0.0 {
            format!(" by {margin}")
        } else {
            format!(" with {margin} to spare")
        }
    });
    let at = judged
        .at
        .map_or(String::new(), |at| format!(", worst at {}", duration(at)));
    let ended = if judged.ended_run {
        "; it ended the run"
    } else {
        ""
    };
    let why = if value.is_censored() {
        ", counting those that were given up"
    } else {
        ""
    };
    let unit = judged.threshold.unit();
    format!(
        "{}: {}{margin}{at}{why}{ended}",
        value.text(|value| unit.show(value)),
        judged.verdict().name()
    )
}

fn server(page: &mut Page, run: &RunSummary, target: &ServerCost) {
    let cost = &target.cost;
    page.heading(
        "cost of the server",
        &format!(
            "{}, {}",
            target.name,
            plural(target.processes, "process", "processes")
        ),
    );
    let memory = target.memory;
    page.pairs(&[
        (
            "cpu per request",
            match run.cpu_error_us() {
                Some(error) => {
                    format!("{} ± {}", per_request(cost), Unit::Microseconds.show(error))
                }
                None => per_request(cost),
            },
        ),
        ("cpu", cpu_percent(cost)),
        (
            "memory",
            format!(
                "{} now ({} anonymous, {} files), {} peak",
                bytes(memory.total_bytes()),
                bytes(memory.anonymous_bytes),
                bytes(memory.file_bytes),
                bytes(target.peak_memory_bytes)
            ),
        ),
        (
            "descriptors",
            // Every server holds some; none means that they could not be counted.
            if target.peak_fds == 0 {
                "unavailable".to_owned()
            } else {
                format!("{} now, {} peak", count(target.fds), count(target.peak_fds))
            },
        ),
        ("threads", count(target.threads)),
    ]);
}

/// `9.83 µs (3.15 user, 6.68 system)`.
fn per_request(cost: &Cost) -> String {
    let Some(total) = cost.cpu_us_per_request() else {
        return format!("{NOTHING} (nothing was completed)");
    };
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / cost.exchanges as f64;
    // All in the unit of the whole.
    let (unit, size) = if total < 999.5 {
        ("µs", 1.0)
    } else {
        ("ms", 1e3)
    };
    format!(
        "{} {unit} ({} user, {} system)",
        three_figures(total / size),
        three_figures(micros(cost.cpu.user) / size),
        three_figures(micros(cost.cpu.system) / size)
    )
}

fn cpu_percent(cost: &Cost) -> String {
    cost.cpu_percent().map_or_else(
        || NOTHING.to_owned(),
        |value| format!("{} of one core", percentage(value)),
    )
}

fn requests(page: &mut Page, run: &RunSummary) {
    let counts = &run.counts;
    // Only where it differs from `ok`: responses of the grace period do not count as throughput.
    let in_window = match counts.completed_in_window {
        same if same == counts.ok => 0,
        other => other,
    };
    page.heading(run.load.exchanges.plural(), "");
    let rows = [
        ("started", counts.started, ""),
        ("ok", counts.ok, ""),
        ("failed", counts.failed, ""),
        (
            "aborted",
            counts.aborted,
            "still under way when the grace was over",
        ),
        (
            "failed status",
            counts.failed_status,
            match run.grpc {
                Some(_) => "of ok: not OK, or named by --fail-status",
                None if run.load.fail_status.is_some() => "of ok: named by --fail-status",
                None => "of ok: 429 or 5xx",
            },
        ),
        ("unmet", counts.unmet, "of ok: an --expect did not hold"),
        (
            "broken",
            counts.broken,
            "of ok: broke after they were opened",
        ),
        ("dropped", counts.dropped, "never begun: nothing was free"),
        (
            "missed",
            counts.missed,
            "due, but not begun when the run ended",
        ),
        (
            "reconnects",
            counts.reconnects,
            "sent again: the server closed without announcing it",
        ),
        (
            "redirects",
            counts.redirects,
            "followed, within their exchanges",
        ),
        (
            "in warm-up",
            counts.warm_up,
            "begun before the window, in no other count",
        ),
        (
            "in window",
            in_window,
            "completed within it: requests/s and costs",
        ),
    ];
    let always = ["started", "ok", "failed"];
    let shown: Vec<(&str, String, &str)> = rows
        .into_iter()
        .filter(|(label, value, _)| *value > 0 || always.contains(label))
        .map(|(label, value, remark)| (label, count(value), remark))
        .collect();
    page.remarks(&shown);
    let mut pairs = vec![
        (
            "received",
            format!(
                "{}, {}/s",
                bytes(run.bytes_received),
                rate_of_bytes(run.bytes_received_per_second())
            ),
        ),
        ("sent", bytes(run.bytes_sent)),
        (
            "connections",
            format!("{} opened", count(run.connections_opened)),
        ),
    ];
    if let Some(messages) = run.messages {
        let (sent, received) = (count(messages.sent), count(messages.received));
        pairs.insert(0, ("messages", format!("{sent} sent, {received} received")));
    }
    if let Some(decoded) = run.decoded {
        let (encoded, decoded) = (bytes(decoded.encoded), bytes(decoded.decoded));
        pairs.push(("content", format!("{encoded} received, {decoded} decoded")));
    }
    page.pairs(&pairs);
}

pub(super) fn rate_of_bytes(per_second: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative and far below 2^64"
    )]
    bytes(per_second.round() as u64)
}

const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
];

fn latency(page: &mut Page, run: &RunSummary) {
    let started = &run.latency.from_started;
    let views: Vec<&Times> = run
        .latency
        .from_intended
        .iter()
        .chain(std::iter::once(started))
        .collect();
    let number = views[0].view().len();
    let remark = if number < FEW_SAMPLES {
        format!("of {} only", plural(number, "sample", "samples"))
    } else {
        String::new()
    };
    page.heading("latency", &remark);
    if views.iter().all(|view| view.is_empty()) {
        page.line("  no exchange was completed");
        return;
    }
    let generator = GeneratorShare::from_run(run);
    let mut columns = match views.len() {
        1 => vec!["", "", "95 % interval"],
        _ => vec!["", "intended", "actual", "95 % interval"],
    };
    columns.extend(generator.map(|_| "generator"));
    let mut rows = vec![columns.into_iter().map(str::to_owned).collect()];
    let honest = views[0].view();
    let most = |part: Option<Duration>| part.map(|part| format!("≤ {}", duration(part)));
    let mut row = |label: &str, value: &dyn Fn(&Times) -> String, interval, part| {
        let mut cells = vec![label.to_owned()];
        cells.extend(views.iter().map(|view| value(view)));
        cells.push(interval);
        cells.extend(most(part));
        rows.push(cells);
    };
    let of_quantile = |fraction| generator?.in_quantile(honest, fraction);
    for (label, fraction) in QUANTILES {
        row(
            label,
            &|view| bounded(view.quantile(fraction)),
            interval(honest.interval(fraction)),
            of_quantile(fraction),
        );
    }
    row(
        "max",
        &|view| bounded(view.max()),
        String::new(),
        of_quantile(1.0),
    );
    let of_mean = generator.and_then(|generator| generator.in_mean(honest));
    row("mean", &|view| bounded(view.mean()), String::new(), of_mean);
    page.table(&rows);
    page.line("");
    page.marked(
        " ",
        Emphasis::Faint,
        "interval: holds the percentile at 95 %, by order statistics; too narrow where slow responses come in \
         groups",
    );
    if generator.is_some() {
        page.line("");
        page.marked(
            " ",
            Emphasis::Faint,
            "generator: the most that waits of the generator for a core can have added",
        );
    }
    if views.len() > 1 {
        page.line("");
        page.marked(
            " ",
            Emphasis::Faint,
            "intended: from the scheduled start, waiting included; actual: from the moment the \
             request was sent",
        );
    }
    page.line("");
    for bar in spread::bars(run.latency.honest().observed()) {
        page.line(&bar);
    }
}

/// `1.10–1.21 ms`, or `1.10 ms and up` if there are too few durations for an upper end.
fn interval(ends: Option<(Duration, Option<Duration>)>) -> String {
    match ends {
        None => String::new(),
        Some((low, None)) => format!("{} and up", duration(low)),
        Some((low, Some(high))) => {
            let (low, high) = (duration(low), duration(high));
            match (low.split_once(' '), high.split_once(' ')) {
                (Some((number, unit)), Some((_, other))) if unit == other => {
                    format!("{number}–{high}")
                }
                _ => format!("{low}–{high}"),
            }
        }
    }
}

fn phases(page: &mut Page, run: &RunSummary) {
    let mut rows = vec![
        ["", "count", "p50", "p99", "max"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for phase in Phase::ALL {
        let times = run.phase(phase);
        if !times.observed().is_empty() {
            rows.push(vec![
                phase.name().to_owned(),
                count(times.observed().len()),
                bounded(times.quantile(0.5)),
                bounded(times.quantile(0.99)),
                bounded(times.max()),
            ]);
        }
    }
    if rows.len() > 1 {
        page.heading("phases", "");
        page.table(&rows);
    }
}

fn statuses(page: &mut Page, run: &RunSummary) {
    // Over WebSockets there is but the one of the handshake.
    if run.statuses.is_empty() || run.load.exchanges == ExchangeKind::RoundTrip {
        return;
    }
    page.heading("statuses", "");
    let rows: Vec<Vec<String>> = run
        .statuses
        .iter()
        .map(|(status, number)| {
            vec![
                status.to_string(),
                count(*number),
                share(*number, run.counts.ok),
            ]
        })
        .collect();
    page.table(&rows);
}

/// Figures of event streams once they were open.
fn events(page: &mut Page, run: &RunSummary, events: &EventFigures) {
    page.heading("events", "");
    let quantile = |fraction| optional(events.gaps.quantile(fraction));
    let mut pairs = vec![
        (
            "received",
            format!(
                "{}, {}/s",
                count(events.received),
                rate_figures(run.events_per_second().unwrap_or_default())
            ),
        ),
        (
            "gaps",
            format!(
                "p50 {}, p99 {}, max {}",
                quantile(0.5),
                quantile(0.99),
                optional(events.gaps.max())
            ),
        ),
        (
            "streams",
            format!(
                "{} opened; {} ended by the server, {} left at the end",
                count(events.opened),
                count(events.ended),
                count(events.left)
            ),
        ),
    ];
    if events.gaps.is_empty() {
        pairs.remove(1);
    }
    page.pairs(&pairs);
    for failure in &events.failures {
        let text = format!("broke: {} during {}", failure.kind, failure.phase);
        let text = page.style().apply(Emphasis::Error, &text);
        page.line(&format!("  {:>15}  {text}", count(failure.count)));
        if let Some(cause) = &failure.example.cause {
            page.line(&format!("{:19}{}", "", shortened(cause, WIDTH - 19)));
        }
    }
}

/// Statuses of gRPC, each with the server's first message, and messages.
fn calls(page: &mut Page, run: &RunSummary, grpc: &GrpcFigures) {
    page.heading("grpc statuses", "");
    for counted in &grpc.statuses {
        let status = format!("grpc {} {}", counted.status, counted.status.code());
        let emphasis = if counted.status.is_ok() {
            Emphasis::Strong
        } else {
            Emphasis::Error
        };
        page.line(&format!(
            "  {:>15}  {:>8}  {}",
            count(counted.count),
            share(counted.count, run.counts.ok),
            page.style().apply(emphasis, &status)
        ));
        if let Some(example) = &counted.example {
            let example: String = example.chars().filter(|c| !c.is_control()).collect();
            page.line(&format!("{:29}{}", "", shortened(&example, WIDTH - 29)));
        }
    }
    let per_second = run.grpc_messages_per_second().unwrap_or_default();
    page.line(&format!(
        "  {:>15}  messages received, {}/s",
        count(grpc.messages_received),
        rate_figures(per_second)
    ));
}

fn failures(page: &mut Page, run: &RunSummary) {
    if !run.failures.is_empty() {
        page.heading("failures", "with the first cause of each");
        for failure in &run.failures {
            let text = format!("{} during {}", failure.kind, failure.phase);
            let text = page.style().apply(Emphasis::Error, &text);
            page.line(&format!("  {:>15}  {text}", count(failure.count)));
            if let Some(cause) = &failure.example.cause {
                let cause = shortened(cause, WIDTH - 19);
                page.line(&format!("{:19}{cause}", ""));
            }
        }
    }
    if !run.unmet.is_empty() {
        page.heading("unmet expectations", "");
        for (condition, number) in &run.unmet {
            let condition = shortened(condition, WIDTH - 19);
            page.line(&format!("  {:>15}  {condition}", count(*number)));
        }
    }
}

fn generator(page: &mut Page, generator: &Generator) {
    page.heading("generator", "its own cost, not part of the server's");
    page.pairs(&[
        ("cpu per request", per_request(&generator.cost)),
        (
            "busiest worker",
            format!(
                "{} of its core",
                percentage(generator.busiest_worker_percent)
            ),
        ),
        (
            "timer lag",
            format!(
                "p99 {}, max {}",
                duration(generator.lag_p99),
                duration(generator.lag_max)
            ),
        ),
        (
            "stalls",
            format!(
                "longest {}, {} in all",
                duration(generator.stalls.longest),
                duration(generator.stalls.total)
            ),
        ),
        (
            "not run",
            generator.run_delay.map_or_else(unavailable, duration),
        ),
        (
            "throttled",
            generator.throttled.map_or_else(unavailable, duration),
        ),
        (
            "memory",
            generator
                .peak_memory_bytes
                .map_or_else(unavailable, |peak| format!("{} peak", bytes(peak))),
        ),
    ]);
}

fn unavailable() -> String {
    "unavailable".to_owned()
}
