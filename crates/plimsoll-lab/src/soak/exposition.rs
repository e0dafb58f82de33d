//! Metrics in the text format of Prometheus, as far as a soak needs them.
//!
//! Source: the "Text-based format" of Prometheus, version 0.0.4.

use std::collections::HashMap;

use super::plan::Patterns;
use super::series::Kind;

/// Metrics that are watched: each is a column and a plot, and a page of more is not read.
pub(super) const MOST_METRICS: usize = 200;

/// The metrics of a page that are watched, with their labels, each with how it is judged and its value.
///
/// Lines that are not understood are passed over.
pub(super) fn watched(page: &str, patterns: &Patterns) -> Vec<(String, Kind, f64)> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            kinds.extend(rest.trim().split_once(' '));
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let Some((name, labelled, value)) = sample(line) else {
            continue;
        };
        let is_part = ["_bucket", "_sum", "_count"].iter().any(|suffix| {
            let whole = name.strip_suffix(suffix);
            whole.is_some_and(|whole| matches!(kinds.get(whole), Some(&("histogram" | "summary"))))
        });
        let kind = match kinds.get(name) {
            Some(kind) => kind.trim(),
            None if is_part => "counter",
            None => "untyped",
        };
        if let Some(kind) = judged_as(name, kind, patterns)
            && found.len() < MOST_METRICS
        {
            found.push((labelled.to_owned(), kind, value));
        }
    }
    found
}

/// Name, name with labels, and value of a line.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let line = line.trim();
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at_checked(name_end)?;
    let labels = if rest.starts_with('{') {
        labels_end(rest)?
    } else {
        0
    };
    let (labelled, rest) = line.split_at_checked(name_end + labels)?;
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((name, labelled, value))
}

/// Where the labels end: behind the first brace that is not in a quoted value.
fn labels_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn judged_as(name: &str, kind: &str, patterns: &Patterns) -> Option<Kind> {
    let is_one_of = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    if is_one_of(&patterns.zero) {
        return Some(Kind::Zero);
    }
    if is_one_of(&patterns.counters) {
        return Some(Kind::Counter);
    }
    let is_gauge = matches!(kind, "gauge" | "untyped" | "unknown");
    if is_gauge && is_one_of(&patterns.gauges) && !is_one_of(&patterns.ignored) {
        return Some(if name.ends_with("_bytes") {
            Kind::Memory
        } else {
            Kind::Gauge
        });
    }
    None
}

/// Whether `pattern` fits all of `text`; `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gauges_are_watched_and_what_is_named_besides() {
        let page = "\
# HELP open Open connections.
# TYPE open gauge
open{path=\"/a b}\\\"\"} 3
open 4.5e1 1700000000000
# TYPE heap_bytes gauge
heap_bytes 1e6
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e9
# TYPE panics_total counter
panics_total 0
# TYPE requests_total counter
requests_total{code=\"200\"} 17
# TYPE other_total counter
other_total 1
# TYPE latency histogram
latency_bucket{le=\"+Inf\"} 5
latency_sum NaN
nonsense
open{ 3
";
        let patterns = Patterns {
            counters: vec!["requests_*".to_owned()],
            ..Patterns::default()
        };
        let found = watched(page, &patterns);
        assert_eq!(
            found,
            [
                ("open{path=\"/a b}\\\"\"}".to_owned(), Kind::Gauge, 3.0),
                ("open".to_owned(), Kind::Gauge, 45.0),
                ("heap_bytes".to_owned(), Kind::Memory, 1e6),
                ("panics_total".to_owned(), Kind::Zero, 0.0),
                (
                    "requests_total{code=\"200\"}".to_owned(),
                    Kind::Counter,
                    17.0
                ),
            ]
        );
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*panic*", "x_panics_total", true),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "a_c_b", false),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_page_is_too_strange(page in ".*{0,400}") {
            watched(&page, &Patterns::default());
        }
    }
}
