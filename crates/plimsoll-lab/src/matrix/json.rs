//! A matrix as JSON: `schemas/lab.v1.json` describes it.

use std::collections::BTreeMap;

use plimsoll_report::ConditionsDocument;
use serde::Serialize;

use super::outcome::{CellResult, Figure, Matrix};
use super::trial::Trial;

/// Name and major version of the document.
pub const SCHEMA: &str = "plimsoll.lab/1";

/// The document, indented, ending with a line break.
pub fn to_json(matrix: &Matrix) -> String {
    plimsoll_report::to_json(&Document::new(matrix))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    name: &'a str,
    seed: u64,
    repeats: u32,
    warm_up_us: u128,
    window_us: u128,
    targets: Vec<Target<'a>>,
    loads: Vec<Load<'a>>,
    sizes: Vec<Size<'a>>,
    cells: Vec<Cell<'a>>,
    winners: Vec<Ahead<'a>>,
    trials_of_earlier_runs: usize,
    conditions: ConditionsDocument,
}

#[derive(Serialize)]
struct Target<'a> {
    name: &'a str,
    command: &'a [String],
}

#[derive(Serialize)]
struct Load<'a> {
    name: &'a str,
    connections: u32,
    rate_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Size<'a> {
    name: &'a str,
    cpus: Option<f64>,
    memory_bytes: Option<u64>,
    limits: &'static str,
    connections: Option<u32>,
}

#[derive(Serialize)]
struct Cell<'a> {
    target: &'a str,
    load: &'a str,
    size: &'a str,
    connections: u32,
    /// `measured`, `partly-measured`, `killed`, `failed` or `not-run`.
    state: &'static str,
    not_run_because: Option<&'a str>,
    limits: Vec<String>,
    harness_bound: bool,
    errors: u64,
    medians: BTreeMap<&'static str, f64>,
    variation: BTreeMap<&'static str, f64>,
    trials: &'a [Trial],
}

#[derive(Serialize)]
struct Ahead<'a> {
    load: &'a str,
    size: &'a str,
    figure: &'static str,
    target: &'a str,
    second: &'a str,
    is_clear: bool,
}

impl<'a> Document<'a> {
    fn new(matrix: &'a Matrix) -> Self {
        let mut winners = Vec::new();
        for (size_index, size) in matrix.sizes.iter().enumerate() {
            for (load_index, load) in matrix.loads.iter().enumerate() {
                let ahead = Figure::JUDGED
                    .into_iter()
                    .filter_map(|figure| matrix.winner(size_index, load_index, figure));
                winners.extend(ahead.map(|winner| Ahead {
                    load: &load.name,
                    size: &size.name,
                    figure: winner.figure.name(),
                    target: &matrix.targets[winner.target].0,
                    second: &matrix.targets[winner.second].0,
                    is_clear: winner.is_clear,
                }));
            }
        }
        Self {
            schema: SCHEMA,
            name: &matrix.name,
            seed: matrix.seed,
            repeats: matrix.repeats,
            warm_up_us: matrix.warm_up.as_micros(),
            window_us: matrix.window.as_micros(),
            targets: matrix
                .targets
                .iter()
                .map(|(name, command)| Target { name, command })
                .collect(),
            loads: matrix
                .loads
                .iter()
                .map(|load| Load {
                    name: &load.name,
                    connections: load.connections,
                    rate_per_second: load.rate.map(plimsoll_model::Rate::per_second),
                })
                .collect(),
            sizes: matrix
                .sizes
                .iter()
                .map(|size| Size {
                    name: &size.name,
                    cpus: size.cpus,
                    memory_bytes: size.memory_bytes,
                    limits: size.limited.name(),
                    connections: size.connections,
                })
                .collect(),
            cells: matrix
                .cells
                .iter()
                .map(|result| cell(matrix, result))
                .collect(),
            winners,
            trials_of_earlier_runs: matrix.kept,
            conditions: ConditionsDocument::from_conditions(&matrix.conditions),
        }
    }
}

fn cell<'a>(matrix: &'a Matrix, result: &'a CellResult) -> Cell<'a> {
    let each = |value: &dyn Fn(Figure) -> Option<f64>| {
        Figure::ALL
            .into_iter()
            .filter_map(|figure| Some((figure.name(), value(figure)?)))
            .collect()
    };
    Cell {
        target: &matrix.targets[result.cell.target].0,
        load: &matrix.loads[result.cell.load].name,
        size: &matrix.sizes[result.cell.size].name,
        connections: result.connections,
        state: result.state(),
        not_run_because: result.not_run.as_deref(),
        limits: result.limits(),
        harness_bound: result.harness_bound,
        errors: result.errors(),
        medians: each(&|figure| result.median(figure)),
        variation: each(&|figure| result.variation(figure)),
        trials: &result.trials,
    }
}
