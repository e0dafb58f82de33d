//! `load --fleet … --dry-run`: which agent would make which part.

use std::fmt::Write as _;
use std::time::SystemTime;

use plimsoll_fleet::{
    Checksum, FleetError, FleetRun, FleetTransport, MemberSecond, Merger, NotStarted, Note, Share,
    Shares, SigningKey, UnionError, Work, coordinate, new_run_name, shares,
};
use plimsoll_load::Interrupt;

use super::flags::FleetArgs;
use super::{fleet_plan, show};
use crate::terminal;

/// Gathers the agents, and lets them go.
///
/// - `connections`: or virtual users of the run.
pub(crate) fn parts(
    transport: &dyn FleetTransport,
    args: &FleetArgs,
    agents: usize,
    connections: usize,
    key: Option<&SigningKey>,
    interrupt: &std::sync::Arc<Interrupt>,
) -> Result<Shares, FleetError> {
    let mut found = Shares::new();
    let mut on_note = |note: &Note| match note {
        Note::Parts(parts) => found.clone_from(parts),
        note => terminal::log_line(&show::note(note)),
    };
    let mut plan = fleet_plan(args, agents, connections);
    plan.is_dry = true;
    let outcome = coordinate(
        transport,
        FleetRun {
            run: new_run_name(),
            group: args.agent_group.clone(),
            fleet: plan,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            work: Work::Load,
            tick_seconds: 1,
            command: Vec::new(),
            files: Vec::new(),
            attached: None,
            key,
            most_log_bytes: args.fleet_log.0,
            keep: false,
            interrupt: std::sync::Arc::clone(interrupt),
            on_note: &mut on_note,
        },
        &mut Nothing,
    );
    match outcome {
        Ok(_) | Err(FleetError::NotStarted(NotStarted::Dry)) => Ok(found),
        Err(error) => Err(error),
    }
}

/// The parts of pods that are alike.
///
/// Fails with the number of agents if there are more than connections.
pub(super) fn parts_of_pods(
    agents: usize,
    cores: usize,
    connections: usize,
) -> Result<Shares, usize> {
    let all = shares(&vec![cores; agents], connections)?;
    let named = all.into_iter().enumerate();
    Ok(named
        .map(|(number, share)| (format!("agent-{number}"), share))
        .collect())
}

/// The parts side by side.
///
/// - `heads`: what agents have of their machines, and what `count` counts, such as `connections`.
/// - `rate`: arrivals a second of the whole run, if it has a rate.
pub(crate) fn table(
    parts: &Shares,
    (weight, of): (&str, &str),
    count: &dyn Fn(Share) -> usize,
    rate: Option<f64>,
) -> String {
    let width = parts.keys().map(String::len).max().unwrap_or_default();
    let width = width.max("agent".len());
    let mut text = format!("{:<width$}  {:>12}  {of:>13}", "agent", weight);
    if rate.is_some() {
        write!(text, "  {:>12}", "rate/s").expect("a text takes more");
    }
    for (name, share) in parts {
        let workers = format!("{} of {}", share.workers, share.of);
        let count = count(*share);
        write!(text, "\n{name:<width$}  {workers:>12}  {count:>13}").expect("a text takes more");
        if let Some(rate) = rate {
            let rate = plimsoll_model::rate_figures(rate * part_of(*share));
            write!(text, "  {rate:>12}").expect("a text takes more");
        }
    }
    text.push_str("\n\nnothing was started (--dry-run)");
    text
}

/// Of all workers, as a fraction.
fn part_of(share: Share) -> f64 {
    share.workers as f64 / share.of.max(1) as f64
}

/// Merges what never comes.
struct Nothing;

impl Merger for Nothing {
    fn begin(&mut self, _: &Shares, _: SystemTime) {}

    fn merge_second(&mut self, _: &MemberSecond) -> Result<Checksum, UnionError> {
        Err(UnionError::Kind)
    }

    fn give_up(&mut self, _: usize) {}

    fn look(&mut self) -> Option<String> {
        None
    }
}
