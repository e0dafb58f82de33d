//! When certificates are ordered. Pure: dates and chances are given.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// The first pause after an order that failed. Authorities allow about five failures of a name in an hour.
const FIRST_PAUSE: Duration = Duration::from_mins(2);

/// The longest pause between two attempts: four attempts a day stay below Let's Encrypt's limit of five failed
/// validations per name and hour.
const LONGEST_PAUSE: Duration = Duration::from_hours(6);

/// When a certificate is to be renewed: once a third of its time is left, or up to a twentieth of its time earlier.
///
/// - `chance`: from 0 to 1, so that certificates of one day are not renewed at one moment.
pub(crate) fn renewal(not_before: SystemTime, not_after: SystemTime, chance: f64) -> SystemTime {
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    let ahead = lifetime / 3 + lifetime.mul_f64(chance.clamp(0.0, 1.0) / 20.0);
    not_after - ahead.min(lifetime)
}

/// First orders of names that clients have requested: at most so many within an hour.
#[derive(Debug, Default)]
pub(crate) struct OrderLimit(VecDeque<SystemTime>);

/// The time that an [`OrderLimit`] is for.
const HOUR: Duration = Duration::from_hours(1);

impl OrderLimit {
    /// Counts an order, or yields when the next one is permitted.
    pub(crate) fn admit_order(&mut self, now: SystemTime, most: usize) -> Result<(), SystemTime> {
        // Times in the future are those before the system's date was set back.
        self.0.retain(|at| *at <= now && now < *at + HOUR);
        if self.0.len() >= most.max(1) {
            let oldest = self.0.front().copied().unwrap_or(now);
            return Err(oldest + HOUR);
        }
        self.0.push_back(now);
        Ok(())
    }
}

/// Back-off after consecutive failures: doubled each time, give or take a tenth.
///
/// - `failures`: at least one.
/// - `chance`: from 0 to 1.
pub(crate) fn pause(failures: u32, chance: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE);
    pause.mul_f64(0.9 + chance.clamp(0.0, 1.0) / 5.0)
}

/// When a response of OCSP is to be fetched anew: half of its time before its end, or up to a tenth of its time
/// earlier.
///
/// - `chance`: from 0 to 1.
pub(crate) fn refresh(since: SystemTime, until: SystemTime, chance: f64) -> SystemTime {
    let time = until.duration_since(since).unwrap_or_default();
    until - time.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_time_is_left() {
        let day = Duration::from_hours(24);
        let begin = SystemTime::UNIX_EPOCH + 1000 * day;
        let renewed = |days: u32, chance| renewal(begin, begin + days * day, chance);
        assert_eq!(renewed(90, 0.0), begin + 60 * day);
        assert_eq!(renewed(60, 1.0), begin + 37 * day);
        assert_eq!(renewed(0, 1.0), begin);
        assert_eq!(renewal(begin, begin - day, 0.5), begin - day);
    }

    #[test]
    fn responses_are_fetched_when_half_of_their_time_is_over() {
        let hour = Duration::from_hours(1);
        let begin = SystemTime::UNIX_EPOCH + 1000 * hour;
        assert_eq!(refresh(begin, begin + 100 * hour, 0.0), begin + 50 * hour);
        assert_eq!(refresh(begin, begin + 100 * hour, 1.0), begin + 40 * hour);
        assert_eq!(refresh(begin, begin - hour, 1.0), begin - hour);
    }

    #[test]
    fn orders_on_demand_are_limited_within_an_hour() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * HOUR;
        let minute = Duration::from_mins(1);
        let mut limit = OrderLimit::default();
        assert_eq!(limit.admit_order(begin, 2), Ok(()));
        assert_eq!(limit.admit_order(begin + minute, 2), Ok(()));
        assert_eq!(limit.admit_order(begin + 2 * minute, 2), Err(begin + HOUR));
        assert_eq!(limit.admit_order(begin + HOUR, 2), Ok(()));
        assert_eq!(
            limit.admit_order(begin + HOUR, 2),
            Err(begin + HOUR + minute)
        );
        // The date was set back.
        assert_eq!(limit.admit_order(begin - HOUR, 2), Ok(()));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let minutes = |failures| pause(failures, 0.5).as_secs() / 60;
        let pauses: Vec<_> = (1..=10).map(minutes).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
        assert_eq!(pause(1, 0.0), Duration::from_secs(108));
        assert_eq!(pause(u32::MAX, 1.0), Duration::from_mins(6 * 66));
    }
}
