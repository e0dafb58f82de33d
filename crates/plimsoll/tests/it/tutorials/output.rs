//! Whether a command printed what its page shows.
//!
//! Measured figures differ from run to run, and cautions depend on the machine: both are left out. Everything else is equal: words, verdicts, statuses, counts
//! below a hundred. `…` on a page stands for any text of a line, and alone for any lines.

use regex::{Captures, Regex};

/// How lines are compared.
pub(super) struct Comparison {
    figures: Regex,
}

impl Comparison {
    pub(super) fn new() -> Self {
        // A status stays, and so do numbers of one or two digits without a unit.
        let figures = r"(?x)
            (?P<kept> (?:^|\s)status\s+\d{3}\b | HTTP/\d(?:\.\d)?\s\d{3}\b)
            | (?:±\s*|≥\s*)? (?:
                \d{4}-\d\d-\d\dT[\d:.]+Z
                | \d[\d,]*(?:\.\d+)?\s?(?:ns|µs|ms|s|kB|MB|GB|B|%)(?:\b|\W)
                | \d[\d,]*\.\d+
                | \d{1,3}(?:,\d{3})+
                | \d{3,}
                | \d+(?P<rate>/s)
            )";
        let figures = Regex::new(figures).expect("the pattern is valid");
        Self { figures }
    }

    /// Whether these lines are those of the page.
    pub(super) fn agrees(&self, page: &[String], printed: &[String]) -> bool {
        let page: Vec<_> = without_cautions(page).map(|it| self.form(it)).collect();
        let printed: Vec<_> = without_cautions(printed).map(|it| self.form(it)).collect();
        lines_agree(&page, &printed)
    }

    /// Whether one of these lines is that of the page.
    pub(super) fn has(&self, line: &str, printed: &[String]) -> bool {
        let line = self.form(line);
        printed.iter().any(|it| line_agrees(&line, &self.form(it)))
    }

    /// A line without figures, with one blank between words.
    fn form(&self, line: &str) -> String {
        let replaced = self.figures.replace_all(line, |found: &Captures<'_>| {
            if let Some(kept) = found.name("kept") {
                return kept.as_str().to_owned();
            }
            if let Some(rate) = found.name("rate") {
                return format!("# {}", rate.as_str());
            }
            let text = found.get(0).map_or("", |all| all.as_str());
            // What ended the unit is not part of it.
            let end = text
                .chars()
                .last()
                .filter(|c| !c.is_alphanumeric() && *c != '%');
            format!(" # {}", end.map(String::from).unwrap_or_default())
        });
        let words: Vec<_> = replaced.split_whitespace().collect();
        // An error (`±`) is printed where it is above 2 %.
        words.join(" ").replace("# #", "#")
    }
}

/// Lines that are printed on every machine: no cautions and warnings with their continuations, no arrivals that a busy machine
/// missed, no empty lines.
fn without_cautions(lines: &[String]) -> impl Iterator<Item = &str> {
    // The blanks that a continuation begins with.
    let mut indent = None;
    lines
        .iter()
        .map(|line| line.trim_end())
        .filter(move |line| {
            let blanks = line.len() - line.trim_start().len();
            // In k6's place they are lines of its log.
            if line.starts_with("warning:") || line.contains(" level=warning ") {
                indent = Some(2);
            } else if line.starts_with("caution ") {
                indent = Some(11);
            } else if indent != Some(blanks) {
                indent = None;
            }
            let is_caution = indent.is_some();
            let is_missed = line.starts_with(' ') && line.contains(" missed (");
            !is_caution && !is_missed && !line.is_empty()
        })
}

fn lines_agree(page: &[String], printed: &[String]) -> bool {
    match page.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => (0..=printed.len())
            .any(|skipped| lines_agree(rest, printed.get(skipped..).unwrap_or_default())),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(next, others)| line_agrees(line, next) && lines_agree(rest, others)),
    }
}

/// - `page`: where it has a figure, a number of any size may be printed.
fn line_agrees(page: &str, printed: &str) -> bool {
    let pattern = regex::escape(page);
    let pattern = pattern.replace("\\#", r"(?:\#|\d+)").replace('…', ".*");
    let pattern = Regex::new(&format!("^{pattern}$")).expect("an escaped text is a pattern");
    pattern.is_match(printed)
}

#[test]
fn figures_may_differ_and_words_may_not() {
    let comparison = Comparison::new();
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let agrees = |page: &str, printed: &str| comparison.agrees(&lines(page), &lines(printed));
    for (page, printed) in [
        (
            "requests   10,424/s   31,279 ok, 0 failed",
            "requests   933/s   466 ok, 0 failed",
        ),
        (
            "latency    p50 518 µs   p99 4.69 ms",
            "latency    p50 1.2 s   p99 ≥ 3 s",
        ),
        (
            "server     99.0 µs of CPU per request   103 % of a core",
            "server     99.0 µs ± 7.48 µs of CPU per request   47.7 % of a core",
        ),
        (
            "data       13.0 MB received (4.33 MB/s)",
            "data       9 kB received (450 B/s)",
        ),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("a\n…\nd", "a\nd"),
        ("slower, …", "slower, 52 % worse"),
        ("a\nb", "a\ncaution    x\n           y\nb"),
        ("    A\nb", "warning: x\n  y\nwarning: z\n    A\nb"),
        (
            "1  resolved  2026-11-26T18:04:04.252Z  x",
            "1  resolved  2027-01-02T03:04:05.1Z  x",
        ),
        ("avg=708.03µs max=4.96ms", "avg=1.29ms max=15s"),
        ("200 out of 200", "84 out of 84"),
        ("200 ok\nb", "200 ok\n           1 missed (0.50 %)\nb"),
    ] {
        assert!(agrees(page, printed), "{page} | {printed}");
    }
    for (page, printed) in [
        ("0 failed", "1 failed"),
        ("status     200 100 %", "status     503 100 %"),
        ("HTTP/1.1 200 OK", "HTTP/1.1 404 OK"),
        ("exit 1", "exit 0"),
        ("a\nb", "a\nb\nc"),
        ("a\n…\nb", "a\nc"),
        ("slower", "faster"),
        ("", "error: x"),
        ("✓ x", "✗ x"),
    ] {
        assert!(!agrees(page, printed), "{page} | {printed}");
    }
}
