//! What differs between a run by k6 and one by plimsoll.

use serde_json::{Map, Value};

use super::Case;
use super::run::Run;

/// Milliseconds by which the times of arrivals may differ.
const NEAR: f64 = 60.0;

/// By how much counts that depend on timing may differ, of the larger one; and at least by this many.
const ABOUT: (f64, f64) = (0.25, 2.0);

/// Metrics that depend on bytes that the programs send differently, and on when they look.
const SHAPE_ONLY: [&str; 4] = ["data_sent", "data_received", "vus", "vus_max"];

/// Every difference, for people.
pub(super) fn differences(case: &Case, theirs: &Run, ours: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for (name, run) in [("k6", theirs), ("plimsoll", ours)] {
        if run.exit != Some(case.exit) {
            let code = run.exit.map_or("none".to_owned(), |code| code.to_string());
            let lines: Vec<_> = run.stderr.lines().collect();
            let end = lines[lines.len().saturating_sub(3)..].join("\n         ");
            found.push(format!(
                "{name} exits with {code}, not {}:\n         {end}",
                case.exit
            ));
        }
    }
    consoles(theirs, ours, &mut found);
    if theirs.summary.is_null() != ours.summary.is_null() {
        let with = if ours.summary.is_null() {
            "k6"
        } else {
            "plimsoll"
        };
        found.push(format!("only {with} has a summary"));
        return found;
    }
    if theirs.summary.is_null() {
        return found;
    }
    values(
        "root_group",
        &sorted(&theirs.summary["root_group"]),
        &sorted(&ours.summary["root_group"]),
        case,
        &mut found,
    );
    values(
        "options",
        &theirs.summary["options"],
        &ours.summary["options"],
        case,
        &mut found,
    );
    shapes(
        "state",
        &theirs.summary["state"],
        &ours.summary["state"],
        &mut found,
    );
    values(
        "setup_data",
        &theirs.summary["setup_data"],
        &ours.summary["setup_data"],
        case,
        &mut found,
    );
    metrics(case, theirs, ours, &mut found);
    found
}

/// Lines in any order, since virtual users run side by side.
fn consoles(theirs: &Run, ours: &Run, found: &mut Vec<String>) {
    let (mut left, mut right) = (theirs.console.clone(), ours.console.clone());
    left.sort();
    right.sort();
    for (program, lines, others) in [("k6", &left, &right), ("plimsoll", &right, &left)] {
        let mut rest = others.clone();
        for line in lines {
            match rest.iter().position(|other| is_near(line, other)) {
                Some(position) => drop(rest.remove(position)),
                None => found.push(format!("only {program} prints: {line}")),
            }
        }
    }
}

/// Whether two lines are equal, or those of one arrival at nearly one time.
fn is_near(one: &str, other: &str) -> bool {
    let parts = |line: &str| {
        let (head, millis) = line.rsplit_once(' ')?;
        let millis: f64 = millis.parse().ok()?;
        head.starts_with("info at ")
            .then(|| (head.to_owned(), millis))
    };
    match (parts(one), parts(other)) {
        (Some((head, at)), Some((other, also))) => head == other && (at - also).abs() <= NEAR,
        _ => one == other,
    }
}

fn metrics(case: &Case, theirs: &Run, ours: &Run, found: &mut Vec<String>) {
    let empty = Map::new();
    let all = |run: &Run| run.summary["metrics"].as_object().unwrap_or(&empty).clone();
    let (left, right) = (all(theirs), all(ours));
    for name in left.keys().filter(|name| !right.contains_key(*name)) {
        found.push(format!("only k6 has metric {name}"));
    }
    for name in right.keys().filter(|name| !left.contains_key(*name)) {
        found.push(format!("only plimsoll has metric {name}"));
    }
    for (name, one) in &left {
        let Some(other) = right.get(name) else {
            continue;
        };
        for key in ["type", "contains", "thresholds"] {
            values(
                &format!("{name}.{key}"),
                &one[key],
                &other[key],
                case,
                found,
            );
        }
        let base = name.split('{').next().unwrap_or(name);
        if SHAPE_ONLY.contains(&base)
            || one["type"] == "trend" && is_measured(&one["contains"], name)
        {
            shapes(name, &one["values"], &other["values"], found);
            if one["type"] == "trend" && one["values"]["count"] != other["values"]["count"] {
                found.push(format!("{name}.count differs"));
            }
            continue;
        }
        let is_about = case.about.iter().any(|about| about == base);
        for key in [
            "count", "passes", "fails", "value", "avg", "min", "med", "max",
        ] {
            let (one, other) = (&one["values"][key], &other["values"][key]);
            let is_equal = match (one.as_f64(), other.as_f64()) {
                (Some(one), Some(other)) if is_about => {
                    (one - other).abs() <= (one.max(other) * ABOUT.0).max(ABOUT.1)
                }
                // Trends are exact to a thousandth.
                (Some(one), Some(other)) => (one - other).abs() <= one.abs() / 1000.0,
                _ => one == other,
            };
            if !is_equal {
                found.push(format!("{name}.{key}: {one} by k6, {other} by plimsoll"));
            }
        }
        shapes(name, &one["values"], &other["values"], found);
    }
}

/// Whether a trend is of durations that no script decides.
fn is_measured(contains: &Value, name: &str) -> bool {
    contains == "time" && !name.starts_with("a_")
}

/// Objects have the same keys.
fn shapes(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    let keys = |value: &Value| {
        let mut keys: Vec<_> = value
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        keys.sort();
        keys.join(", ")
    };
    let (one, other) = (keys(one), keys(other));
    if one != other {
        found.push(format!("{path} has {one} by k6, {other} by plimsoll"));
    }
}

fn values(path: &str, one: &Value, other: &Value, case: &Case, found: &mut Vec<String>) {
    // How many checks there are depends on timing where iterations do.
    let is_count = path
        .rsplit('.')
        .next()
        .is_some_and(|key| key == "passes" || key == "fails");
    if is_count && case.about.iter().any(|about| about == "iterations") {
        return;
    }
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            shapes(path, one, other, found);
            for (key, value) in left {
                if let Some(other) = right.get(key) {
                    values(&format!("{path}.{key}"), value, other, case, found);
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                values(&format!("{path}[{index}]"), one, other, case, found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{path}: {one} by k6, {other} by plimsoll")),
    }
}

/// Groups and checks by name, since virtual users find them in any order.
fn sorted(group: &Value) -> Value {
    let mut group = group.clone();
    for key in ["groups", "checks"] {
        if let Some(list) = group[key].as_array_mut() {
            list.sort_by_key(|it| it["name"].as_str().unwrap_or_default().to_owned());
            for inner in list {
                *inner = sorted(inner);
            }
        }
    }
    group
}
