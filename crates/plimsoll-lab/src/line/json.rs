//! A load line as JSON: `schemas/line.v1.json` describes it.

use plimsoll_model::{Bounded, Threshold};
use plimsoll_report::ConditionsDocument;
use serde::Serialize;

use super::limit::limit;
use super::outcome::{Line, Window};
use super::search::SearchEnd;

/// Name and major version of the document.
pub const SCHEMA: &str = "plimsoll.line/1";

/// The document, indented, ending with a line break.
pub fn to_json(line: &Line) -> String {
    plimsoll_report::to_json(&Document::new(line))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ended: &'static str,
    line_per_second: Option<f64>,
    interval: Option<Bounds>,
    interval_level: f64,
    held_up_to_per_second: Option<f64>,
    confirmed_per_second: Option<f64>,
    ended_at_per_second: Option<f64>,
    gaps_per_second: &'a [f64],
    knee_per_second: Option<f64>,
    usl: Option<Law>,
    /// In words, as the text has it.
    limited_by: Option<String>,
    url: &'a str,
    method: &'a str,
    protocol: &'static str,
    objectives: Vec<&'a str>,
    connections: usize,
    connections_full: bool,
    workers: usize,
    arrivals: &'static str,
    window_us: u128,
    confirm_us: u128,
    warm_up_us: u128,
    precision: f64,
    rounds: u32,
    seed: u64,
    target: Option<&'a str>,
    windows: Vec<Row<'a>>,
    conditions: ConditionsDocument,
}

#[derive(Serialize)]
struct Bounds {
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct Law {
    throughput_of_one_per_second: f64,
    contention: f64,
    coherency: f64,
    r_squared: f64,
    peak_in_flight: Option<f64>,
    ceiling_per_second: Option<f64>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Serialize)]
struct Row<'a> {
    purpose: &'static str,
    began_us: u128,
    rate_per_second: f64,
    connections: usize,
    held: bool,
    kept_rate: bool,
    queue_grew: bool,
    counts: bool,
    generator_limited: bool,
    saturated: Option<&'static str>,
    objectives: Vec<Objective<'a>>,
    ok_per_second: f64,
    started: u64,
    missed: u64,
    error_share: f64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    /// The names of those times that are only lower bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    censored: Vec<&'static str>,
    in_flight: Option<f64>,
    cpu_us_per_request: Option<f64>,
    cpu_percent: Option<f64>,
    peak_memory_bytes: Option<u64>,
    generator_cpu_us_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_waited_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_waiting_threads: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_thread_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_reached: Option<u64>,
}

#[derive(Serialize)]
struct Objective<'a> {
    threshold: &'a str,
    unit: &'static str,
    value: Option<f64>,
    /// Whether the value is only a lower bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    censored: bool,
    met: bool,
}

impl<'a> Document<'a> {
    fn new(line: &'a Line) -> Self {
        let (ended, boundary, at) = match line.found.ended {
            SearchEnd::Line(boundary) => ("line", Some(boundary), None),
            SearchEnd::Generator { rate } => ("generator", None, Some(rate)),
            SearchEnd::Interrupted => ("interrupted", None, None),
            SearchEnd::Most => ("highest-rate-held", None, None),
            SearchEnd::Nothing { lowest } => ("nothing-held", None, Some(lowest)),
        };
        Self {
            schema: SCHEMA,
            ended,
            line_per_second: boundary.map(|boundary| boundary.rate),
            interval: boundary.map(|boundary| Bounds {
                low: boundary.low,
                high: boundary.high,
            }),
            interval_level: super::boundary::Boundary::LEVEL,
            held_up_to_per_second: line.found.held_up_to,
            confirmed_per_second: line.found.confirmed,
            ended_at_per_second: at,
            gaps_per_second: &line.found.gaps,
            knee_per_second: line.knee,
            usl: line.usl.map(|usl| Law {
                throughput_of_one_per_second: usl.throughput_of_one,
                contention: usl.contention,
                coherency: usl.coherency,
                r_squared: usl.r_squared,
                peak_in_flight: usl.peak(),
                ceiling_per_second: usl.ceiling(),
            }),
            limited_by: limit(line),
            url: &line.url,
            method: &line.method,
            protocol: line.protocol.name(),
            objectives: line.objectives.iter().map(Threshold::text).collect(),
            connections: line.found.connections,
            connections_full: line.found.connections_full,
            workers: line.workers,
            arrivals: if line.is_poisson { "poisson" } else { "fixed" },
            window_us: line.window.as_micros(),
            confirm_us: line.confirm.as_micros(),
            warm_up_us: line.warm_up.as_micros(),
            precision: line.precision,
            rounds: line.rounds,
            seed: line.seed,
            target: line.target.as_deref(),
            windows: line
                .windows
                .iter()
                .map(|window| Row::new(line, window))
                .collect(),
            conditions: ConditionsDocument::from_conditions(&line.conditions),
        }
    }
}

impl<'a> Row<'a> {
    fn new(line: &'a Line, window: &Window) -> Self {
        Self {
            purpose: window.planned.purpose.name(),
            began_us: window.began.as_micros(),
            rate_per_second: window.planned.rate,
            connections: window.planned.connections,
            held: window.seen.held,
            kept_rate: window.kept_rate,
            queue_grew: window.queue_grew,
            counts: Line::counts(window),
            generator_limited: window.seen.generator_limited,
            saturated: window
                .saturated
                .as_ref()
                .map(plimsoll_model::Saturation::name),
            objectives: line
                .objectives
                .iter()
                .zip(&window.values)
                .map(|(objective, value)| Objective {
                    threshold: objective.text(),
                    unit: objective.unit().name(),
                    value: value.map(Bounded::low),
                    censored: value.is_some_and(Bounded::is_censored),
                    met: value.is_some_and(|value| objective.is_met(value)),
                })
                .collect(),
            ok_per_second: window.throughput,
            started: window.started,
            missed: window.missed,
            error_share: window.error_share,
            mean_us: window.mean_us.map(Bounded::low),
            p50_us: window.p50_us.map(Bounded::low),
            p99_us: window.p99_us.map(Bounded::low),
            censored: [
                ("mean_us", window.mean_us),
                ("p50_us", window.p50_us),
                ("p99_us", window.p99_us),
            ]
            .into_iter()
            .filter(|(_, time)| time.is_some_and(Bounded::is_censored))
            .map(|(name, _)| name)
            .collect(),
            in_flight: window.in_flight,
            cpu_us_per_request: window.cpu_us_per_request,
            cpu_percent: window.cpu_percent,
            peak_memory_bytes: window.peak_memory_bytes,
            generator_cpu_us_per_request: window.generator_cpu_us_per_request,
            lock_waited_share: window.waits.lock.map(|lock| lock.share),
            lock_waiting_threads: window.waits.lock.map(|lock| lock.threads),
            busiest_thread_percent: window.waits.busiest.as_ref().map(|thread| thread.percent),
            memory_limit_reached: window.waits.memory.map(|memory| memory.reached),
        }
    }
}
