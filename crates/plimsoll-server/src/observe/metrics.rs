//! Figures as Prometheus reads them (text format 0.0.4): the engine's, and those that other crates count.

use plimsoll_model::MetricsText;
use plimsoll_wire::h1::RequestError;

use crate::counters::{Counters, Cut, Snapshot};

/// The classes of statuses, in the order that they are counted.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The versions of HTTP, in the order that they are counted.
const VERSIONS: [&str; 4] = ["1.0", "1.1", "2", "3"];

/// Everything that is counted.
///
/// - `prefix`: what the names of figures of other crates begin with; absent for the usual one.
pub(crate) fn metrics(counters: &Counters, prefix: Option<&str>) -> String {
    let mut text = MetricsText::default();
    engine(&counters.snapshot(), &mut text);
    for figures in counters.other_figures() {
        figures.show(prefix, &mut text);
    }
    text.into_text()
}

/// The metrics of the engine; labels have as many values as the file has routes.
fn engine(snapshot: &Snapshot, text: &mut MetricsText) {
    show_single(
        text,
        "plimsoll_connections_total",
        "counter",
        "Connections accepted.",
        snapshot.accepted,
    );
    show_single(
        text,
        "plimsoll_connections_open",
        "gauge",
        "Connections open now.",
        snapshot.open,
    );
    show_requests(snapshot, text);
    show_reasons(
        text,
        "plimsoll_refused_requests_total",
        "Requests refused while they were read, by reason.",
        RequestError::ALL.map(RequestError::name),
        &snapshot.refused,
    );
    show_reasons(
        text,
        "plimsoll_cut_connections_total",
        "Connections cut or turned away, by reason.",
        Cut::ALL.map(Cut::name),
        &snapshot.cut,
    );
    for (name, help, resets) in [
        (
            "plimsoll_http2_resets_total",
            "Streams reset by clients, and reset for their mistakes.",
            snapshot.resets,
        ),
        (
            "plimsoll_http3_resets_total",
            "Streams of HTTP/3 reset by clients, and reset for their mistakes.",
            snapshot.http3_resets,
        ),
    ] {
        text.family(name, "counter", help);
        for (side, count) in ["received", "provoked"].into_iter().zip(resets) {
            text.sample(name, &[("side", side)], count);
        }
    }
    show_single(
        text,
        "plimsoll_dropped_fields_total",
        "counter",
        "Header fields and trailers dropped: underscores in their names, trailers that belong to a head.",
        snapshot.dropped_fields,
    );
    show_single(
        text,
        "plimsoll_log_lines_dropped_total",
        "counter",
        "Lines of the access log that found no room or could not be written.",
        snapshot.log_dropped,
    );
    show_single(
        text,
        "plimsoll_panics_total",
        "counter",
        "Connections that ended in a mistake of the server.",
        snapshot.panics,
    );
}

fn show_single(text: &mut MetricsText, name: &str, kind: &str, help: &str, value: u64) {
    text.family(name, kind, help);
    text.sample(name, &[], value);
}

/// Requests by version, and by route.
fn show_requests(snapshot: &Snapshot, text: &mut MetricsText) {
    const BY_VERSION: &str = "plimsoll_requests_total";
    const BY_ROUTE: &str = "plimsoll_route_requests_total";
    text.family(
        BY_VERSION,
        "counter",
        "Requests answered, by version of HTTP and class of status.",
    );
    for (version, counts) in VERSIONS.iter().zip(&snapshot.requests) {
        for (class, count) in CLASSES.iter().zip(counts) {
            text.sample(
                BY_VERSION,
                &[("version", version), ("status", class)],
                count,
            );
        }
    }
    text.family(
        BY_ROUTE,
        "counter",
        "Requests answered, by route and class of status.",
    );
    for (route, counts) in &snapshot.routes {
        for (class, count) in CLASSES.iter().zip(counts).filter(|(_, count)| **count > 0) {
            text.sample(BY_ROUTE, &[("route", route), ("status", class)], count);
        }
    }
}

/// Counts by reason.
fn show_reasons(
    text: &mut MetricsText,
    name: &str,
    help: &str,
    reasons: impl IntoIterator<Item = &'static str>,
    counts: &[u64],
) {
    text.family(name, "counter", help);
    for (reason, count) in reasons.into_iter().zip(counts) {
        text.sample(name, &[("reason", reason)], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let snapshot = Snapshot {
            routes: vec![("a\"b\\c\nd".to_owned(), [0, 3, 0, 0, 0, 0])],
            ..Snapshot::default()
        };
        let expected =
            "plimsoll_route_requests_total{route=\"a\\\"b\\\\c\\nd\",status=\"2xx\"} 3\n";
        let mut text = MetricsText::default();
        engine(&snapshot, &mut text);
        assert!(text.as_str().contains(expected));
    }
}
