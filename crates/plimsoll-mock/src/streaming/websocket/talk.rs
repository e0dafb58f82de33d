//! One WebSocket from its handshake to its end.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use plimsoll_model::Clock as _;
use plimsoll_server::Stream;
use plimsoll_wire::SystemClock;
use plimsoll_wire::ws::{
    Decoder, Event, FrameError, FrameSink, Limits, MessageKind, Opcode, Role, encode_frame,
};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep_until, timeout};

use super::session::{End, Session};
use super::{Conversation, MessageContent, ScriptedMessage};
use crate::fault::patience::{shut_down, write_all};
use crate::request::KeptRequest;

/// Read at a time, in bytes.
const BUFFER: usize = 16 << 10;

/// Messages that may wait to be sent; a client that causes more and does not read is disconnected.
const MOST_WAITING: usize = 1000;

/// The same in bytes.
const MOST_WAITING_BYTES: usize = 16 << 20;

/// Time the client has to close its side.
const LINGER: Duration = Duration::from_secs(2);

/// Holds a conversation until one side ends it.
///
/// - `request`: the one that opened it, below the mock's prefix.
pub(crate) async fn talk(
    stream: Stream,
    conversation: Arc<Conversation>,
    request: KeptRequest,
    session: Arc<Session>,
) {
    let limits = Limits {
        message_bytes: conversation.message_bytes,
    };
    let talk = Talk {
        decoder: Decoder::new(Role::Server, limits),
        heard: ReceivedEvents::default(),
        waiting: VecDeque::new(),
        waiting_bytes: 0,
        stream,
        conversation,
        request,
        session,
    };
    talk.run().await;
}

struct Talk {
    stream: Stream,
    conversation: Arc<Conversation>,
    request: KeptRequest,
    session: Arc<Session>,
    decoder: Decoder,
    heard: ReceivedEvents,
    /// Frames to send, by their time.
    waiting: VecDeque<PendingMessage>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct PendingMessage {
    at: Instant,
    frame: OutgoingFrame,
}

/// A frame to be sent.
#[derive(Debug)]
enum OutgoingFrame {
    Message(MessageKind, Bytes),
    Ping(Bytes),
    Close(u16, String),
}

impl OutgoingFrame {
    fn length(&self) -> usize {
        match self {
            Self::Message(_, bytes) | Self::Ping(bytes) => bytes.len(),
            Self::Close(_, reason) => reason.len(),
        }
    }
}

/// The events of one read.
#[derive(Debug, Default)]
struct ReceivedEvents {
    message: Vec<u8>,
    events: Vec<ReceivedEvent>,
}

#[derive(Debug)]
enum ReceivedEvent {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Close(Option<u16>, String),
}

impl FrameSink for ReceivedEvents {
    fn piece(&mut self, piece: &[u8]) {
        self.message.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        self.events.push(match event {
            Event::Message { kind, .. } => {
                ReceivedEvent::Message(kind, std::mem::take(&mut self.message))
            }
            Event::Ping(payload) => ReceivedEvent::Ping(payload.to_owned()),
            Event::Pong(_) => return,
            Event::Close(None) => ReceivedEvent::Close(None, String::new()),
            Event::Close(Some(close)) => {
                ReceivedEvent::Close(Some(close.code), close.reason.to_owned())
            }
        });
    }
}

/// Why it goes no further.
enum Over {
    /// This is still to be sent.
    Close(Option<u16>, String, End),
    Broken(String),
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Talk {
    async fn run(mut self) {
        let over = match self.converse().await {
            Ok(never) => match never {},
            Err(over) => over,
        };
        match over {
            Over::Broken(reason) => self.session.ended(End::Connection(reason)),
            Over::Close(code, reason, end) => {
                self.session.ended(end);
                // The client may have gone.
                self.close(code, &reason).await.ok();
            }
        }
    }

    async fn converse(&mut self) -> Result<std::convert::Infallible, Over> {
        let conversation = Arc::clone(&self.conversation);
        self.say(&conversation.open, None)?;
        let mut buffer = vec![0; BUFFER];
        let mut ping = conversation.ping.map(|every| SystemClock.now() + every);
        let mut has_answered = true;
        loop {
            self.send_what_is_due().await?;
            let next = self.waiting.front().map(|waiting| waiting.at);
            let next = [next, ping].into_iter().flatten().min();
            let read = tokio::select! {
                read = self.stream.read(&mut buffer) => Some(read?),
                () = until(next) => None,
            };
            if let Some(read) = read {
                if read == 0 {
                    return Err(Over::Broken("the client has closed it".to_owned()));
                }
                has_answered = true;
                let decoded = self.decoder.decode(&buffer[..read], &mut self.heard);
                for came in std::mem::take(&mut self.heard.events) {
                    self.answer(came).await?;
                }
                decoded.map_err(|error| wrong(&error))?;
            }
            let now = SystemClock.now();
            if let (Some(every), Some(due)) = (conversation.ping, ping)
                && due <= now
            {
                if !has_answered {
                    return Err(Over::Broken("no ping was answered".to_owned()));
                }
                has_answered = false;
                self.write(Opcode::Ping, &[]).await?;
                ping = Some(now + every);
            }
        }
    }

    async fn answer(&mut self, came: ReceivedEvent) -> Result<(), Over> {
        let (kind, message) = match came {
            ReceivedEvent::Ping(payload) => return Ok(self.write(Opcode::Pong, &payload).await?),
            ReceivedEvent::Close(code, reason) => {
                let end = End::Client(code, reason);
                return Err(Over::Close(code, String::new(), end));
            }
            ReceivedEvent::Message(kind, message) => (kind, Bytes::from(message)),
        };
        self.session.received(kind, &message);
        self.request.body = message;
        let conversation = Arc::clone(&self.conversation);
        let request = self.request.view();
        let mut answers = conversation.answers.iter();
        let answer =
            answers.find(|answer| answer.conditions.iter().all(|it| it.is_met_by(&request)));
        drop(request);
        match answer {
            Some(answer) => self.say(&answer.says, Some(kind)),
            None => Ok(()),
        }
    }

    /// Has everything wait for its time.
    ///
    /// - `kind`: of the message that is answered.
    fn say(&mut self, says: &[ScriptedMessage], kind: Option<MessageKind>) -> Result<(), Over> {
        let request = self.request.view();
        let mut at = SystemClock.now();
        let mut frames = Vec::new();
        for saying in says {
            at += saying.after;
            let frame = match &saying.what {
                MessageContent::Text(content) => {
                    OutgoingFrame::Message(MessageKind::Text, content.for_request(&request))
                }
                MessageContent::Binary(content) => {
                    OutgoingFrame::Message(MessageKind::Binary, content.for_request(&request))
                }
                MessageContent::Echo => match kind {
                    Some(kind) => OutgoingFrame::Message(kind, self.request.body.clone()),
                    None => continue,
                },
                MessageContent::Ping(payload) => {
                    OutgoingFrame::Ping(Bytes::copy_from_slice(payload.as_bytes()))
                }
                MessageContent::Close(code, reason) => OutgoingFrame::Close(*code, reason.clone()),
            };
            frames.push(PendingMessage { at, frame });
        }
        drop(request);
        for waiting in frames {
            self.waiting_bytes += waiting.frame.length();
            let place = self.waiting.partition_point(|it| it.at <= waiting.at);
            self.waiting.insert(place, waiting);
        }
        if self.waiting.len() > MOST_WAITING || self.waiting_bytes > MOST_WAITING_BYTES {
            let reason = "too many answers wait".to_owned();
            let end = End::Server(1008, reason.clone());
            return Err(Over::Close(Some(1008), reason, end));
        }
        Ok(())
    }

    async fn send_what_is_due(&mut self) -> Result<(), Over> {
        let now = SystemClock.now();
        while self.waiting.front().is_some_and(|it| it.at <= now) {
            let Some(waiting) = self.waiting.pop_front() else {
                return Ok(());
            };
            self.waiting_bytes -= waiting.frame.length();
            match waiting.frame {
                OutgoingFrame::Message(kind, message) => {
                    self.write(kind.opcode(), &message).await?;
                    self.session.sent(kind, &message);
                }
                OutgoingFrame::Ping(payload) => self.write(Opcode::Ping, &payload).await?,
                OutgoingFrame::Close(code, reason) => {
                    let end = End::Server(code, reason.clone());
                    return Err(Over::Close(Some(code), reason, end));
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(payload.len() + 10);
        encode_frame(&mut frame, opcode, true, payload, None);
        write_all(&mut self.stream, &frame, self.conversation.write_timeout).await
    }

    /// Says so, and lets the client end its side too.
    async fn close(&mut self, code: Option<u16>, reason: &str) -> io::Result<()> {
        let mut payload = Vec::new();
        if let Some(code) = code {
            payload.extend_from_slice(&code.to_be_bytes());
            payload.extend_from_slice(reason.as_bytes());
        }
        self.write(Opcode::Close, &payload).await?;
        shut_down(&mut self.stream, self.conversation.write_timeout).await?;
        // A socket that is closed with something unread is reset, and what was written may be lost.
        let mut nowhere = tokio::io::sink();
        let rest = tokio::io::copy(&mut self.stream, &mut nowhere);
        timeout(LINGER, rest).await.map_or(Ok(0), |copied| copied)?;
        Ok(())
    }
}

/// The close frame for a client that breaks the protocol.
fn wrong(error: &FrameError) -> Over {
    let reason = error.to_string();
    let code = error.close_code();
    Over::Close(Some(code), reason.clone(), End::Server(code, reason))
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
