//! MQTT 3.1.1: a connection to a broker, and optionally a message of a topic.
//!
//! Source: MQTT Version 3.1.1 (OASIS), sections 3.1 to 3.3, 3.8 and 3.9.

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["mqtt", "mqtts"],
    port: 1883,
    example: "mqtt://user:password@broker.example.org",
};

/// The port of `mqtts://`.
const TLS_PORT: u16 = 8883;

/// Bytes of a packet.
const MOST_READ: usize = 64 * 1024;

/// Types of packets, with the flags that they have.
mod packet {
    pub(super) const CONNECT: u8 = 0x10;
    pub(super) const CONNACK: u8 = 0x20;
    pub(super) const PUBLISH: u8 = 0x30;
    pub(super) const SUBSCRIBE: u8 = 0x82;
    pub(super) const SUBACK: u8 = 0x90;
    pub(super) const DISCONNECT: u8 = 0xe0;
}

/// Connects to a broker.
pub struct MqttProbe {
    url: DatabaseUrl,
    topic: Option<String>,
    reach: Reach,
}

impl MqttProbe {
    /// - `url`: `mqtt://user:password@host:port`, or `mqtts://` for TLS.
    /// - `topic`: a message of it is waited for, such as the one that the broker retains.
    pub fn new(url: &str, topic: Option<String>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        let is_tls = url.starts_with("mqtts:");
        let scheme = DatabaseScheme {
            port: if is_tls { TLS_PORT } else { SCHEME.port },
            ..SCHEME
        };
        Ok(Self {
            url: DatabaseUrl::parse(url, scheme, |scheme| scheme == "mqtts")?,
            topic,
            reach,
        })
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.url.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let begun = context.clock.now();
        write(&mut stream, packet::CONNECT, &self.connect()).await?;
        let (kind, answer) = read(&mut stream).await?;
        if kind & 0xf0 != packet::CONNACK {
            return Err(unknown());
        }
        match answer.get(1) {
            Some(0) => {}
            Some(code) => {
                let why = match code {
                    1 => "the version of the protocol",
                    2 => "the name of the client",
                    3 => "all clients at present",
                    4 => "the user name or the password",
                    5 => "this user",
                    _ => "the connection",
                };
                reading.unmet = Some(format!("the broker refuses {why} ({code})"));
                return Ok(());
            }
            None => return Err(unknown()),
        }
        if let Some(topic) = &self.topic
            && !self.receive(&mut stream, topic, reading).await?
        {
            return Ok(());
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        // Otherwise the broker logs a lost connection.
        write(&mut stream, packet::DISCONNECT, &[]).await.ok();
        Ok(())
    }

    fn connect(&self) -> Vec<u8> {
        let has_user = !self.url.user.is_empty();
        let password = self.url.password.as_ref().filter(|_| has_user);
        // A session that the broker forgets.
        let mut flags = 0b10;
        if has_user {
            flags |= 0b1000_0000;
        }
        if password.is_some() {
            flags |= 0b0100_0000;
        }
        let mut content = counted("MQTT");
        // Version 3.1.1, and no keep-alive: the connection is short.
        content.extend_from_slice(&[4, flags, 0, 0]);
        content.extend(counted(&format!(
            "plimsoll{:012x}",
            fastrand::u64(..1 << 48)
        )));
        if has_user {
            content.extend(counted(&self.url.user));
        }
        if let Some(password) = password {
            content.extend(counted(password.expose()));
        }
        content
    }

    /// The first message of a topic; false if the broker refuses it.
    async fn receive(
        &self,
        stream: &mut Stream,
        topic: &str,
        reading: &mut Reading,
    ) -> Result<bool, Failure> {
        // Number 1, quality 0.
        let mut subscribe = vec![0, 1];
        subscribe.extend(counted(topic));
        subscribe.push(0);
        write(stream, packet::SUBSCRIBE, &subscribe).await?;
        loop {
            let (kind, content) = read(stream).await?;
            match kind & 0xf0 {
                packet::SUBACK if content.last() == Some(&0x80) => {
                    let why = format!("the broker refuses the topic `{topic}`");
                    reading.unmet = Some(why);
                    return Ok(false);
                }
                packet::PUBLISH => {
                    let length = content.get(..2).ok_or_else(unknown)?;
                    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                    // A message of a quality above 0 has a number.
                    let from = if kind & 0b110 == 0 { 2 } else { 4 } + length;
                    let message = content.get(from..).ok_or_else(unknown)?;
                    reading.size = message.len() as u64;
                    reading.body = message.to_vec();
                    return Ok(true);
                }
                _ => {}
            }
        }
    }
}

/// A text behind its length.
fn counted(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..usize::from(u16::MAX)).unwrap_or(bytes);
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), bytes].concat()
}

async fn write(stream: &mut Stream, kind: u8, content: &[u8]) -> Result<(), Failure> {
    let mut whole = vec![kind];
    let mut left = content.len();
    loop {
        let digit = u8::try_from(left % 128).unwrap_or_default();
        left /= 128;
        whole.push(if left > 0 { digit | 0x80 } else { digit });
        if left == 0 {
            break;
        }
    }
    whole.extend_from_slice(content);
    let failed = |error: std::io::Error| Failure::from_io(Phase::Send, &error);
    stream.write_all(&whole).await.map_err(failed)?;
    stream.flush().await.map_err(failed)
}

/// The next packet: its first byte, and the content.
async fn read(stream: &mut Stream) -> Result<(u8, Vec<u8>), Failure> {
    let failed = |error: std::io::Error| Failure::from_io(Phase::Wait, &error);
    let kind = stream.read_u8().await.map_err(failed)?;
    let mut length = 0;
    for place in 0..4 {
        let digit = stream.read_u8().await.map_err(failed)?;
        length |= usize::from(digit & 0x7f) << (7 * place);
        if digit & 0x80 == 0 {
            if length > MOST_READ {
                let cause = format!("a packet has more than {MOST_READ} bytes");
                return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
            }
            let mut content = vec![0; length];
            stream.read_exact(&mut content).await.map_err(failed)?;
            return Ok((kind, content));
        }
    }
    Err(unknown())
}

fn unknown() -> Failure {
    let cause = "the server does not speak MQTT 3.1.1";
    Failure::new(Phase::Wait, FailureKind::Protocol).because(cause)
}

impl Probe for MqttProbe {
    fn kind(&self) -> &'static str {
        "mqtt"
    }

    fn target(&self) -> String {
        let address = self.url.target.text();
        match &self.topic {
            Some(topic) => format!("{address}/{topic}"),
            None => address,
        }
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.url.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl fmt::Debug for MqttProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
