//! Results that wait for the centre: bounded, in their order.

use std::collections::VecDeque;

use crate::engine::report::Found;
use crate::probe::reading::CheckResult;

/// Results that wait; the oldest make room for new ones.
#[derive(Debug)]
pub(super) struct Buffer {
    waiting: VecDeque<Found>,
    most: usize,
    /// The number of the last result.
    last: u64,
    lost: u64,
}

impl Buffer {
    pub(super) fn new(most: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            most: most.max(1),
            last: 0,
            lost: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Results that were given up.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn push(&mut self, key: &str, result: CheckResult) {
        if self.waiting.len() >= self.most {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.last += 1;
        self.waiting
            .push_back(Found::from_result(self.last, key, result));
    }

    /// The oldest ones.
    pub(super) fn first(&self, most: usize) -> Vec<Found> {
        self.waiting.iter().take(most).cloned().collect()
    }

    /// The centre has those up to a number.
    pub(super) fn forget(&mut self, number: u64) {
        while self
            .waiting
            .front()
            .is_some_and(|found| found.number() <= number)
        {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::detect::status::Status;
    use crate::time::Timestamp;

    #[test]
    fn the_oldest_make_room_and_sent_ones_are_forgotten_once() {
        let mut buffer = Buffer::new(3);
        let result = || CheckResult::plain(Timestamp(0), Status::Up, Duration::ZERO, None);
        for _ in 0..5 {
            buffer.push("a", result());
        }
        assert_eq!((buffer.len(), buffer.lost()), (3, 2));
        let sent = buffer.first(2);
        assert_eq!(sent.iter().map(Found::number).collect::<Vec<_>>(), [3, 4]);
        // One of them made room while they were on their way.
        buffer.push("a", result());
        buffer.forget(4);
        assert_eq!(
            buffer
                .first(9)
                .iter()
                .map(Found::number)
                .collect::<Vec<_>>(),
            [5, 6]
        );
        buffer.forget(4);
        assert_eq!((buffer.len(), buffer.lost()), (2, 3));
    }
}
