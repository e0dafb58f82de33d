//! STARTTLS of mail servers: the certificate behind a plain greeting.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{Endpoint, Stream};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::tls::{certificate, failure};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::tls::judge_expiry;
use crate::probe::{Probe, ProbeFuture};
use crate::time::Timestamp;

/// Bytes of greetings and answers.
const MOST_READ: usize = 16 * 1024;

/// Lines of a reply of SMTP.
const MOST_LINES: usize = 200;

/// The protocol before the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailProtocol {
    /// RFC 3207.
    Smtp,
    /// RFC 3501, section 6.2.1.
    Imap,
}

/// Looks at the certificate of a mail server.
#[derive(Debug)]
pub struct StartTlsProbe {
    /// Address of the target.
    pub target: TcpTarget,
    /// The protocol.
    pub protocol: MailProtocol,
    /// Degraded if the certificate expires within this time.
    pub warn_within: Option<Duration>,
    /// Down if the certificate expires within this time.
    pub critical_within: Option<Duration>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for StartTlsProbe {
    fn kind(&self) -> &'static str {
        "starttls"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.shake(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl StartTlsProbe {
    async fn shake(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.target.endpoint();
        let Some(mut connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let asked_at = context.clock.now();
        self.greet(&mut connection.stream).await?;
        let waited = context.clock.now().saturating_duration_since(asked_at);
        reading.phases.set(Phase::Wait, waited);
        upgraded(connection.stream, endpoint, &self.reach, context, reading).await?;
        let wall = Timestamp::from_system(context.clock.wall());
        judge_expiry(reading, (self.warn_within, self.critical_within), wall);
        Ok(())
    }

    /// Until the server agrees to begin the handshake.
    async fn greet(&self, stream: &mut Stream) -> Result<(), Failure> {
        match self.protocol {
            MailProtocol::Smtp => {
                smtp(stream, None, "220").await?;
                smtp(stream, Some("EHLO plimsoll.invalid\r\n"), "250").await?;
                smtp(stream, Some("STARTTLS\r\n"), "220").await?;
                Ok(())
            }
            MailProtocol::Imap => {
                let greeting = line(stream).await?;
                if !greeting.starts_with("* OK") {
                    return Err(refused(&greeting));
                }
                send(stream, "a1 STARTTLS\r\n").await?;
                loop {
                    let answer = line(stream).await?;
                    if let Some(outcome) = answer.strip_prefix("a1 ") {
                        let is_ok = outcome.starts_with("OK");
                        return if is_ok { Ok(()) } else { Err(refused(&answer)) };
                    }
                }
            }
        }
    }
}

/// The stream after a TLS handshake, of which the phase and the certificate are in the reading.
pub(super) async fn upgraded(
    stream: Stream,
    endpoint: &Endpoint,
    reach: &Reach,
    context: &ProbeContext,
    reading: &mut Reading,
) -> Result<Stream, Failure> {
    let begun = context.clock.now();
    let host = match &reach.server_name {
        Some(name) => name.clone(),
        None => endpoint.host().to_string(),
    };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name = ServerName::try_from(host).map_err(|error| {
        Failure::new(Phase::Tls, FailureKind::CertificateHostname).because(error.to_string())
    })?;
    let connector = TlsConnector::from(Arc::clone(&reach.tls));
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| failure(Phase::Tls, &error))?;
    let now = context.clock.now();
    reading
        .phases
        .set(Phase::Tls, now.saturating_duration_since(begun));
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    reading.certificate = chain.first().and_then(|leaf| certificate(leaf));
    Ok(Stream::Tls(Box::new(stream)))
}

/// Sends a command and reads the reply, of which the last line has a space behind its code; returns its lines.
pub(super) async fn smtp(
    stream: &mut Stream,
    command: Option<&str>,
    expected: &str,
) -> Result<Vec<String>, Failure> {
    if let Some(command) = command {
        send(stream, command).await?;
    }
    let mut lines = Vec::new();
    loop {
        let reply = line(stream).await?;
        if !reply.starts_with(expected) {
            return Err(refused(&reply));
        }
        let is_last = reply.as_bytes().get(3) != Some(&b'-');
        lines.push(reply);
        if is_last {
            return Ok(lines);
        }
        if lines.len() > MOST_LINES {
            let cause = format!("a reply has more than {MOST_LINES} lines");
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
        }
    }
}

fn refused(answer: &str) -> Failure {
    let cause = format!("the mail server answered `{}`", answer.trim_end());
    Failure::new(Phase::Wait, FailureKind::UpgradeRefused).because(cause)
}

async fn send(stream: &mut Stream, text: &str) -> Result<(), Failure> {
    let sent = stream.write_all(text.as_bytes()).await;
    sent.map_err(|error| Failure::from_io(Phase::Send, &error))
}

/// One line, read byte by byte: what follows may be the handshake.
pub(super) async fn line(stream: &mut Stream) -> Result<String, Failure> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        if line.len() >= MOST_READ {
            let cause = format!("a line has more than {MOST_READ} bytes");
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
        }
        let byte = stream.read_u8().await;
        line.push(byte.map_err(|error| Failure::from_io(Phase::Wait, &error))?);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
