//! How often a sign-in may be tried, by address and by account. Pure: the time is an argument.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::limits::{self, add};
use crate::store::timestamp::Timestamp;

/// Attempts of an address within a minute.
const OF_ADDRESS: (u32, Duration) = (10, Duration::from_mins(1));

/// Failed attempts on an account within a quarter of an hour.
const OF_ACCOUNT: (u32, Duration) = (8, Duration::from_mins(15));

/// Attempts lately.
#[derive(Debug, Default)]
pub(crate) struct SignInLimits {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    addresses: limits::Counts,
    accounts: limits::Counts,
}

impl SignInLimits {
    /// Counts an attempt; how long to wait if it is one too many.
    pub(crate) fn attempt(
        &self,
        address: &str,
        account: &str,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = [
            add(&mut counts.addresses, address, OF_ADDRESS, now),
            add(&mut counts.accounts, account, OF_ACCOUNT, now),
        ];
        match wait.into_iter().flatten().max() {
            Some(wait) => Err(wait),
            None => Ok(()),
        }
    }

    /// A success gives the account all its attempts back.
    pub(crate) fn succeeded(&self, account: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.accounts.remove(account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MOST;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(1_772_366_400_000 + seconds * 1000)
    }

    #[test]
    fn an_address_has_ten_attempts_a_minute() {
        let limits = SignInLimits::default();
        for number in 0..10 {
            assert_eq!(
                limits.attempt("10.0.0.1", &format!("u{number}"), at(number)),
                Ok(())
            );
        }
        assert_eq!(
            limits.attempt("10.0.0.1", "x", at(20)),
            Err(Duration::from_secs(40))
        );
        assert_eq!(
            limits.attempt("10.0.0.2", "x", at(20)),
            Ok(()),
            "another address"
        );
        assert_eq!(
            limits.attempt("10.0.0.1", "x", at(60)),
            Ok(()),
            "the next minute"
        );
    }

    #[test]
    fn an_account_has_eight_failures_in_a_quarter_of_an_hour_from_wherever() {
        let limits = SignInLimits::default();
        for number in 0..8 {
            assert_eq!(
                limits.attempt(&format!("10.0.0.{number}"), "ann", at(number)),
                Ok(())
            );
        }
        assert_eq!(
            limits.attempt("10.0.1.1", "ann", at(100)),
            Err(Duration::from_secs(800))
        );
        assert_eq!(limits.attempt("10.0.1.2", "bob", at(100)), Ok(()));
        assert_eq!(
            limits.attempt("10.0.1.3", "ann", at(900)),
            Ok(()),
            "the window is over"
        );
    }

    #[test]
    fn a_success_gives_the_attempts_back() {
        let limits = SignInLimits::default();
        for number in 0..30 {
            let address = format!("10.0.0.{number}");
            assert_eq!(limits.attempt(&address, "ann", at(number)), Ok(()));
            limits.succeeded("ann");
        }
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let limits = SignInLimits::default();
        for number in 0..20_010 {
            limits
                .attempt(&format!("a{number}"), &format!("u{number}"), at(0))
                .ok();
        }
        let counts = limits.counts.lock().unwrap();
        assert!(counts.addresses.len() <= MOST && counts.accounts.len() <= MOST);
    }
}
