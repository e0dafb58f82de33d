//! A server of HTTP/2 with prior knowledge (RFC 9113), as far as hostile set-ups need one.
//!
//! Header blocks of requests are not decoded: what a stream gets does not depend on them.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::arrival::Core;
use super::behaviour::{Http2Behaviour, Http2Reply, Turn};
use super::log::{Ending, Entry, SharedLog};
use crate::clock::{now, wait_until};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, by its place in the static table (RFC 7541, appendix A).
const STATUS_200: &[u8] = &[0x88];

const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

/// Serves until `is_over`; a connection that arrives then ends the loop.
pub(super) fn serve(
    listener: &TcpListener,
    behaviour: Http2Behaviour,
    log: &SharedLog,
    is_over: &AtomicBool,
) {
    for stream in listener.incoming() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        log.lock().accepted.push(now());
        let log = log.clone();
        // A connection that breaks has ended.
        thread::spawn(move || connection(stream, behaviour, &log).ok());
    }
}

fn connection(mut stream: TcpStream, behaviour: Http2Behaviour, log: &SharedLog) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface)?;
    let writer = Writer(Arc::new(Mutex::new(stream.try_clone()?)));
    let settings = behaviour.max_streams.map(|most| {
        // SETTINGS_MAX_CONCURRENT_STREAMS
        [&[0, 3], &most.to_be_bytes()[..]].concat()
    });
    writer.frame(SETTINGS, 0, 0, &settings.unwrap_or_default())?;
    let mut requests = 0;
    let core = Core::of_this_thread();
    loop {
        let mut head = [0; 9];
        let (whole, arrived) = core.arrival(|| stream.read_exact(&mut head));
        whole?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload)?;
        match kind {
            SETTINGS if flags & ACK == 0 => writer.frame(SETTINGS, ACK, 0, &[])?,
            PING if flags & ACK == 0 => writer.frame(PING, ACK, 0, &payload)?,
            HEADERS => {
                requests += 1;
                // Those behind a GOAWAY are not processed, as it says.
                if behaviour.goaway_after.is_some_and(|most| requests > most) {
                    continue;
                }
                let read = arrived;
                let (number, since_first) = log.begin(read);
                let turn = Turn {
                    number,
                    since_first,
                    target: String::new(),
                };
                let (writer, log) = (writer.clone(), log.clone());
                if behaviour.goaway_after == Some(requests) {
                    let last = id.to_be_bytes();
                    writer.frame(GOAWAY, 0, 0, &[last, [0; 4]].concat())?;
                }
                thread::spawn(move || answer(&writer, behaviour, &log, &turn, (id, read)));
            }
            _ => {}
        }
    }
}

fn answer(
    writer: &Writer,
    behaviour: Http2Behaviour,
    log: &SharedLog,
    turn: &Turn,
    (id, read): (u32, Instant),
) {
    wait_until(read + (behaviour.delay)(turn));
    let head = |flags| writer.frame(HEADERS, END_HEADERS | flags, id, STATUS_200);
    let reset = |code: u32| writer.frame(RST_STREAM, 0, id, &code.to_be_bytes());
    let (ending, written) = match (behaviour.reply)(turn) {
        Http2Reply::Whole => {
            let written = head(0).and_then(|()| writer.frame(DATA, END_STREAM, id, b"hello"));
            (Ending::Answered, written)
        }
        Http2Reply::Refused => (Ending::Cut, reset(REFUSED_STREAM)),
        Http2Reply::ResetInBody => {
            let written = head(0)
                .and_then(|()| writer.frame(DATA, 0, id, b"he"))
                .and_then(|()| reset(INTERNAL_ERROR));
            (Ending::Cut, written)
        }
        Http2Reply::Never => (Ending::Unanswered, Ok(())),
    };
    let ended = now();
    log.lock().entries.push(Entry {
        read,
        ended,
        ending: if written.is_ok() {
            ending
        } else {
            Ending::Unanswered
        },
        status: 200,
        length: 0,
        target: String::new(),
        is_first: false,
    });
}

/// The sending side, which streams share.
#[derive(Clone)]
struct Writer(Arc<Mutex<TcpStream>>);

impl Writer {
    fn frame(&self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(id.to_be_bytes());
        frame.extend_from_slice(payload);
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&frame)
    }
}
