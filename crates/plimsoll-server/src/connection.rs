//! One HTTP/1 connection: read a request, write the answer, again.

use std::io;

use plimsoll_wire::h1::{DecodeError, Limits, RequestDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::origin::Answer;

/// Where a head must fit; also what is read at a time.
const BUFFER_BYTES: usize = 16 * 1024;

const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers every request on `stream` until either side closes.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: &Answer,
) -> io::Result<()> {
    let mut decoder = RequestDecoder::new(Limits {
        head_bytes: BUFFER_BYTES,
        ..Limits::default()
    });
    let mut buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
    let mut filled = 0;
    loop {
        let head = loop {
            match decoder.decode_head(&buffer[..filled]) {
                Ok(Some((head, length))) => {
                    buffer.copy_within(length..filled, 0);
                    filled -= length;
                    break head;
                }
                Ok(None) => {}
                Err(error) => return refuse(stream, &error).await,
            }
            match stream.read(&mut buffer[filled..]).await? {
                0 => return Ok(()),
                read => filled += read,
            }
        };
        loop {
            match decoder.skip_body(&buffer[..filled]) {
                Ok((taken, complete)) => {
                    buffer.copy_within(taken..filled, 0);
                    filled -= taken;
                    if complete {
                        break;
                    }
                }
                Err(error) => return refuse(stream, &error).await,
            }
            match stream.read(&mut buffer[filled..]).await? {
                0 => return Ok(()),
                read => filled += read,
            }
        }
        stream.write_all(answer.to(head.is_head)).await?;
        if !head.is_persistent {
            return stream.shutdown().await;
        }
    }
}

async fn refuse<S: AsyncWrite + Unpin>(mut stream: S, _error: &DecodeError) -> io::Result<()> {
    stream.write_all(BAD_REQUEST).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests;
