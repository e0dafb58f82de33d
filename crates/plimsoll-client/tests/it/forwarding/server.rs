//! Behaviour of the servers of the contract, whichever version of HTTP carries it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use http::HeaderMap;

pub(crate) use super::http1_server::serve as serve_http1;
pub(crate) use super::http2_server::serve as serve_http2;

/// Observations of the servers of one test.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) connections: Cell<usize>,
    pub(crate) requests: RefCell<Vec<String>>,
    /// Fields of the last request, `name: value`.
    pub(crate) fields: RefCell<Vec<String>>,
    /// Bytes of content that responses were able to send.
    pub(crate) sent: Cell<usize>,
    /// Bytes of content that came.
    pub(crate) received: Cell<usize>,
    /// Requests that broke off.
    pub(crate) broken: Cell<usize>,
    /// Responses that could not be sent to their end.
    pub(crate) cancelled: Cell<usize>,
}

/// One request, and the way to its response.
pub(crate) trait Call {
    fn method(&self) -> &str;
    fn path(&self) -> &str;
    fn fields(&self) -> Vec<String>;
    /// The next piece of content; an error if the request breaks off.
    async fn body(&mut self) -> Result<Option<Bytes>, ()>;
    async fn trailers(&mut self) -> HeaderMap;
    async fn interim(&mut self, status: u16);
    /// - `length`: announced, with what follows it as content.
    async fn respond(&mut self, status: u16, fields: &[(&str, &str)], length: Option<usize>);
    /// Fails if the client is gone.
    async fn send(&mut self, bytes: Bytes) -> Result<(), ()>;
    async fn finish(&mut self, trailers: &HeaderMap);
    /// Breaks off.
    async fn reset(&mut self);
    /// Switches protocols and echoes bytes to the end.
    async fn tunnel(&mut self);
}

/// FNV-1a, so that 64 MiB need not be kept to be compared.
pub(crate) fn checksum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Bytes of a pattern that does not repeat within a frame.
pub(crate) fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|index| u8::try_from(index % 251).unwrap())
        .collect()
}

pub(crate) const PIECE: usize = 48 * 1024;

/// Does what the path says.
pub(crate) async fn act(server: Rc<Server>, call: &mut impl Call) {
    let line = format!("{} {}", call.method(), call.path());
    server.requests.borrow_mut().push(line);
    *server.fields.borrow_mut() = call.fields();
    let path = call.path().to_owned();
    let path = path.trim_start_matches('/');
    let (kind, argument) = path.split_once('/').unwrap_or((path, ""));
    let number = argument.parse().unwrap_or(0);
    match kind {
        "hello" => {
            call.respond(200, &[("x-kind", "hello")], Some(5)).await;
            if call.method() != "HEAD" {
                call.send(Bytes::from_static(b"hello")).await.ok();
            }
            call.finish(&HeaderMap::new()).await;
        }
        "status" => {
            call.respond(number, &[], None).await;
            call.finish(&HeaderMap::new()).await;
        }
        // Content and trailers come back as they come.
        "echo" => {
            call.respond(200, &[("trailer", "x-sum")], None).await;
            loop {
                match call.body().await {
                    Ok(Some(bytes)) => {
                        if call.send(bytes).await.is_err() {
                            server.cancelled.set(server.cancelled.get() + 1);
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(()) => {
                        server.broken.set(server.broken.get() + 1);
                        return;
                    }
                }
            }
            let trailers = call.trailers().await;
            call.finish(&trailers).await;
        }
        // The response says what came.
        "sink" => {
            let mut sum = SEED;
            let mut length = 0_u64;
            loop {
                match call.body().await {
                    Ok(Some(bytes)) => {
                        sum = checksum(sum, &bytes);
                        length += bytes.len() as u64;
                        server.received.set(server.received.get() + bytes.len());
                    }
                    Ok(None) => break,
                    Err(()) => {
                        server.broken.set(server.broken.get() + 1);
                        return;
                    }
                }
            }
            let text = format!("{length} {sum:x}");
            call.respond(200, &[], Some(text.len())).await;
            call.send(text.into()).await.ok();
            call.finish(&HeaderMap::new()).await;
        }
        "source" | "sized" => {
            let mut left: usize = argument.parse().unwrap();
            let length = (kind == "sized").then_some(left);
            call.respond(200, &[], length).await;
            while left > 0 {
                let piece = pattern(left.min(PIECE));
                left -= piece.len();
                let length = piece.len();
                if call.send(piece).await.is_err() {
                    server.cancelled.set(server.cancelled.get() + 1);
                    return;
                }
                server.sent.set(server.sent.get() + length);
            }
            call.finish(&HeaderMap::new()).await;
        }
        // Answers without reading, and reads nothing behind it.
        "early" => {
            call.respond(413, &[], Some(4)).await;
            call.send(Bytes::from_static(b"full")).await.ok();
            call.finish(&HeaderMap::new()).await;
        }
        "stall" => std::future::pending().await,
        "interim" => {
            for _ in 0..number {
                call.interim(103).await;
            }
            call.respond(200, &[], None).await;
            call.finish(&HeaderMap::new()).await;
        }
        "continue" => {
            call.interim(100).await;
            let mut content = Vec::new();
            while let Ok(Some(bytes)) = call.body().await {
                content.extend_from_slice(&bytes);
            }
            call.respond(200, &[], None).await;
            call.send(content.into()).await.ok();
            call.finish(&HeaderMap::new()).await;
        }
        "reset" => {
            if argument != "head" {
                call.respond(200, &[], Some(10)).await;
                call.send(Bytes::from_static(b"half-")).await.ok();
            }
            call.reset().await;
        }
        "tunnel" => call.tunnel().await,
        other => panic!("the servers know no {other}"),
    }
}
