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
    let days = left.as_secs() / 86_400;
    if critical.is_some_and(|limit| left < limit) {
        let cause = format!("it expires in {days} days, at {expires}");
        reading.failure =
            Some(Failure::new(Phase::Tls, FailureKind::CertificateExpired).because(cause));
    } else if warn.is_some_and(|limit| left < limit) {
        reading.warning = Some(format!(
            "the certificate expires in {days} days, at {expires}"
        ));
    }
}
