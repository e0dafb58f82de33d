//! Reading and writing a TCP stream by one bare system call each.
//!
//! The C library's `recv` and `send` are cancellation points, whose bookkeeping a program with
//! threads pays on every call: 3 % of a load generator's samples in a profile. These go to the kernel
//! directly.

use std::io;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
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

/// Reads what there is into the spare capacity of `buffer`, which need not be initialised; returns how much that was,
/// nothing at the end of the stream.
#[inline]
pub fn poll_recv_spare(
    stream: &TcpStream,
    context: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    let room = buffer.capacity() - buffer.len();
    poll_io(stream, Interest::READABLE, context, room, || {
        let (received, _) = recv(stream, spare_capacity(buffer), RecvFlags::empty())?;
        Ok(received)
    })
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

/// Writes as much of `bytes` as the socket takes; the kernel may hold them back until what follows at once
/// is written too.
#[inline]
pub fn poll_send_more(
    stream: &TcpStream,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    poll_io(stream, Interest::WRITABLE, context, bytes.len(), || {
        send(stream, bytes, SendFlags::NOSIGNAL | MORE)
    })
}

#[cfg(target_os = "linux")]
const MORE: SendFlags = SendFlags::MORE;

#[cfg(not(target_os = "linux"))]
const MORE: SendFlags = SendFlags::empty();

/// Writes up to `count` bytes of `file` from `offset` on, as many as the socket takes, without copying
/// them; returns how many that were, none where the file ends.
///
/// A part that is not in memory is read from the disk while the caller waits, so `count` should be bounded.
/// Fails with `Unsupported` where the kernel cannot do it for this file, or at all.
#[cfg(target_os = "linux")]
pub fn poll_send_file(
    stream: &TcpStream,
    context: &mut Context<'_>,
    file: &std::fs::File,
    offset: u64,
    count: usize,
) -> Poll<io::Result<usize>> {
    // A transfer may end early for other reasons than a full socket: only `WouldBlock` means that.
    let result = ready!(poll_io(stream, Interest::WRITABLE, context, 0, || {
        let mut offset = offset;
        rustix::fs::sendfile(stream, file, Some(&mut offset), count)
    }));
    Poll::Ready(result.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::NOSYS) => io::ErrorKind::Unsupported.into(),
        _ => error,
    }))
}

/// Fails with `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub fn poll_send_file(
    _stream: &TcpStream,
    _context: &mut Context<'_>,
    _file: &std::fs::File,
    _offset: u64,
    _count: usize,
) -> Poll<io::Result<usize>> {
    Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
}

/// Transfers once the stream is ready.
///
/// `try_io` takes `WouldBlock` to mean that the stream is ready no more. A transfer of less than was
/// `wanted` means that too, and reaches it in the same way.
#[inline]
pub(crate) fn poll_io(
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
    async fn spare_capacity_is_filled_behind_what_is_there() {
        let (left, right) = pair().await;
        write(&left, b"hello").await.unwrap();
        let mut buffer = Vec::with_capacity(16);
        buffer.push(b'>');
        let count = poll_fn(|context| poll_recv_spare(&right, context, &mut buffer)).await;
        assert_eq!((count.unwrap(), &buffer[..]), (5, &b">hello"[..]));
        drop(left);
        let count = poll_fn(|context| poll_recv_spare(&right, context, &mut buffer)).await;
        assert_eq!(count.unwrap(), 0);
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_goes_out_behind_what_was_held_back_for_it() {
        use std::io::Write;

        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let (left, right) = pair().await;
        let sent = poll_fn(|context| poll_send_more(&left, context, b"head ")).await;
        assert_eq!(sent.unwrap(), 5);
        let transfer = |offset, count| {
            let (left, file) = (&left, &file);
            poll_fn(move |context| poll_send_file(left, context, file, offset, count))
        };
        assert_eq!(transfer(2, 3).await.unwrap(), 3);
        assert_eq!(transfer(8, 10).await.unwrap(), 2);
        assert_eq!(transfer(10, 10).await.unwrap(), 0);
        drop(left);
        let mut received = Vec::new();
        loop {
            let piece = read(&right, 64).await.unwrap();
            if piece.is_empty() {
                break;
            }
            received.extend(piece);
        }
        assert_eq!(received, b"head 23489");
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
