//! WebSockets (RFC 6455) as a rule describes them: the messages on opening, and the replies to messages.

mod handshake;

mod session;

mod talk;

use std::time::Duration;

use crate::rules::condition::Condition;
use crate::template::content::Content;

pub(crate) use self::handshake::agreed;
pub(crate) use self::session::Session;
pub(crate) use self::talk::talk;

/// Bytes of a client message by default: the message is held whole to match it, and the ws library of Node rejects
/// more than 100 MiB only.
pub const MESSAGE_BYTES: u64 = 1 << 20;

/// The messages of a WebSocket.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Subprotocols that are spoken; the client's first one of them is agreed on.
    pub protocols: Vec<String>,
    /// Sent at once.
    pub open: Vec<ScriptedMessage>,
    /// The first one whose conditions a message meets answers it; none is no answer.
    pub answers: Vec<Answered>,
    /// Ping interval; a client that sends nothing until the next one is due is considered gone.
    pub ping: Option<Duration>,
    /// Bytes of a message that the client may send.
    pub message_bytes: u64,
    /// Write timeout.
    pub write_timeout: Duration,
}

/// The replies to a message.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Of a request whose content is the message.
    pub conditions: Vec<Condition>,
    /// In this order.
    pub says: Vec<ScriptedMessage>,
}

/// One message to send.
#[derive(Debug, Clone)]
pub struct ScriptedMessage {
    /// Delay after the previous message.
    pub after: Duration,
    /// It.
    pub what: MessageContent,
}

/// The kinds of messages.
#[derive(Debug, Clone)]
pub enum MessageContent {
    /// A text, which may have places.
    Text(Content),
    /// Bytes.
    Binary(Content),
    /// The message that is answered; nothing on opening.
    Echo,
    /// A ping with that payload, of 125 bytes at most.
    Ping(String),
    /// The end, with a code and a reason of 123 bytes at most.
    Close(u16, String),
}
