//! One certificate that is kept current.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use plimsoll_model::Certificate;
use plimsoll_server::AcmePlan;

use crate::schedule::{pause, renewal};

/// A certificate, what is known of it, and when it is ordered next.
#[derive(Debug)]
pub(crate) struct CertificateState {
    pub(crate) plan: AcmePlan,
    /// A client has requested it; nothing else asks for it.
    pub(crate) is_on_demand: bool,
    /// Until when that holds which is there.
    pub(crate) expires: Option<SystemTime>,
    /// In a row.
    pub(crate) failures: u32,
    pub(crate) due: SystemTime,
}

/// Orders of one certificate are at least so far apart, whatever its dates say.
const LEAST: Duration = Duration::from_secs(1);

impl CertificateState {
    /// - `found`: what is in the file.
    /// - `chance`: from 0 to 1.
    pub(crate) fn new(
        plan: AcmePlan,
        found: Option<&Certificate>,
        now: SystemTime,
        chance: f64,
    ) -> Self {
        let due = match found {
            Some(found) if covers(&found.names, &plan.names) => {
                renewal(found.not_before, found.not_after, chance)
            }
            _ => now,
        };
        Self {
            plan,
            is_on_demand: false,
            expires: found.map(|found| found.not_after),
            failures: 0,
            due,
        }
    }

    /// None is there, and none is ordered before `at`.
    pub(crate) fn postpone(&mut self, at: SystemTime) {
        self.due = at;
    }

    /// A certificate has come.
    pub(crate) fn renewed(&mut self, certificate: &Certificate, now: SystemTime, chance: f64) {
        self.expires = Some(certificate.not_after);
        self.failures = 0;
        let due = renewal(certificate.not_before, certificate.not_after, chance);
        self.due = due.max(now + LEAST);
    }

    /// None has come. Yields when it is tried again.
    pub(crate) fn failed(&mut self, now: SystemTime, chance: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let pause = pause(self.failures, chance);
        self.due = now + pause;
        pause
    }

    /// A failed order is tried again at once.
    pub(crate) fn try_again(&mut self, now: SystemTime) {
        if self.failures > 0 {
            self.due = now;
        }
    }
}

/// Whether a certificate for `names` is one for all that are wanted.
fn covers(names: &[String], wanted: &[String]) -> bool {
    let is_same = |one: &str, other: &str| {
        let addresses = (one.parse::<IpAddr>(), other.parse::<IpAddr>());
        match addresses {
            (Ok(one), Ok(other)) => one == other,
            _ => one.eq_ignore_ascii_case(other),
        }
    };
    wanted
        .iter()
        .all(|wanted| names.iter().any(|name| is_same(name, wanted)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use plimsoll_server::{AcmeAccount, ChallengeKind};
    use plimsoll_wire::tls::Trust;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn plan(names: &[&str]) -> AcmePlan {
        AcmePlan {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            challenge: ChallengeKind::Http,
            account: AcmeAccount {
                directory: String::new(),
                trust: Trust::PublicRoots,
                contacts: Vec::new(),
                external: None,
                file: PathBuf::new(),
            },
            file: PathBuf::new(),
        }
    }

    fn certificate(names: &[&str], from: SystemTime) -> Certificate {
        Certificate {
            subject: String::new(),
            issuer: String::new(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            not_before: from,
            not_after: from + 90 * DAY,
        }
    }

    #[test]
    fn what_is_there_is_kept_unless_its_names_are_others() {
        let now = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let found = certificate(&["A.example", "::1"], now);
        let due = |names: &[&str], found| CertificateState::new(plan(names), found, now, 0.0).due;
        assert_eq!(due(&["a.example"], Some(&found)), now + 60 * DAY);
        assert_eq!(due(&["0::1", "a.example"], Some(&found)), now + 60 * DAY);
        assert_eq!(due(&["a.example", "b.example"], Some(&found)), now);
        assert_eq!(due(&["a.example"], None), now);
    }

    #[test]
    fn failures_are_forgotten_once_a_certificate_comes() {
        let now = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut kept = CertificateState::new(plan(&["a.example"]), None, now, 0.5);
        assert_eq!(kept.failed(now, 0.5), Duration::from_mins(2));
        assert_eq!(kept.failed(now, 0.5), Duration::from_mins(4));
        assert_eq!(kept.due, now + Duration::from_mins(4));
        kept.try_again(now);
        assert_eq!(kept.due, now);
        kept.renewed(&certificate(&["a.example"], now), now, 0.0);
        assert_eq!((kept.failures, kept.due), (0, now + 60 * DAY));
        kept.try_again(now);
        assert_eq!(kept.due, now + 60 * DAY);
        kept.renewed(&certificate(&["a.example"], now - 90 * DAY), now, 0.0);
        assert_eq!(kept.due, now + LEAST);
    }
}
