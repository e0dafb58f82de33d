//! AMQP 0-9-1, as `RabbitMQ` has it: a connection with a channel, and optionally how many messages wait in a queue.
//!
//! Source: AMQP 0-9-1 (specification and XML definition), sections 2.3 and 4.2; `RabbitMQ`, "Authentication Failure Notifications".

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::big_endian::Fields;
use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError};
use crate::probe::reading::Reading;
use crate::probe::stopped::Stopped;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["amqp", "amqps"],
    port: 5672,
    example: "amqp://user:password@broker.example.org/vhost",
};

/// The port of `amqps://`.
const TLS_PORT: u16 = 5671;

/// What begins a connection.
const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// Ends each frame.
const FRAME_END: u8 = 0xce;

/// The type of frames with methods.
const METHOD: u8 = 1;

/// Bytes of a frame.
const MOST_READ: usize = 64 * 1024;

/// Class and number of methods.
mod method {
    pub(super) type Id = (u16, u16);

    pub(super) const START: Id = (10, 10);
    pub(super) const START_OK: Id = (10, 11);
    pub(super) const TUNE: Id = (10, 30);
    pub(super) const TUNE_OK: Id = (10, 31);
    pub(super) const OPEN: Id = (10, 40);
    pub(super) const OPEN_OK: Id = (10, 41);
    pub(super) const CLOSE: Id = (10, 50);
    pub(super) const CHANNEL_OPEN: Id = (20, 10);
    pub(super) const CHANNEL_OPEN_OK: Id = (20, 11);
    pub(super) const CHANNEL_CLOSE: Id = (20, 40);
    pub(super) const DECLARE: Id = (50, 10);
    pub(super) const DECLARE_OK: Id = (50, 11);
}

/// Connects to a broker.
pub struct AmqpProbe {
    url: DatabaseUrl,
    queue: Option<String>,
    reach: Reach,
}

impl AmqpProbe {
    /// - `url`: `amqp://user:password@host:port/vhost`, or `amqps://` for TLS. Without a vhost it is `/`; its slash is written
    ///   as `%2F`.
    /// - `queue`: must be there.
    pub fn new(url: &str, queue: Option<String>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        let is_tls = url.starts_with("amqps:");
        let scheme = DatabaseScheme {
            port: if is_tls { TLS_PORT } else { SCHEME.port },
            ..SCHEME
        };
        let mut url = DatabaseUrl::parse(url, scheme, |scheme| scheme == "amqps")?;
        if url.database.is_empty() {
            "/".clone_into(&mut url.database);
        }
        Ok(Self { url, queue, reach })
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
        write(&mut stream, HEADER).await?;
        let start = expect(&mut stream, method::START).await?;
        let mut body = server_properties(&start).ok_or_else(unknown)?;
        send(&mut stream, 0, method::START_OK, &self.start_ok()).await?;
        let tune = expect(&mut stream, method::TUNE).await?;
        // The same limits, and no heartbeats: the connection is short.
        let limits = tune.get(..6).ok_or_else(unknown)?;
        send(&mut stream, 0, method::TUNE_OK, &[limits, &[0, 0]].concat()).await?;
        let vhost = [&short(&self.url.database)[..], &[0, 0]].concat();
        send(&mut stream, 0, method::OPEN, &vhost).await?;
        expect(&mut stream, method::OPEN_OK).await?;
        send(&mut stream, 1, method::CHANNEL_OPEN, &[0]).await?;
        expect(&mut stream, method::CHANNEL_OPEN_OK).await?;
        if let Some(queue) = &self.queue {
            // Passive: a queue that is not there is not made.
            let declare = [&[0, 0], &short(queue)[..], &[1, 0, 0, 0, 0]].concat();
            send(&mut stream, 1, method::DECLARE, &declare).await?;
            let declared = expect(&mut stream, method::DECLARE_OK).await?;
            let counts = queue_counts(&declared).ok_or_else(unknown)?;
            body["queue"] = json!(queue);
            (body["messages"], body["consumers"]) = (json!(counts.0), json!(counts.1));
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.body = body.to_string().into_bytes();
        reading.size = reading.body.len() as u64;
        // Otherwise the broker logs a lost connection. 200, no text, no method.
        let close = [0, 200, 0, 0, 0, 0, 0];
        send(&mut stream, 0, method::CLOSE, &close).await.ok();
        Ok(())
    }

    fn start_ok(&self) -> Vec<u8> {
        let user = match &*self.url.user {
            "" => "guest",
            user => user,
        };
        let password = self.url.password.as_ref().map_or("guest", |it| it.expose());
        // Otherwise a broker closes the connection without a reason.
        let capability = [&short("authentication_failure_close")[..], b"t\x01"].concat();
        let properties = [&short("capabilities")[..], b"F", &long(&capability)].concat();
        [
            long(&properties),
            short("PLAIN"),
            long(format!("\0{user}\0{password}").as_bytes()),
            short("en_US"),
        ]
        .concat()
    }
}

/// Bytes behind a length of 8 bits.
fn short(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..usize::from(u8::MAX)).unwrap_or(bytes);
    [&[u8::try_from(bytes.len()).unwrap_or(u8::MAX)], bytes].concat()
}

/// Bytes behind a length of 32 bits.
fn long(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}

async fn send(
    stream: &mut Stream,
    channel: u16,
    (class, number): method::Id,
    arguments: &[u8],
) -> Result<(), Failure> {
    let ids = [class.to_be_bytes(), number.to_be_bytes()].concat();
    let mut frame = vec![METHOD];
    frame.extend_from_slice(&channel.to_be_bytes());
    frame.extend(long(&[&ids, arguments].concat()));
    frame.push(FRAME_END);
    write(stream, &frame).await
}

async fn write(stream: &mut Stream, bytes: &[u8]) -> Result<(), Failure> {
    let sent = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let sent = sent.await;
    sent.map_err(|error| Failure::from_io(Phase::Send, &error))
}

/// The arguments of the next method, which must be that one.
async fn expect(stream: &mut Stream, wanted: method::Id) -> Result<Vec<u8>, Stopped> {
    loop {
        let (kind, content) = receive(stream).await?;
        if kind != METHOD {
            // Heartbeats.
            continue;
        }
        let mut fields = Fields(&content);
        let found = (fields.number16(), fields.number16());
        let (Some(class), Some(number)) = found else {
            return Err(unknown().into());
        };
        match (class, number) {
            found if found == wanted => return Ok(fields.0.to_vec()),
            method::CLOSE | method::CHANNEL_CLOSE => {
                let why = refusal(fields.0).ok_or_else(unknown)?;
                return Err(Stopped::Refused(why));
            }
            _ => return Err(unknown().into()),
        }
    }
}

/// Type and content of the next frame.
async fn receive(stream: &mut Stream) -> Result<(u8, Vec<u8>), Failure> {
    let mut head = [0; 7];
    let read = stream.read_exact(&mut head).await;
    read.map_err(|error| Failure::from_io(Phase::Wait, &error))?;
    // A broker of another version responds with its own header, and closes.
    if head.starts_with(b"AMQP") {
        return Err(unknown());
    }
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !(1..=8).contains(&head[0]) {
        return Err(unknown());
    }
    if length > MOST_READ {
        let cause = format!("a frame has more than {MOST_READ} bytes");
        return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
    }
    let mut content = vec![0; length + 1];
    let read = stream.read_exact(&mut content).await;
    read.map_err(|error| Failure::from_io(Phase::Receive, &error))?;
    if content.pop() != Some(FRAME_END) {
        return Err(unknown());
    }
    Ok((head[0], content))
}

/// A text behind a length of 8 bits.
fn short_text<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.number8()?;
    fields.bytes(length.into())
}

/// What stands behind a length of 32 bits.
fn long_text<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.number32()?;
    fields.bytes(usize::try_from(length).ok()?)
}

/// A value of a table: its text, which is empty for other types.
fn table_value<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = match fields.number8()? {
        b'S' => return long_text(fields),
        b'A' | b'F' | b'x' => return long_text(fields).map(|_| &[][..]),
        b't' | b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'L' | b'l' | b'd' | b'T' => 8,
        b'V' => 0,
        _ => return None,
    };
    fields.bytes(length).map(|_| &[][..])
}

/// Product, version and cluster of a broker, from its `connection.start`.
fn server_properties(arguments: &[u8]) -> Option<Value> {
    let mut fields = Fields(arguments);
    // The version of the protocol.
    fields.bytes(2)?;
    let mut table = Fields(long_text(&mut fields)?);
    let mut shown = json!({});
    while !table.0.is_empty() {
        let (name, value) = (short_text(&mut table)?, table_value(&mut table)?);
        let key = match name {
            b"product" => "product",
            b"version" => "version",
            b"cluster_name" => "cluster",
            _ => continue,
        };
        shown[key] = Value::String(String::from_utf8_lossy(value).into_owned());
    }
    Some(shown)
}

/// Messages and consumers of a queue.
fn queue_counts(arguments: &[u8]) -> Option<(u32, u32)> {
    let mut fields = Fields(arguments);
    short_text(&mut fields)?;
    Some((fields.number32()?, fields.number32()?))
}

/// Why a broker closes a connection or a channel.
fn refusal(arguments: &[u8]) -> Option<String> {
    let mut fields = Fields(arguments);
    let (code, text) = (fields.number16()?, short_text(&mut fields)?);
    let text = String::from_utf8_lossy(text);
    Some(format!("the broker reports: {text} ({code})"))
}

/// Reads what arguments a broker may send, whatever they are.
#[cfg(test)]
fn read_arguments(arguments: &[u8]) {
    server_properties(arguments);
    queue_counts(arguments);
    refusal(arguments);
}

fn unknown() -> Failure {
    let cause = "the server does not speak AMQP 0-9-1";
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

impl Probe for AmqpProbe {
    fn kind(&self) -> &'static str {
        "amqp"
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

impl fmt::Debug for AmqpProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn properties_of_a_broker_are_read() {
        let table = [
            &short("capabilities")[..],
            b"F",
            &long(&[&short("per_consumer_qos")[..], b"t\x01"].concat()),
            &short("product"),
            b"S",
            &long(b"RabbitMQ"),
            &short("version"),
            b"S",
            &long(b"3.10.8"),
        ]
        .concat();
        let arguments = [&[0, 9][..], &long(&table), &long(b"PLAIN"), &long(b"en_US")].concat();
        let shown = server_properties(&arguments).unwrap();
        assert_eq!(shown, json!({ "product": "RabbitMQ", "version": "3.10.8" }));
        assert_eq!(server_properties(&arguments[..20]), None);
    }

    #[test]
    fn a_vhost_is_a_slash_unless_it_is_named() {
        let vhost = |url: &str| {
            let reach = Reach::new(crate::probe::ReachOptions::default()).unwrap();
            AmqpProbe::new(url, None, reach).unwrap().url.database
        };
        assert_eq!(vhost("amqp://a"), "/");
        assert_eq!(vhost("amqp://a/%2F"), "/");
        assert_eq!(vhost("amqps://u:p@a:1/shop"), "shop");
    }

    proptest! {
        #[test]
        fn any_arguments_are_read_without_a_panic(arguments in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_arguments(&arguments);
        }
    }
}
