//! Reading and writing a TCP stream by one bare system call each.
//!
//! The C library's `recv` and `send` are cancellation points, whose bookkeeping a program with
//! threads pays on every call: 3 % of a load generator's samples in a profile. These go to the kernel
//! directly.

use std::io;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{Interest, ReadBuf};
use tokio::net::TcpStream;

/// Reads what there is, up to the room in `buffer`; nothing at the end of the stream.
///
/// A read that leaves room has drained the socket, and the next one waits for the kernel to say that
/// there is more instead of asking in vain; tokio's own `poll_read` does the same.
#[inline]
pub fn poll_recv(
    stream: &TcpStream,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let room = buffer.remaining();
    poll_io(stream, Interest::READABLE, context, room, || {
        let (_, received) = recv(stream, buffer.initialize_unfilled(), RecvFlags::empty())?;
        buffer.advance(received);
        Ok(received)
    })
    .map_ok(|_| ())
}

/// Writes as much of `bytes` as the socket takes; returns how much that was.
#[inline]
pub fn poll_send(
    stream: &TcpStream,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    poll_io(stream, Interest::WRITABLE, context, bytes.len(), || {
        send(stream, bytes, SendFlags::NOSIGNAL)
    })
}

/// Transfers once the stream is ready.
///
/// `try_io` takes `WouldBlock` to mean that the stream is ready no more. A transfer of less than was
/// `wanted` means that too, and is told to it in the same way.
#[inline]
fn poll_io(
    stream: &TcpStream,
    interest: Interest,
    context: &mut Context<'_>,
    wanted: usize,
    mut transfer: impl FnMut() -> Result<usize, Errno>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(if interest.is_readable() {
            stream.poll_read_ready(context)
        } else {
            stream.poll_write_ready(context)
        })?;
        let mut transferred = None;
        let result = stream.try_io(interest, || {
            let count = retried(&mut transfer)?;
            transferred = Some(count);
            if count > 0 && count < wanted {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match (transferred, result) {
            (Some(count), _) => return Poll::Ready(Ok(count)),
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(error));
            }
            (None, _) => {}
        }
    }
}

/// Transfers again where a signal came in between.
#[inline]
fn retried(transfer: &mut impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match transfer() {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (connected.unwrap(), accepted.unwrap().0)
    }

    async fn read(stream: &TcpStream, room: usize) -> io::Result<Vec<u8>> {
        let mut memory = vec![0; room];
        let mut buffer = ReadBuf::new(&mut memory);
        poll_fn(|context| poll_recv(stream, context, &mut buffer)).await?;
        Ok(buffer.filled().to_vec())
    }

    async fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|context| poll_send(stream, context, bytes)).await
    }

    #[tokio::test]
    async fn bytes_arrive_whatever_the_room_and_the_end_is_empty() {
        let (left, right) = pair().await;
        assert_eq!(write(&left, b"hello").await.unwrap(), 5);
        assert_eq!(read(&right, 3).await.unwrap(), b"hel");
        assert_eq!(read(&right, 3).await.unwrap(), b"lo");
        assert_eq!(write(&left, b"again").await.unwrap(), 5);
        assert_eq!(read(&right, 64).await.unwrap(), b"again");
        drop(left);
        assert_eq!(read(&right, 64).await.unwrap(), b"");
    }

    #[tokio::test]
    async fn a_full_socket_is_waited_for_and_nothing_is_lost() {
        const TOTAL: usize = 8 * 1024 * 1024;

        let (left, right) = pair().await;
        let bytes: Vec<u8> = (0_u8..=250).cycle().take(TOTAL).collect();
        let sending = async {
            let mut sent = 0;
            while sent < TOTAL {
                sent += write(&left, &bytes[sent..]).await.unwrap();
            }
        };
        let receiving = async {
            let mut received = Vec::new();
            while received.len() < TOTAL {
                received.extend(read(&right, 10_000).await.unwrap());
            }
            received
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert!(received == bytes);
    }

    #[tokio::test]
    async fn a_reset_is_an_error_of_both() {
        let (left, right) = pair().await;
        left.set_zero_linger().unwrap();
        drop(left);
        let error = read(&right, 64).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let error = write(&right, b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
