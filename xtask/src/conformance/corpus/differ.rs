//! What differs between the two programs, with the cause by which differences are grouped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::session::RunResult;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The same for differences of one kind.
    pub(super) cause: String,
    /// What it is in this script.
    pub(super) detail: String,
}

impl Difference {
    fn new(cause: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.detail)
    }
}

/// Metrics that depend on bytes that the programs send differently.
const MEASURED: [&str; 2] = ["data_sent", "data_received"];

/// Gauges that both programs sample once a second: short runs may end before, on a busy machine by one program alone.
pub(super) const SAMPLED: [&str; 2] = ["vus", "vus_max"];

/// What both say of a script without a run.
///
/// - `ours`: or the error.
pub(super) fn inspected(theirs: &Value, ours: &Result<Value, String>) -> Vec<Difference> {
    let ours = match ours {
        Ok(ours) => ours,
        Err(error) => {
            let cause = format!("not initialised: {}", normal(error));
            return vec![Difference::new(cause, error.clone())];
        }
    };
    let empty = Map::new();
    let members = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    let (theirs, ours) = (members(theirs), members(ours));
    let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    let differing = keys.into_iter().filter_map(|key| {
        let (one, other) = (theirs.get(key), ours.get(key));
        let is_same = match (one, other) {
            (Some(one), Some(other)) => undated(one) == undated(other),
            _ => one == other,
        };
        let shown =
            |value: Option<&Value>| value.map_or("nothing".to_owned(), |it| cut(&it.to_string()));
        (!is_same).then(|| {
            let detail = format!("{} by k6, {} by plimsoll", shown(one), shown(other));
            Difference::new(format!("inspect {key}"), detail)
        })
    });
    differing.collect()
}

/// What both runs have left behind.
///
/// - `is_parallel`: whether there are several scenarios, so that the order in which checks first occur is chance.
pub(super) fn runs(theirs: &RunResult, ours: &RunResult, is_parallel: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    if theirs.exit != ours.exit {
        let code = |exit: Option<i32>| exit.map_or("none".to_owned(), |it| it.to_string());
        let error = if ours.error.is_empty() {
            &theirs.error
        } else {
            &ours.error
        };
        let cause = format!(
            "exit code {} by k6, {} by plimsoll: {}",
            code(theirs.exit),
            code(ours.exit),
            normal(error)
        );
        found.push(Difference::new(cause, cut(error)));
        // What one of them did not come to is no cause of its own.
        if theirs.export.is_null() != ours.export.is_null() {
            return found;
        }
    }
    console(theirs, ours, &mut found);
    summary(&theirs.export, &ours.export, &mut found);
    let lines = |result: &RunResult| {
        let mut lines = layout(&result.stdout);
        if is_parallel {
            lines.sort();
        }
        lines
    };
    let (left, right) = (lines(theirs), lines(ours));
    if left != right {
        let differing = left.iter().zip(&right).find(|(one, other)| one != other);
        let detail = match differing {
            Some((one, other)) => format!("`{one}` by k6, `{other}` by plimsoll"),
            None => format!("{} lines by k6, {} by plimsoll", left.len(), right.len()),
        };
        found.push(Difference::new("layout of standard output", detail));
    }
    samples(theirs, ours, &mut found);
    if theirs.csv != ours.csv {
        let detail = format!("`{}` by k6, `{}` by plimsoll", theirs.csv, ours.csv);
        found.push(Difference::new("columns of CSV", detail));
    }
    let names = |result: &RunResult| {
        result
            .files
            .keys()
            .map(|it| normal(it))
            .collect::<BTreeSet<_>>()
    };
    let (left, right) = (names(theirs), names(ours));
    if left != right {
        let detail = format!("{left:?} by k6, {right:?} by plimsoll");
        found.push(Difference::new("files that the script writes", detail));
    } else if theirs.files != ours.files {
        let mut differing = theirs
            .files
            .iter()
            .filter(|(name, shape)| ours.files.get(*name) != Some(shape));
        if let Some((name, shape)) = differing.next()
            && let Some(other) = ours.files.get(name)
        {
            let at = shape
                .bytes()
                .zip(other.bytes())
                .take_while(|(one, other)| one == other)
                .count();
            let from =
                |text: &str| cut(&text.chars().skip(at.saturating_sub(30)).collect::<String>());
            let detail = format!(
                "{name}: `{}` by k6, `{}` by plimsoll",
                from(shape),
                from(other)
            );
            found.push(Difference::new(
                "shape of JSON that the script writes",
                detail,
            ));
        }
    }
    found
}

fn console(theirs: &RunResult, ours: &RunResult, found: &mut Vec<Difference>) {
    let lines = |result: &RunResult| {
        let mut lines: Vec<_> = result.console.iter().map(|line| timeless(line)).collect();
        lines.sort();
        lines
    };
    let (left, right) = (lines(theirs), lines(ours));
    if left == right {
        return;
    }
    let only = |these: &[String], those: &[String]| {
        let mut rest = those.to_vec();
        let mut only = these
            .iter()
            .filter(|line| match rest.iter().position(|it| it == *line) {
                Some(position) => {
                    rest.swap_remove(position);
                    false
                }
                None => true,
            });
        only.next()
            .map_or("nothing".to_owned(), |line| format!("`{}`", cut(line)))
    };
    let detail = format!(
        "{} by k6 alone, {} by plimsoll alone",
        only(&left, &right),
        only(&right, &left)
    );
    found.push(Difference::new("lines of the console", detail));
}

/// Checks, metrics and thresholds in the shape of `--summary-export`.
fn summary(theirs: &Value, ours: &Value, found: &mut Vec<Difference>) {
    if theirs.is_null() != ours.is_null() {
        let by = if ours.is_null() { "k6" } else { "plimsoll" };
        found.push(Difference::new(
            "summary by one program alone",
            format!("by {by}"),
        ));
        return;
    }
    let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
    checks(&theirs["root_group"], &mut left);
    checks(&ours["root_group"], &mut right);
    for (name, counts) in &left {
        match right.get(name) {
            None => found.push(Difference::new("check by k6 alone", name.clone())),
            Some(other) if other != counts => {
                let detail = format!("{name}: {counts:?} by k6, {other:?} by plimsoll");
                found.push(Difference::new("checks that passed and failed", detail));
            }
            Some(_) => {}
        }
    }
    for name in right.keys().filter(|name| !left.contains_key(*name)) {
        found.push(Difference::new("check by plimsoll alone", name.clone()));
    }
    let empty = Map::new();
    let metrics = |value: &Value| {
        let mut metrics = value["metrics"].as_object().unwrap_or(&empty).clone();
        metrics.retain(|name, _| !SAMPLED.contains(&name.as_str()));
        metrics
    };
    let (left, right) = (metrics(theirs), metrics(ours));
    for (name, one) in &left {
        let base = name.split('{').next().unwrap_or(name);
        let kind = if base.len() == name.len() {
            base.to_owned()
        } else {
            format!("{base}{{…}}")
        };
        let Some(other) = right.get(name) else {
            found.push(Difference::new(
                format!("metric {kind} by k6 alone"),
                name.clone(),
            ));
            continue;
        };
        if one["thresholds"] != other["thresholds"] {
            let detail = format!(
                "{name}: {} by k6, {} by plimsoll",
                one["thresholds"], other["thresholds"]
            );
            found.push(Difference::new(
                format!("verdict of a threshold on {kind}"),
                detail,
            ));
        }
        if MEASURED.contains(&base) {
            continue;
        }
        // Counts of counters and rates, and values of gauges; times differ in every run.
        for key in ["count", "passes", "fails"] {
            if one[key] != other[key] && !(one["rate"].is_null() && one["value"].is_null()) {
                let detail = format!(
                    "{name}.{key}: {} by k6, {} by plimsoll",
                    one[key], other[key]
                );
                found.push(Difference::new(format!("count of {kind}"), detail));
            }
        }
    }
    for name in right.keys().filter(|name| !left.contains_key(*name)) {
        let base = name.split('{').next().unwrap_or(name);
        found.push(Difference::new(
            format!("metric {base} by plimsoll alone"),
            name.clone(),
        ));
    }
}

/// How often each check passed and failed, by its path.
fn checks(group: &Value, found: &mut BTreeMap<String, (u64, u64)>) {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for check in members(&group["checks"]).values() {
        let number = |key: &str| check[key].as_u64().unwrap_or_default();
        let path = check["path"].as_str().unwrap_or_default().to_owned();
        found.insert(path, (number("passes"), number("fails")));
    }
    for inner in members(&group["groups"]).values() {
        checks(inner, found);
    }
}

fn samples(theirs: &RunResult, ours: &RunResult, found: &mut Vec<Difference>) {
    for (metric, one) in &theirs.tags {
        let Some(other) = ours.tags.get(metric) else {
            continue;
        };
        if one != other {
            let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
                these
                    .difference(those)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let cause = format!(
                "tags of samples: [{}] by k6 alone, [{}] by plimsoll alone",
                only(one, other),
                only(other, one)
            );
            found.push(Difference::new(cause, metric.clone()));
        }
    }
}

/// Options with their keys in order, without the time at which the script was run.
fn undated(value: &Value) -> String {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").expect("the pattern is fixed"));
    TIME.replace_all(&sorted(value).to_string(), "T")
        .into_owned()
}

/// Lines without figures and without what fills them up.
fn layout(stdout: &str) -> Vec<String> {
    static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
        let pattern =
            r"-?\d[\d.,]*(e[+-]?\d+)?(\s?(ns|µs|ms|kB|MB|GB|s|m|h|B|%))?(\d[\d.]*(s|ms|m))*(/s)?";
        Regex::new(pattern).expect("the pattern is fixed")
    });
    static COLOUR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;]*m").expect("the pattern is fixed"));
    static FILLED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\.{3,}|\s+").expect("the pattern is fixed"));
    let lines = stdout.lines().map(|line| {
        let line = COLOUR.replace_all(line, "");
        let line = FIGURE.replace_all(&line, "N");
        FILLED.replace_all(&line, " ").trim_end().to_owned()
    });
    let is_sampled = |line: &str| {
        let name = line
            .trim_start()
            .split([':', ' '])
            .next()
            .unwrap_or_default();
        // The heading is there with the first of its lines.
        SAMPLED.contains(&name) || name == "EXECUTION"
    };
    lines
        .filter(|line| !line.trim().is_empty() && !is_sampled(line))
        .collect()
}

/// A line without what depends on time and chance.
fn timeless(line: &str) -> String {
    static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}|\d{4}-\d\d-\d\d[T ][\d:.]+Z?|[A-Z][a-z]{2},? [A-Z][a-z]{2} \d\d[^)]*\)|\d+(\.\d+)?";
        Regex::new(pattern).expect("the pattern is fixed")
    });
    CHANGING
        .replace_all(&with_sorted_keys(line), "N")
        .into_owned()
}

/// A line that ends with JSON, with its keys in order: k6 has those of `Response.json()` in any order.
fn with_sorted_keys(line: &str) -> String {
    let json = line.find(['{', '[']).and_then(|at| {
        let (head, json) = line.split_at(at);
        let value: Value = serde_json::from_str(json).ok()?;
        Some(format!("{head}{}", sorted(&value)))
    });
    json.unwrap_or_else(|| line.to_owned())
}

/// A message without paths, names and numbers of one script.
pub(super) fn normal(text: &str) -> String {
    static OWN: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"(file://)?/[^\s:'"`)]+|\d+|https?://[^\s'"`)]+"#;
        Regex::new(pattern).expect("the pattern is fixed")
    });
    cut(&OWN.replace_all(text, "…"))
}

/// With the keys of objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            members.into_iter().collect()
        }
        Value::Array(elements) => elements.iter().map(sorted).collect(),
        value => value.clone(),
    }
}

fn cut(text: &str) -> String {
    const LONGEST: usize = 160;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn causes(differences: &[Difference]) -> Vec<&str> {
        differences.iter().map(|it| it.cause.as_str()).collect()
    }

    fn result(export: Value) -> RunResult {
        RunResult {
            exit: Some(0),
            export,
            ..RunResult::default()
        }
    }

    #[test]
    fn equal_runs_do_not_differ_whatever_they_took() {
        let mut theirs = result(json!({
            "root_group": { "checks": { "a": { "path": "::a", "passes": 2, "fails": 0 } } },
            "metrics": { "http_reqs": { "count": 2, "rate": 1.5 }, "http_req_duration": { "avg": 1.0 } },
        }));
        let mut ours = result(theirs.export.clone());
        ours.export["metrics"]["http_req_duration"]["avg"] = json!(2.0);
        theirs.export["metrics"]["vus"] = json!({ "value": 1, "min": 1, "max": 1 });
        theirs.stdout = "http_reqs....: 2  1.5/s\n avg=1.25ms\n  vus.....: 1 min=1".to_owned();
        ours.stdout = "http_reqs......: 2 1.75/s\n avg=980µs".to_owned();
        theirs.console = vec![
            "info took 12 ms".to_owned(),
            r#"info user {"b":2,"a":[1]}"#.to_owned(),
        ];
        ours.console = vec![
            "info took 9 ms".to_owned(),
            r#"info user {"a":[1],"b":2}"#.to_owned(),
        ];
        assert_eq!(runs(&theirs, &ours, false), []);
    }

    #[test]
    fn the_order_of_checks_counts_unless_scenarios_run_side_by_side() {
        let (mut theirs, mut ours) = (RunResult::default(), RunResult::default());
        theirs.stdout = "✓ a\n✓ b\n".to_owned();
        ours.stdout = "✓ b\n✓ a\n".to_owned();
        assert_eq!(runs(&theirs, &ours, true), []);
        assert_eq!(
            causes(&runs(&theirs, &ours, false)),
            ["layout of standard output"]
        );
    }

    #[test]
    fn every_part_that_differs_has_its_cause() {
        let mut theirs = result(json!({
            "root_group": { "groups": { "g": { "checks": { "a": { "path": "::g::a", "passes": 2, "fails": 0 } } } } },
            "metrics": { "http_reqs": { "count": 2, "rate": 1.5, "thresholds": { "count>1": false } }, "mine": { "count": 1, "rate": 1 } },
        }));
        let mut ours = result(json!({
            "root_group": { "groups": { "g": { "checks": { "a": { "path": "::g::a", "passes": 1, "fails": 1 } } } } },
            "metrics": { "http_reqs": { "count": 3, "rate": 1.5, "thresholds": { "count>1": true } } },
        }));
        ours.exit = Some(99);
        ours.error = "thresholds on 3 metrics".to_owned();
        theirs.console = vec!["info a".to_owned()];
        theirs.stdout = "HTTP\n".to_owned();
        theirs.files.insert("out.json".to_owned(), String::new());
        theirs
            .tags
            .insert("http_reqs".to_owned(), BTreeSet::from(["name".to_owned()]));
        ours.tags
            .insert("http_reqs".to_owned(), BTreeSet::from(["url".to_owned()]));
        let found = runs(&theirs, &ours, false);
        let expected = [
            "exit code 0 by k6, 99 by plimsoll: thresholds on … metrics",
            "lines of the console",
            "checks that passed and failed",
            "verdict of a threshold on http_reqs",
            "count of http_reqs",
            "metric mine by k6 alone",
            "layout of standard output",
            "tags of samples: [name] by k6 alone, [url] by plimsoll alone",
            "files that the script writes",
        ];
        assert_eq!(causes(&found), expected);
    }

    #[test]
    fn options_are_compared_whatever_their_order() {
        let one = json!({ "a": { "x": 1, "y": 2 }, "b": null });
        let other = json!({ "b": null, "a": { "y": 2, "x": 1 } });
        assert_eq!(inspected(&one, &Ok(other)), []);
        let found = inspected(&one, &Ok(json!({ "a": { "x": 1, "y": 3 } })));
        assert_eq!(causes(&found), ["inspect a", "inspect b"]);
        let found = inspected(&one, &Err("cannot read /a/b.js: 3".to_owned()));
        assert_eq!(causes(&found), ["not initialised: cannot read …: …"]);
    }
}
