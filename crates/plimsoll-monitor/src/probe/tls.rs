//! TLS: a handshake, and the certificate that it shows.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Certificate, Clock};

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};
use crate::time::Timestamp;

/// Looks at a certificate.
#[derive(Debug)]
pub struct TlsProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// Degraded if the certificate expires within this time; absent to leave it to conditions.
    pub warn_within: Option<Duration>,
    /// Down if the certificate expires within this time.
    pub critical_within: Option<Duration>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for TlsProbe {
    fn kind(&self) -> &'static str {
        "tls"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            let endpoint = self.target.endpoint();
            let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
                return;
            };
            if let Some(session) = connection.stream.tls_session() {
                reading.certificate = session.certificate;
            }
            let now = Timestamp::from_system(context.clock.wall());
            judge_expiry(reading, (self.warn_within, self.critical_within), now);
        }))
    }
}

/// Notes that a certificate expires soon: as a warning, or as a failure.
pub(super) fn judge_expiry(
    reading: &mut Reading,
    (warn, critical): (Option<Duration>, Option<Duration>),
    now: Timestamp,
) {
    use plimsoll_model::{Failure, FailureKind, Phase};

    let expires = |certificate: &Certificate| Timestamp::from_system(certificate.not_after);
    let Some(expires) = reading.certificate.as_ref().map(expires) else {
        return;
    };
    let left = expires.since(now);
    let end = end_text(["expires", "expired"], expires, now);
    if critical.is_some_and(|limit| left < limit) {
        let cause = format!("it {end}");
        reading.failure =
            Some(Failure::new(Phase::Tls, FailureKind::CertificateExpired).because(cause));
    } else if warn.is_some_and(|limit| left < limit) {
        reading.warning = Some(format!("the certificate {end}"));
    }
}

/// When something ends, or that it ended: `expires in 8 days, on 8 December 2026 at 13:19 UTC`.
///
/// - `verbs`: of the present, and of the past.
pub(super) fn end_text(verbs: [&str; 2], end: Timestamp, now: Timestamp) -> String {
    let date = end.to_jiff().strftime("%-d %B %Y at %H:%M UTC");
    let [ends, ended] = verbs;
    if end <= now {
        return format!("{ended} on {date}");
    }
    match end.since(now).as_secs() / 86_400 {
        0 => format!("{ends} in less than a day, on {date}"),
        1 => format!("{ends} in 1 day, on {date}"),
        days => format!("{ends} in {days} days, on {date}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_in_days_and_by_its_date() {
        let now = Timestamp::parse("2026-11-29T13:00:00Z").unwrap();
        for (end, expected) in [
            (
                "2026-12-08T13:19:54Z",
                "expires in 9 days, on 8 December 2026 at 13:19 UTC",
            ),
            (
                "2026-11-30T13:00:00Z",
                "expires in 1 day, on 30 November 2026 at 13:00 UTC",
            ),
            (
                "2026-11-30T12:59:59Z",
                "expires in less than a day, on 30 November 2026 at 12:59 UTC",
            ),
            (
                "2026-11-29T13:00:00Z",
                "expired on 29 November 2026 at 13:00 UTC",
            ),
            (
                "2001-02-03T00:00:00Z",
                "expired on 3 February 2001 at 00:00 UTC",
            ),
        ] {
            let end = Timestamp::parse(end).unwrap();
            assert_eq!(end_text(["expires", "expired"], end, now), expected);
        }
    }
}
