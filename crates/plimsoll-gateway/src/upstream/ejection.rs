//! Passive health: servers that fail for clients are left out for a while.

use std::time::Duration;

/// When a server is ejected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ejection {
    /// Failures in a row: connections that cannot be opened, responses that do not come or break off, statuses 502, 503 and
    /// 504.
    pub(crate) failures: u32,
    /// For how long, multiplied by how often in a row it was ejected, up to ten times.
    pub(crate) time: Duration,
    /// The share of servers that may be ejected at a time.
    pub(crate) most: f64,
}

impl Default for Ejection {
    /// As Envoy has it, but for the share: with two or three servers a tenth is less than one.
    fn default() -> Self {
        Self {
            failures: 5,
            time: Duration::from_secs(30),
            most: 0.5,
        }
    }
}

/// Recent failures of one server; pure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    in_a_row: u32,
    ejections: u32,
    /// Both before the last success, for a response that breaks off behind its head.
    before: (u32, u32),
}

impl Record {
    /// Notes how an exchange ended; returns for how long the server is to be ejected, if it is.
    ///
    /// - `may_eject`: not too many are ejected already.
    pub(super) fn note(
        &mut self,
        is_failure: bool,
        may_eject: bool,
        ejection: &Ejection,
    ) -> Option<Duration> {
        if !is_failure {
            self.before = (self.in_a_row, self.ejections);
            self.in_a_row = 0;
            self.ejections = 0;
            return None;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row < ejection.failures || !may_eject {
            return None;
        }
        self.in_a_row = 0;
        self.ejections = (self.ejections + 1).min(10);
        Some(ejection.time * self.ejections)
    }

    /// A response broke off whose head was noted as a success: that one is taken back, so that a server that never
    /// completes a response is ejected. With other successes in between the count may be too high.
    pub(super) fn take_back(&mut self) {
        let (in_a_row, ejections) = std::mem::take(&mut self.before);
        self.in_a_row = self.in_a_row.max(in_a_row);
        self.ejections = self.ejections.max(ejections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_eject_for_longer_each_time() {
        let ejection = Ejection {
            failures: 3,
            ..Ejection::default()
        };
        let mut record = Record::default();
        let mut note = |is_failure| record.note(is_failure, true, &ejection);
        assert_eq!([note(true), note(true)], [None, None]);
        assert_eq!(note(false), None);
        assert_eq!([note(true), note(true)], [None, None]);
        assert_eq!(note(true), Some(Duration::from_secs(30)));
        let next: Vec<_> = (0..3).map(|_| note(true)).collect();
        assert_eq!(next, [None, None, Some(Duration::from_mins(1))]);
        assert_eq!(note(false), None);
        let next: Vec<_> = (0..3).map(|_| note(true)).collect();
        assert_eq!(next[2], Some(Duration::from_secs(30)));
    }

    #[test]
    fn responses_that_break_off_count_although_their_heads_were_fine() {
        let ejection = Ejection {
            failures: 3,
            ..Ejection::default()
        };
        let mut record = Record::default();
        let mut cut = |is_cut: bool| {
            assert_eq!(record.note(false, true, &ejection), None);
            if !is_cut {
                return None;
            }
            record.take_back();
            record.note(true, true, &ejection)
        };
        assert_eq!([cut(true), cut(true), cut(false)], [None; 3]);
        assert_eq!([cut(true), cut(true)], [None; 2]);
        assert_eq!(cut(true), Some(Duration::from_secs(30)));
        let next: Vec<_> = (0..3).map(|_| cut(true)).collect();
        assert_eq!(next, [None, None, Some(Duration::from_mins(1))]);
    }

    #[test]
    fn none_is_ejected_beyond_the_share() {
        let ejection = Ejection {
            failures: 1,
            ..Ejection::default()
        };
        let mut record = Record::default();
        assert_eq!(record.note(true, false, &ejection), None);
        assert!(record.note(true, true, &ejection).is_some());
    }
}
