//! `MySQL` and `MariaDB`: a connection, and the rows of a query.
//!
//! Only what a check needs of the protocol: the handshake with passwords by `mysql_native_password` and
//! `caching_sha2_password`, and the text protocol of one query.
//!
//! Source: "`MySQL` Internals: Client/Server Protocol", sections "Connection Phase" and "Command Phase".

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError, Rows, TlsMode};
use crate::probe::reading::Reading;
use crate::probe::starttls::upgraded;
use crate::probe::stopped::Stopped;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["mysql", "mariadb"],
    port: 3306,
    example: "mysql://user:password@db.example.org/database",
};

/// A query that any server can answer.
const PLAIN: &str = "SELECT 1 AS one";

/// Bytes of a packet.
const MOST_READ: u32 = 1024 * 1024;

/// Columns of a result.
const MOST_COLUMNS: u64 = 4_096;

/// Capabilities of the client.
mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const SSL: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
}

/// UTF-8 of four bytes.
const CHARSET: u8 = 45;

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";

/// Connects to `MySQL`.
pub struct MysqlProbe {
    url: DatabaseUrl,
    query: String,
    reach: Reach,
}

impl MysqlProbe {
    /// - `url`: `mysql://user:password@host:port/database`.
    pub fn new(url: &str, query: Option<String>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        Ok(Self {
            url: DatabaseUrl::parse(url, SCHEME, |_| false)?,
            query: query.unwrap_or_else(|| PLAIN.to_owned()),
            reach,
        })
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Stopped> {
        let endpoint = self.url.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let begun = context.clock.now();
        let mut session = Session {
            stream: connection.stream,
            sequence: 0,
        };
        self.sign_in(&mut session, context, reading).await?;
        session.sequence = 0;
        session
            .write(&[&[3], self.query.as_bytes()].concat())
            .await?;
        let rows = rows(&mut session).await?;
        let waited = context.clock.now().saturating_duration_since(begun);
        let shaken = reading.phases.get(Phase::Tls).unwrap_or_default();
        reading
            .phases
            .set(Phase::Wait, waited.saturating_sub(shaken));
        reading.body = rows.into_body();
        reading.size = reading.body.len() as u64;
        session.sequence = 0;
        // Otherwise the server counts an aborted connection.
        session.write(&[1]).await.ok();
        Ok(())
    }

    async fn sign_in(
        &self,
        session: &mut Session,
        context: &ProbeContext,
        reading: &mut Reading,
    ) -> Result<(), Stopped> {
        let greeting = Greeting::parse(&reported(session.read().await?)?).ok_or_else(unknown)?;
        let mut flags = capability::LONG_PASSWORD
            | capability::PROTOCOL_41
            | capability::TRANSACTIONS
            | capability::SECURE_CONNECTION
            | capability::PLUGIN_AUTH;
        if !self.url.database.is_empty() {
            flags |= capability::CONNECT_WITH_DB;
        }
        let offers_tls = greeting.capabilities & capability::SSL != 0;
        let is_encrypted = match self.url.tls {
            TlsMode::Disable => false,
            TlsMode::Prefer => offers_tls,
            TlsMode::Require if offers_tls => true,
            TlsMode::Require => {
                return Err(Stopped::Refused("the server offers no TLS".to_owned()));
            }
        };
        let head = |flags: u32| {
            let mut head = flags.to_le_bytes().to_vec();
            head.extend_from_slice(&MOST_READ.to_le_bytes());
            head.push(CHARSET);
            head.extend_from_slice(&[0; 23]);
            head
        };
        if is_encrypted {
            flags |= capability::SSL;
            session.write(&head(flags)).await?;
            session.upgrade(self, context, reading).await?;
        }
        let mut plugin = greeting.plugin;
        let mut nonce = greeting.nonce;
        let proof = self.proof(&plugin, &nonce);
        let mut response = head(flags);
        response.extend_from_slice(self.url.user.as_bytes());
        response.push(0);
        response.push(u8::try_from(proof.len()).unwrap_or(0));
        response.extend_from_slice(&proof);
        if !self.url.database.is_empty() {
            response.extend_from_slice(self.url.database.as_bytes());
            response.push(0);
        }
        response.extend_from_slice(plugin.as_bytes());
        response.push(0);
        session.write(&response).await?;
        // Another plugin once, and the steps of `caching_sha2_password`.
        for _ in 0..4 {
            let packet = reported(session.read().await?)?;
            match packet.split_first() {
                Some((0, _)) => return Ok(()),
                Some((0xfe, rest)) => {
                    let (name, data) = text(rest).ok_or_else(unknown)?;
                    plugin = name;
                    nonce = data.iter().copied().take(20).collect();
                    let proof = self.proof(&plugin, &nonce);
                    if proof.is_empty() && self.url.password.is_some() {
                        let why = format!(
                            "the server requires the plugin `{plugin}`, which is not supported"
                        );
                        return Err(Stopped::Refused(why));
                    }
                    session.write(&proof).await?;
                }
                // The password is in its cache; the packet that accepts it follows.
                Some((1, [3])) => {}
                Some((1, [4])) if is_encrypted => {
                    let password = self.url.password.as_ref();
                    let password = password
                        .map(|it| it.expose().as_bytes())
                        .unwrap_or_default();
                    session.write(&[password, &[0]].concat()).await?;
                }
                Some((1, [4])) => {
                    let why = "the server requires TLS for this password, which it does not offer or `sslmode` rules out";
                    return Err(Stopped::Refused(why.to_owned()));
                }
                _ => return Err(unknown().into()),
            }
        }
        Err(unknown().into())
    }

    /// The proof of the password; empty without one, or for a plugin that is not known.
    fn proof(&self, plugin: &str, nonce: &[u8]) -> Vec<u8> {
        let Some(password) = &self.url.password else {
            return Vec::new();
        };
        let password = password.expose().as_bytes();
        let hash = |algorithm: &'static Algorithm, parts: &[&[u8]]| {
            digest(algorithm, &parts.concat()).as_ref().to_vec()
        };
        let (once, mixed) = match plugin {
            NATIVE => {
                let sha1 = &SHA1_FOR_LEGACY_USE_ONLY;
                let once = hash(sha1, &[password]);
                let twice = hash(sha1, &[&once]);
                let mixed = hash(sha1, &[nonce, &twice]);
                (once, mixed)
            }
            CACHING => {
                let once = hash(&SHA256, &[password]);
                let twice = hash(&SHA256, &[&once]);
                let mixed = hash(&SHA256, &[&twice, nonce]);
                (once, mixed)
            }
            _ => return Vec::new(),
        };
        once.iter()
            .zip(mixed)
            .map(|(one, other)| one ^ other)
            .collect()
    }
}

/// Packets over a stream.
struct Session {
    stream: Stream,
    sequence: u8,
}

impl Session {
    async fn read(&mut self) -> Result<Vec<u8>, Failure> {
        let failed = |error: std::io::Error| Failure::from_io(Phase::Wait, &error);
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await.map_err(failed)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        if length > MOST_READ {
            let cause = format!("a packet has more than {MOST_READ} bytes");
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
        }
        self.sequence = head[3].wrapping_add(1);
        let mut packet = vec![0; usize::try_from(length).unwrap_or_default()];
        self.stream.read_exact(&mut packet).await.map_err(failed)?;
        Ok(packet)
    }

    async fn write(&mut self, content: &[u8]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::from_io(Phase::Send, &error);
        let length = u32::try_from(content.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes();
        let head = [length[0], length[1], length[2], self.sequence];
        self.sequence = self.sequence.wrapping_add(1);
        let packet = [&head[..], content].concat();
        self.stream.write_all(&packet).await.map_err(failed)?;
        self.stream.flush().await.map_err(failed)
    }

    /// Goes on behind a TLS handshake.
    async fn upgrade(
        &mut self,
        probe: &MysqlProbe,
        context: &ProbeContext,
        reading: &mut Reading,
    ) -> Result<(), Failure> {
        let endpoint = probe.url.target.endpoint();
        let (unused, _) =
            tokio::net::UnixStream::pair().map_err(|error| Failure::from_io(Phase::Tls, &error))?;
        let plain = std::mem::replace(&mut self.stream, Stream::Unix(unused));
        self.stream = upgraded(plain, endpoint, &probe.reach, context, reading).await?;
        Ok(())
    }
}

/// The first packet of the server.
struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
}

impl Greeting {
    fn parse(packet: &[u8]) -> Option<Self> {
        let (10, rest) = packet
            .split_first()
            .map(|(version, rest)| (*version, rest))?
        else {
            return None;
        };
        let (_version, rest) = text(rest)?;
        // Behind the number of the connection: 8 bytes of the nonce and a zero.
        let mut nonce = rest.get(4..12)?.to_vec();
        let lower = rest.get(13..15)?;
        let upper = rest.get(18..20)?;
        let capabilities = u32::from_le_bytes([lower[0], lower[1], upper[0], upper[1]]);
        nonce.extend_from_slice(rest.get(31..43)?);
        let plugin = rest.get(44..).and_then(text).map(|(plugin, _)| plugin);
        Some(Self {
            capabilities,
            nonce,
            plugin: plugin.unwrap_or_else(|| NATIVE.to_owned()),
        })
    }
}

/// A text that ends with a zero or the packet, and the rest.
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at_checked(end)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Some((text, rest.get(1..).unwrap_or_default()))
}

/// A packet that is no error of the server.
fn reported(packet: Vec<u8>) -> Result<Vec<u8>, Stopped> {
    let Some((0xff, rest)) = packet.split_first() else {
        return Ok(packet);
    };
    let code = rest
        .get(..2)
        .map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    // A hash sign and a state of five characters come before the text, but for errors before the handshake.
    let text = rest.get(2..).unwrap_or_default();
    let text = match text.first() {
        Some(b'#') => text.get(6..).unwrap_or_default(),
        _ => text,
    };
    let text = String::from_utf8_lossy(text);
    Err(Stopped::Refused(format!(
        "the server reports: {text} ({code})"
    )))
}

fn unknown() -> Failure {
    let cause = "the server does not speak the protocol of MySQL";
    Failure::new(Phase::Wait, FailureKind::Protocol).because(cause)
}

/// The result of a query.
async fn rows(session: &mut Session) -> Result<Rows, Stopped> {
    let mut rows = Rows::default();
    let first = reported(session.read().await?)?;
    // Of a statement without rows.
    if first.first() == Some(&0) {
        return Ok(rows);
    }
    let (count, _) = number(&first).ok_or_else(unknown)?;
    if count > MOST_COLUMNS {
        return Err(unknown().into());
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        let packet = reported(session.read().await?)?;
        let name = column(&packet).ok_or_else(unknown)?;
        columns.push(name);
    }
    // Their end.
    session.read().await?;
    loop {
        let packet = reported(session.read().await?)?;
        if packet.first() == Some(&0xfe) && packet.len() < 9 {
            return Ok(rows);
        }
        let mut values = Vec::with_capacity(columns.len());
        let mut rest = packet.as_slice();
        for _ in &columns {
            if let [0xfb, behind @ ..] = rest {
                values.push(None);
                rest = behind;
                continue;
            }
            let (value, behind) = counted(rest).ok_or_else(unknown)?;
            values.push(Some(String::from_utf8_lossy(value).into_owned()));
            rest = behind;
        }
        let pairs = columns.iter().zip(&values);
        if !rows.add(pairs.map(|(name, value)| (name.as_str(), value.as_deref()))) {
            return Ok(rows);
        }
    }
}

/// The name of a column: the fifth text of its definition.
fn column(packet: &[u8]) -> Option<String> {
    let mut rest = packet;
    for _ in 0..4 {
        (_, rest) = counted(rest)?;
    }
    let (name, _) = counted(rest)?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// A number of variable length, and the rest.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some((u64::from(*small), rest)),
    };
    let (digits, rest) = rest.split_at_checked(length)?;
    let mut whole = [0; 8];
    whole.get_mut(..length)?.copy_from_slice(digits);
    Some((u64::from_le_bytes(whole), rest))
}

/// Bytes behind their number, and the rest.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

impl Probe for MysqlProbe {
    fn kind(&self) -> &'static str {
        "mysql"
    }

    fn target(&self) -> String {
        format!("{}/{}", self.url.target.text(), self.url.database)
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

impl fmt::Debug for MysqlProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What a server sends is never trusted.
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop((Greeting::parse(&bytes), column(&bytes), number(&bytes), counted(&bytes)));
            prop_assert_eq!(reported(bytes.clone()).is_err(), bytes.first() == Some(&0xff));
        }
    }

    #[test]
    fn numbers_have_variable_lengths() {
        assert_eq!(number(&[250, 7]), Some((250, &[7][..])));
        assert_eq!(number(&[0xfc, 1, 2, 9]), Some((0x0201, &[9][..])));
        assert_eq!(number(&[0xfd, 1, 2, 3]), Some((0x03_0201, &[][..])));
        assert_eq!(number(&[0xfc, 1]), None);
        assert_eq!(
            counted(&[2, b'a', b'b', b'c']),
            Some((&b"ab"[..], &b"c"[..]))
        );
        assert_eq!(counted(&[3, b'a']), None);
    }
}
