//! TCP, in the clear: a connection, and optionally an answer to some bytes.

use std::sync::Arc;

use plimsoll_model::{Clock, Failure, Phase};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::{Probe, ProbeFuture};

/// Bytes of an answer that are read.
pub(super) const MOST_READ: usize = 1024;

/// Connects to a port.
#[derive(Debug)]
pub struct TcpProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// Sent once the connection is open; then an answer is waited for.
    pub send: Option<Vec<u8>>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for TcpProbe {
    fn kind(&self) -> &'static str {
        if self.target.endpoint().is_tls() {
            "tls"
        } else {
            "tcp"
        }
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
                return;
            };
            if let Some(session) = connection.stream.tls_session() {
                reading.certificate = session.certificate;
            }
            let Some(send) = &self.send else {
                return;
            };
            let sent_at = context.clock.now();
            let mut buffer = vec![0; MOST_READ];
            let answered = async {
                connection.stream.write_all(send).await?;
                connection.stream.flush().await?;
                connection.stream.read(&mut buffer).await
            };
            match answered.await {
                Ok(length) => {
                    let waited = context.clock.now().saturating_duration_since(sent_at);
                    reading.phases.set(Phase::Wait, waited);
                    buffer.truncate(length);
                    reading.size = length as u64;
                    reading.body = buffer;
                }
                Err(error) => reading.failure = Some(Failure::from_io(Phase::Wait, &error)),
            }
        }))
    }
}
