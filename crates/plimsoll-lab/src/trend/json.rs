//! A trend as JSON: `schemas/trend.v1.json` describes it.

use serde::Serialize;

use super::Trend;
use super::text::is_better;

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
            .names
            .iter()
            .zip(&trend.started)
            .map(|(name, started)| MetricStep { name, started })
            .collect(),
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
                        name: &trend.names[change.at],
                        before: change.before,
                        after: change.after,
                        relative: change.relative(),
                        better: is_better(series, change),
                        p: change.p,
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
    results: Vec<MetricStep<'a>>,
    figures: Vec<Course<'a>>,
}

#[derive(Serialize)]
struct MetricStep<'a> {
    name: &'a str,
    started: &'a str,
}

#[derive(Serialize)]
struct Course<'a> {
    figure: &'static str,
    values: &'a [Option<f64>],
    steps: Vec<Step<'a>>,
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
}
