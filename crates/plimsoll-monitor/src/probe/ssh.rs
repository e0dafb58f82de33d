//! SSH: the banner of the server (RFC 4253, section 4.2).

use std::sync::Arc;

use plimsoll_model::{Clock, Failure, FailureKind, Phase};

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::starttls::line;
use crate::probe::{Probe, ProbeFuture};

/// Lines that a server may send before its banner.
const MOST_LINES: usize = 50;

/// Reads the banner of a server.
#[derive(Debug)]
pub struct SshProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for SshProbe {
    fn kind(&self) -> &'static str {
        "ssh"
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
            let Some(mut connection) = self.reach.connect(endpoint, context, reading).await else {
                reading.code = Some(1);
                return;
            };
            let begun = context.clock.now();
            for _ in 0..MOST_LINES {
                match line(&mut connection.stream).await {
                    Ok(banner) if banner.starts_with("SSH-") => {
                        let waited = context.clock.now().saturating_duration_since(begun);
                        reading.phases.set(Phase::Wait, waited);
                        reading.code = Some(0);
                        reading.body = banner.trim_end().as_bytes().to_vec();
                        reading.size = reading.body.len() as u64;
                        return;
                    }
                    Ok(_) => {}
                    Err(failure) => {
                        reading.code = Some(1);
                        reading.failure = Some(failure);
                        return;
                    }
                }
            }
            reading.code = Some(1);
            let failure = Failure::new(Phase::Wait, FailureKind::Protocol);
            reading.failure = Some(failure.because("the server sent no banner of SSH"));
        }))
    }
}
