//! A conversation by lines, as mail, news and chat servers have it: lines that must come, and texts that are sent.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use regex::Regex;
use tokio::io::AsyncWriteExt;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::starttls::{line, upgraded};
use crate::probe::{Probe, ProbeFuture};

/// Bytes of lines that are kept for conditions.
const MOST_KEPT: usize = 64 * 1024;

/// One step, in the order of its fields.
#[derive(Debug, Clone)]
pub struct TalkStep {
    /// Lines are read until one matches.
    pub expect: Option<Regex>,
    /// Sent as it is; `$1` and `${1}` are groups of the line that matched last.
    pub send: Option<String>,
    /// Then a TLS handshake takes place.
    pub starttls: bool,
}

/// Exchanges lines with a server.
#[derive(Debug)]
pub struct TalkProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// One after the other.
    pub steps: Vec<TalkStep>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for TalkProbe {
    fn kind(&self) -> &'static str {
        "tcp"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.talk(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl TalkProbe {
    async fn talk(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let (begun, mut shaken) = (context.clock.now(), Duration::ZERO);
        // The line that matched last, and by what.
        let mut matched: Option<(String, &Regex)> = None;
        for step in &self.steps {
            if let Some(expect) = &step.expect {
                let line = matching(&mut stream, expect, reading).await?;
                matched = Some((line, expect));
            }
            if let Some(send) = &step.send {
                let captures = matched.as_ref().and_then(|(line, by)| by.captures(line));
                let mut text = String::new();
                match captures {
                    Some(captures) => captures.expand(send, &mut text),
                    None => text.push_str(send),
                }
                let sent = async {
                    stream.write_all(text.as_bytes()).await?;
                    stream.flush().await
                };
                let sent = sent.await;
                sent.map_err(|error| Failure::from_io(Phase::Send, &error))?;
            }
            if step.starttls {
                let from = context.clock.now();
                stream = upgraded(stream, endpoint, &self.reach, context, reading).await?;
                shaken += context.clock.now().saturating_duration_since(from);
            }
        }
        let talked = context.clock.now().saturating_duration_since(begun);
        reading
            .phases
            .set(Phase::Wait, talked.saturating_sub(shaken));
        Ok(())
    }
}

/// Reads lines until one matches.
async fn matching(
    stream: &mut Stream,
    expect: &Regex,
    reading: &mut Reading,
) -> Result<String, Failure> {
    let mut last = String::new();
    loop {
        let read = line(stream).await;
        let read = read.map_err(|failure| match failure.kind {
            FailureKind::Closed | FailureKind::Reset => {
                let cause = format!("no line matches `{expect}`; the last one was `{last}`");
                Failure::new(Phase::Wait, failure.kind).because(cause)
            }
            _ => failure,
        })?;
        let text = read.trim_end_matches(['\r', '\n']);
        reading.size += read.len() as u64;
        if reading.body.len() + read.len() <= MOST_KEPT {
            reading.body.extend_from_slice(read.as_bytes());
        }
        if expect.is_match(text) {
            return Ok(text.to_owned());
        }
        text.clone_into(&mut last);
    }
}
