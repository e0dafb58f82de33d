//! What limited the target where its windows broke, as far as it was seen.

use plimsoll_model::counted;

use super::outcome::{Line, Window};
use super::search::{Purpose, SearchEnd};
use crate::statistics::median;

/// From this share of what there is on, in percent, all of it is taken to be used: a mean never reaches the maximum.
const FULL_PERCENT: f64 = 90.0;

/// Above this share of one core, in percent, more than one thread computes.
const MORE_THAN_ONE: f64 = 108.0;

/// The limit in words, if the windows that broke show one.
pub(super) fn limit(line: &Line) -> Option<String> {
    if !matches!(line.found.ended, SearchEnd::Line(_)) {
        return None;
    }
    let broken: Vec<&Window> = line
        .windows
        .iter()
        .filter(|window| window.planned.purpose != Purpose::Confirm)
        .filter(|window| !window.seen.held && !window.seen.generator_limited)
        .collect();
    let cpu: Vec<f64> = broken.iter().filter_map(|it| it.cpu_percent).collect();
    if let Some(used) = median(&cpu) {
        let cores = line.conditions.cores.max(1);
        let bound = &line.conditions.pinning.target;
        let cores = match bound.len() {
            0 => cores,
            bound => bound,
        };
        let all = cores as f64 * 100.0;
        if used >= all * FULL_PERCENT / 100.0 {
            let cores = counted(cores as u64, "core");
            return Some(format!(
                "the processor: the target used {used:.0} % of its {cores}"
            ));
        }
        if (FULL_PERCENT..=MORE_THAN_ONE).contains(&used) {
            return Some(format!(
                "one thread: the target used {used:.0} % of one core, and {cores} are there for it"
            ));
        }
    }
    if line.found.connections_full {
        return Some(format!(
            "connections: all {} were in use",
            line.found.connections
        ));
    }
    let used = median(&cpu)?;
    Some(format!(
        "not the processor: the target used {used:.0} % of one core; it waited for something else"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::line_with;
    use super::*;

    #[test]
    fn the_limit_is_what_was_used_up_where_windows_broke() {
        for (cpu_percent, connections_full, cores, expected) in [
            (Some(99.0), false, 4, Some("one thread: ")),
            (Some(390.0), false, 4, Some("the processor: ")),
            (Some(97.0), true, 1, Some("the processor: ")),
            (Some(30.0), true, 4, Some("connections: all 64")),
            (Some(30.0), false, 4, Some("not the processor: ")),
            (None, false, 4, None),
        ] {
            let mut line = line_with(&[
                (100.0, Purpose::Round, true),
                (200.0, Purpose::Round, false),
            ]);
            line.conditions.cores = cores;
            line.found.connections_full = connections_full;
            for window in &mut line.windows {
                // A window that held does not show the limit.
                window.cpu_percent =
                    cpu_percent.map(|used| if window.seen.held { 1.0 } else { used });
            }
            let limit = limit(&line);
            match expected {
                None => assert_eq!(limit, None),
                Some(start) => assert!(
                    limit.as_deref().is_some_and(|it| it.starts_with(start)),
                    "{limit:?}"
                ),
            }
        }
    }
}
