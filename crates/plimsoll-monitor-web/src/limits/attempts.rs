//! Attempts at passwords: of members, and of pages.
//!
//! Strangers must neither guess a password nor keep its owner out. So an attempt counts for its source (an address, or a
//! network of IPv6), and a failed one at a member's password for the account. A device that has signed in before has a
//! count of its own, which the failures of others do not touch. Counts of accounts that there are stand apart from those
//! of names that there are not: made-up names push none of them out.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_monitor::time::Timestamp;

use crate::limits::{Counts, add, source, wait};

/// Attempts of a source within a minute.
const OF_SOURCE: (u32, Duration) = (10, Duration::from_mins(1));

/// Failed attempts on an account, or of a known device on it, within a quarter of an hour.
const OF_ACCOUNT: (u32, Duration) = (8, Duration::from_mins(15));

/// Whose password is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account<'a> {
    /// That of a member, from anywhere.
    Member(&'a str),
    /// That of a member, from a device, an address or a session by which that member has signed in before.
    Known {
        /// The name of the member.
        name: &'a str,
        /// What is known of it.
        device: &'a str,
    },
    /// There is no member of this name. It is counted all the same, so that nobody learns that.
    Missing(&'a str),
}

/// Attempts lately.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    counts: Mutex<Lately>,
}

#[derive(Debug, Default)]
struct Lately {
    sources: Counts,
    members: Counts,
    devices: Counts,
    missing: Counts,
}

impl Lately {
    /// The counts of an account, and its name in them.
    fn of_account(&mut self, account: Account<'_>) -> (&mut Counts, String) {
        match account {
            Account::Member(name) => (&mut self.members, name.to_owned()),
            // A device is a hash or an address, without spaces.
            Account::Known { name, device } => (&mut self.devices, format!("{device} {name}")),
            Account::Missing(name) => (&mut self.missing, name.to_owned()),
        }
    }
}

impl Attempts {
    /// Counts an attempt by a source; how long to wait if it is one too many.
    pub(crate) fn count_source(&self, address: IpAddr, now: Timestamp) -> Result<(), Duration> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match add(&mut counts.sources, &source(address), OF_SOURCE, now) {
            Some(wait) => Err(wait),
            None => Ok(()),
        }
    }

    /// How long a source has to wait, whose attempts are used up.
    pub(crate) fn wait(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        wait(&counts.sources, &source(address), OF_SOURCE, now)
    }

    /// Counts an attempt at the password of an account; how long to wait if it is one too many.
    pub(crate) fn count_account(
        &self,
        account: Account<'_>,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, name) = counts.of_account(account);
        match add(counts, &name, OF_ACCOUNT, now) {
            Some(wait) => Err(wait),
            None => Ok(()),
        }
    }

    /// A success gives the account all its attempts back.
    pub(crate) fn succeeded(&self, account: Account<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, name) = counts.of_account(account);
        counts.remove(&name);
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
    fn a_source_has_ten_attempts_a_minute() {
        let attempts = Attempts::default();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().unwrap());
        for number in 0..10 {
            assert_eq!(attempts.wait(one, at(number)), None);
            assert_eq!(attempts.count_source(one, at(number)), Ok(()));
        }
        let wait = Duration::from_secs(40);
        assert_eq!(attempts.wait(one, at(20)), Some(wait));
        assert_eq!(attempts.count_source(one, at(20)), Err(wait));
        assert_eq!(attempts.wait(one, at(60)), None);
        assert_eq!(
            attempts.count_source(other, at(20)),
            Ok(()),
            "another address"
        );
        assert_eq!(
            attempts.count_source(one, at(60)),
            Ok(()),
            "the next minute"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let attempts = Attempts::default();
        for number in 0..10 {
            let address = format!("2001:db8:1:2:{number}::1").parse().unwrap();
            assert_eq!(attempts.count_source(address, at(0)), Ok(()));
        }
        let [same, other] = ["2001:db8:1:2:ffff::", "2001:db8:1:3::1"];
        assert!(attempts.count_source(same.parse().unwrap(), at(0)).is_err());
        assert_eq!(attempts.count_source(other.parse().unwrap(), at(0)), Ok(()));
    }

    #[test]
    fn an_account_has_eight_failures_in_a_quarter_of_an_hour_from_wherever() {
        for account in [Account::Member("ann"), Account::Missing("ann")] {
            let attempts = Attempts::default();
            for number in 0..8 {
                assert_eq!(attempts.count_account(account, at(number)), Ok(()));
            }
            let wait = Duration::from_secs(800);
            assert_eq!(attempts.count_account(account, at(100)), Err(wait));
            assert_eq!(
                attempts.count_account(Account::Member("bob"), at(100)),
                Ok(())
            );
            let next = attempts.count_account(account, at(900));
            assert_eq!(next, Ok(()), "the window is over");
        }
    }

    #[test]
    fn a_success_gives_the_attempts_back() {
        let attempts = Attempts::default();
        for number in 0..30 {
            assert_eq!(
                attempts.count_account(Account::Member("ann"), at(number)),
                Ok(())
            );
            attempts.succeeded(Account::Member("ann"));
        }
    }

    #[test]
    fn strangers_do_not_keep_a_known_device_out() {
        let attempts = Attempts::default();
        let ann = Account::Member("ann");
        let known = |device| Account::Known {
            name: "ann",
            device,
        };
        for _ in 0..40 {
            attempts.count_account(ann, at(0)).ok();
        }
        assert!(attempts.count_account(ann, at(1)).is_err());
        for _ in 0..8 {
            assert_eq!(attempts.count_account(known("laptop"), at(1)), Ok(()));
        }
        assert!(
            attempts.count_account(known("laptop"), at(1)).is_err(),
            "its own"
        );
        assert_eq!(attempts.count_account(known("phone"), at(1)), Ok(()));
    }

    #[test]
    fn made_up_names_push_no_account_out() {
        let attempts = Attempts::default();
        for _ in 0..8 {
            assert_eq!(
                attempts.count_account(Account::Member("admin"), at(0)),
                Ok(())
            );
        }
        for number in 0..20_010 {
            let name = format!("u{number}");
            attempts.count_account(Account::Missing(&name), at(1)).ok();
        }
        assert!(
            attempts
                .count_account(Account::Member("admin"), at(2))
                .is_err()
        );
        let counts = attempts.counts.lock().unwrap();
        assert!(counts.missing.len() <= MOST);
    }
}
