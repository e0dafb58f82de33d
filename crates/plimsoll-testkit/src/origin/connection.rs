//! Following a script on one connection.

use std::io;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use super::{HEADS_KEPT, OriginState};
use crate::logic::Question;
use crate::origin::lateness::be_late;
use crate::origin::script::{Script, Step};

/// The longest head that a test may send.
const HEAD_LIMIT: usize = 1024 * 1024;

/// A stream that can be made to end with a reset.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {
    /// From now on dropping the stream resets the connection, where the transport knows that.
    fn reset_on_drop(&self);
}

impl Io for TcpStream {
    fn reset_on_drop(&self) {
        self.set_zero_linger()
            .expect("a connected socket can be set");
    }
}

impl Io for UnixStream {
    fn reset_on_drop(&self) {}
}

impl<S: Io> Io for TlsStream<S> {
    fn reset_on_drop(&self) {
        self.get_ref().0.reset_on_drop();
    }
}

/// Errors end the connection and are otherwise the client's business.
pub(crate) async fn follow(script: Script, stream: impl Io, shared: &OriginState) {
    let mut connection = Connection {
        stream,
        buffer: Vec::new(),
        shared,
    };
    for step in script.into_steps() {
        match connection.perform_step(step).await {
            Ok(Next::Continue) => {}
            Ok(Next::Stop) => break,
            Ok(Next::Reset) => {
                connection.stream.reset_on_drop();
                return;
            }
            Err(_) => return,
        }
    }
    // Closing with bytes unread would reset the connection and might lose the answer.
    if connection.stream.shutdown().await.is_ok() {
        connection.swallow().await.ok();
    }
}

enum Next {
    Continue,
    Stop,
    Reset,
}

struct Connection<'a, S> {
    stream: S,
    /// Read but not used yet.
    buffer: Vec<u8>,
    shared: &'a OriginState,
}

impl<S: Io> Connection<'_, S> {
    async fn perform_step(&mut self, step: Step) -> io::Result<Next> {
        match step {
            Step::ReadHead => {
                if self.read_head().await?.is_none() {
                    return Ok(Next::Stop);
                }
            }
            Step::ReadBody(length) => self.read_body(length).await?,
            Step::Write(bytes) => self.write(&bytes).await?,
            Step::WritePieces { bytes, size } => {
                for piece in bytes.chunks(size.max(1)) {
                    self.write(piece).await?;
                    tokio::task::yield_now().await;
                }
            }
            Step::Serve(answer) => {
                while let Some(body_length) = self.read_head().await? {
                    self.read_body(body_length).await?;
                    self.write(&answer).await?;
                }
                return Ok(Next::Stop);
            }
            Step::Reply(logic) => {
                while let Some((head, body_length)) = self.read_request().await? {
                    self.read_body(body_length).await?;
                    let reply = logic.reply(&Question::parse(&head));
                    if !reply.after.is_zero() {
                        tokio::time::sleep(reply.after).await;
                    }
                    self.write(&reply.bytes()).await?;
                }
                return Ok(Next::Stop);
            }
            Step::Swallow => {
                self.swallow().await?;
                return Ok(Next::Stop);
            }
            Step::Hold => wait_for(&self.shared.released, true).await,
            Step::Pause(duration) => tokio::time::sleep(duration).await,
            Step::FinishWriting => self.stream.shutdown().await?,
            Step::Reset => return Ok(Next::Reset),
        }
        Ok(Next::Continue)
    }

    /// The length of the body that the head announces; nothing if the client closed.
    async fn read_head(&mut self) -> io::Result<Option<usize>> {
        let request = self.read_request().await?;
        Ok(request.map(|(_, body_length)| body_length))
    }

    /// The same with the head itself.
    async fn read_request(&mut self) -> io::Result<Option<(String, usize)>> {
        let mut searched = 0;
        loop {
            if let Some(end) = head_end(&self.buffer, searched) {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end);
                be_late().await;
                let body_length = announced_length(&head);
                let mut heads = self.shared.heads.lock().expect("no holder panics");
                if heads.len() < HEADS_KEPT {
                    heads.push(head.clone());
                }
                drop(heads);
                // A test that waits for the number finds the head.
                self.shared.requests.fetch_add(1, Ordering::SeqCst);
                return Ok(Some((head, body_length)));
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.buffer.len() > HEAD_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read_body(&mut self, length: usize) -> io::Result<()> {
        let mut missing = length;
        loop {
            let used = missing.min(self.buffer.len());
            self.buffer.drain(..used);
            missing -= used;
            if missing == 0 {
                return Ok(());
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn swallow(&mut self) -> io::Result<()> {
        loop {
            self.buffer.clear();
            if self.fill().await? == 0 {
                return Ok(());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.shared
            .bytes_read
            .fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        wait_for(&self.shared.stalled, false).await;
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}

async fn wait_for(state: &watch::Sender<bool>, wanted: bool) {
    if *state.borrow() != wanted {
        state
            .subscribe()
            .wait_for(|now| *now == wanted)
            .await
            .expect("the sender is borrowed here");
    }
}

fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    bytes[from..]
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|start| from + start + 4)
}

fn announced_length(head: &str) -> usize {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}
