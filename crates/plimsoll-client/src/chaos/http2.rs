//! A connection of HTTP/2 whose frames are written by hand.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, ReadHalf, WriteHalf, split};
use tokio::sync::Notify;

use super::door::{Door, Speaks};
use super::frames::{
    self, ACK, GOAWAY, HEADER_BYTES, HEADERS, Method, PING, PREFACE, RST_STREAM, SETTINGS,
    code_name,
};
use super::ground::Ground;
use super::unspoken::Unspoken;
use crate::Stream;

/// Timeout for the first frame of the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Payloads that are kept at most; longer frames were never agreed on.
const MOST_PAYLOAD: usize = 1 << 14;

/// Bytes read from the kernel at a time.
const INPUT_BYTES: usize = 16 * 1024;

/// Frames that a client may send in one go.
pub(super) const BATCH: u32 = 100;

/// The largest stream id (RFC 9113, section 5.1.1).
const LAST_STREAM: u32 = 0x7fff_fff0;

/// Writes; what comes is read by [`reading`](Http2::reading) beside it.
pub(super) struct Http2<'a, 'b> {
    ground: &'a Ground<'b>,
    writer: WriteHalf<Stream>,
    shared: Rc<ReaderReport>,
    block: Vec<u8>,
    upload: Vec<u8>,
    next_stream: u32,
    /// Nothing that comes is replied to.
    pub(super) is_mute: bool,
    /// Frames that are assembled before they are sent.
    pub(super) output: Vec<u8>,
}

/// State that the reading side reports to the writing side.
#[derive(Debug, Default)]
struct ReaderReport {
    is_ended: Cell<bool>,
    ended: Notify,
    replies: RefCell<Vec<u8>>,
}

/// Whether the server answers the preface with SETTINGS; what came instead, if not.
pub(super) async fn try_once(door: &Door) -> Result<(), Unspoken> {
    let mut stream = door.open(Speaks::Http2, None).await?;
    let mut preface = PREFACE.to_vec();
    frames::put_settings(&mut preface, &[]);
    let exchange = async {
        tokio::io::AsyncWriteExt::write_all(&mut stream, &preface).await?;
        tokio::io::AsyncWriteExt::flush(&mut stream).await?;
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header).await?;
        Ok::<_, io::Error>(header)
    };
    let header = match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(Ok(header)) => header,
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => return Err(Unspoken::Silent),
    };
    match frames::parse(header) {
        (_, SETTINGS, 0, 0) => Ok(()),
        _ => Err(Unspoken::NoSettings),
    }
}

/// Opens a connection, sends the preface with `settings`, and does `attack` on it while what comes is
/// read; ends when either does.
pub(super) async fn on_connection<'b>(
    ground: &Ground<'b>,
    settings: &[(u16, u32)],
    attack: impl AsyncFnOnce(&mut Http2<'_, 'b>) -> io::Result<()>,
) {
    let Some(stream) = ground.open(Speaks::Http2, None).await else {
        return;
    };
    let (reader, writer) = split(stream);
    let shared = Rc::<ReaderReport>::default();
    let endpoint = ground.door.endpoint();
    let (authority, path) = (endpoint.authority(), endpoint.path_and_query());
    let block = |method| frames::request_block(method, endpoint.is_tls(), authority, path);
    let mut output = PREFACE.to_vec();
    frames::put_settings(&mut output, settings);
    let mut connection = Http2 {
        ground,
        writer,
        shared: Rc::clone(&shared),
        block: block(Method::Get),
        upload: block(Method::Post),
        next_stream: 1,
        is_mute: false,
        output,
    };
    let writing = async {
        let attacked = attack(&mut connection).await;
        if attacked.is_err() && ground.goes_on() {
            // The server has ended the connection; what it sent before may still be read.
            shared.ended.notified().await;
        }
    };
    tokio::select! {
        () = reading(ground, reader, &shared) => {}
        () = writing => {}
        () = ground.end() => {}
    }
}

impl Http2<'_, '_> {
    /// The id of a new stream.
    pub(super) fn stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Opens a stream by a request without content.
    pub(super) fn put_request(&mut self) -> u32 {
        let stream = self.stream();
        let flags = frames::END_STREAM | frames::END_HEADERS;
        frames::put(&mut self.output, HEADERS, flags, stream, &self.block);
        stream
    }

    /// Opens a stream by a request whose content is still to come.
    pub(super) fn put_upload(&mut self) -> u32 {
        let stream = self.stream();
        let flags = frames::END_HEADERS;
        frames::put(&mut self.output, HEADERS, flags, stream, &self.upload);
        stream
    }

    /// The fields of a request, to be written in another way.
    pub(super) fn block(&self) -> &[u8] {
        &self.block
    }

    /// Waits for leave to send; an error if the connection or the attack is over.
    pub(super) async fn leave(&self, most: u32) -> io::Result<u32> {
        if self.shared.is_ended.get() || self.next_stream >= LAST_STREAM {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let leave = self.ground.leave(most).await;
        leave.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }

    /// Sends what was put together, which is so many units.
    pub(super) async fn send(&mut self, units: u32) -> io::Result<()> {
        let mut replies = std::mem::take(&mut *self.shared.replies.borrow_mut());
        if !self.is_mute {
            self.output.append(&mut replies);
        }
        let output = std::mem::take(&mut self.output);
        self.ground.send(&mut self.writer, &output).await?;
        self.ground.tally.sent(units.into());
        self.output = output;
        self.output.clear();
        Ok(())
    }

    /// Keeps the connection open for `time` and sends what is due meanwhile.
    pub(super) async fn rest(&mut self, time: Duration) -> io::Result<()> {
        if !self.ground.rest(time).await || self.shared.is_ended.get() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.send(0).await
    }
}

/// Reads and counts what comes, until the server ends the connection.
async fn reading(ground: &Ground<'_>, mut reader: ReadHalf<Stream>, shared: &ReaderReport) {
    let mut buffer = vec![0; INPUT_BYTES];
    let mut carry = Vec::new();
    loop {
        let read = match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        ground.tally.bytes_received(read);
        carry.extend_from_slice(&buffer[..read]);
        while let Some((header, rest)) = carry.split_first_chunk::<HEADER_BYTES>() {
            let (length, kind, flags, _) = frames::parse(*header);
            if length > MOST_PAYLOAD {
                // Whatever that is, it is not HTTP/2 as agreed on.
                carry.clear();
                break;
            }
            let Some(payload) = rest.get(..length) else {
                break;
            };
            read_frame(ground, kind, flags, payload, shared);
            carry.drain(..HEADER_BYTES + length);
        }
    }
    ground.tally.ended();
    shared.is_ended.set(true);
    shared.ended.notify_waiters();
}

fn read_frame(ground: &Ground<'_>, kind: u8, flags: u8, payload: &[u8], shared: &ReaderReport) {
    let code = |at: usize| {
        let bytes = payload.get(at..at + 4)?.try_into().ok()?;
        Some(code_name(u32::from_be_bytes(bytes)))
    };
    let mut replies = shared.replies.borrow_mut();
    match kind {
        HEADERS => ground.tally.status(0),
        RST_STREAM => ground.tally.reset(code(0).unwrap_or("unknown")),
        GOAWAY => {
            let message = String::from_utf8_lossy(payload.get(8..).unwrap_or_default());
            let code = code(4).unwrap_or("unknown");
            ground.tally.goaway(match message.trim() {
                "" => code.to_owned(),
                message => format!("{code} ({})", message.escape_default()),
            });
        }
        SETTINGS if flags & ACK == 0 => frames::put(&mut replies, SETTINGS, ACK, 0, &[]),
        PING if flags & ACK == 0 => frames::put(&mut replies, PING, ACK, 0, payload),
        _ => {}
    }
}
