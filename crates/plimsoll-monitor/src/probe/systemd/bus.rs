//! D-Bus, as far as calls with texts and answers with one value need it.
//!
//! Source: D-Bus Specification 0.41, sections "Message Protocol", "Type System" and "Authentication Protocol".

use plimsoll_client::Stream;
use plimsoll_model::{Failure, FailureKind, Phase};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::starttls::line;

/// Bytes of a message.
const MOST_READ: usize = 64 * 1024;

/// Other messages, such as signals, that come before an answer.
const MOST_OTHERS: usize = 100;

/// Types of messages.
mod kind {
    pub(super) const CALL: u8 = 1;
    pub(super) const RETURN: u8 = 2;
    pub(super) const ERROR: u8 = 3;
}

/// Codes of header fields.
mod field {
    pub(super) const PATH: u8 = 1;
    pub(super) const INTERFACE: u8 = 2;
    pub(super) const MEMBER: u8 = 3;
    pub(super) const ERROR_NAME: u8 = 4;
    pub(super) const REPLY_SERIAL: u8 = 5;
    pub(super) const DESTINATION: u8 = 6;
    pub(super) const SIGNATURE: u8 = 8;
}

/// A call whose arguments are texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: &'a [&'a str],
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum BusError {
    Failed(Failure),
    /// The other side reports an error.
    Refused(String),
}

impl From<Failure> for BusError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A connection to a bus.
pub(super) struct Bus {
    stream: Stream,
    serial: u32,
}

impl Bus {
    /// Signs in as the user of this process, and gets a name.
    pub(super) async fn begin(mut stream: Stream) -> Result<Self, Failure> {
        // The bus gets the user from the socket.
        write(&mut stream, b"\0AUTH EXTERNAL\r\nDATA\r\n").await?;
        loop {
            let answer = line(&mut stream).await?;
            match answer.split_whitespace().next() {
                Some("DATA") => {}
                Some("OK") => break,
                Some("REJECTED") => {
                    let cause = "the bus refuses the user of this process";
                    return Err(Failure::new(Phase::Wait, FailureKind::Refused).because(cause));
                }
                _ => return Err(unknown()),
            }
        }
        write(&mut stream, b"BEGIN\r\n").await?;
        let mut bus = Self { stream, serial: 0 };
        let hello = Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            arguments: &[],
        };
        match bus.call(hello).await {
            Ok(_) => Ok(bus),
            Err(BusError::Failed(failure)) => Err(failure),
            Err(BusError::Refused(why)) => {
                Err(Failure::new(Phase::Wait, FailureKind::Refused).because(why))
            }
        }
    }

    /// The first value of the answer.
    pub(super) async fn call(&mut self, call: Call<'_>) -> Result<Value, BusError> {
        self.serial += 1;
        write(&mut self.stream, &encode(self.serial, call)).await?;
        for _ in 0..MOST_OTHERS {
            let message = receive(&mut self.stream).await?;
            let read = Message::read(&message).ok_or_else(unknown)?;
            if read.reply_serial != Some(self.serial) {
                continue;
            }
            return match read.kind {
                kind::RETURN => Ok(read.first().unwrap_or_default()),
                kind::ERROR => {
                    let name = read.error.unwrap_or("an error");
                    let text = read.first().unwrap_or_default();
                    let text = text
                        .as_str()
                        .map_or(String::new(), |text| format!(": {text}"));
                    Err(BusError::Refused(format!("{name}{text}")))
                }
                _ => Err(unknown().into()),
            };
        }
        Err(unknown().into())
    }
}

/// Appends `count` zeros and more, up to the next multiple.
fn pad(bytes: &mut Vec<u8>, multiple: usize) {
    bytes.resize(bytes.len().next_multiple_of(multiple), 0);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    pad(bytes, 4);
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn put_signature(bytes: &mut Vec<u8>, signature: &str) {
    bytes.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(signature.as_bytes());
    bytes.push(0);
}

/// A message with header fields and a body of texts.
///
/// - `fields`: code, type and text.
fn message(kind: u8, serial: u32, fields: &[(u8, &str, &str)], texts: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for text in texts {
        put_text(&mut body, text);
    }
    message_of(kind, serial, fields, &"s".repeat(texts.len()), &body)
}

/// The same with any body.
///
/// - `signature`: the types of its values.
fn message_of(
    kind: u8,
    serial: u32,
    fields: &[(u8, &str, &str)],
    signature: &str,
    body: &[u8],
) -> Vec<u8> {
    // Little-endian, no flags, version 1.
    let mut bytes = vec![b'l', kind, 0, 1];
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    bytes.extend_from_slice(&length(body));
    bytes.extend_from_slice(&serial.to_le_bytes());
    let mut all = Vec::new();
    for (code, kind, text) in fields {
        pad(&mut all, 8);
        all.push(*code);
        put_signature(&mut all, kind);
        match text.parse::<u32>() {
            Ok(number) if *kind == "u" => {
                pad(&mut all, 4);
                all.extend_from_slice(&number.to_le_bytes());
            }
            _ => put_text(&mut all, text),
        }
    }
    if !signature.is_empty() {
        pad(&mut all, 8);
        all.push(field::SIGNATURE);
        put_signature(&mut all, "g");
        put_signature(&mut all, signature);
    }
    bytes.extend_from_slice(&length(&all));
    bytes.extend(all);
    pad(&mut bytes, 8);
    bytes.extend_from_slice(body);
    bytes
}

fn encode(serial: u32, call: Call<'_>) -> Vec<u8> {
    let fields = [
        (field::PATH, "o", call.path),
        (field::INTERFACE, "s", call.interface),
        (field::MEMBER, "s", call.member),
        (field::DESTINATION, "s", call.destination),
    ];
    message(kind::CALL, serial, &fields, call.arguments)
}

async fn write(stream: &mut Stream, bytes: &[u8]) -> Result<(), Failure> {
    let sent = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let sent = sent.await;
    sent.map_err(|error| Failure::from_io(Phase::Send, &error))
}

/// One message as a whole.
async fn receive(stream: &mut Stream) -> Result<Vec<u8>, Failure> {
    let mut message = vec![0; 16];
    let read = stream.read_exact(&mut message).await;
    read.map_err(|error| Failure::from_io(Phase::Wait, &error))?;
    let length = whole_length(&message).ok_or_else(unknown)?;
    if length > MOST_READ {
        let cause = format!("a message has more than {MOST_READ} bytes");
        return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
    }
    message.resize(length, 0);
    let read = stream.read_exact(&mut message[16..]).await;
    read.map_err(|error| Failure::from_io(Phase::Receive, &error))?;
    Ok(message)
}

/// The bytes of a message by the first sixteen.
fn whole_length(head: &[u8]) -> Option<usize> {
    let mut cursor = Cursor::new(head)?;
    let body = usize::try_from(cursor.at(4)?).ok()?;
    let fields = usize::try_from(cursor.at(12)?).ok()?;
    let head = fields.checked_add(16)?.checked_next_multiple_of(8)?;
    head.checked_add(body)
}

/// A message that was received.
#[derive(Debug)]
struct Message<'a> {
    kind: u8,
    reply_serial: Option<u32>,
    error: Option<&'a str>,
    signature: &'a str,
    body: Cursor<'a>,
}

impl<'a> Message<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(message)?;
        let kind = *message.get(1)?;
        let until = 16 + usize::try_from(cursor.at(12)?).ok()?;
        let (mut reply_serial, mut error, mut signature) = (None, None, "");
        while cursor.position < until {
            cursor.align(8);
            let code = cursor.byte()?;
            let kind = cursor.signature()?;
            match (code, kind) {
                (field::REPLY_SERIAL, "u") => reply_serial = Some(cursor.number32()?),
                (field::ERROR_NAME, "s") => error = Some(cursor.text()?),
                (field::SIGNATURE, "g") => signature = cursor.signature()?,
                (_, kind) => {
                    cursor.value(kind)?;
                }
            }
        }
        cursor.align(8);
        let body = cursor.bytes.get(cursor.position..)?;
        Some(Self {
            kind,
            reply_serial,
            error,
            signature,
            // Alignment in it begins anew: the head is a multiple of eight.
            body: Cursor {
                bytes: body,
                position: 0,
                is_little: cursor.is_little,
            },
        })
    }

    /// The first value of the body, if it is a plain one.
    fn first(&self) -> Option<Value> {
        let mut body = self.body;
        body.value(self.signature.get(..1)?)
    }
}

/// A place in a message.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    is_little: bool,
}

impl<'a> Cursor<'a> {
    /// At the first header field.
    fn new(message: &'a [u8]) -> Option<Self> {
        let is_little = match message.first()? {
            b'l' => true,
            b'B' => false,
            _ => return None,
        };
        Some(Self {
            bytes: message,
            position: 16,
            is_little,
        })
    }

    /// A number of 32 bits at a place.
    fn at(&mut self, position: usize) -> Option<u32> {
        let four = self.bytes.get(position..position.checked_add(4)?)?;
        let four = four.try_into().ok()?;
        Some(if self.is_little {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    }

    fn align(&mut self, multiple: usize) {
        self.position = self.position.next_multiple_of(multiple);
    }

    fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.position.checked_add(count)?;
        let taken = self.bytes.get(self.position..end)?;
        self.position = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take_bytes(1)?[0])
    }

    /// An aligned number of that many bytes, as it is without a sign.
    fn number(&mut self, count: usize) -> Option<u64> {
        self.align(count);
        let bytes = self.take_bytes(count)?;
        let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
        Some(if self.is_little {
            bytes.iter().rev().fold(0, add)
        } else {
            bytes.iter().fold(0, add)
        })
    }

    fn number32(&mut self) -> Option<u32> {
        self.number(4)?.try_into().ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number32()?).ok()?;
        let text = std::str::from_utf8(self.take_bytes(length)?).ok()?;
        self.take_bytes(1)?;
        Some(text)
    }

    fn signature(&mut self) -> Option<&'a str> {
        let length = self.byte()?;
        let text = std::str::from_utf8(self.take_bytes(length.into())?).ok()?;
        self.take_bytes(1)?;
        Some(text)
    }

    /// A value of a type that is no container, but for a variant of one.
    fn value(&mut self, kind: &str) -> Option<Value> {
        Some(match kind {
            "s" | "o" => self.text()?.into(),
            "g" => self.signature()?.into(),
            "y" => self.byte()?.into(),
            "b" => (self.number32()? != 0).into(),
            "q" => self.number(2)?.into(),
            "u" => self.number32()?.into(),
            "t" => self.number(8)?.into(),
            "n" => u16::try_from(self.number(2)?).ok()?.cast_signed().into(),
            "i" => self.number32()?.cast_signed().into(),
            "x" => self.number(8)?.cast_signed().into(),
            "d" => f64::from_bits(self.number(8)?).into(),
            "v" => {
                let inner = self.signature()?;
                // One within another one is not needed, and would be without end.
                if inner == "v" {
                    return None;
                }
                self.value(inner)?
            }
            _ => return None,
        })
    }
}

/// Reads a message of a bus, whatever it is.
#[cfg(any(test, feature = "contract"))]
pub(in crate::probe) fn read_anything(bytes: &[u8]) {
    whole_length(bytes);
    if let Some(message) = Message::read(bytes) {
        message.first();
    }
}

fn unknown() -> Failure {
    let cause = "the socket is not one of D-Bus";
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

/// A value that a stand-in answers with.
#[cfg(test)]
pub(super) enum Answer {
    Path(String),
    /// In a variant, as `Get` has it.
    Text(String),
    Number(i32),
    /// An error, with its message.
    Refusal(String),
}

/// Stands for systemd on a bus until that ends.
///
/// - `ready`: receives once it can be called.
/// - `answer`: to the path, the member and the arguments of each call.
#[cfg(test)]
pub(super) async fn serve(
    socket: &std::path::Path,
    ready: std::sync::mpsc::Sender<()>,
    answer: impl Fn(&str, &str, &[String]) -> Answer,
) -> Result<(), BusError> {
    let stream = tokio::net::UnixStream::connect(socket).await;
    let stream = stream.map_err(|error| Failure::from_io(Phase::Connect, &error))?;
    let mut bus = Bus::begin(Stream::Unix(stream)).await?;
    // With flags, which calls of texts do not have.
    bus.serial += 1;
    let mut body = Vec::new();
    put_text(&mut body, "org.freedesktop.systemd1");
    pad(&mut body, 4);
    body.extend_from_slice(&0_u32.to_le_bytes());
    let daemon = "org.freedesktop.DBus";
    let fields = [
        (field::PATH, "o", "/org/freedesktop/DBus"),
        (field::INTERFACE, "s", daemon),
        (field::MEMBER, "s", "RequestName"),
        (field::DESTINATION, "s", daemon),
    ];
    write(
        &mut bus.stream,
        &message_of(kind::CALL, bus.serial, &fields, "su", &body),
    )
    .await?;
    ready.send(()).unwrap();
    loop {
        let received = receive(&mut bus.stream).await?;
        let call = Message::read(&received).ok_or_else(unknown)?;
        if call.kind != kind::CALL {
            continue;
        }
        let (mut path, mut member, mut sender) = ("", "", "");
        let mut cursor = Cursor::new(&received).ok_or_else(unknown)?;
        let until = 16 + usize::try_from(cursor.at(12).ok_or_else(unknown)?).unwrap();
        while cursor.position < until {
            cursor.align(8);
            let (code, kind) = (cursor.byte().unwrap(), cursor.signature().unwrap());
            match code {
                field::PATH => path = cursor.text().unwrap(),
                field::MEMBER => member = cursor.text().unwrap(),
                // The sender, which the bus adds.
                7 => sender = cursor.text().unwrap(),
                _ => drop(cursor.value(kind)),
            }
        }
        let mut body = call.body;
        let arguments: Vec<String> = call
            .signature
            .chars()
            .map(|_| body.text().unwrap().to_owned())
            .collect();
        let serial = cursor.at(8).unwrap().to_string();
        let mut fields = vec![
            (field::REPLY_SERIAL, "u", &*serial),
            (field::DESTINATION, "s", sender),
        ];
        let mut body = Vec::new();
        let (kind, signature) = match answer(path, member, &arguments) {
            Answer::Path(path) => {
                put_text(&mut body, &path);
                (kind::RETURN, "o")
            }
            Answer::Text(text) => {
                put_signature(&mut body, "s");
                put_text(&mut body, &text);
                (kind::RETURN, "v")
            }
            Answer::Number(number) => {
                put_signature(&mut body, "i");
                pad(&mut body, 4);
                body.extend_from_slice(&number.to_le_bytes());
                (kind::RETURN, "v")
            }
            Answer::Refusal(why) => {
                fields.push((field::ERROR_NAME, "s", "org.freedesktop.DBus.Error.Failed"));
                put_text(&mut body, &why);
                (kind::ERROR, "s")
            }
        };
        bus.serial += 1;
        let written = message_of(kind, bus.serial, &fields, signature, &body);
        write(&mut bus.stream, &written).await?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_are_read_as_they_are_written(
            serial in 1..u32::MAX, reply in 1..u32::MAX, error in "[a-z.]{1,30}", text in "[a-zä ]{0,40}",
        ) {
            let reply = reply.to_string();
            let fields = [
                (field::DESTINATION, "s", ":1.7"),
                (field::ERROR_NAME, "s", &*error),
                (field::REPLY_SERIAL, "u", &*reply),
            ];
            let written = message(kind::ERROR, serial, &fields, &[&text, "more"]);
            prop_assert_eq!(whole_length(&written[..16]), Some(written.len()));
            let read = Message::read(&written).unwrap();
            prop_assert_eq!((read.kind, read.error), (kind::ERROR, Some(&*error)));
            prop_assert_eq!(read.reply_serial.map(|it| it.to_string()), Some(reply));
            prop_assert_eq!(read.first(), Some(Value::from(text)));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 16..200), is_little in any::<bool>(), fields in 0..100_u32,
        ) {
            bytes[0] = if is_little { b'l' } else { b'B' };
            let fields = if is_little { fields.to_le_bytes() } else { fields.to_be_bytes() };
            bytes[12..16].copy_from_slice(&fields);
            read_anything(&bytes);
        }
    }
}
