//! A server of HTTP/1.1: a thread for each connection, and exact logs.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::set_socket_linger;

use super::arrival::Core;
use super::behaviour::{Accept, Behaviour, End, Pace, Reply, Turn};
use super::log::{Ending, Entry, SharedLog};
use crate::clock::{now, wait, wait_until};

/// Serves until `is_over`; a connection that arrives then ends the loop.
pub(super) fn serve(
    listener: &TcpListener,
    behaviour: Behaviour,
    log: &SharedLog,
    is_over: &AtomicBool,
) {
    let serial = Arc::new(Mutex::new(()));
    if let Accept::Late(time) = behaviour.accept {
        wait_for_client(listener);
        wait(time);
    }
    for stream in listener.incoming() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        log.lock().accepted.push(now());
        let (log, serial) = (log.clone(), Arc::clone(&serial));
        thread::spawn(move || {
            let connection = Connection {
                stream,
                behaviour,
                log,
                serial,
                buffer: Vec::new(),
                core: Core::of_this_thread(),
                arrived: now(),
            };
            connection.run();
        });
    }
}

/// Until the system has a connection that can be accepted.
fn wait_for_client(listener: &TcpListener) {
    let mut sockets = [PollFd::new(listener, PollFlags::IN)];
    // An interrupted wait ends early, which the log shows.
    poll(&mut sockets, None).ok();
}

struct Connection {
    stream: TcpStream,
    behaviour: Behaviour,
    log: SharedLog,
    /// Held while a request is served, where one is served at a time.
    serial: Arc<Mutex<()>>,
    /// Bytes read and not used yet.
    buffer: Vec<u8>,
    core: Core,
    /// When the last of them came.
    arrived: Instant,
}

/// A request's target, with the length of what follows the head.
struct Head {
    target: String,
    /// Its bytes.
    size: usize,
    /// Bytes of the content.
    content: usize,
    expects_continue: bool,
}

/// A request that was read.
struct Request {
    read: Instant,
    length: u64,
    /// Whether it is the first one of its connection.
    is_first: bool,
}

impl Connection {
    fn run(mut self) {
        // Without it replies in parts would wait for acknowledgements.
        self.stream.set_nodelay(true).ok();
        let mut served = 0;
        while let Ok(Some(head)) = self.read_request() {
            let read = self.arrived;
            let (number, since_first) = self.log.begin(read);
            let turn = Turn {
                number,
                since_first,
                target: head.target,
            };
            let request = Request {
                read,
                length: (head.size + head.content) as u64,
                is_first: served == 0,
            };
            let goes_on = self.answer(&turn, &request);
            served += 1;
            if !goes_on || self.behaviour.close_after == Some(served) {
                return;
            }
        }
    }

    /// Answers and logs; whether the connection stays open.
    fn answer(&mut self, turn: &Turn, request: &Request) -> bool {
        let read = request.read;
        let delay = (self.behaviour.delay)(turn);
        if self.behaviour.is_serial {
            let serial = Arc::clone(&self.serial);
            let _held = serial.lock().unwrap_or_else(PoisonError::into_inner);
            wait(delay);
        } else {
            wait_until(read + delay);
        }
        let reply = (self.behaviour.reply)(turn);
        let (ending, goes_on) = match self.write(&reply) {
            Ok(ending) => (ending, reply.end == End::Whole),
            Err(_) => (Ending::Unanswered, false),
        };
        let ended = now();
        self.log.lock().entries.push(Entry {
            read,
            ended,
            ending,
            status: reply.status,
            length: request.length,
            target: turn.target.clone(),
            is_first: request.is_first,
        });
        goes_on
    }

    fn write(&mut self, reply: &Reply) -> io::Result<Ending> {
        let bytes = &reply.bytes[..];
        match reply.end {
            End::Whole | End::WholeThenClose => {
                self.write_paced(bytes, reply.pace)?;
                Ok(Ending::Answered)
            }
            End::Close(length) | End::Reset(length) => {
                self.write_paced(&bytes[..length.min(bytes.len())], reply.pace)?;
                if matches!(reply.end, End::Reset(_)) {
                    // The client should see what was sent before the reset.
                    wait(Duration::from_millis(2));
                    set_socket_linger(&self.stream, Some(Duration::ZERO))?;
                }
                Ok(Ending::Cut)
            }
            End::Never => {
                self.wait_for_end();
                Ok(Ending::Unanswered)
            }
        }
    }

    fn write_paced(&mut self, bytes: &[u8], pace: Pace) -> io::Result<()> {
        match pace {
            Pace::AtOnce => self.send(bytes),
            Pace::Parts { at, pause } => {
                let (first, rest) = bytes.split_at(at.min(bytes.len()));
                self.send(first)?;
                wait(pause);
                self.send(rest)
            }
            Pace::Dribble { from, pause } => {
                let (first, rest) = bytes.split_at(from.min(bytes.len()));
                self.send(first)?;
                for byte in rest {
                    wait(pause);
                    self.send(std::slice::from_ref(byte))?;
                }
                Ok(())
            }
        }
    }

    /// Until the client closes the connection.
    fn wait_for_end(&mut self) {
        let mut unread = [0; 1024];
        while self.stream.read(&mut unread).is_ok_and(|read| read > 0) {}
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.log.lock().bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// The next request with its content; `None` if the client closed the connection.
    fn read_request(&mut self) -> io::Result<Option<Head>> {
        let head_length = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        };
        let head = parse(&self.buffer[..head_length]);
        let all = head_length + head.content;
        if head.expects_continue && self.buffer.len() < all {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        while self.buffer.len() < all {
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
        self.buffer.drain(..all);
        Ok(Some(head))
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 * 1024];
        let stream = &mut self.stream;
        let (read, arrived) = self.core.arrival(|| stream.read(&mut bytes));
        let read = read?;
        self.arrived = arrived;
        self.buffer.extend_from_slice(&bytes[..read]);
        self.log.lock().bytes_read += read as u64;
        Ok(read)
    }
}

fn parse(head: &[u8]) -> Head {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let target = words.nth(1).unwrap_or_default().to_owned();
    let field = |name: &str| {
        head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    Head {
        target,
        size: head.len(),
        content: field("content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0),
        expects_continue: field("expect").is_some(),
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|part| part == needle)
}
