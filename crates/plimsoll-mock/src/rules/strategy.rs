//! Which of several rules that match answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Strategy that chooses one of several matching rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The first of the file.
    #[default]
    FirstMatch,
    /// The one of the highest priority.
    Priority(Tiebreaker),
    /// Any, each as likely.
    UniformRandom(Option<u64>),
    /// Any, as likely as its weight says.
    WeightedRandom(Option<u64>),
    /// One after the other.
    RoundRobin,
}

/// Which of several rules of the highest priority answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tiebreaker {
    /// The first of the file.
    #[default]
    FirstMatch,
    /// Any, each as likely.
    UniformRandom,
}

/// A number by chance; with a seed always the same one, so that the same choice is made for each request.
///
/// Source: Marsaglia, "Xorshift RNGs" (2003), the one of 64 bits.
pub(super) fn random(seed: Option<u64>) -> u64 {
    let Some(seed) = seed else {
        return fastrand::u64(..);
    };
    // Zero would stay zero.
    let mut state = if seed == 0 {
        0x9e37_79b9_7f4a_7c15
    } else {
        seed
    };
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// The position in `weights` that a number falls on; `None` if they are all zero.
pub(super) fn weighted(weights: impl Iterator<Item = u32> + Clone, random: u64) -> Option<usize> {
    let sum: u64 = weights.clone().map(u64::from).sum();
    let mut left = random.checked_rem(sum)?;
    for (at, weight) in weights.enumerate() {
        match left.checked_sub(u64::from(weight)) {
            None => return Some(at),
            Some(less) => left = less,
        }
    }
    None
}

/// Round-robin position for each set of rules that matched together.
#[derive(Debug, Default)]
pub(super) struct Rotations(Mutex<HashMap<Box<[u32]>, usize>>);

/// Sets of rules with a kept rotation; beyond, all begin anew.
const MOST_ROTATIONS: usize = 4096;

impl Rotations {
    /// The next position among `numbers`, which must not be empty.
    pub(super) fn next(&self, numbers: &[u32]) -> usize {
        let mut rotations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = rotations.get_mut(numbers) {
            *turn = (*turn + 1) % numbers.len();
            return *turn;
        }
        if rotations.len() == MOST_ROTATIONS {
            rotations.clear();
        }
        rotations.insert(numbers.into(), 0);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_shares() {
        let weights = [3, 0, 1];
        let picked = (0..4).map(|random| weighted(weights.into_iter(), random));
        assert_eq!(
            picked.collect::<Vec<_>>(),
            [Some(0), Some(0), Some(0), Some(2)]
        );
        assert_eq!(weighted([0, 0].into_iter(), 7), None);
        assert!(weighted([u32::MAX; 3].into_iter(), u64::MAX).is_some());
    }

    #[test]
    fn a_seed_gives_the_same_number() {
        assert_eq!(random(Some(7)), random(Some(7)));
        assert_ne!(random(Some(7)), random(Some(8)));
        assert_ne!(random(Some(0)), 0);
    }

    #[test]
    fn rotations_are_apart() {
        let rotations = Rotations::default();
        let turns: Vec<_> = (0..4).map(|_| rotations.next(&[1, 5, 6])).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        assert_eq!(rotations.next(&[1, 5]), 0);
        assert_eq!(rotations.next(&[1, 5, 6]), 1);
    }
}
