//! The order of trials: interleaved, so that a drift of the machine meets every operand alike.

/// One trial's place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which operand, from 0.
    pub operand: usize,
    /// Which round, from 0; in a round every operand runs once. `None` for a warm-up.
    pub round: Option<u32>,
}

/// A warm-up of each operand, then `trials` rounds: forward, backward, forward, … (A B, B A, A B).
///
/// Going back the way one came cancels a linear drift over two rounds, whatever its size.
pub fn turns(operands: usize, trials: u32) -> Vec<Turn> {
    let warm_up = (0..operands).map(|operand| Turn {
        operand,
        round: None,
    });
    let rounds = (0..trials).flat_map(|round| {
        (0..operands).map(move |position| Turn {
            operand: if round % 2 == 0 {
                position
            } else {
                operands - 1 - position
            },
            round: Some(round),
        })
    });
    warm_up.chain(rounds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(operands: usize, trials: u32) -> String {
        turns(operands, trials)
            .iter()
            .map(|turn| char::from(b'A' + u8::try_from(turn.operand).unwrap()))
            .collect()
    }

    #[test]
    fn rounds_alternate_in_direction() {
        assert_eq!(letters(2, 4), "AB ABBAABBA".replace(' ', ""));
        assert_eq!(letters(3, 3), "ABC ABCCBAABC".replace(' ', ""));
    }

    #[test]
    fn every_operand_runs_once_in_a_round() {
        for round in [None, Some(0), Some(4)] {
            let mut operands: Vec<usize> = turns(4, 5)
                .into_iter()
                .filter(|turn| turn.round == round)
                .map(|turn| turn.operand)
                .collect();
            operands.sort_unstable();
            assert_eq!(operands, [0, 1, 2, 3]);
        }
    }
}
