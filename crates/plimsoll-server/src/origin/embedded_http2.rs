//! One HTTP/2 connection: every request gets the same answer, whatever it is.

use std::rc::Rc;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Method, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::origin::Answer;

/// More than most clients ask for at a time; each takes memory only while it is open.
const MOST_STREAMS: u32 = 100_000;

/// Requests are read and thrown away, so nothing has to be held back.
const WINDOW_BYTES: u32 = 1 << 20;

/// Answers every request on `stream` until either side closes.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    answer: Rc<Answer>,
) -> Result<(), h2::Error> {
    let mut connection = Builder::new()
        .max_concurrent_streams(MOST_STREAMS)
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .handshake::<_, Bytes>(stream)
        .await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        let is_head = request.method() == Method::HEAD;
        let body = request.into_body();
        if body.is_end_stream() {
            // Nothing to wait for: the answer can go at once. A stream that breaks off concerns
            // only itself.
            drop(reply(respond, &answer, is_head));
        } else {
            let answer = Rc::clone(&answer);
            tokio::task::spawn_local(async move {
                if skip(body).await.is_ok() {
                    drop(reply(respond, &answer, is_head));
                }
            });
        }
    }
    Ok(())
}

async fn skip(mut body: RecvStream) -> Result<(), h2::Error> {
    while let Some(piece) = body.data().await {
        let length = piece?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(())
}

fn reply(
    mut respond: SendResponse<Bytes>,
    answer: &Answer,
    is_head: bool,
) -> Result<(), h2::Error> {
    let body = answer.body();
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/plain"),
    );
    headers.insert(http::header::CONTENT_LENGTH, body.len().into());
    let is_empty = is_head || body.is_empty();
    let mut stream: SendStream<Bytes> = respond.send_response(response, is_empty)?;
    if is_empty {
        return Ok(());
    }
    stream.send_data(body, true)
}
