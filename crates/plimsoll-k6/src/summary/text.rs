//! The text of a summary, in the layout of k6.

use serde_json::Value;

use super::humanize::{bytes, duration, humanize, number, percent};

/// Dots behind the longest name.
const LEAST_DOTS: usize = 3;

/// The blocks of totals, each with the beginnings of the names in it. The first one takes the rest.
const BLOCKS: [(&str, &[&str]); 4] = [
    ("CUSTOM", &[]),
    ("HTTP", &["http_req"]),
    (
        "EXECUTION",
        &["iteration", "dropped_iterations", "vus", "group_duration"],
    ),
    ("NETWORK", &["data_"]),
];

/// Metrics of HTTP that are shown; the others are in the data.
const SHOWN: [&str; 3] = ["http_req_duration", "http_req_failed", "http_reqs"];

/// Metrics that are shown elsewhere, or whose parts are.
const ELSEWHERE: [&str; 2] = ["checks", "group_duration"];

/// The text for the data of a summary.
///
/// - `indent`: before each line.
pub(crate) fn text_of(data: &Value, has_colors: bool, indent: &str) -> String {
    let unit = data["options"]["summaryTimeUnit"]
        .as_str()
        .unwrap_or_default();
    let text = Text {
        data,
        has_colors,
        unit,
    };
    let mut lines = text.thresholds();
    lines.extend(text.totals());
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

struct Text<'a> {
    data: &'a Value,
    has_colors: bool,
    unit: &'a str,
}

impl Text<'_> {
    fn color(&self, code: &str, text: &str) -> String {
        if self.has_colors {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn mark(&self, is_passed: bool) -> String {
        if is_passed {
            self.color("32", "✓")
        } else {
            self.color("31", "✗")
        }
    }

    fn metrics(&self) -> Vec<(&str, &Value)> {
        let metrics = self.data["metrics"].as_object();
        let mut metrics: Vec<_> = metrics
            .into_iter()
            .flatten()
            .map(|(name, metric)| (name.as_str(), metric))
            .collect();
        metrics.sort_by_key(|(name, _)| *name);
        metrics
    }

    fn thresholds(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, metric) in self.metrics() {
            let Some(thresholds) = metric["thresholds"].as_object().filter(|it| !it.is_empty())
            else {
                continue;
            };
            if lines.is_empty() {
                lines.push(
                    format!("█ {} ", self.color("1", "THRESHOLDS"))
                        .trim_end()
                        .to_owned(),
                );
                lines.push(String::new());
            }
            lines.push(format!("  {name}"));
            for (source, judged) in thresholds {
                let is_met = judged["ok"].as_bool().unwrap_or(true);
                let end = source.find(['<', '>', '=', '!']).unwrap_or_default();
                let aggregation = source.get(..end).unwrap_or_default().trim();
                let value = &metric["values"][aggregation];
                let value = value.as_f64().map(|value| {
                    let is_share = aggregation == "rate" && metric["type"] == "rate";
                    let shown = if is_share {
                        percent(value)
                    } else {
                        self.humanize(value, metric)
                    };
                    format!(" {aggregation}={shown}")
                });
                let value = value.unwrap_or_default();
                lines.push(format!("  {} '{source}'{value}", self.mark(is_met)));
            }
            lines.push(String::new());
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines
    }

    fn totals(&self) -> Vec<String> {
        let mut lines = vec![
            format!("█ {}", self.color("1", "TOTAL RESULTS")),
            String::new(),
        ];
        let width = self.width();
        lines.extend(self.checks(width));
        for (index, (title, _)) in BLOCKS.iter().enumerate() {
            let rows: Vec<_> = self
                .metrics()
                .into_iter()
                .filter(|(name, _)| block_of(name) == index && is_shown(name))
                .collect();
            if rows.is_empty() {
                continue;
            }
            lines.push(format!("  {}", self.color("1", title)));
            let columns = self.columns(&rows);
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
            .filter(|(name, _)| is_shown(name))
            .map(|(name, _)| label(name));
        let names = names.map(|name| name.chars().count());
        let longest = names.chain(["checks_succeeded".len()]).max();
        longest.unwrap_or_default() + LEAST_DOTS
    }

    fn checks(&self, width: usize) -> Vec<String> {
        let values = &self.data["metrics"]["checks"]["values"];
        let count = |key: &str| values[key].as_f64().unwrap_or(0.0);
        let (passes, fails) = (count("passes"), count("fails"));
        let total = passes + fails;
        if total == 0.0 {
            return Vec::new();
        }
        let seconds = self.data["state"]["testRunDurationMs"]
            .as_f64()
            .unwrap_or(0.0)
            / 1000.0;
        let rate = if seconds > 0.0 { total / seconds } else { 0.0 };
        let share = |part: f64| {
            format!(
                "{} {} out of {}",
                percent(part / total),
                number(part),
                number(total)
            )
        };
        let mut lines = vec![
            format!(
                "  {}: {} {}/s",
                dotted("checks_total", width),
                number(total),
                number(rate)
            ),
            format!("  {}: {}", dotted("checks_succeeded", width), share(passes)),
            format!("  {}: {}", dotted("checks_failed", width), share(fails)),
            String::new(),
        ];
        self.list_checks(&self.data["root_group"], &mut lines);
        lines.push(String::new());
        lines
    }

    fn list_checks(&self, group: &Value, lines: &mut Vec<String>) {
        for check in group["checks"].as_array().into_iter().flatten() {
            let name = check["name"].as_str().unwrap_or_default();
            let count = |key: &str| check[key].as_u64().unwrap_or_default();
            let (passes, fails) = (count("passes"), count("fails"));
            lines.push(format!("  {} {name}", self.mark(fails == 0)));
            if fails > 0 {
                let share = 100 * passes / (passes + fails);
                lines.push(format!("    ↳  {share}% — ✓ {passes} / ✗ {fails}"));
            }
        }
        for group in group["groups"].as_array().into_iter().flatten() {
            self.list_checks(group, lines);
        }
    }

    /// The widths of the columns of trends.
    fn columns(&self, rows: &[(&str, &Value)]) -> Vec<usize> {
        let mut widths = Vec::new();
        for (_, metric) in rows.iter().filter(|(_, metric)| metric["type"] == "trend") {
            for (index, cell) in self.cells(metric).iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(index) {
                    Some(most) => *most = width.max(*most),
                    None => widths.push(width),
                }
            }
        }
        widths
    }

    fn row(&self, name: &str, metric: &Value, width: usize, columns: &[usize]) -> String {
        let mut cells = self.cells(metric);
        if metric["type"] == "trend" {
            for (cell, width) in cells.iter_mut().zip(columns) {
                let missing = width.saturating_sub(cell.chars().count());
                cell.push_str(&" ".repeat(missing));
            }
        }
        let cells = cells.join(" ");
        format!("{}: {}", dotted(&label(name), width), cells.trim_end())
    }

    fn cells(&self, metric: &Value) -> Vec<String> {
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

/// The name of a metric, or the tags of a sub-metric below it.
fn label(name: &str) -> String {
    match name.split_once('{') {
        Some((_, tags)) => format!("  {{ {} }}", tags.trim_end_matches('}')),
        None => name.to_owned(),
    }
}

fn dotted(name: &str, width: usize) -> String {
    let dots = width.saturating_sub(name.chars().count());
    format!("{name}{}", ".".repeat(dots))
}

fn block_of(name: &str) -> usize {
    let blocks = BLOCKS.iter().skip(1);
    let found = blocks
        .enumerate()
        .find(|(_, (_, starts))| starts.iter().any(|start| name.starts_with(start)));
    found.map_or(0, |(index, _)| index + 1)
}

fn is_shown(name: &str) -> bool {
    let whole = name.split('{').next().unwrap_or_default();
    if ELSEWHERE.contains(&whole) && whole == name {
        return false;
    }
    !whole.starts_with("http_req") || SHOWN.contains(&whole)
}
