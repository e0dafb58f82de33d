//! Which trial comes when: every round holds each cell once, in an order of its own.

use super::plan::MatrixPlan;

/// One place of the matrix, by positions in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Which target.
    pub target: usize,
    /// Which load.
    pub load: usize,
    /// Which size.
    pub size: usize,
}

/// One trial of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Its cell.
    pub cell: Cell,
    /// Which one of the cell's trials, from 0.
    pub round: u32,
}

/// Every cell, by size, then load, then target.
pub(super) fn cells(plan: &MatrixPlan) -> Vec<Cell> {
    let mut cells = Vec::new();
    for size in 0..plan.sizes.len() {
        for load in 0..plan.loads.len() {
            for target in 0..plan.targets.len() {
                cells.push(Cell { target, load, size });
            }
        }
    }
    cells
}

/// Every trial of `plan`: the same seed gives the same order.
///
/// The order of turns: drift of the machine affects the cells of a round alike, and no cell always follows the
/// same other one.
pub fn turns(plan: &MatrixPlan) -> Vec<Turn> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let cells = cells(plan);
    let rounds = (0..plan.repeats).flat_map(|round| {
        let mut order = cells.clone();
        random.shuffle(&mut order);
        order.into_iter().map(move |cell| Turn { cell, round })
    });
    rounds.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;
    use crate::matrix::compile;

    fn plan(seed: u64) -> MatrixPlan {
        let text = format!(
            "seed = {seed}\nrepeats = 4\n\
             [[target]]\nname = \"a\"\ncommand = \"a\"\nurl = \"http://h/\"\n\
             [[target]]\nname = \"b\"\ncommand = \"b\"\nurl = \"http://h/\"\n\
             [[load]]\nname = \"x\"\n[[load]]\nname = \"y\"\n\
             [[size]]\nname = \"s\"\n[[size]]\nname = \"t\"\n"
        );
        compile(&text, Path::new(""), "plimsoll").unwrap()
    }

    #[test]
    fn every_round_holds_each_cell_once_in_an_order_of_its_own() {
        let turns = turns(&plan(1));
        assert_eq!(turns.len(), 4 * 8);
        let rounds: Vec<Vec<Cell>> = turns
            .chunks(8)
            .map(|round| round.iter().map(|turn| turn.cell).collect())
            .collect();
        for round in &rounds {
            assert_eq!(round.iter().collect::<HashSet<_>>().len(), 8);
        }
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_seed_names_an_order() {
        assert_eq!(turns(&plan(5)), turns(&plan(5)));
        assert_ne!(turns(&plan(5)), turns(&plan(6)));
    }
}
