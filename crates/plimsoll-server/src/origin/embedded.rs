//! One HTTP/1 connection: read a request, write the answer, again.

use std::io;

use plimsoll_wire::h1::{BodyStep, HeadStorage, RequestDecoder, RequestError, RequestLimits};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::origin::Answer;

/// Maximum size of a request head, and the size of one read.
const BUFFER_BYTES: usize = 16 * 1024;

const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers every request on `stream` until either side closes.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: &Answer,
) -> io::Result<()> {
    let mut decoder = RequestDecoder::new(RequestLimits {
        head_bytes: BUFFER_BYTES,
        body_bytes: u64::MAX,
        ..RequestLimits::default()
    });
    let mut buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
    let mut filled = 0;
    loop {
        let head = loop {
            match read_head(&mut decoder, &buffer[..filled]) {
                Ok(Some(head)) => {
                    buffer.copy_within(head.length..filled, 0);
                    filled -= head.length;
                    break head;
                }
                Ok(None) => {}
                Err(error) => return refuse(stream, error).await,
            }
            match stream.read(&mut buffer[filled..]).await? {
                0 => return Ok(()),
                read => filled += read,
            }
        };
        while decoder.is_in_body() {
            let taken = match decoder.decode_body(&buffer[..filled]) {
                Ok(BodyStep::NeedMore) => {
                    match stream.read(&mut buffer[..]).await? {
                        0 => return Ok(()),
                        read => filled = read,
                    }
                    continue;
                }
                Ok(BodyStep::Content(range)) => range.end,
                Ok(BodyStep::End(consumed)) => match decoder.finish_body() {
                    Ok(_trailers) => consumed,
                    Err(error) => return refuse(stream, error).await,
                },
                Err(error) => return refuse(stream, error).await,
            };
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
        }
        stream.write_all(answer.to(head.is_head)).await?;
        if !head.is_persistent {
            return stream.shutdown().await;
        }
    }
}

/// The properties of a head that its response depends on.
struct RequestHead {
    is_head: bool,
    is_persistent: bool,
    length: usize,
}

fn read_head(
    decoder: &mut RequestDecoder,
    input: &[u8],
) -> Result<Option<RequestHead>, RequestError> {
    let mut storage = HeadStorage::new();
    let found = decoder.decode_head(input, &mut storage)?;
    Ok(found.map(|(head, length)| RequestHead {
        is_head: head.is_head(),
        is_persistent: head.is_persistent,
        length,
    }))
}

async fn refuse<S: AsyncWrite + Unpin>(mut stream: S, _error: RequestError) -> io::Result<()> {
    stream.write_all(BAD_REQUEST).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests;
