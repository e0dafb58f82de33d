//! A server that speaks WebSocket, by the `tungstenite` crate, and misbehaves where the test says.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::StatusCode;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::{Message, WebSocket};

/// The answer to a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketHandshake {
    /// As it should be.
    Accept,
    /// This status.
    Refuse(u16),
    /// These bytes.
    Raw(Vec<u8>),
}

/// The answer to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketAnswer {
    /// The same back.
    Echo,
    /// The same back in two frames with a ping between them.
    EchoInParts,
    /// The same back, then a ping whose answer has to come before anything else.
    EchoAndPing,
    /// The same back, twice.
    EchoTwice,
    /// A close frame with this code and reason.
    Close(u16, &'static str),
    /// These bytes in place of frames.
    Raw(Vec<u8>),
    /// The transport is closed without a word.
    Vanish,
    /// Nothing until [`WebSocketOrigin::release`], then the same back.
    Hold,
    /// Nothing.
    Silence,
}

type Greet = Box<dyn Fn(u64) -> WebSocketHandshake + Send + Sync>;
type Decide = Box<dyn Fn(u64) -> WebSocketAnswer + Send + Sync>;

/// A server of WebSockets on a port of its own.
#[derive(Debug)]
pub struct WebSocketOrigin {
    address: SocketAddr,
    shared: Arc<OriginState>,
}

struct OriginState {
    greet: Greet,
    decide: Decide,
    connections: AtomicU64,
    open: AtomicU64,
    messages: AtomicU64,
    close_frames: AtomicU64,
    pongs: AtomicU64,
    last: Mutex<Option<Message>>,
    is_over: AtomicBool,
    released: Mutex<bool>,
    release: Condvar,
}

impl std::fmt::Debug for OriginState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OriginState").finish_non_exhaustive()
    }
}

impl WebSocketOrigin {
    /// Sends every message back.
    pub fn echo() -> Self {
        Self::answering(|_| WebSocketAnswer::Echo)
    }

    /// Does with each message what `decide` says of its number, the first being 0.
    pub fn answering(decide: impl Fn(u64) -> WebSocketAnswer + Send + Sync + 'static) -> Self {
        Self::start(Box::new(|_| WebSocketHandshake::Accept), Box::new(decide))
    }

    /// Does with each connection what `greet` says of its number, and sends messages back.
    pub fn greeting(greet: impl Fn(u64) -> WebSocketHandshake + Send + Sync + 'static) -> Self {
        Self::start(Box::new(greet), Box::new(|_| WebSocketAnswer::Echo))
    }

    fn start(greet: Greet, decide: Decide) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(OriginState {
            greet,
            decide,
            connections: AtomicU64::new(0),
            open: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            close_frames: AtomicU64::new(0),
            pongs: AtomicU64::new(0),
            last: Mutex::new(None),
            is_over: AtomicBool::new(false),
            released: Mutex::new(false),
            release: Condvar::new(),
        });
        let taken = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if taken.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = taken.connections.fetch_add(1, Ordering::SeqCst);
                taken.open.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&taken);
                thread::spawn(move || {
                    // What goes wrong here is what the client sees.
                    serve(stream, number, &shared).ok();
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, shared }
    }

    /// Its URL with `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("ws://{}{path}", self.address)
    }

    /// Answers the messages that are held, now and from now on.
    pub fn release(&self) {
        *self.shared.released.lock().expect("no holder panics") = true;
        self.shared.release.notify_all();
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Messages that came.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Ordering::SeqCst)
    }

    /// Close frames with code 1000 that came.
    pub fn close_frames(&self) -> u64 {
        self.shared.close_frames.load(Ordering::SeqCst)
    }

    /// Pongs that came.
    pub fn pongs(&self) -> u64 {
        self.shared.pongs.load(Ordering::SeqCst)
    }

    /// The message that came last: whether it is text, and its bytes.
    pub fn last(&self) -> Option<(bool, Vec<u8>)> {
        let last = self.shared.last.lock().expect("no holder panics");
        let message = last.as_ref()?;
        Some((message.is_text(), message.clone().into_data().to_vec()))
    }
}

impl Drop for WebSocketOrigin {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.release();
        // It waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn serve(mut stream: TcpStream, number: u64, shared: &OriginState) -> Outcome {
    let greeting = (shared.greet)(number);
    if let WebSocketHandshake::Raw(bytes) = &greeting {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
            head.push(byte[0]);
        }
        stream.write_all(bytes)?;
        stream.shutdown(Shutdown::Write)?;
        return Ok(());
    }
    let judge = |_: &Request, response: Response| match greeting {
        WebSocketHandshake::Refuse(status) => {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = StatusCode::from_u16(status).expect("tests name statuses");
            Err(refusal)
        }
        _ => Ok(response),
    };
    let mut socket = tungstenite::accept_hdr(stream, judge).map_err(|error| error.to_string())?;
    loop {
        let message = socket.read()?;
        match &message {
            Message::Close(Some(frame)) if u16::from(frame.code) == 1000 => {
                shared.close_frames.fetch_add(1, Ordering::SeqCst);
            }
            Message::Pong(_) => {
                shared.pongs.fetch_add(1, Ordering::SeqCst);
            }
            Message::Text(_) | Message::Binary(_) => {
                let number = shared.messages.fetch_add(1, Ordering::SeqCst);
                *shared.last.lock().expect("no holder panics") = Some(message.clone());
                if !answer(&mut socket, message, &(shared.decide)(number), shared)? {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}

/// Returns whether the connection goes on.
fn answer(
    socket: &mut WebSocket<TcpStream>,
    message: Message,
    answer: &WebSocketAnswer,
    shared: &OriginState,
) -> Result<bool, Box<dyn std::error::Error>> {
    match answer {
        WebSocketAnswer::Echo => socket.send(message)?,
        WebSocketAnswer::EchoAndPing => {
            socket.write(message)?;
            socket.send(Message::Ping("are you there".into()))?;
            if !socket.read()?.is_pong() {
                return Ok(false);
            }
            shared.pongs.fetch_add(1, Ordering::SeqCst);
        }
        WebSocketAnswer::EchoTwice => {
            socket.write(message.clone())?;
            socket.send(message)?;
        }
        WebSocketAnswer::EchoInParts => {
            let kind = if message.is_text() {
                Data::Text
            } else {
                Data::Binary
            };
            let bytes = message.into_data();
            let half = bytes.len() / 2;
            let part = |bytes: &[u8], kind, is_final| {
                Message::Frame(Frame::message(bytes.to_vec(), OpCode::Data(kind), is_final))
            };
            socket.send(part(&bytes[..half], kind, false))?;
            socket.send(Message::Ping("between".into()))?;
            socket.send(part(&bytes[half..], Data::Continue, true))?;
        }
        WebSocketAnswer::Close(code, reason) => {
            socket.close(Some(CloseFrame {
                code: (*code).into(),
                reason: (*reason).into(),
            }))?;
        }
        WebSocketAnswer::Raw(bytes) => socket.get_mut().write_all(bytes)?,
        WebSocketAnswer::Vanish => {
            socket.get_mut().shutdown(Shutdown::Both)?;
            return Ok(false);
        }
        WebSocketAnswer::Hold => {
            let released = shared.released.lock().expect("no holder panics");
            let wait = shared.release.wait_while(released, |released| !*released);
            drop(wait.expect("no holder panics"));
            socket.send(message)?;
        }
        WebSocketAnswer::Silence => {}
    }
    Ok(true)
}
