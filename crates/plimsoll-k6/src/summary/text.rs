//! The text of a summary, in the layout of k6.

use serde_json::{Value, json};

use super::humanize::{bytes, duration, humanize, number, percent};

/// Dots behind the longest name.
pub(super) const LEAST_DOTS: usize = 3;

/// The block of metrics that no other one takes.
const CUSTOM: &str = "CUSTOM";

/// The other blocks of totals, each with the beginnings of the names in it.
const BLOCKS: [(&str, &[&str]); 5] = [
    (
        "HTTP",
        &[
            "http_reqs",
            "http_req_failed",
            "http_req_duration",
            HTTP_DETAILS[0],
            HTTP_DETAILS[1],
            HTTP_DETAILS[2],
            HTTP_DETAILS[3],
            HTTP_DETAILS[4],
            HTTP_DETAILS[5],
        ],
    ),
    (
        "EXECUTION",
        &[
            "vus",
            "iterations",
            "iteration_duration",
            "dropped_iterations",
        ],
    ),
    ("NETWORK", &["data_sent", "data_received"]),
    ("GRPC", &["grpc_"]),
    ("WEBSOCKET", &["ws_"]),
];

/// Beginnings of names that only the full summary shows; the data has them all.
const HTTP_DETAILS: [&str; 6] = [
    "http_req_blocked",
    "http_req_connecting",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
];

/// Beginnings of names that no list of metrics shows: checks have lines of their own.
const ELSEWHERE: [&str; 2] = ["checks", "group_duration"];

/// In place of a figure of a server that was not observed all the time.
pub(super) const NO_FIGURE: &str = "not known";

/// Whether the metric has any figure.
pub(super) fn has_figures(metric: &Value) -> bool {
    let values = metric["values"].as_object();
    values.is_some_and(|values| !values.is_empty())
}

/// The text for the data of a summary.
///
/// - `judged`: of [`super::judged`].
/// - `indent`: before each line.
pub(crate) fn text_of(
    data: &Value,
    judged: &Value,
    check_names: &[String],
    has_colors: bool,
    indent: &str,
) -> String {
    let text = Text::new(data, check_names, has_colors, false);
    let mut lines = text.thresholds(judged);
    lines.extend(text.totals("TOTAL RESULTS"));
    indented(&lines, indent)
}

/// The text with every metric, then the same for each group and scenario.
///
/// - `judged`: of [`super::judged`].
/// - `parts`: of [`super::parts`].
pub(crate) fn full_text_of(
    data: &Value,
    judged: &Value,
    parts: &Value,
    check_names: &[String],
    has_colors: bool,
    indent: &str,
) -> String {
    let text = Text::new(data, check_names, has_colors, true);
    let mut lines = text.thresholds(judged);
    lines.extend(text.totals("TOTAL RESULTS"));
    for (kind, parts) in [
        ("GROUP", &parts["groups"]),
        ("SCENARIO", &parts["scenarios"]),
    ] {
        for part in parts.as_array().into_iter().flatten() {
            lines.push(String::new());
            lines.extend(part_lines(data, part, kind, (check_names, has_colors)));
        }
    }
    indented(&lines, indent)
}

/// A group or a scenario in the layout of the totals, with the groups in it.
fn part_lines(
    whole: &Value,
    part: &Value,
    kind: &str,
    (check_names, has_colors): (&[String], bool),
) -> Vec<String> {
    let data = json!({
        "metrics": part["metrics"],
        "options": whole["options"],
        "state": whole["state"],
        "root_group": { "checks": part["checks"] },
    });
    let title = format!("{kind}: {}", part["name"].as_str().unwrap_or_default());
    let mut lines = Text::new(&data, check_names, has_colors, true).totals(&title);
    for group in part["groups"].as_array().into_iter().flatten() {
        let inner = part_lines(whole, group, "GROUP", (check_names, has_colors));
        lines.extend(inner.iter().map(|line| match line.strip_prefix('█') {
            Some(title) => format!("  ↳{title}"),
            None if line.is_empty() => String::new(),
            None => format!("  {line}"),
        }));
    }
    lines
}

/// Lines with spaces before those that have something.
pub(super) fn indented(lines: &[String], indent: &str) -> String {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| {
            if line.is_empty() {
                String::new()
            } else {
                format!("{indent}{line}")
            }
        })
        .collect();
    lines.join("\n").trim_end().to_owned()
}

pub(super) struct Text<'a> {
    data: &'a Value,
    /// Names of checks in their order.
    check_names: &'a [String],
    has_colors: bool,
    unit: &'a str,
    /// Every metric is shown.
    is_full: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(
        data: &'a Value,
        check_names: &'a [String],
        has_colors: bool,
        is_full: bool,
    ) -> Self {
        let unit = data["options"]["summaryTimeUnit"].as_str();
        Self {
            data,
            check_names,
            has_colors,
            unit: unit.unwrap_or_default(),
            is_full,
        }
    }

    fn color(&self, code: &str, text: &str) -> String {
        if self.has_colors {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn mark(&self, is_passed: bool) -> String {
        if is_passed {
            self.color("32", "✓")
        } else {
            self.color("31", "✗")
        }
    }

    pub(super) fn metrics(&self) -> Vec<(&str, &Value)> {
        let metrics = self.data["metrics"].as_object();
        let mut metrics: Vec<_> = metrics
            .into_iter()
            .flatten()
            .map(|(name, metric)| (name.as_str(), metric))
            .collect();
        metrics.sort_by_key(|(name, _)| *name);
        metrics
    }

    fn thresholds(&self, judged_values: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        let metrics = self.metrics().into_iter();
        let judged = metrics.filter_map(|(name, metric)| {
            let thresholds = metric["thresholds"].as_object();
            let thresholds = thresholds.filter(|it| !it.is_empty())?;
            Some((name, metric, thresholds))
        });
        let judged: Vec<_> = judged.collect();
        if judged.is_empty() {
            return lines;
        }
        let title = format!("█ {} ", self.color("1", "THRESHOLDS"));
        lines.push(title.trim_end().to_owned());
        lines.push(String::new());
        for (name, metric, thresholds) in &judged {
            // A sub-metric stands below its metric, if that is judged too.
            let parent = name.split_once('{').map(|(parent, _)| parent);
            let is_judged = |parent: &&str| judged.iter().any(|(other, ..)| other == parent);
            let (indent, shown) = match parent.filter(is_judged) {
                Some(parent) => ("    ", name.strip_prefix(parent).unwrap_or(name)),
                None => ("  ", *name),
            };
            lines.push(format!("{indent}{shown}"));
            for (source, verdict) in *thresholds {
                let is_met = verdict["ok"].as_bool().unwrap_or(true);
                let end = source.find(['<', '>', '=', '!']).unwrap_or_default();
                let aggregation = source.get(..end).unwrap_or_default().trim();
                // The summary has the percentiles of `summaryTrendStats` only.
                let value = metric["values"][aggregation].as_f64();
                let value = value.or_else(|| judged_values[name][source].as_f64());
                let value = value.map(|value| self.judged_value(metric, aggregation, value));
                let none = if has_figures(metric) { "" } else { NO_FIGURE };
                let value = value.unwrap_or_else(|| none.to_owned());
                let source = source.trim();
                lines.push(format!(
                    "{indent}{} '{source}' {aggregation}={value}",
                    self.mark(is_met)
                ));
            }
            lines.push(String::new());
        }
        lines.push(String::new());
        lines
    }

    fn judged_value(&self, metric: &Value, aggregation: &str, value: f64) -> String {
        let is_share = aggregation == "rate" && metric["type"] == "rate";
        let per_second = aggregation == "rate" && metric["type"] == "counter";
        if is_share {
            percent(value)
        } else if per_second && metric["contains"] == "data" {
            format!("{}/s", bytes(value))
        } else if per_second {
            format!("{}/s", number(value))
        } else {
            self.humanize(value, metric)
        }
    }

    fn totals(&self, title: &str) -> Vec<String> {
        let mut lines = vec![format!("█ {}", self.color("1", title)), String::new()];
        lines.extend(self.checks());
        let width = self.width();
        let shown: Vec<_> = self
            .metrics()
            .into_iter()
            .filter(|(name, _)| is_shown(name, self.is_full))
            .collect();
        let columns = self.columns(&shown);
        let blocks = BLOCKS.iter().enumerate();
        let blocks = blocks.map(|(index, (title, _))| (*title, Some(index)));
        for (title, block) in std::iter::once((CUSTOM, None)).chain(blocks) {
            let rows: Vec<_> = shown
                .iter()
                .filter(|(name, _)| block_of(name) == block)
                .collect();
            if rows.is_empty() {
                continue;
            }
            lines.push(format!("  {}", self.color("1", title)));
            for (name, metric) in rows {
                lines.push(format!("  {}", self.row(name, metric, width, &columns)));
            }
            lines.push(String::new());
        }
        lines
    }

    /// The length of the longest name with its dots.
    fn width(&self) -> usize {
        let metrics = self.metrics().into_iter();
        let names = metrics
            .filter(|(name, _)| is_shown(name, self.is_full))
            .map(|(name, _)| label(name));
        let names = names.map(|name| name.chars().count());
        names.max().unwrap_or_default() + LEAST_DOTS
    }

    fn checks(&self) -> Vec<String> {
        let width = "checks_succeeded".len() + LEAST_DOTS;
        let values = &self.data["metrics"]["checks"]["values"];
        if values.is_null() {
            return Vec::new();
        }
        let count = |key: &str| values[key].as_f64().unwrap_or(0.0);
        let (passes, fails) = (count("passes"), count("fails"));
        let total = passes + fails;
        let seconds = self.data["state"]["testRunDurationMs"]
            .as_f64()
            .unwrap_or(0.0)
            / 1000.0;
        let rate = if seconds > 0.0 { total / seconds } else { 0.0 };
        let share = |part: f64| {
            let of_total = format!("{} out of {}", number(part), number(total));
            // Those of a threshold that none has run for.
            (percent(part / total.max(1.0)), of_total)
        };
        let rows = [
            (
                "checks_total",
                (number(total), format!("{}/s", number(rate))),
            ),
            ("checks_succeeded", share(passes)),
            ("checks_failed", share(fails)),
        ];
        let first = rows.iter().map(|(_, (cell, _))| cell.chars().count());
        let first = first.max().unwrap_or_default();
        let mut lines = Vec::new();
        for (name, (cell, rest)) in rows {
            lines.push(format!("  {}: {cell:first$} {rest}", dotted(name, width)));
        }
        lines.push(String::new());
        let mut checks = Vec::new();
        gather(&self.data["root_group"], &mut checks);
        checks.sort_by_key(|(name, ..)| self.check_names.iter().position(|known| known == name));
        for (name, passes, fails) in checks {
            lines.push(format!("  {} {name}", self.mark(fails == 0)));
            if fails > 0 {
                let share = 100 * passes / (passes + fails);
                lines.push(format!("    ↳  {share}% — ✓ {passes} / ✗ {fails}"));
            }
        }
        lines.push(String::new());
        lines
    }

    /// The widths of the columns of trends, and of other metrics.
    pub(super) fn columns(&self, rows: &[(&str, &Value)]) -> Columns {
        let mut columns = Columns::default();
        for (_, metric) in rows {
            let widths = &mut columns[usize::from(metric["type"] == "trend")];
            for (index, cell) in self.cells(metric).iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(index) {
                    Some(most) => *most = width.max(*most),
                    None => widths.push(width),
                }
            }
        }
        columns
    }

    pub(super) fn row(
        &self,
        name: &str,
        metric: &Value,
        width: usize,
        columns: &Columns,
    ) -> String {
        let mut cells = self.cells(metric);
        let columns = &columns[usize::from(metric["type"] == "trend")];
        for (cell, width) in cells.iter_mut().zip(columns) {
            let missing = width.saturating_sub(cell.chars().count());
            cell.push_str(&" ".repeat(missing));
        }
        let cells = cells.join(" ");
        format!("{}: {}", dotted(&label(name), width), cells.trim_end())
    }

    pub(super) fn cells(&self, metric: &Value) -> Vec<String> {
        let values = &metric["values"];
        let value = |key: &str| values[key].as_f64().unwrap_or(0.0);
        let contains = metric["contains"].as_str().unwrap_or_default();
        match metric["type"].as_str().unwrap_or_default() {
            "counter" => {
                let per_second = match contains {
                    "data" => format!("{}/s", bytes(value("rate"))),
                    _ => format!("{}/s", number(value("rate"))),
                };
                vec![self.humanize(value("count"), metric), per_second]
            }
            "gauge" if !has_figures(metric) => vec![NO_FIGURE.to_owned()],
            "gauge" => vec![
                self.humanize(value("value"), metric),
                format!("min={}", self.humanize(value("min"), metric)),
                format!("max={}", self.humanize(value("max"), metric)),
            ],
            "rate" => {
                let (passes, total) = (value("passes"), value("passes") + value("fails"));
                vec![
                    percent(value("rate")),
                    format!("{} out of {}", number(passes), number(total)),
                ]
            }
            _ => {
                let stats = self.data["options"]["summaryTrendStats"].as_array();
                let stats = stats.into_iter().flatten().filter_map(Value::as_str);
                let cell = |stat: &str| {
                    let value = value(stat);
                    let shown = match (stat, contains) {
                        ("count", _) => number(value),
                        (_, "time") => duration(value, self.unit),
                        _ => self.humanize(value, metric),
                    };
                    format!("{stat}={shown}")
                };
                stats.map(cell).collect()
            }
        }
    }

    fn humanize(&self, value: f64, metric: &Value) -> String {
        let contains = metric["contains"].as_str().unwrap_or_default();
        humanize(value, "", contains, self.unit)
    }
}

/// Widths of the columns of metrics that are no trends, and of those that are.
pub(super) type Columns = [Vec<usize>; 2];

/// Checks of all groups with their counts; those of one name are one.
pub(super) fn gather(group: &Value, checks: &mut Vec<(String, u64, u64)>) {
    for check in group["checks"].as_array().into_iter().flatten() {
        let name = check["name"].as_str().unwrap_or_default();
        let count = |key: &str| check[key].as_u64().unwrap_or_default();
        let (passes, fails) = (count("passes"), count("fails"));
        match checks.iter_mut().find(|(other, ..)| other == name) {
            Some((_, all_passes, all_fails)) => {
                *all_passes += passes;
                *all_fails += fails;
            }
            None => checks.push((name.to_owned(), passes, fails)),
        }
    }
    for group in group["groups"].as_array().into_iter().flatten() {
        gather(group, checks);
    }
}

/// The name of a metric, or the tags of a sub-metric below it.
pub(super) fn label(name: &str) -> String {
    match name.split_once('{') {
        Some((_, tags)) => format!("  {{ {} }}", tags.strip_suffix('}').unwrap_or(tags)),
        None => name.to_owned(),
    }
}

pub(super) fn dotted(name: &str, width: usize) -> String {
    let dots = width.saturating_sub(name.chars().count());
    format!("{name}{}", ".".repeat(dots))
}

/// Whether a list of metrics shows this one. k6 judges names by their beginnings, also those of custom metrics.
pub(super) fn is_shown(name: &str, is_full: bool) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    !begins(&ELSEWHERE) && (is_full || !begins(&HTTP_DETAILS))
}

/// The index of the block of a metric; `None` for custom ones.
pub(super) fn block_of(name: &str) -> Option<usize> {
    let mut blocks = BLOCKS.iter();
    blocks.position(|(_, starts)| starts.iter().any(|start| name.starts_with(start)))
}
