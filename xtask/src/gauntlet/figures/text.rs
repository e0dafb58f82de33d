//! What the terminal shows, and `summary.txt`.

use regex::Regex;

use super::{Figures, Shown, Statuses, exact, parse_figure, rounded};

/// - `terminal`: the brief summary.
/// - `details`: `summary.txt`.
pub(super) fn figures(terminal: &str, details: &str) -> Figures {
    let mut figures = Figures::new();
    // Rows are wrapped; figures are not.
    let brief = unwrapped(terminal);
    for name in ["ok", "failed", "aborted", "dropped", "missed"] {
        figures.extend(count_before(&brief, name).map(|it| (name, it)));
    }
    for (name, word) in [("reconnects", "reconnects?"), ("redirects", "redirects?")] {
        figures.extend(count_before(&brief, word).map(|it| (name, it)));
    }
    let rate = matched(
        &brief,
        r"(?m)^(?:requests|round trips|streams) +([\d.,]+)/s",
    );
    let rate = rate.and_then(|text| text.replace(',', "").parse().ok());
    figures.extend(rate.map(|rate| ("requests/s", rounded(rate, false))));
    let latency = matched(&brief, r"(?m)^latency +(.*)$").unwrap_or_default();
    for name in ["p50", "p90", "p99", "max"] {
        figures.extend(time_behind(&latency, name).map(|it| (name, it)));
    }
    for (name, word) in [("received", "received"), ("sent", "sent")] {
        let data = matched(&brief, r"(?m)^data +(.*)$").unwrap_or_default();
        let text = matched(&data, &format!(r"([\d.,]+ [kMG]?B) {word}"));
        let value = text.and_then(|text| parse_figure(&text));
        figures.extend(value.map(|it| (name, it)));
    }
    for name in ["started", "connections", "in window"] {
        let text = matched(details, &format!(r"(?m)^  {name} +([\d,]+)"));
        let value = text.and_then(|text| parse_figure(&text));
        figures.extend(value.map(|it| (name, it)));
    }
    figures.extend(detailed_times(details));
    figures
}

/// The rows of the table of latency that the brief summary does not have, and its column of the actual start.
fn detailed_times(details: &str) -> Figures {
    let time = r"((?:≥ )?[\d.,]+ (?:ns|µs|ms|s|min))\b";
    let has_both = details
        .lines()
        .any(|line| line.trim_start().starts_with("intended   actual"));
    let mut figures = Figures::new();
    for (name, of_started) in [
        ("p50", "started p50"),
        ("p75", "started p75"),
        ("p90", "started p90"),
        ("p95", "started p95"),
        ("p99", "started p99"),
        ("p99.9", "started p99.9"),
        ("max", "started max"),
        ("mean", "started mean"),
    ] {
        let row = format!(r"(?m)^  {} +{time}", regex::escape(name));
        let first = matched(details, &row).and_then(|text| parse_figure(&text));
        if !["p50", "p90", "p99", "max"].contains(&name) {
            figures.extend(first.map(|it| (name, it)));
        }
        if has_both {
            let row = format!(
                r"(?m)^  {} +(?:≥ )?[\d.,]+ \S+ +{time}",
                regex::escape(name)
            );
            let second = matched(details, &row).and_then(|text| parse_figure(&text));
            figures.extend(second.map(|it| (of_started, it)));
        }
    }
    figures
}

/// The rows below `statuses`.
pub(super) fn statuses(details: &str) -> Statuses {
    let rows = details.lines().skip_while(|line| *line != "statuses");
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    let statuses = rows.filter_map(|row| {
        let mut words = row.split_whitespace();
        let status = words.next()?.parse().ok()?;
        Some((status, words.next()?.replace(',', "").parse().ok()?))
    });
    statuses.collect()
}

/// Figures of k6's summary.
pub(super) fn script_figures(terminal: &str) -> Figures {
    let count = |name: &str| {
        let text = matched(terminal, &format!(r"(?m)^ +{name}\.*: +(\d+)"))?;
        text.parse().ok().map(exact)
    };
    let mut figures = Figures::new();
    figures.extend(count("dropped_iterations").map(|it| ("dropped", it)));
    figures
}

/// The text with lines that belong to the one before joined to it.
fn unwrapped(text: &str) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        let rest = line
            .strip_prefix("         ")
            .filter(|rest| rest.starts_with("  "));
        let is_rest = rest.is_some() && !whole.is_empty();
        if !is_rest {
            whole.push('\n');
        }
        whole.push_str(rest.unwrap_or(line));
    }
    whole
}

/// `12 dropped`.
fn count_before(text: &str, word: &str) -> Option<Shown> {
    let row = matched(text, r"(?m)^(?:requests|round trips|streams) +(.*)$")?;
    let text = matched(&row, &format!(r"([\d,]+) {word}\b"))?;
    parse_figure(&text)
}

/// `p99 ≥ 5.10 s`.
fn time_behind(text: &str, name: &str) -> Option<Shown> {
    let text = matched(
        text,
        &format!(r"\b{name} ((?:≥ )?[\d.,]+ (?:ns|µs|ms|s|min))\b"),
    )?;
    parse_figure(&text)
}

fn matched(text: &str, pattern: &str) -> Option<String> {
    let pattern = Regex::new(pattern).expect("the patterns of this file are valid");
    Some(pattern.captures(text)?.get(1)?.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_the_terminal_is_read() {
        let terminal = "GET http://127.0.0.1/\n\
            requests   49.0/s of 50.0 intended   1,100 ok, 0 failed, 6 aborted (0.01 %)\n           \
            12 dropped (0.02 %)   28 missed (0.06 %)   1 reconnect\n\
            latency    p50 348 µs   p90 2.42 ms   p99 ≥ 900 ms   max ≥ 1.00 s\n           \
            from the intended start\n\
            data       102 MB received (10.2 MB/s)   4.85 MB sent\n";
        let figures = figures(terminal, "requests\n  started          1,106\n");
        let value = |name| figures.get(name).map(|shown: &Shown| shown.value);
        assert_eq!(value("ok"), Some(1100.0));
        assert_eq!(value("missed"), Some(28.0));
        assert_eq!(value("dropped"), Some(12.0));
        assert_eq!(value("reconnects"), Some(1.0));
        assert_eq!(value("started"), Some(1106.0));
        assert_eq!(value("requests/s"), Some(49.0));
        assert_eq!(value("sent"), Some(4_850_000.0));
        assert!(figures["p99"].is_bound && !figures["p90"].is_bound);
    }

    #[test]
    fn the_tables_of_details_are_read() {
        let details = "latency\n                   intended   actual  95 % interval  generator\n\
            \x20 p75                482 µs   402 µs     479–486 µs   ≤ 401 µs\n\
            \x20 p99.9            ≥ 1.00 s  1.58 ms                   ≤ 35.0 ms\n\n\
            statuses\n  200              49,960  100 %\n  404                   3  0.01 %\n\ngenerator\n  500 1\n";
        let times = detailed_times(details);
        let value = |name| {
            times
                .get(name)
                .map(|shown: &Shown| (shown.value, shown.is_bound))
        };
        assert_eq!(value("p75"), Some((482.0, false)));
        assert_eq!(value("started p75"), Some((402.0, false)));
        assert_eq!(value("p99.9"), Some((1e6, true)));
        assert_eq!(value("started p99.9"), Some((1580.0, false)));
        let closed = "  p99.9            10.3 ms  9.95 ms and up  ≤ 4.68 ms\n";
        assert_eq!(detailed_times(closed).len(), 1);
        assert_eq!(statuses(details), Statuses::from([(200, 49_960), (404, 3)]));
    }
}
