//! The conditions of a run: machine, limits, placement, warnings.

use plimsoll_model::{Conditions, percentage, three_figures};

use crate::text::numbers::{bytes, plural};
use crate::text::page::Page;
use crate::text::style::Emphasis;

/// Adds the section.
pub(super) fn conditions(page: &mut Page, conditions: &Conditions) {
    page.heading("conditions", "");
    let started = humantime::format_rfc3339_seconds(conditions.started);
    let mut run = vec![
        format!("plimsoll {}", conditions.plimsoll),
        started.to_string(),
    ];
    run.extend(conditions.kernel.clone());
    let mut machine: Vec<String> = conditions.cpu_model.iter().cloned().collect();
    machine.push(plural(conditions.cores as u64, "core", "cores"));
    machine.extend(
        conditions
            .memory_bytes
            .map(|size| format!("{} of memory", bytes(size))),
    );
    machine.extend(
        conditions
            .governor
            .iter()
            .map(|name| format!("governor {name}")),
    );
    machine.extend(
        conditions
            .congestion_control
            .iter()
            .map(|name| format!("congestion control {name}")),
    );
    let mut place: Vec<String> = Vec::new();
    place.extend(conditions.co_located.map(|same| {
        let text = if same {
            "generator and target on one machine"
        } else {
            "target on another machine"
        };
        text.to_owned()
    }));
    let pinning = &conditions.pinning;
    for (who, cores) in [
        ("generator", &pinning.generator),
        ("target", &pinning.target),
    ] {
        if !cores.is_empty() {
            place.push(format!("{who} on {}", core_list(cores)));
        }
    }
    let limits: Vec<String> = [
        conditions
            .limits
            .cpus
            .map(|cpus| format!("{} cores", three_figures(cpus))),
        conditions
            .limits
            .memory_bytes
            .map(|limit| format!("{} of memory", bytes(limit))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !limits.is_empty() {
        place.push(format!("limited to {}", limits.join(" and ")));
    }
    place.extend(
        conditions
            .load_before
            .map(|load| format!("load {:.2} before", load.one)),
    );
    place.extend(
        conditions
            .steal_percent
            .map(|steal| format!("{} stolen", percentage(steal))),
    );
    for facts in [run, machine, place] {
        if !facts.is_empty() {
            page.marked(" ", Emphasis::Faint, &facts.join(", "));
        }
    }
    if !conditions.warnings.is_empty() {
        page.line("");
        for warning in &conditions.warnings {
            page.marked("!", Emphasis::Warning, warning);
        }
    }
}

/// `core 3`, `cores 0+1`.
fn core_list(cores: &[usize]) -> String {
    let names: Vec<String> = cores.iter().map(ToString::to_string).collect();
    let noun = if cores.len() == 1 { "core" } else { "cores" };
    format!("{noun} {}", names.join("+"))
}
