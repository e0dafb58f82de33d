//! Events of certificates that a person should know.

use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_server::{AcmePlan, Notice, Severity};

/// One such moment.
#[derive(Debug)]
pub(crate) enum CertificateEvent<'a> {
    /// There is a new one.
    Issued {
        /// The certificate.
        plan: &'a AcmePlan,
        /// Until when it holds.
        until: SystemTime,
    },
    /// An order has failed; what was there is kept.
    OrderFailed {
        /// The certificate.
        plan: &'a AcmePlan,
        /// Why.
        reason: &'a str,
        /// Until when the certificate holds that is there, if there is one.
        kept_until: Option<SystemTime>,
        /// When it is tried again.
        again: Duration,
    },
    /// A client has requested a name, and too many names were ordered within the last hour.
    Postponed {
        /// The certificate.
        plan: &'a AcmePlan,
        /// Orders permitted within an hour.
        most: usize,
        /// When it is ordered.
        at: SystemTime,
    },
    /// The kept certificate cannot be used, so it is ordered anew.
    Useless {
        /// The certificate.
        plan: &'a AcmePlan,
        /// Why.
        reason: &'a str,
    },
    /// There is no new response of OCSP; what was there is shown as long as it holds.
    NoResponse {
        /// The file of the certificate.
        chain: &'a Path,
        /// Why.
        reason: &'a str,
        /// Until when the response holds that is there, if there is one.
        kept_until: Option<SystemTime>,
    },
    /// The certificate must not be believed any more.
    Revoked {
        /// The file of the certificate.
        chain: &'a Path,
    },
}

impl From<CertificateEvent<'_>> for Notice {
    fn from(event: CertificateEvent<'_>) -> Self {
        let date = httpdate::fmt_http_date;
        match event {
            CertificateEvent::Issued { plan, until } => {
                let names = plan.names.join(", ");
                let message = format!(
                    "a certificate was issued, which holds until {}",
                    date(until)
                );
                Self::new(Severity::Note, message).about(names)
            }
            CertificateEvent::OrderFailed {
                plan,
                reason,
                kept_until,
                again,
            } => {
                let held = match kept_until {
                    Some(until) => format!("the one that is there holds until {}", date(until)),
                    None => "there is none, so clients are turned away".to_owned(),
                };
                let minutes = minutes(again);
                let message = format!("no certificate could be had: {reason}; {held}");
                Self {
                    hint: Some(format!(
                        "it is tried again in {minutes} minutes, and at once after SIGHUP"
                    )),
                    ..Self::new(Severity::Warning, message).about(plan.names.join(", "))
                }
            }
            CertificateEvent::Postponed { plan, most, at } => {
                let message = format!(
                    "the certificate is ordered at {}: `most_per_hour = {most}` is reached",
                    date(at)
                );
                Self::new(Severity::Warning, message).about(plan.names.join(", "))
            }
            CertificateEvent::NoResponse {
                chain,
                reason,
                kept_until,
            } => {
                let kept = match kept_until {
                    Some(until) => format!("the one that is there holds until {}", date(until)),
                    None => "none is shown".to_owned(),
                };
                let message = format!("no response of OCSP could be had: {reason}; {kept}");
                Self::new(Severity::Warning, message).about(chain.display().to_string())
            }
            CertificateEvent::Revoked { chain } => {
                let message = "its authority has revoked this certificate";
                Self {
                    hint: Some("have another one issued, with a new key".to_owned()),
                    ..Self::new(Severity::Error, message).about(chain.display().to_string())
                }
            }
            CertificateEvent::Useless { plan, reason } => {
                let message = format!("{reason}; a new certificate is ordered");
                Self::new(Severity::Warning, message).about(plan.file.display().to_string())
            }
        }
    }
}

/// To the nearest whole one: pauses are a tenth longer or shorter than they are meant to be.
fn minutes(pause: Duration) -> u64 {
    ((pause.as_secs() + 30) / 60).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::pause;

    #[test]
    fn a_pause_is_reported_as_it_is_meant() {
        for chance in [0.0, 0.3, 0.5, 0.7, 1.0] {
            assert_eq!(minutes(pause(1, chance)), 2);
        }
        assert_eq!(minutes(Duration::ZERO), 1);
    }
}
