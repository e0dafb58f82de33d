//! Bytes that pass from one TCP stream to another within the kernel, by splice(2).
//!
//! They move from socket to pipe and from pipe to socket as references to pages, so the program copies nothing. That is two
//! system calls for each piece, as with reading and writing; it pays where pieces are large.

use std::io;
use std::task::{Context, Poll};

use tokio::net::TcpStream;

/// Holds what was taken from one stream and not yet given to the other.
#[derive(Debug)]
pub struct SplicePipe {
    ends: system::Ends,
    held: usize,
}

impl SplicePipe {
    /// An empty pipe of up to 1 MiB, or of what the system allows.
    ///
    /// Fails with `Unsupported` but on Linux.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ends: system::Ends::new()?,
            held: 0,
        })
    }

    /// Bytes in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes what `stream` has into the pipe, which is empty; nothing at the end of the stream.
    pub fn poll_fill(
        &mut self,
        stream: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert_eq!(
            self.held, 0,
            "a full pipe and an empty socket look the same"
        );
        let filled = self.ends.poll_fill(stream, context);
        if let Poll::Ready(Ok(count)) = &filled {
            self.held = *count;
        }
        filled
    }

    /// Gives `stream` as much of what the pipe holds as it takes.
    pub fn poll_drain(
        &mut self,
        stream: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let drained = self.ends.poll_drain(stream, context, self.held);
        if let Poll::Ready(Ok(count)) = &drained {
            self.held -= count;
        }
        drained
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};

    use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
    use tokio::io::Interest;
    use tokio::net::TcpStream;

    use crate::socket::raw_io::poll_io;

    /// The most an unprivileged process may have (`/proc/sys/fs/pipe-max-size`).
    const ROOM: usize = 1 << 20;

    #[derive(Debug)]
    pub(crate) struct Ends {
        read: OwnedFd,
        write: OwnedFd,
    }

    const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

    impl Ends {
        pub(crate) fn new() -> io::Result<Self> {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            // A smaller pipe takes more calls, and nothing else.
            fcntl_setpipe_size(&write, ROOM).ok();
            Ok(Self { read, write })
        }

        pub(crate) fn poll_fill(
            &self,
            stream: &TcpStream,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<usize>> {
            // The pipe may be full of pages before it is full of bytes, so a short transfer says nothing of the socket.
            poll_io(stream, Interest::READABLE, context, 0, || {
                splice(stream, None, &self.write, None, ROOM, FLAGS)
            })
        }

        pub(crate) fn poll_drain(
            &self,
            stream: &TcpStream,
            context: &mut Context<'_>,
            held: usize,
        ) -> Poll<io::Result<usize>> {
            poll_io(stream, Interest::WRITABLE, context, 0, || {
                splice(&self.read, None, stream, None, held, FLAGS)
            })
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::task::{Context, Poll};

    use tokio::net::TcpStream;

    #[derive(Debug)]
    pub(crate) struct Ends;

    impl Ends {
        pub(crate) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        #[expect(clippy::unused_self, reason = "as on Linux")]
        pub(crate) fn poll_fill(
            &self,
            _: &TcpStream,
            _: &mut Context<'_>,
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        }

        #[expect(clippy::unused_self, reason = "as on Linux")]
        pub(crate) fn poll_drain(
            &self,
            _: &TcpStream,
            _: &mut Context<'_>,
            _: usize,
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (connected.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn every_byte_passes_and_the_end_is_empty() {
        const TOTAL: usize = 8 << 20;
        let ((mut client, from), (to, mut server)) = (pair().await, pair().await);
        let bytes: Vec<u8> = (0_u8..=250).cycle().take(TOTAL).collect();
        let sent = bytes.clone();
        let sending = async move {
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            client
        };
        let relaying = async {
            let mut pipe = SplicePipe::new().unwrap();
            loop {
                let filled = poll_fn(|context| pipe.poll_fill(&from, context)).await;
                if filled.unwrap() == 0 {
                    break;
                }
                while pipe.held() > 0 {
                    poll_fn(|context| pipe.poll_drain(&to, context))
                        .await
                        .unwrap();
                }
            }
            drop(to);
        };
        let receiving = async {
            let mut received = Vec::new();
            while server.read_buf(&mut received).await.unwrap() > 0 {}
            received
        };
        let (_client, (), received) = tokio::join!(sending, relaying, receiving);
        assert!(received == bytes, "{} bytes", received.len());
    }
}
