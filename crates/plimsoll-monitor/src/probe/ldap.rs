//! LDAP version 3: a bind, and optionally a search.
//!
//! Source: RFC 4511, sections 4.1 (messages), 4.2 (bind), 4.5 (search), 4.14 (`StartTLS`).

mod filter;

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::ber::{Elements, element, head, integer, tag};
use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::starttls::upgraded;
use crate::probe::{Probe, ProbeFuture};

pub use crate::probe::ldap::filter::{LdapFilter, LdapFilterError};

/// Bytes of a message, and of the entries that are kept for conditions.
const MOST_READ: usize = 64 * 1024;

/// Entries of a search, which is a limit for the server.
const MOST_ENTRIES: i64 = 100;

/// What is sent and received.
mod operation {
    pub(super) const BIND: u8 = 0x60;
    pub(super) const BOUND: u8 = 0x61;
    pub(super) const UNBIND: u8 = 0x42;
    pub(super) const SEARCH: u8 = 0x63;
    pub(super) const ENTRY: u8 = 0x64;
    pub(super) const FOUND: u8 = 0x65;
    pub(super) const REFERENCE: u8 = 0x73;
    pub(super) const EXTENDED: u8 = 0x77;
    pub(super) const EXTENDED_ANSWER: u8 = 0x78;
}

/// The number of `StartTLS`.
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// Results by their numbers (RFC 4511, appendix A).
const SIZE_LIMIT_EXCEEDED: i64 = 4;

/// Connects to a directory.
pub struct LdapProbe {
    /// Address of the server; connections to it begin with a handshake for `ldaps`.
    pub target: TcpTarget,
    /// Whether TLS begins on the open connection.
    pub starttls: bool,
    /// The name that signs in with its password; absent for an anonymous bind.
    pub login: Option<(String, Secret)>,
    /// What is searched for.
    pub search: Option<LdapSearch>,
    /// Connection options.
    pub reach: Reach,
}

/// A search, which must find an entry.
#[derive(Debug, Clone)]
pub struct LdapSearch {
    /// The name of the entry at which it begins.
    pub base: String,
    /// How far it goes.
    pub scope: LdapScope,
    /// Which entries are found.
    pub filter: LdapFilter,
    /// The attributes that are read; all if there are none.
    pub attributes: Vec<String>,
}

/// How far a search goes from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LdapScope {
    /// The entry alone.
    Base,
    /// The entries right below it.
    One,
    /// The entry and all below it.
    Sub,
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    code: i64,
    message: String,
}

impl Outcome {
    /// Reads code, matched name and message.
    fn read(content: &[u8]) -> Option<Self> {
        let mut fields = Elements(content);
        let code = fields.number(tag::ENUMERATED)?;
        fields.expect(tag::OCTETS)?;
        let message = fields.expect(tag::OCTETS)?;
        Some(Self {
            code,
            message: String::from_utf8_lossy(message).trim().to_owned(),
        })
    }

    fn refusal(&self, what: &str) -> String {
        let name = match self.code {
            1 => "operationsError",
            2 => "protocolError",
            8 => "strongerAuthRequired",
            13 => "confidentialityRequired",
            32 => "noSuchObject",
            49 => "invalidCredentials",
            50 => "insufficientAccessRights",
            51 => "busy",
            52 => "unavailable",
            53 => "unwillingToPerform",
            _ => "an error",
        };
        let why = if self.message.is_empty() {
            String::new()
        } else {
            format!(": {}", self.message)
        };
        format!(
            "the server refuses the {what} with {name} ({}){why}",
            self.code
        )
    }
}

impl LdapProbe {
    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        if self.starttls {
            let request = element(operation::EXTENDED, &element(0x80, START_TLS));
            let answer = exchange(&mut stream, 1, &request, operation::EXTENDED_ANSWER).await?;
            if answer.code != 0 {
                reading.unmet = Some(answer.refusal("handshake"));
                return Ok(());
            }
            stream = upgraded(stream, endpoint, &self.reach, context, reading).await?;
        }
        let begun = context.clock.now();
        let bound = exchange(&mut stream, 2, &self.bind(), operation::BOUND).await?;
        if bound.code != 0 {
            reading.unmet = Some(bound.refusal("bind"));
            return Ok(());
        }
        if let Some(search) = &self.search {
            search.find(&mut stream, reading).await?;
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        send(&mut stream, 4, &element(operation::UNBIND, &[]))
            .await
            .ok();
        Ok(())
    }

    fn bind(&self) -> Vec<u8> {
        let (name, password) = match &self.login {
            Some((name, password)) => (name.as_str(), password.expose()),
            None => ("", ""),
        };
        let content = [
            integer(tag::INTEGER, 3),
            element(tag::OCTETS, name.as_bytes()),
            element(0x80, password.as_bytes()),
        ];
        element(operation::BIND, &content.concat())
    }
}

impl LdapSearch {
    fn request(&self) -> Vec<u8> {
        let scope = match self.scope {
            LdapScope::Base => 0,
            LdapScope::One => 1,
            LdapScope::Sub => 2,
        };
        let attributes = self.attributes.iter();
        let attributes = attributes.flat_map(|name| element(tag::OCTETS, name.as_bytes()));
        let content = [
            element(tag::OCTETS, self.base.as_bytes()),
            integer(tag::ENUMERATED, scope),
            // Aliases are not followed.
            integer(tag::ENUMERATED, 0),
            integer(tag::INTEGER, MOST_ENTRIES),
            // No limit of time: the connection ends with the check.
            integer(tag::INTEGER, 0),
            element(tag::BOOLEAN, &[0]),
            self.filter.to_ber(),
            element(tag::SEQUENCE, &attributes.collect::<Vec<u8>>()),
        ];
        element(operation::SEARCH, &content.concat())
    }

    async fn find(&self, stream: &mut Stream, reading: &mut Reading) -> Result<(), Failure> {
        send(stream, 3, &self.request()).await?;
        let (mut entries, mut size) = (Vec::new(), 0);
        let outcome = loop {
            let message = receive(stream).await?;
            let (kind, content) = operation_of(&message, 3).ok_or_else(unknown)?;
            match kind {
                operation::ENTRY => {
                    size += content.len();
                    if size <= MOST_READ {
                        entries.push(entry(content).ok_or_else(unknown)?);
                    }
                }
                operation::REFERENCE => {}
                operation::FOUND => break Outcome::read(content).ok_or_else(unknown)?,
                _ => return Err(unknown()),
            }
        };
        let is_done = [0, SIZE_LIMIT_EXCEEDED].contains(&outcome.code);
        if !is_done {
            reading.unmet = Some(outcome.refusal("search"));
        } else if size == 0 {
            reading.unmet = Some("the search finds no entry".to_owned());
        }
        reading.size = size as u64;
        reading.body = Value::Array(entries).to_string().into_bytes();
        Ok(())
    }
}

/// An entry: its name as `dn`, and each attribute with its values.
pub(super) fn entry(content: &[u8]) -> Option<Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = Elements(content);
    let name = fields.expect(tag::OCTETS)?;
    let mut entry = Map::new();
    let mut attributes = Elements(fields.expect(tag::SEQUENCE)?);
    while let Some(attribute) = attributes.expect(tag::SEQUENCE) {
        let mut attribute = Elements(attribute);
        let name = text(attribute.expect(tag::OCTETS)?);
        // A set.
        let values = Elements(attribute.expect(0x31)?);
        let values = values.map(|(_, value)| Value::String(text(value)));
        entry.insert(name, values.collect());
    }
    entry.insert("dn".to_owned(), json!(text(name)));
    Some(Value::Object(entry))
}

/// The operation of a message of that number.
pub(super) fn operation_of(message: &[u8], number: i64) -> Option<(u8, &[u8])> {
    let mut message = Elements(Elements(message).expect(tag::SEQUENCE)?);
    if message.number(tag::INTEGER)? != number {
        return None;
    }
    message.next()
}

/// Sends a request, and reads the outcome of it.
async fn exchange(
    stream: &mut Stream,
    number: i64,
    request: &[u8],
    expected: u8,
) -> Result<Outcome, Failure> {
    send(stream, number, request).await?;
    let message = receive(stream).await?;
    let found = operation_of(&message, number).filter(|(kind, _)| *kind == expected);
    found
        .and_then(|(_, content)| Outcome::read(content))
        .ok_or_else(unknown)
}

async fn send(stream: &mut Stream, number: i64, request: &[u8]) -> Result<(), Failure> {
    let message = [&integer(tag::INTEGER, number)[..], request].concat();
    let sent = async {
        stream.write_all(&element(tag::SEQUENCE, &message)).await?;
        stream.flush().await
    };
    let sent = sent.await;
    sent.map_err(|error| Failure::from_io(Phase::Send, &error))
}

/// One message as a whole.
async fn receive(stream: &mut Stream) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::from_io(Phase::Wait, &error);
    let mut message = vec![0; 2];
    stream.read_exact(&mut message).await.map_err(failed)?;
    // A long length has its bytes behind these.
    let more = match message[1] {
        ..0x80 => 0,
        long => usize::from(long & 0x7f),
    };
    if message[0] != tag::SEQUENCE || more > 4 {
        return Err(unknown());
    }
    message.resize(2 + more, 0);
    stream.read_exact(&mut message[2..]).await.map_err(failed)?;
    let (_, length, begun) = head(&message).ok_or_else(unknown)?;
    if length > MOST_READ {
        let cause = format!("a message has more than {MOST_READ} bytes");
        return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
    }
    message.resize(begun + length, 0);
    let read = stream.read_exact(&mut message[begun..]).await;
    read.map_err(|error| Failure::from_io(Phase::Receive, &error))?;
    Ok(message)
}

fn unknown() -> Failure {
    let cause = "the server does not speak LDAP";
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

impl Probe for LdapProbe {
    fn kind(&self) -> &'static str {
        "ldap"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl fmt::Debug for LdapProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LdapProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
