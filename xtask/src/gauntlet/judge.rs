//! Figures beside what they should be, and the verdict on each.

use std::fmt;
use std::time::Duration;

use super::figures::{Format, Outputs, Shown, Summary};
use super::setup::Setup;
use super::truth::Truth;

/// A figure further off than this has to be marked.
const TOLERANCE: f64 = 0.02;

/// Parts of the cautions that say that generator or machine were disturbed: they mark figures that depend on time,
/// never counts.
const DISTURBED: [&str; 8] = [
    "stood still",
    "ready and not run",
    "was throttled",
    "the generator was the limit",
    "Little's law",
    "hypervisor took",
    "was busy before",
    "each waited for the other",
];

/// What becomes of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Equal,
    Within,
    /// Off, or only a bound, and marked as such.
    Marked,
    Wrong,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equal => "equal",
            Self::Within => "within",
            Self::Marked => "marked",
            Self::Wrong => "WRONG",
        })
    }
}

/// One comparison.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) figure: String,
    pub(super) expected: String,
    pub(super) printed: String,
    /// In percent of what was expected.
    pub(super) difference: Option<f64>,
    pub(super) mark: &'static str,
    pub(super) verdict: Verdict,
}

/// Everything about one run that can be compared.
pub(super) fn rows(setup: &Setup, truth: &Truth, outputs: &Outputs, exit: Option<i32>) -> Vec<Row> {
    let summary = &outputs.json;
    let mut rows = vec![exit_code(setup, exit)];
    let disturbed = disturbed(summary);
    for (name, expected) in &truth.counts {
        rows.push(count(name, *expected, summary.value(name)));
    }
    if let Some(statuses) = &truth.statuses {
        for (status, expected) in statuses {
            let printed = summary.statuses.get(status).copied().unwrap_or(0);
            rows.push(count(
                &format!("status {status}"),
                *expected as f64,
                printed as f64,
            ));
        }
    }
    for (name, expected) in &truth.sizes {
        rows.push(size(name, *expected, summary));
    }
    if let Some([expected, used, different]) = truth.rows {
        rows.push(count("rows used", expected as f64, used as f64));
        rows.push(count("different rows", expected as f64, different as f64));
    }
    for (name, low, high) in &truth.ranges {
        rows.push(range(name, (*low, *high), summary.value(name), disturbed));
    }
    for (name, expected, allowed) in &truth.times {
        let of_generator = summary.of_generator.get(name).copied().unwrap_or(0.0);
        rows.push(match summary.figures.get(name) {
            Some(shown) => {
                let excuse = Excuse {
                    disturbed,
                    of_generator,
                };
                time(name, *expected, *shown, *allowed, excuse)
            }
            None => Row {
                figure: (*name).to_owned(),
                expected: micros(*expected),
                printed: "absent".to_owned(),
                difference: None,
                mark: "",
                verdict: Verdict::Wrong,
            },
        });
    }
    rows.extend(
        setup
            .known
            .cautions
            .iter()
            .map(|part| caution(part, summary)),
    );
    rows.extend(agreement(outputs));
    rows
}

/// Figures of other formats beside those of the JSON: the same, as exactly as they are written, with the same mark.
fn agreement(outputs: &Outputs) -> impl Iterator<Item = Row> {
    let json = &outputs.json;
    outputs.others.iter().flat_map(move |format| {
        let statuses = format.statuses.iter().map(move |statuses| Row {
            figure: format!("statuses in {}", format.name),
            expected: format!("{:?}", json.statuses),
            printed: format!("{statuses:?}"),
            difference: None,
            mark: "",
            verdict: if *statuses == json.statuses {
                Verdict::Equal
            } else {
                Verdict::Wrong
            },
        });
        let figures = format.figures.iter();
        let figures = figures.map(move |(name, shown)| in_format(format, name, *shown, json));
        let ranges = format.ranges.iter();
        let ranges = ranges.map(move |(name, limits)| within(format, name, *limits, json));
        figures.chain(ranges).chain(statuses)
    })
}

/// A figure of the JSON beside what it can be by another format.
fn within(format: &Format, name: &str, (low, high): (f64, f64), json: &Summary) -> Row {
    let json = json.figures.get(name).copied();
    let (value, rounding) = json.map_or((0.0, 0.0), |json| (json.value, json.rounding));
    let is_within = (low * (1.0 - rounding)..=high * (1.0 + rounding)).contains(&value);
    Row {
        figure: format!("{name} in rows of {}", format.name),
        expected: format!("{}–{}", plain(low), plain(high)),
        printed: plain(value),
        difference: None,
        mark: "",
        verdict: if is_within {
            Verdict::Within
        } else {
            Verdict::Wrong
        },
    }
}

fn in_format(format: &Format, name: &str, shown: Shown, json: &Summary) -> Row {
    let json = json.figures.get(name).copied();
    let json_value = json.map_or(0.0, |json| json.value);
    let rounding = shown.rounding + json.map_or(0.0, |json| json.rounding);
    let is_same = (shown.value - json_value).abs() <= rounding * json_value.abs() + 1e-9;
    // Logs of histograms have no marks.
    let is_marked = format.name == "HDR" || json.is_none_or(|json| json.is_bound == shown.is_bound);
    Row {
        figure: format!("{name} in {}", format.name),
        expected: plain(json_value),
        printed: plain(shown.value),
        difference: difference(json_value, shown.value),
        mark: if shown.is_bound { "≥" } else { "" },
        verdict: match (is_same && is_marked, shown.rounding > 0.0) {
            (false, _) => Verdict::Wrong,
            (true, false) => Verdict::Equal,
            (true, true) => Verdict::Within,
        },
    }
}

fn exit_code(setup: &Setup, exit: Option<i32>) -> Row {
    let expected = setup.known.exit;
    Row {
        figure: "exit code".to_owned(),
        expected: expected.to_string(),
        printed: exit.map_or_else(|| "none".to_owned(), |exit| exit.to_string()),
        difference: None,
        mark: "",
        verdict: if exit == Some(expected) {
            Verdict::Equal
        } else {
            Verdict::Wrong
        },
    }
}

fn count(name: &str, expected: f64, printed: f64) -> Row {
    let is_equal = (expected - printed).abs() < 0.5;
    Row {
        figure: name.to_owned(),
        expected: plain(expected),
        printed: plain(printed),
        difference: difference(expected, printed),
        mark: "",
        verdict: if is_equal {
            Verdict::Equal
        } else {
            Verdict::Wrong
        },
    }
}

fn range(
    name: &str,
    (low, high): (f64, f64),
    printed: f64,
    disturbed: Option<&'static str>,
) -> Row {
    let nearest = printed.clamp(low, high.max(low));
    let is_within = (printed - nearest).abs() <= TOLERANCE * nearest;
    Row {
        figure: name.to_owned(),
        expected: if high <= low {
            plain(low)
        } else {
            format!("{}–{}", plain(low), plain(high))
        },
        printed: plain(printed),
        difference: difference(nearest, printed),
        mark: disturbed.filter(|_| !is_within).unwrap_or_default(),
        verdict: match (is_within, disturbed) {
            (true, _) => Verdict::Within,
            (false, Some(_)) => Verdict::Marked,
            (false, None) => Verdict::Wrong,
        },
    }
}

/// Bytes on the wire.
fn size(name: &str, expected: f64, summary: &Summary) -> Row {
    let printed = summary.value(name);
    let is_less = summary.excludes_tls && printed <= expected;
    let row = range(name, (expected, expected), printed, None);
    match row.verdict {
        Verdict::Wrong if is_less => Row {
            mark: "without TLS",
            verdict: Verdict::Marked,
            ..row
        },
        _ => row,
    }
}

/// What marks a duration that is off.
#[derive(Debug, Clone, Copy, Default)]
struct Excuse {
    /// A caution about generator or machine.
    disturbed: Option<&'static str>,
    /// How much of the duration is said to be the generator's at most, in microseconds.
    of_generator: f64,
}

fn time(name: &str, expected: f64, shown: Shown, allowed: Duration, excuse: Excuse) -> Row {
    let most = expected * (1.0 + TOLERANCE) + allowed.as_secs_f64() * 1e6;
    let least = expected * (1.0 - TOLERANCE);
    let is_within = expected.is_finite() && (least..=most).contains(&shown.value);
    let is_generators = shown.value > most && shown.value - excuse.of_generator <= most;
    // A response that never came is no matter of the machine.
    let mark = match excuse.disturbed {
        _ if is_within || !expected.is_finite() => None,
        None if is_generators => Some("of the generator"),
        disturbed => disturbed,
    };
    let verdict = match (is_within, shown.is_bound) {
        // A bound that is not above the truth holds.
        (_, true) if shown.value <= most => Verdict::Marked,
        (true, _) => Verdict::Within,
        (false, _) if mark.is_some() => Verdict::Marked,
        (false, _) => Verdict::Wrong,
    };
    Row {
        figure: name.to_owned(),
        expected: micros(expected),
        printed: micros(shown.value),
        difference: difference(expected, shown.value),
        mark: if shown.is_bound {
            "≥"
        } else {
            mark.unwrap_or_default()
        },
        verdict,
    }
}

fn caution(part: &'static str, summary: &Summary) -> Row {
    let is_there = summary
        .cautions
        .iter()
        .any(|caution| caution.contains(part));
    Row {
        figure: "caution".to_owned(),
        expected: part.to_owned(),
        printed: if is_there { "printed" } else { "absent" }.to_owned(),
        difference: None,
        mark: "",
        verdict: if is_there {
            Verdict::Equal
        } else {
            Verdict::Wrong
        },
    }
}

/// The first caution about generator or machine.
fn disturbed(summary: &Summary) -> Option<&'static str> {
    let has = |part: &&str| {
        summary
            .cautions
            .iter()
            .any(|caution| caution.contains(part))
    };
    DISTURBED.into_iter().find(has)
}

fn difference(expected: f64, printed: f64) -> Option<f64> {
    (expected.is_finite() && expected != 0.0).then(|| (printed / expected - 1.0) * 100.0)
}

fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn micros(value: f64) -> String {
    if value.is_finite() {
        format!("{:.2} ms", value / 1e3)
    } else {
        "never".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(
        expected: f64,
        value: f64,
        is_bound: bool,
        disturbed: Option<&'static str>,
    ) -> Verdict {
        let shown = Shown {
            value,
            is_bound,
            rounding: 0.0,
        };
        let excuse = Excuse {
            disturbed,
            of_generator: 0.0,
        };
        time("p99", expected, shown, Duration::ZERO, excuse).verdict
    }

    #[test]
    fn what_may_be_the_generators_is_marked_as_far_as_it_is_said_to_be() {
        let verdict = |expected: f64, of_generator: f64| {
            let shown = Shown {
                value: 110.0,
                is_bound: false,
                rounding: 0.0,
            };
            let excuse = Excuse {
                of_generator,
                ..Excuse::default()
            };
            time("p99", expected, shown, Duration::ZERO, excuse).verdict
        };
        assert_eq!(verdict(100.0, 9.0), Verdict::Marked);
        assert_eq!(verdict(100.0, 7.0), Verdict::Wrong);
        // It adds, and takes nothing away.
        assert_eq!(verdict(120.0, 50.0), Verdict::Wrong);
        assert_eq!(verdict(f64::INFINITY, 50.0), Verdict::Wrong);
    }

    #[test]
    fn a_percentile_that_is_off_has_to_be_marked() {
        assert_eq!(verdict(100.0, 101.0, false, None), Verdict::Within);
        assert_eq!(verdict(100.0, 90.0, false, None), Verdict::Wrong);
        assert_eq!(
            verdict(100.0, 90.0, false, Some("stood still")),
            Verdict::Marked
        );
        assert_eq!(verdict(100.0, 90.0, true, None), Verdict::Marked);
        // A bound above the truth is none.
        assert_eq!(verdict(100.0, 150.0, true, None), Verdict::Wrong);
    }

    #[test]
    fn what_never_came_is_marked_by_a_bound_alone() {
        let never = f64::INFINITY;
        assert_eq!(verdict(never, 90.0, true, None), Verdict::Marked);
        assert_eq!(verdict(never, 90.0, false, None), Verdict::Wrong);
        assert_eq!(
            verdict(never, 90.0, false, Some("stood still")),
            Verdict::Wrong
        );
    }

    #[test]
    fn no_caution_excuses_a_count() {
        assert_eq!(count("ok", 100.0, 100.0).verdict, Verdict::Equal);
        assert_eq!(count("ok", 100.0, 99.0).verdict, Verdict::Wrong);
    }
}
