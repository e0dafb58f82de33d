//! The figures by which a run is judged first.

use plimsoll_model::{LoadModel, Nothing, RunSummary, Unit};

use super::plural;
use crate::text::numbers::{NOTHING, count, optional, rate, share};
use crate::text::page::Page;
use crate::text::style::{Emphasis, Style};

/// Throughput, cost, latency and errors.
pub(super) fn principal(page: &mut Page, run: &RunSummary) {
    page.line("");
    let strong = |text: String| page.style().apply(Emphasis::Strong, &text);
    let mut requests = strong(rate(run.requests_per_second()));
    let mut view = "";
    if let LoadModel::Open { rate: arrivals } = run.load.model {
        requests = format!("{requests} of {} intended", rate(arrivals.per_second()));
        view = ", from the intended start";
    }
    let mut rows = vec![(run.load.exchanges.rate(), requests)];
    if let Some(events) = run.events_per_second() {
        rows.insert(0, ("events/s", strong(rate(events))));
    }
    if let Some(target) = &run.target {
        let per_request = match target.cost.cpu_us_per_request() {
            Some(micros) => Unit::Microseconds.show(micros),
            None => NOTHING.to_owned(),
        };
        rows.push((
            "server cost",
            format!("{} of cpu time per request", strong(per_request)),
        ));
    }
    let honest = run.latency.honest();
    let quantile = |fraction| optional(honest.quantile(fraction));
    rows.push((
        "latency",
        format!(
            "p50 {}, p99 {}, max {}{view}",
            strong(quantile(0.5)),
            strong(quantile(0.99)),
            optional(honest.max())
        ),
    ));
    rows.extend(errors(run, page.style()));
    // Not wrapped: each fits, and escape sequences have no width.
    for (label, text) in rows {
        page.line(&format!("  {label:<15}  {text}"));
    }
}

/// Failures and error statuses apart, each with its share; everything that counts as an error.
fn errors(run: &RunSummary, style: Style) -> Vec<(&'static str, String)> {
    let counts = &run.counts;
    let all = counts.started + counts.dropped;
    let (statuses, errors) = (run.error_statuses(), counts.errors());
    let mut rows = Vec::new();
    let mut row = |label, number: u64, of: u64, remark: &str| {
        let text = format!("{} ({})", count(number), share(number, of));
        let text = style.apply(Emphasis::Error, &text);
        rows.push((label, format!("{text}{remark}")));
    };
    if counts.failed > 0 {
        row("failed", counts.failed, all, ": no complete response");
    }
    if statuses > 0 {
        row("error statuses", statuses, counts.ok, ": 400 and above");
    }
    if counts.aborted > 0 {
        let remark = ": no response when the grace period ended";
        row("unfinished", counts.aborted, all, remark);
    }
    // Where they are all of one kind, that row says it.
    let is_said = errors == counts.failed || (counts.failed == 0 && errors == statuses);
    if errors > 0 && !is_said {
        row("errors", errors, all, "");
    }
    if rows.is_empty() {
        rows.push(("errors", "none".to_owned()));
    }
    rows
}

/// What is wrong with a run that shows nothing of its target, and what to do.
pub(super) fn nothing(run: &RunSummary, nothing: Nothing) -> String {
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

/// The principal figures on one line: `48,205 requests/s, p50 1.18 ms, p99 2.47 ms, errors none`.
pub fn headline(run: &RunSummary, style: Style) -> String {
    let honest = run.latency.honest();
    let mut parts = vec![format!(
        "{} {}",
        rate(run.requests_per_second()),
        run.load.exchanges.rate()
    )];
    let cost = run.target.as_ref();
    let cost = cost.and_then(|target| target.cost.cpu_us_per_request());
    parts.extend(cost.map(|micros| {
        let time = Unit::Microseconds.show(micros);
        format!("{time} of cpu time each")
    }));
    parts.push(format!("p50 {}", optional(honest.quantile(0.5))));
    parts.push(format!("p99 {}", optional(honest.quantile(0.99))));
    let headline = style.apply(Emphasis::Strong, &parts.join(", "));
    let errors = errors(run, style).into_iter();
    let errors: Vec<String> = errors
        .map(|(label, text)| {
            let text = text.split(": ").next().unwrap_or_default();
            format!("{label} {text}")
        })
        .collect();
    format!("{headline}, {}", errors.join(", "))
}
