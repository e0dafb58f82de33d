//! The principal figures of a run, what went wrong, and the verdict.

use std::collections::BTreeMap;

use plimsoll_model::{
    Cost, ExchangeKind, FailureCount, LoadModel, LoadShape, Nothing, Protocol, RequestFigures,
    RunSummary, ThresholdVerdict, Unit, percentage, rate_figures,
};

use super::details::{found, rate_of_bytes};
use super::{Detail, FEW_SAMPLES};
use crate::document::SaturationDocument;
use crate::export::saturation_text;
use crate::text::WIDTH;
use crate::text::numbers::{
    NOTHING, bounded, bytes, count, duration, optional, plural, share, uncertainty,
};
use crate::text::page::{Page, shortened, width};
use crate::text::requests::site;
use crate::text::style::Emphasis;
use crate::text::summary::servers::servers;

/// Kinds of failures and unmet conditions that are listed, each.
const MOST: usize = 3;

/// Distinct statuses that are listed one by one; more are added up by class.
const MOST_STATUSES: usize = 4;

/// Adds title, rows and verdict.
pub(super) fn brief(page: &mut Page, run: &RunSummary, detail: Detail) {
    title(page, run);
    requests(page, run);
    statuses(page, run);
    problems(page, run);
    latency(page, run);
    others(page, run);
    server(page, run);
    worst_requests(page, run);
    missed_thresholds(page, run);
    servers(page, run);
    write_cautions(page, run, detail);
    result(page, run);
}

/// `GET http://127.0.0.1:8080/  HTTP/1.1, 50 connections, 10.0 s`, on two lines if need be.
fn title(page: &mut Page, run: &RunSummary) {
    let load = &run.load;
    let others = match load.urls {
        0 | 1 => String::new(),
        urls => format!(
            " and {}",
            plural(urls as u64 - 1, "other URL", "other URLs")
        ),
    };
    let url_columns = WIDTH.saturating_sub(load.method.len() + 1 + others.len());
    let url = shortened(&load.url, url_columns);
    let title = format!("{} {url}{others}", load.method);
    let shape = shape(run);
    let strong = page.style().apply(Emphasis::Strong, &title);
    if width(&title) + 2 + width(&shape) <= WIDTH {
        let shape = page.style().apply(Emphasis::Faint, &shape);
        page.line(&format!("{strong}  {shape}"));
    } else {
        page.line(&strong);
        page.wrapped(Emphasis::Faint, &shape);
    }
}

/// `HTTP/1.1, 5,000 arrivals/s, up to 50 connections, 10.0 s after 1.00 s of warm-up`.
fn shape(run: &RunSummary) -> String {
    let RunSummary { load, window, .. } = run;
    let connections = connections(load);
    let model = match load.model {
        LoadModel::Closed => connections,
        LoadModel::Open { rate: arrivals } => format!(
            "{} arrivals/s, up to {connections}",
            rate_figures(arrivals.per_second())
        ),
    };
    let measured = if window.is_zero() {
        "nothing measured".to_owned()
    } else {
        duration(*window)
    };
    let warm_up = if load.warm_up.is_zero() {
        String::new()
    } else {
        format!(" after {} of warm-up", duration(load.warm_up))
    };
    format!("{}, {model}, {measured}{warm_up}", load.protocol)
}

fn connections(load: &LoadShape) -> String {
    let connections = plural(load.connections as u64, "connection", "connections");
    match load.protocol {
        Protocol::Http1 | Protocol::WebSocket => connections,
        Protocol::Http2 | Protocol::Http3 => format!(
            "{connections} with {} each",
            plural(load.streams as u64, "stream", "streams")
        ),
    }
}

fn requests(page: &mut Page, run: &RunSummary) {
    let counts = &run.counts;
    let all = counts.intended();
    let strong = |text: String| page.style().apply(Emphasis::Strong, &text);
    let mut throughput = format!("{}/s", strong(rate_figures(run.requests_per_second())));
    if let LoadModel::Open { rate: arrivals } = run.load.model {
        let intended = rate_figures(arrivals.per_second());
        throughput.extend([" of ", &intended, " intended"]);
    }
    let strange = |number: u64, word: &str| {
        let text = format!("{} {word} ({})", count(number), share(number, all));
        page.style().apply(Emphasis::Error, &text)
    };
    let outcome = |number: u64, word: &str| match number {
        0 => format!("0 {word}"),
        _ => strange(number, word),
    };
    let ok = format!("{} ok", count(counts.ok));
    let failed = outcome(counts.failed, "failed");
    let aborted = outcome(counts.aborted, "aborted");
    let mut cells = vec![throughput, format!("{ok}, {failed}, {aborted}")];
    for (number, word) in [(counts.dropped, "dropped"), (counts.missed, "missed")] {
        if number > 0 {
            cells.push(strange(number, word));
        }
    }
    if counts.reconnects > 0 {
        cells.push(plural(counts.reconnects, "reconnect", "reconnects"));
    }
    if counts.redirects > 0 {
        cells.push(plural(counts.redirects, "redirect", "redirects"));
    }
    page.cells(run.load.exchanges.plural(), &cells);
}

/// Each status with its share; classes where there are many.
fn statuses(page: &mut Page, run: &RunSummary) {
    // Over WebSockets there is only the one of the handshake.
    if run.statuses.is_empty() || run.load.exchanges == ExchangeKind::RoundTrip {
        return;
    }
    let by_class = run.statuses.len() > MOST_STATUSES;
    let mut shown: BTreeMap<String, (bool, u64)> = BTreeMap::new();
    for (status, number) in &run.statuses {
        let name = if by_class {
            format!("{}xx", status / 100)
        } else {
            status.to_string()
        };
        shown.entry(name).or_insert((*status >= 400, 0)).1 += number;
    }
    let cells: Vec<String> = shown
        .into_iter()
        .map(|(name, (is_error, number))| {
            let text = format!("{name} {}", share(number, run.counts.ok));
            if is_error {
                page.style().apply(Emphasis::Error, &text)
            } else {
                text
            }
        })
        .collect();
    page.cells("status", &cells);
}

/// Why exchanges failed, and which conditions did not hold.
fn problems(page: &mut Page, run: &RunSummary) {
    failures(page, "failed", &run.failures);
    if let Some(events) = &run.events {
        failures(page, "broken", &events.failures);
    }
    let mut label = "unmet";
    for (condition, number) in run.unmet.iter().take(MOST) {
        let text = format!("{} {condition}", count(*number));
        page.row(label, Emphasis::Error, &shortened(&text, 2 * ROOM));
        label = "";
    }
}

fn failures(page: &mut Page, label: &str, failures: &[FailureCount]) {
    let mut label = label;
    for failure in failures.iter().take(MOST) {
        let FailureCount { count: number, .. } = failure;
        let (kind, phase) = (&failure.kind, &failure.phase);
        let mut text = format!("{} {kind} during {phase}", count(*number));
        if let Some(cause) = &failure.example.cause {
            text.extend([": ", cause]);
        }
        page.row(label, Emphasis::Error, &shortened(&text, 2 * ROOM));
        label = "";
    }
}

/// Columns of a row's text.
const ROOM: usize = WIDTH - Page::LABEL;

fn latency(page: &mut Page, run: &RunSummary) {
    let honest = run.latency.honest();
    if honest.is_empty() {
        return;
    }
    let strong = |text: String| page.style().apply(Emphasis::Strong, &text);
    let quantile = |fraction| bounded(honest.quantile(fraction));
    let mut cells = vec![
        format!("p50 {}", strong(quantile(0.5))),
        format!("p90 {}", quantile(0.9)),
        format!("p99 {}", strong(quantile(0.99))),
        format!("max {}", bounded(honest.max())),
    ];
    let number = honest.view().len();
    if number < FEW_SAMPLES {
        let remark = format!("of {} only", plural(number, "sample", "samples"));
        cells.push(page.style().apply(Emphasis::Warning, &remark));
    }
    if run.latency.from_intended.is_some() {
        let remark = "from the intended start";
        cells.push(page.style().apply(Emphasis::Faint, remark));
    }
    page.cells("latency", &cells);
    let Some(kinds) = run.latency.by_status() else {
        return;
    };
    for (label, times) in [("  of ok", &kinds.ok), ("  of errors", kinds.errors)] {
        page.cells(
            label,
            &[
                format!("p50 {}", optional(times.quantile(0.5))),
                format!("p90 {}", optional(times.quantile(0.9))),
                format!("p99 {}", optional(times.quantile(0.99))),
                format!("max {}", optional(times.max())),
            ],
        );
    }
}

/// Events, messages, calls and bytes.
fn others(page: &mut Page, run: &RunSummary) {
    if let Some(events) = &run.events {
        let strong = page.style().apply(
            Emphasis::Strong,
            &rate_figures(run.events_per_second().unwrap_or_default()),
        );
        let mut cells = vec![format!("{strong}/s")];
        if !events.gaps.is_empty() {
            let quantile = |fraction| optional(events.gaps.quantile(fraction));
            cells.push(format!("gap p50 {}", quantile(0.5)));
            cells.push(format!("p99 {}", quantile(0.99)));
            cells.push(format!("max {}", optional(events.gaps.max())));
        }
        page.cells("events", &cells);
    }
    if let Some(messages) = run.messages {
        let (sent, received) = (count(messages.sent), count(messages.received));
        page.cells(
            "messages",
            &[format!("{sent} sent"), format!("{received} received")],
        );
    }
    if let Some(decoded) = run.decoded {
        page.cells(
            "content",
            &[
                format!("{} received", bytes(decoded.encoded)),
                format!("{} decoded", bytes(decoded.decoded)),
            ],
        );
    }
    if let Some(grpc) = &run.grpc {
        let mut cells: Vec<String> = Vec::new();
        for counted in grpc.statuses.iter().take(MOST_STATUSES) {
            let text = format!("{} {}", counted.status, share(counted.count, run.counts.ok));
            cells.push(if counted.status.is_ok() {
                text
            } else {
                page.style().apply(Emphasis::Error, &text)
            });
        }
        page.cells("grpc", &cells);
    }
    page.cells(
        "data",
        &[
            format!(
                "{} received ({}/s)",
                bytes(run.bytes_received),
                rate_of_bytes(run.bytes_received_per_second())
            ),
            format!("{} sent", bytes(run.bytes_sent)),
            if run.load.bytes_exclude_tls() {
                "without TLS".to_owned()
            } else {
                String::new()
            },
        ]
        .into_iter()
        .filter(|cell| !cell.is_empty())
        .collect::<Vec<_>>(),
    );
}

fn server(page: &mut Page, run: &RunSummary) {
    let Some(target) = &run.target else { return };
    let strong = |text: &str| page.style().apply(Emphasis::Strong, text);
    let per_request = match target.cost.cpu_us_per_request() {
        Some(micros) => {
            let uncertainty = uncertainty(micros, run.cpu_error_us());
            format!("{}{uncertainty}", strong(&Unit::Microseconds.show(micros)))
        }
        None => strong(NOTHING),
    };
    let mut cells = vec![format!("{per_request} of CPU per request")];
    cells.extend(core_share(&target.cost));
    cells.push(bytes(target.memory.total_bytes()));
    page.cells("server", &cells);
}

fn core_share(cost: &Cost) -> Option<String> {
    let value = cost.cpu_percent()?;
    Some(format!("{} of a core", percentage(value)))
}

/// The slowest of several requests, and the one that failed most.
fn worst_requests(page: &mut Page, run: &RunSummary) {
    let site = site(&run.load.url);
    let name = |figures: &RequestFigures| shortened(&figures.name.replacen(site, "", 1), ROOM / 2);
    let slowest = run
        .requests
        .iter()
        .filter_map(|figures| Some((figures.latency.quantile(0.99)?, figures)))
        .max_by_key(|(p99, _)| (p99.is_censored(), p99.low()));
    if let Some((p99, figures)) = slowest {
        let cells = [name(figures), format!("p99 {}", p99.text(duration))];
        page.cells("slowest", &cells);
    }
    // The list is sorted by the share of errors.
    if let Some(figures) = run.requests.first().filter(|first| first.errors() > 0) {
        let errors = format!(
            "{} of {}",
            share(figures.errors(), figures.count()),
            count(figures.count())
        );
        let errors = page.style().apply(Emphasis::Error, &errors);
        page.cells("failing", &[name(figures), errors]);
    }
}

/// The thresholds that were not met, each with the value found.
fn missed_thresholds(page: &mut Page, run: &RunSummary) {
    let mut label = "threshold";
    let missed = run
        .thresholds
        .iter()
        .filter(|judged| judged.verdict() != ThresholdVerdict::Met);
    for judged in missed {
        let text = shortened(judged.threshold.text(), ROOM);
        page.row(label, Emphasis::Error, &text);
        page.row("", Emphasis::Plain, &format!("  {}", found(judged)));
        label = "";
    }
}

/// The cautions that a reader should know before trusting the figures.
fn write_cautions(page: &mut Page, run: &RunSummary, detail: Detail) {
    let mut shown = Vec::new();
    if run.interrupted {
        shown.push("interrupted: the figures are those until then".to_owned());
    }
    match detail {
        Detail::Brief => shown.extend(cautions(run)),
        // With all sections the warnings stand in the last of them, above.
        Detail::Full => shown.extend(saturated(run)),
    }
    for caution in shown {
        page.row("caution", Emphasis::Warning, &caution);
    }
}

/// What may make the figures of a run other than they seem, the most general one last: those above it may be its cause.
pub fn cautions(run: &RunSummary) -> Vec<String> {
    let warnings = run.conditions.warnings.iter().cloned();
    warnings.chain(saturated(run)).collect()
}

fn saturated(run: &RunSummary) -> Option<String> {
    let saturated = run.generator.saturated.as_ref()?;
    let saturated = SaturationDocument::from_saturation(saturated);
    Some(saturation_text(&saturated, !run.agents.is_empty()))
}

/// The verdict; it says what the exit code says.
fn result(page: &mut Page, run: &RunSummary) {
    let counts = &run.counts;
    let total = run.thresholds.len() as u64;
    let met = run
        .thresholds
        .iter()
        .filter(|judged| judged.verdict() == ThresholdVerdict::Met)
        .count() as u64;
    let errors = counts.errors();
    let statuses = run.error_statuses();
    let thresholds = |number: u64| {
        format!(
            "{} of {}",
            count(number),
            plural(total, "threshold", "thresholds")
        )
    };
    let lacking = run.agents.iter().filter(|it| it.problem.is_some()).count();
    let (emphasis, text) = if lacking > 0 {
        let all = plural(run.agents.len() as u64, "agent", "agents");
        let text = format!(
            "incomplete: figures of {} of {all} are missing",
            count(lacking as u64)
        );
        (Emphasis::Error, text)
    } else if let Some(why) = run.shows_nothing() {
        (Emphasis::Error, format!("failed: {}", nothing(run, why)))
    } else if met < total {
        let text = format!("failed: {} not met", thresholds(total - met));
        (Emphasis::Error, text)
    } else if total > 0 {
        match run.shortfall() {
            Some(short) => (
                Emphasis::Error,
                format!("failed: {}", shortfall(run, short)),
            ),
            None => match run.dropped_by_server() {
                Some(dropped) => {
                    let dropped = share(dropped, counts.started);
                    let text =
                        format!("failed: {dropped} of the requests were dropped by the server");
                    (Emphasis::Error, text)
                }
                None => (Emphasis::Strong, format!("ok: {} met", thresholds(total))),
            },
        }
    } else if counts.started == 0 {
        (Emphasis::Warning, "nothing was measured".to_owned())
    } else if errors > 0 {
        let all = counts.intended();
        let text = format!(
            "{} ({}); no threshold set",
            plural(errors, "error", "errors"),
            share(errors, all)
        );
        (Emphasis::Error, text)
    } else if let Some(short) = run.shortfall() {
        let text = format!("{}; no threshold set", shortfall(run, short));
        (Emphasis::Error, text)
    } else if let Some(dropped) = run.dropped_by_server() {
        let text = format!(
            "{} of the requests were dropped by the server and sent again",
            share(dropped, counts.started)
        );
        (Emphasis::Error, text)
    } else if statuses > 0 {
        let text = format!(
            "no failures, but {} of the responses had an error status; no threshold set",
            share(statuses, counts.ok)
        );
        (Emphasis::Warning, text)
    } else {
        (Emphasis::Strong, "ok: no errors".to_owned())
    };
    page.row("result", emphasis, &text);
}

/// `297 of 400 intended requests (74.3 %) were missed or aborted`.
fn shortfall(run: &RunSummary, short: u64) -> String {
    let counts = &run.counts;
    let what = match (counts.missed, counts.aborted) {
        (0, _) => "aborted",
        (_, 0) => "missed",
        _ => "missed or aborted",
    };
    format!(
        "{} of {} intended {} ({}) were {what}",
        count(short),
        count(counts.intended()),
        run.load.exchanges.plural(),
        share(short, counts.intended()),
    )
}

/// The reason why a run shows nothing of its target, and a fix.
fn nothing(run: &RunSummary, nothing: Nothing) -> String {
    let counts = &run.counts;
    let cause = || {
        let failure = run.failures.first()?;
        let cause = failure.example.cause.as_deref();
        let cause = cause.map_or(String::new(), |cause| format!(" ({cause})"));
        Some(format!(
            ": {} during {}{cause}",
            failure.kind, failure.phase
        ))
    };
    match nothing {
        Nothing::NoResponse => format!(
            "no request got a complete response{}",
            cause().unwrap_or_default()
        ),
        Nothing::NoneInTime => format!(
            "no response arrived: the target accepted {}, and {} still waited for a response when \
             the grace period ended; check that this is the right port and protocol, run longer \
             (-z), or raise --grace",
            plural(run.connections_opened, "connection", "connections"),
            plural(counts.aborted, "request", "requests"),
        ),
        Nothing::OnlyErrorStatuses => {
            let statuses: Vec<String> = run.statuses.keys().map(u16::to_string).collect();
            format!(
                "every response had an error status ({}); check the URL and the credentials, or \
                 allow it with `--fail-status none` or a condition such as `--expect 'status == \
                 {}'`",
                statuses.join(", "),
                statuses.first().map_or("404", String::as_str)
            )
        }
    }
}
