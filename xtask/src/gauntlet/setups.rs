//! Every set-up, by what is hostile about it.

mod connections;
mod contents;
mod delays;
mod faults;
mod generator;
mod multiplexed;
mod schedules;
mod scripts;
mod silence;

use super::setup::Setup;

/// All of them, in the order in which they run.
pub(super) fn all() -> impl Iterator<Item = Setup> {
    [
        delays::SETUPS,
        silence::SETUPS,
        faults::SETUPS,
        connections::SETUPS,
        contents::SETUPS,
        multiplexed::SETUPS,
        schedules::SETUPS,
        generator::SETUPS,
        scripts::SETUPS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn there_are_fifty_set_ups_and_each_has_a_name_of_its_own() {
        let names: Vec<&str> = super::all().map(|setup| setup.name).collect();
        assert!(names.len() >= 50, "{}", names.len());
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
