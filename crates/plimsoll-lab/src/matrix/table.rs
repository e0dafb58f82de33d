//! The cells of a matrix in words, the same in text and on pages.

use plimsoll_model::{
    ByteSize, Unit, counted, grouped, rough_percent, rough_percentage, three_figures,
};

use super::outcome::{CellResult, Figure, Matrix, Winner};
use super::plan::{Limited, LoadPlan, SizePlan};
use super::trial::Outcome;

/// Mark of a cell without a figure.
pub(super) const NOTHING: &str = "–";

/// `value` in the unit of `figure`.
pub(super) fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::RequestsPerSecond | Figure::PeakFds => grouped(value),
        Figure::CpuPercent => format!("{value:.0}"),
        Figure::P50Us | Figure::P99Us | Figure::P999Us => Unit::Microseconds.show(value),
        Figure::PeakMemoryBytes => format!("{:.1} MB", value / 1e6),
        Figure::CpuUsPerRequest
        | Figure::GeneratorCpuUsPerRequest
        | Figure::UpstreamCpuUsPerRequest => three_figures(value),
    }
}

/// The median, or a dash.
pub(super) fn cell(result: &CellResult, figure: Figure) -> String {
    result
        .median(figure)
        .map_or_else(|| NOTHING.to_owned(), |value| shown(figure, value))
}

/// Spread of the trials: `±3.1 %`.
pub(super) fn variation(result: &CellResult, figure: Figure) -> String {
    result
        .variation(figure)
        .map_or_else(String::new, |variation| {
            format!("±{}", rough_percentage(variation))
        })
}

/// Spread of the trials below a heading with the unit: `3.1`.
pub(super) fn percent(result: &CellResult, figure: Figure) -> String {
    result
        .variation(figure)
        .map_or_else(String::new, rough_percent)
}

/// Why a cell has fewer figures than trials, if it does.
pub(super) fn remark(result: &CellResult) -> Option<String> {
    if let Some(reason) = &result.not_run {
        return Some(format!("not run: {reason}"));
    }
    let all = result.trials.len();
    let mut remarks = Vec::new();
    let mut killed = result
        .trials
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Killed {
                who,
                after_us,
                peak_memory_bytes,
            } => Some((who, *after_us, *peak_memory_bytes)),
            _ => None,
        });
    let times = killed.clone().count();
    if let Some((who, after_us, peak)) = killed.next() {
        let held = if peak > 0 {
            format!(", the target at {:.0} MB", peak as f64 / 1e6)
        } else {
            String::new()
        };
        remarks.push(format!(
            "{who} killed for memory{}, first after {:.1} s{held}",
            of_all(times, all),
            after_us as f64 / 1e6
        ));
    }
    let mut failed = result
        .trials
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Failed { reason } => Some(reason),
            _ => None,
        });
    let times = failed.clone().count();
    if let Some(reason) = failed.next() {
        let first = reason.lines().next().unwrap_or_default();
        remarks.push(format!("failed{}: {first}", of_all(times, all)));
    }
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

fn of_all(times: usize, all: usize) -> String {
    if times == all {
        String::new()
    } else {
        format!(" in {times} of {all} trials")
    }
}

/// The limiting side, or a dash.
pub(super) fn limit(result: &CellResult) -> String {
    let limits = result.limits();
    if limits.is_empty() {
        NOTHING.to_owned()
    } else {
        limits.join(", ")
    }
}

/// `small: 1 core and 256 MiB for the target`.
pub(super) fn size(size: &SizePlan) -> String {
    let mut bounds = Vec::new();
    if let Some(cpus) = size.cpus {
        let plural = if (cpus - 1.0).abs() < f64::EPSILON {
            "core"
        } else {
            "cores"
        };
        bounds.push(format!("{cpus} {plural}"));
    }
    if let Some(bytes) = size.memory_bytes {
        bounds.push(ByteSize(bytes).to_string());
    }
    if bounds.is_empty() {
        return format!("{}: no limits", size.name);
    }
    let limited = match size.limited {
        Limited::Target => "for the target",
        Limited::Generator => "for the generator",
        Limited::Both => "for target and generator together",
    };
    format!("{}: {} {limited}", size.name, bounds.join(" and "))
}

/// `c8: 8 connections, closed loop`.
pub(super) fn load(load: &LoadPlan, connections: u32) -> String {
    let connections = counted(u64::from(connections), "connection");
    let model = match load.rate {
        None => "closed loop".to_owned(),
        Some(rate) => format!("{rate}, open loop"),
    };
    format!("{}: {connections}, {model}", load.name)
}

/// `CPU per request nginx; req/s nginx, not clear of plimsoll`.
pub(super) fn winners(matrix: &Matrix, size: usize, load: usize) -> String {
    let winners: Vec<String> = Figure::JUDGED
        .into_iter()
        .filter_map(|figure| matrix.winner(size, load, figure))
        .map(|winner| winner_text(matrix, winner))
        .collect();
    winners.join("; ")
}

fn winner_text(matrix: &Matrix, winner: Winner) -> String {
    let name = |target: usize| &matrix.targets[target].0;
    let clear = if winner.is_clear {
        String::new()
    } else {
        format!(" (not clear of {})", name(winner.second))
    };
    format!("{} {}{clear}", short(winner.figure), name(winner.target))
}

/// The heading of a column.
pub(super) const fn short(figure: Figure) -> &'static str {
    match figure {
        Figure::CpuUsPerRequest => "CPU µs/req",
        Figure::RequestsPerSecond => "req/s",
        Figure::P50Us => "p50",
        Figure::P99Us => "p99",
        Figure::P999Us => "p99.9",
        Figure::CpuPercent => "CPU %",
        Figure::PeakMemoryBytes => "peak RSS",
        Figure::PeakFds => "fds",
        Figure::GeneratorCpuUsPerRequest => "generator µs",
        Figure::UpstreamCpuUsPerRequest => "upstream µs",
    }
}
