//! Figures as Prometheus reads them (text format 0.0.4): the engine's, and those that other crates count.

use std::fmt::{self, Display, Write};

use plimsoll_wire::h1::RequestError;

use crate::observe::counters::{Counters, Cut, Snapshot};

/// Figures that another crate counts, shown beside the engine's.
pub trait Figures: fmt::Debug + Send + Sync {
    /// Appends them.
    ///
    /// - `prefix`: what their names begin with, before an underscore; absent for the usual one.
    fn show(&self, prefix: Option<&str>, text: &mut MetricsText);
}

/// Metrics as they are written down.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// Begins the samples of one name.
    ///
    /// - `kind`: `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a String takes whatever is written");
    }

    /// One sample, with the values of its labels.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.as_slice() {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        self.line(name, &labels, value);
    }

    /// The text so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.0, "{name}{labels} {value}").expect("a String takes whatever is written");
    }
}

/// The classes of statuses, in the order that they are counted.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The versions of HTTP, in the order that they are counted.
const VERSIONS: [&str; 4] = ["1.0", "1.1", "2", "3"];

/// Everything that is counted.
///
/// - `prefix`: what the names of figures of other crates begin with; absent for the usual one.
pub(crate) fn metrics(counters: &Counters, prefix: Option<&str>) -> String {
    let mut text = MetricsText(engine(&counters.snapshot()));
    for figures in counters.other_figures() {
        figures.show(prefix, &mut text);
    }
    text.0
}

/// The metrics of the engine; labels have as many values as the file has routes.
fn engine(snapshot: &Snapshot) -> String {
    let mut text = MetricsText::default();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
        text.family(name, kind, help);
        for (labels, value) in samples {
            text.line(name, labels, value);
        }
    };
    let alone = |value| [(String::new(), value)];
    family(
        "plimsoll_connections_total",
        "counter",
        "Connections accepted.",
        &alone(snapshot.accepted),
    );
    family(
        "plimsoll_connections_open",
        "gauge",
        "Connections open now.",
        &alone(snapshot.open),
    );
    let requests = VERSIONS
        .iter()
        .zip(&snapshot.requests)
        .flat_map(|(version, counts)| {
            CLASSES.iter().zip(counts).map(move |(class, count)| {
                (
                    format!("{{version=\"{version}\",status=\"{class}\"}}"),
                    *count,
                )
            })
        });
    family(
        "plimsoll_requests_total",
        "counter",
        "Requests answered, by version of HTTP and class of status.",
        &requests.collect::<Vec<_>>(),
    );
    let routes = snapshot.routes.iter().flat_map(|(route, counts)| {
        CLASSES
            .iter()
            .zip(counts)
            .filter_map(move |(class, count)| {
                let labels = format!("{{route=\"{}\",status=\"{class}\"}}", escaped(route));
                (*count > 0).then_some((labels, *count))
            })
    });
    family(
        "plimsoll_route_requests_total",
        "counter",
        "Requests answered, by route and class of status.",
        &routes.collect::<Vec<_>>(),
    );
    let by_reason = |names: Vec<&'static str>, counts: &[u64]| -> Vec<(String, u64)> {
        let named = names.into_iter().zip(counts);
        named
            .map(|(name, count)| (format!("{{reason=\"{name}\"}}"), *count))
            .collect()
    };
    family(
        "plimsoll_refused_requests_total",
        "counter",
        "Requests refused while they were read, by reason.",
        &by_reason(
            RequestError::ALL.map(RequestError::name).into(),
            &snapshot.refused,
        ),
    );
    family(
        "plimsoll_cut_connections_total",
        "counter",
        "Connections cut or turned away, by reason.",
        &by_reason(Cut::ALL.map(Cut::name).into(), &snapshot.cut),
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
        let sides = ["received", "provoked"].into_iter().zip(resets);
        let resets = sides.map(|(side, count)| (format!("{{side=\"{side}\"}}"), count));
        family(name, "counter", help, &resets.collect::<Vec<_>>());
    }
    family(
        "plimsoll_dropped_fields_total",
        "counter",
        "Header fields and trailers dropped: underscores in their names, trailers that belong to a head.",
        &alone(snapshot.dropped_fields),
    );
    family(
        "plimsoll_log_lines_dropped_total",
        "counter",
        "Lines of the access log that found no room or could not be written.",
        &alone(snapshot.log_dropped),
    );
    family(
        "plimsoll_panics_total",
        "counter",
        "Connections that ended in a mistake of the server.",
        &alone(snapshot.panics),
    );
    text.0
}

/// A label's value (Prometheus, text format).
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
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
        assert!(engine(&snapshot).contains(expected));
    }
}
