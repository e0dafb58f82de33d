//! Kafka: what a broker knows of the cluster, and optionally whether every partition of a topic has a leader.
//!
//! Source: the protocol guide of Apache Kafka: `ApiVersions` 0, `SaslHandshake` 1, `SaslAuthenticate` 0, `Metadata` 4, and its
//! error codes. Brokers from 1.0 on have them all.

mod metadata;
mod scram;

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::metadata::{Metadata, reason};
use self::scram::{Scram, ScramHash};
use crate::probe::big_endian::Fields;
use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError};
use crate::probe::reading::Reading;
use crate::probe::stopped::Stopped;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["kafka", "kafkas"],
    port: 9092,
    example: "kafka://broker.example.org:9092",
};

/// The port that brokers mostly have for TLS.
const TLS_PORT: u16 = 9093;

/// Bytes of a response: the metadata of a thousand brokers and of a topic with ten thousand partitions fit in.
const MOST_READ: usize = 1024 * 1024;

/// A request, and its version.
mod request {
    pub(super) type Kind = (u16, u16);

    pub(super) const METADATA: Kind = (3, 4);
    pub(super) const SASL_HANDSHAKE: Kind = (17, 1);
    pub(super) const API_VERSIONS: Kind = (18, 0);
    pub(super) const SASL_AUTHENTICATE: Kind = (36, 0);
}

/// How a client signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KafkaMechanism {
    /// The password itself.
    #[default]
    Plain,
    /// A proof of it, RFC 5802, by SHA-256.
    ScramSha256,
    /// The same by SHA-512.
    ScramSha512,
}

impl KafkaMechanism {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Plain, Self::ScramSha256, Self::ScramSha512];

    /// As brokers and configurations call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// Asks a broker for its metadata.
pub struct KafkaProbe {
    url: DatabaseUrl,
    topic: Option<String>,
    mechanism: KafkaMechanism,
    reach: Reach,
}

impl KafkaProbe {
    /// - `url`: `kafka://user:password@host:port`, or `kafkas://` for TLS; without a user, without authentication.
    /// - `topic`: must be there, with a leader for each partition. It is never made by the check.
    pub fn new(
        url: &str,
        topic: Option<String>,
        mechanism: KafkaMechanism,
        reach: Reach,
    ) -> Result<Self, DatabaseUrlError> {
        let is_tls = url.starts_with("kafkas:");
        let scheme = DatabaseScheme {
            port: if is_tls { TLS_PORT } else { SCHEME.port },
            ..SCHEME
        };
        let url = DatabaseUrl::parse(url, scheme, |scheme| scheme == "kafkas")?;
        Ok(Self {
            url,
            topic,
            mechanism,
            reach,
        })
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Stopped> {
        let endpoint = self.url.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let begun = context.clock.now();
        let mut exchange = Exchange {
            stream: &mut stream,
            number: 0,
        };
        exchange.expect_versions().await?;
        if !self.url.user.is_empty() {
            self.sign_in(&mut exchange).await?;
        }
        let response = exchange
            .ask(request::METADATA, &metadata::request(self.topic.as_deref()))
            .await?;
        let metadata = Metadata::read(&response).ok_or_else(unknown)?;
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.body = metadata.to_json().to_string().into_bytes();
        reading.size = reading.body.len() as u64;
        reading.unmet = metadata.problem();
        Ok(())
    }

    async fn sign_in(&self, exchange: &mut Exchange<'_>) -> Result<(), Stopped> {
        let name = self.mechanism.name();
        let response = exchange.ask(request::SASL_HANDSHAKE, &text(name)).await?;
        let mut fields = Fields(&response);
        if fields.number16().ok_or_else(unknown)? != 0 {
            let known = metadata::texts(&mut fields).ok_or_else(unknown)?;
            let known = known.join(", ");
            let why = format!("the broker does not take {name}, but {known}");
            return Err(Stopped::Refused(why));
        }
        let user = &*self.url.user;
        let password = self.url.password.as_ref().map_or("", Secret::expose);
        let hash = match self.mechanism {
            KafkaMechanism::Plain => {
                let login = format!("\0{user}\0{password}");
                exchange.authenticate(login.as_bytes()).await?;
                return Ok(());
            }
            KafkaMechanism::ScramSha256 => ScramHash::Sha256,
            KafkaMechanism::ScramSha512 => ScramHash::Sha512,
        };
        let nonce = format!("{:032x}", fastrand::u128(..));
        let scram = Scram::new(hash, user, &nonce);
        let challenge = exchange.authenticate(scram.first().as_bytes()).await?;
        let refused = |why: scram::ScramError| Stopped::Refused(why.to_string());
        let answer = scram.answer(password, &challenge).map_err(refused)?;
        let proof = exchange.authenticate(answer.message.as_bytes()).await?;
        answer.verify(&proof).map_err(refused)
    }
}

/// Requests and responses, one after the other.
struct Exchange<'s> {
    stream: &'s mut Stream,
    /// Of the last request.
    number: u32,
}

impl Exchange<'_> {
    /// The broker has the version of metadata that is asked for.
    async fn expect_versions(&mut self) -> Result<(), Stopped> {
        let response = self.ask(request::API_VERSIONS, &[]).await?;
        let mut fields = Fields(&response);
        let code = fields.number16().ok_or_else(unknown)?;
        if code != 0 {
            return Err(Stopped::Refused(reason(code)));
        }
        let (kind, version) = request::METADATA;
        let count = fields.number32().ok_or_else(unknown)?;
        for _ in 0..count {
            let key = fields.number16().ok_or_else(unknown)?;
            let (low, high) = (fields.number16(), fields.number16());
            let (low, high) = (low.ok_or_else(unknown)?, high.ok_or_else(unknown)?);
            if key == kind {
                if (low..=high).contains(&version) {
                    return Ok(());
                }
                let why = format!(
                    "the broker has versions {low} to {high} of its metadata, and not {version}"
                );
                return Err(Stopped::Refused(why));
            }
        }
        Err(unknown().into())
    }

    /// The broker's answer to a step of a login.
    async fn authenticate(&mut self, step: &[u8]) -> Result<Vec<u8>, Stopped> {
        let length = u32::try_from(step.len()).unwrap_or(u32::MAX);
        let body = [&length.to_be_bytes()[..], step].concat();
        let response = self.ask(request::SASL_AUTHENTICATE, &body).await?;
        let mut fields = Fields(&response);
        let code = fields.number16().ok_or_else(unknown)?;
        let message = metadata::nullable_text(&mut fields).ok_or_else(unknown)?;
        if code != 0 {
            let why = message.filter(|text| !text.is_empty());
            let why = why.unwrap_or_else(|| reason(code));
            return Err(Stopped::Refused(format!("the broker reports: {why}")));
        }
        let length = fields.number32().ok_or_else(unknown)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(fields.bytes(length).ok_or_else(unknown)?.to_vec())
    }

    /// The body of the response to a request.
    async fn ask(
        &mut self,
        (key, version): request::Kind,
        body: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        self.number += 1;
        let head = [
            &key.to_be_bytes()[..],
            &version.to_be_bytes(),
            &self.number.to_be_bytes(),
            &text("plimsoll"),
        ]
        .concat();
        let length = u32::try_from(head.len() + body.len()).unwrap_or(u32::MAX);
        let message = [&length.to_be_bytes()[..], &head, body].concat();
        let sent = async {
            self.stream.write_all(&message).await?;
            self.stream.flush().await
        };
        let sent = sent.await;
        sent.map_err(|error| Failure::from_io(Phase::Send, &error))?;
        let mut head = [0; 8];
        let read = self.stream.read_exact(&mut head).await;
        read.map_err(|error| Failure::from_io(Phase::Wait, &error))?;
        let mut fields = Fields(&head);
        let (length, number) = (fields.number32(), fields.number32());
        // The number is part of the length.
        let length = length.and_then(|length| usize::try_from(length).ok()?.checked_sub(4));
        let length = length.filter(|_| number == Some(self.number));
        let length = length.ok_or_else(unknown)?;
        if length > MOST_READ {
            let cause = format!("the response has more than {MOST_READ} bytes");
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
        }
        let mut content = vec![0; length];
        let read = self.stream.read_exact(&mut content).await;
        read.map_err(|error| Failure::from_io(Phase::Receive, &error))?;
        Ok(content)
    }
}

/// Bytes behind a length of 16 bits.
fn text(text: &str) -> Vec<u8> {
    let most = usize::from(u16::MAX >> 1);
    let bytes = text.as_bytes();
    let bytes = bytes.get(..most).unwrap_or(bytes);
    let length = u16::try_from(bytes.len()).unwrap_or_default();
    [&length.to_be_bytes()[..], bytes].concat()
}

fn unknown() -> Failure {
    let cause = "the server does not speak Kafka's protocol";
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

impl Probe for KafkaProbe {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn target(&self) -> String {
        self.url.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.url.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(stopped) = self.look(context, reading).await {
                stopped.record(reading);
            }
        }))
    }
}

impl fmt::Debug for KafkaProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
