//! The text of a summary in the layout of k6 before version 1, which `textSummary()` of jslib k6-summary has: groups with their checks, then
//! every metric.

use serde_json::Value;

use super::humanize::{bytes, humanize, number};
use super::text::{NO_FIGURE, has_figures};

/// Settings of the text.
#[derive(Debug)]
pub(crate) struct LegacyLook<'a> {
    /// Before each line, which has two or four spaces more.
    pub(crate) indent: &'a str,
    pub(crate) has_colors: bool,
    /// Of durations; empty for the one that fits.
    pub(crate) unit: &'a str,
    pub(crate) trend_stats: Vec<&'a str>,
    /// Sub-metrics stand below their metric. Otherwise names are in the order of their characters.
    pub(crate) keeps_families: bool,
}

impl<'a> LegacyLook<'a> {
    /// That of the data's own options.
    pub(crate) fn of_data(data: &'a Value, has_colors: bool) -> Self {
        let stats = data["options"]["summaryTrendStats"].as_array();
        let stats = stats.into_iter().flatten().filter_map(Value::as_str);
        Self {
            indent: " ",
            has_colors,
            unit: data["options"]["summaryTimeUnit"]
                .as_str()
                .unwrap_or_default(),
            trend_stats: stats.collect(),
            keeps_families: true,
        }
    }

    fn color(&self, codes: &str, text: &str) -> String {
        if self.has_colors {
            format!("\u{1b}[{codes}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

const GREEN: &str = "32";
const RED: &str = "31";
const CYAN: &str = "36";
const FAINT: &str = "2";
const FAINT_CYAN: &str = "36;2";

/// The text for the data of a summary. Lines end in the spaces of their columns.
pub(crate) fn legacy_text_of(data: &Value, look: &LegacyLook<'_>) -> String {
    let mut lines = Vec::new();
    let indent = format!("{}    ", look.indent);
    group(look, &data["root_group"], &indent, &mut lines);
    metrics(look, data, &mut lines);
    lines.join("\n")
}

/// A group with its checks, then the groups in it.
fn group(look: &LegacyLook<'_>, group: &Value, indent: &str, lines: &mut Vec<String>) {
    let name = group["name"].as_str().unwrap_or_default();
    let mut inner = indent.to_owned();
    if !name.is_empty() {
        lines.push(format!("{indent}█ {name}\n"));
        inner.push_str("  ");
    }
    let checks = group["checks"].as_array().into_iter().flatten();
    let mut has_checks = false;
    for check in checks {
        has_checks = true;
        let count = |key: &str| check[key].as_u64().unwrap_or_default();
        let (passes, fails) = (count("passes"), count("fails"));
        let name = check["name"].as_str().unwrap_or_default();
        lines.push(if fails == 0 {
            look.color(GREEN, &format!("{inner}✓ {name}"))
        } else {
            let share = 100 * passes / (passes + fails);
            let counts = format!("{inner} ↳  {share}% — ✓ {passes} / ✗ {fails}");
            look.color(RED, &format!("{inner}✗ {name}\n{counts}"))
        });
    }
    if has_checks {
        lines.push(String::new());
    }
    for inside in group["groups"].as_array().into_iter().flatten() {
        self::group(look, inside, &inner, lines);
    }
}

/// The cells of a metric, without the names of figures.
struct Row<'a> {
    name: &'a str,
    metric: &'a Value,
    is_trend: bool,
    cells: Vec<String>,
}

fn metrics(look: &LegacyLook<'_>, data: &Value, lines: &mut Vec<String>) {
    let metrics = data["metrics"].as_object().into_iter().flatten();
    let mut rows: Vec<Row<'_>> = metrics
        .map(|(name, metric)| Row {
            name,
            metric,
            is_trend: metric["type"] == "trend",
            cells: cells(look, metric),
        })
        .collect();
    if look.keeps_families {
        rows.sort_by_cached_key(|row| family(row.name));
    } else {
        rows.sort_by_key(|row| row.name);
    }
    let widest = rows.iter().map(|row| width(&label(row.name)));
    let names = widest.max().unwrap_or_default() + LEAST_DOTS;
    let column = |is_trend: bool, index: usize| {
        let cells = rows.iter().filter(|row| row.is_trend == is_trend);
        let cells = cells.filter_map(|row| row.cells.get(index));
        cells.map(|cell| width(cell)).max().unwrap_or_default()
    };
    for row in &rows {
        let mut padded = Vec::new();
        for (index, cell) in row.cells.iter().enumerate() {
            let spaces = " ".repeat(column(row.is_trend, index) - width(cell));
            let codes = if row.is_trend || index == 0 {
                CYAN
            } else {
                FAINT_CYAN
            };
            let shown = look.color(codes, cell);
            padded.push(match look.trend_stats.get(index) {
                Some(stat) if row.is_trend => format!("{stat}={shown}{spaces}"),
                // The only figure behind the value has no column.
                _ if index == 1 && row.cells.len() == 2 => shown,
                _ => format!("{shown}{spaces}"),
            });
        }
        let label = label(row.name);
        let name = label.trim_start();
        let dots = ".".repeat(names - width(&label));
        lines.push(format!(
            "{}  {}{} {name}{} {}",
            look.indent,
            " ".repeat(label.len() - name.len()),
            mark(look, row.metric),
            look.color(FAINT, &format!("{dots}:")),
            padded.join(" ")
        ));
    }
}

/// Dots behind the longest name.
const LEAST_DOTS: usize = 3;

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The name of a metric, or the tags of a sub-metric.
fn label(name: &str) -> String {
    match name.split_once('{') {
        Some((_, tags)) => format!("  {{ {} }}", tags.strip_suffix('}').unwrap_or(tags)),
        None => name.to_owned(),
    }
}

/// By which names are sorted: those of metrics, then those of their sub-metrics, as words of a language.
fn family(name: &str) -> [(Vec<u32>, String); 2] {
    let start = name.find('{').unwrap_or(name.len());
    let (metric, sub_metric) = name.split_at(start);
    [metric, sub_metric].map(|text| {
        let weight = |letter: char| match letter {
            _ if letter.is_alphabetic() => 0x200 + u32::from(letter.to_ascii_lowercase()),
            _ if letter.is_ascii_digit() => 0x100 + u32::from(letter),
            '_' => 0,
            _ => u32::from(letter),
        };
        let weights = text.chars().map(weight).collect();
        // Small letters before large ones, where nothing else differs.
        let cases = text.chars().map(|letter| match letter {
            _ if letter.is_lowercase() => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        });
        (weights, cases.collect())
    })
}

fn mark(look: &LegacyLook<'_>, metric: &Value) -> String {
    match metric["thresholds"].as_object() {
        None => " ".to_owned(),
        Some(judged) if judged.values().any(|threshold| threshold["ok"] == false) => {
            look.color(RED, "✗")
        }
        Some(_) => look.color(GREEN, "✓"),
    }
}

fn cells(look: &LegacyLook<'_>, metric: &Value) -> Vec<String> {
    let values = &metric["values"];
    let contains = metric["contains"].as_str().unwrap_or_default();
    let kind = metric["type"].as_str().unwrap_or_default();
    let shown = |key: &str| {
        let value = values[key].as_f64().unwrap_or_default();
        match contains {
            _ if kind == "rate" => humanize(value, kind, contains, look.unit),
            "time" if !look.unit.is_empty() => in_unit(value, look.unit),
            "data" => bytes(value),
            _ => humanize(value, kind, contains, look.unit),
        }
    };
    match kind {
        "counter" => vec![shown("count"), format!("{}/s", shown("rate"))],
        "gauge" if !has_figures(metric) => vec![NO_FIGURE.to_owned()],
        "gauge" => vec![
            shown("value"),
            format!("min={}", shown("min")),
            format!("max={}", shown("max")),
        ],
        "rate" => {
            let count = |key: &str| number(values[key].as_f64().unwrap_or_default());
            vec![
                shown("rate"),
                format!("✓ {}", count("passes")),
                format!("✗ {}", count("fails")),
            ]
        }
        "trend" => {
            let stats = look.trend_stats.iter();
            let cell = |stat: &&str| match *stat {
                "count" => number(values["count"].as_f64().unwrap_or_default()),
                stat => shown(stat),
            };
            stats.map(cell).collect()
        }
        _ => vec!["[no data]".to_owned()],
    }
}

/// Rounded to two decimals.
fn in_unit(millis: f64, unit: &str) -> String {
    let (factor, name) = match unit {
        "s" => (0.001, "s"),
        "us" => (1000.0, "µs"),
        _ => (1.0, "ms"),
    };
    format!("{:.2}{name}", millis * factor)
}
