//! The text of a summary in the layout of k6 before version 1: groups with their checks, then every metric.

use serde_json::Value;

use super::text::{LEAST_DOTS, Text, indented, label};

/// The text for the data of a summary.
///
/// - `indent`: before each line.
pub(crate) fn legacy_text_of(data: &Value, has_colors: bool, indent: &str) -> String {
    let text = Text::new(data, has_colors, true);
    let mut lines = Vec::new();
    group(&text, &data["root_group"], "", &mut lines);
    lines.extend(metrics(&text));
    indented(&lines, indent)
}

/// A group with its checks, then the groups in it.
fn group(text: &Text<'_>, group: &Value, indent: &str, lines: &mut Vec<String>) {
    let name = group["name"].as_str().unwrap_or_default();
    let mut inner = indent.to_owned();
    if !name.is_empty() {
        lines.push(format!("{indent}█ {name}"));
        lines.push(String::new());
        inner.push_str("  ");
    }
    let checks = group["checks"].as_array().into_iter().flatten();
    let mut has_checks = false;
    for check in checks {
        has_checks = true;
        let count = |key: &str| check[key].as_u64().unwrap_or_default();
        let (passes, fails) = (count("passes"), count("fails"));
        let name = check["name"].as_str().unwrap_or_default();
        lines.push(format!("{inner}{} {name}", text.mark(fails == 0)));
        if fails > 0 {
            let share = 100 * passes / (passes + fails);
            lines.push(format!("{inner} ↳  {share}% — ✓ {passes} / ✗ {fails}"));
        }
    }
    if has_checks {
        lines.push(String::new());
    }
    for inside in group["groups"].as_array().into_iter().flatten() {
        self::group(text, inside, &inner, lines);
    }
}

/// A line for each metric; those with thresholds begin with a mark.
fn metrics(text: &Text<'_>) -> Vec<String> {
    let metrics = text.metrics();
    let names = metrics.iter().map(|(name, _)| label(name).chars().count());
    let width = names.max().unwrap_or_default() + LEAST_DOTS;
    let columns = text.columns(&metrics);
    let verdict = |metric: &Value| {
        let judged = metric["thresholds"].as_object();
        let judged = judged.filter(|judged| !judged.is_empty())?;
        let is_met = judged.values().all(|threshold| threshold["ok"] != false);
        Some(text.mark(is_met))
    };
    let has_marks = metrics.iter().any(|(_, metric)| verdict(metric).is_some());
    let line = |(name, metric): &(&str, &Value)| {
        let row = text.row(name, metric, width, &columns);
        // Names are in one column, marks before it.
        let mark = match verdict(metric) {
            Some(mark) => format!("{mark} "),
            None if has_marks => "  ".to_owned(),
            None => String::new(),
        };
        format!("{mark}{row}")
    };
    metrics.iter().map(line).collect()
}
