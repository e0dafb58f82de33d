//! A trend as JSON: `schemas/trend.v1.json` describes it.

use serde::Serialize;

use super::Trend;

/// Name and major version of the document.
pub const SCHEMA: &str = "plimsoll.trend/1";

/// The document, indented, ending with a line break.
pub fn to_json(trend: &Trend) -> String {
    let document = Document {
        schema: SCHEMA,
        level: trend.options.level,
        shuffles: trend.options.shuffles,
        seed: trend.options.seed,
        results: trend
            .points
            .iter()
            .map(|point| ResultRow {
                name: &point.name,
                started: &point.started,
                machine: &point.machine,
            })
            .collect(),
        load: trend.points.first().map(|point| point.load.as_str()),
        warnings: trend.warnings(),
        figures: trend
            .series
            .iter()
            .map(|series| Course {
                figure: series.figure.name(),
                values: &series.values,
                steps: series
                    .changes
                    .iter()
                    .map(|change| Step {
                        at: change.at,
                        name: &trend.points[change.at].name,
                        before: change.before,
                        after: change.after,
                        relative: change.relative(),
                        better: series.is_better(change),
                        p: change.p,
                        other_machine: trend.changes_machine(change.at),
                    })
                    .collect(),
                levels: series
                    .levels
                    .iter()
                    .map(|level| LevelRow {
                        from: level.from,
                        to: level.to,
                        median: level.median,
                        low: level.interval.map(|interval| interval.low),
                        high: level.interval.map(|interval| interval.high),
                    })
                    .collect(),
            })
            .collect(),
    };
    plimsoll_report::to_json(&document)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    level: f64,
    shuffles: u32,
    seed: u64,
    load: Option<&'a str>,
    warnings: Vec<String>,
    results: Vec<ResultRow<'a>>,
    figures: Vec<Course<'a>>,
}

#[derive(Serialize)]
struct ResultRow<'a> {
    name: &'a str,
    started: &'a str,
    machine: &'a str,
}

#[derive(Serialize)]
struct Course<'a> {
    figure: &'static str,
    values: &'a [Option<f64>],
    steps: Vec<Step<'a>>,
    levels: Vec<LevelRow>,
}

#[derive(Serialize)]
struct LevelRow {
    from: usize,
    to: usize,
    median: f64,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct Step<'a> {
    at: usize,
    name: &'a str,
    before: f64,
    after: f64,
    relative: Option<f64>,
    better: bool,
    p: f64,
    other_machine: bool,
}
