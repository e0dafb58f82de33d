//! HTTP/1.1 by hand.

use std::fmt::Write as _;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::server::{Call, Server, act};

struct Http1Call<S> {
    stream: S,
    buffer: BytesMut,
    method: String,
    path: String,
    fields: Vec<String>,
    left: Left,
    trailers: HeaderMap,
    is_chunked: bool,
    is_over: bool,
}

enum Left {
    Known(usize),
    Chunks,
    Nothing,
}

pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(server: Rc<Server>, stream: S) {
    let mut call = Http1Call {
        stream,
        buffer: BytesMut::new(),
        method: String::new(),
        path: String::new(),
        fields: Vec::new(),
        left: Left::Nothing,
        trailers: HeaderMap::new(),
        is_chunked: false,
        is_over: false,
    };
    while !call.is_over {
        let Some(line) = call.line().await else {
            return;
        };
        let mut words = line.split(' ').map(str::to_owned);
        call.method = words.next().unwrap();
        call.path = words.next().unwrap();
        call.fields.clear();
        call.left = Left::Nothing;
        loop {
            let field = call.line().await.unwrap();
            if field.is_empty() {
                break;
            }
            if let Some(length) = field.strip_prefix("content-length: ") {
                call.left = Left::Known(length.parse().unwrap());
            }
            if field == "transfer-encoding: chunked" {
                call.left = Left::Chunks;
            }
            call.fields.push(field);
        }
        act(Rc::clone(&server), &mut call).await;
    }
    call.stream.shutdown().await.ok();
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1Call<S> {
    async fn fill(&mut self) -> bool {
        self.stream
            .read_buf(&mut self.buffer)
            .await
            .is_ok_and(|count| count > 0)
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = self.buffer.split_to(end + 2);
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn read_content(&mut self, most: usize) -> Option<Bytes> {
        if self.buffer.is_empty() && !self.fill().await {
            return None;
        }
        let length = most.min(self.buffer.len());
        Some(self.buffer.split_to(length).freeze())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.stream.write_all(bytes).await.map_err(drop)?;
        self.stream.flush().await.map_err(drop)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Call for Http1Call<S> {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn fields(&self) -> Vec<String> {
        self.fields.clone()
    }

    async fn body(&mut self) -> Result<Option<Bytes>, ()> {
        match self.left {
            Left::Nothing => Ok(None),
            Left::Known(0) => {
                self.left = Left::Nothing;
                Ok(None)
            }
            Left::Known(left) => {
                let bytes = self.read_content(left).await.ok_or(())?;
                self.left = Left::Known(left - bytes.len());
                Ok(Some(bytes))
            }
            Left::Chunks => {
                let size = usize::from_str_radix(&self.line().await.ok_or(())?, 16).unwrap();
                if size > 0 {
                    let mut chunk = BytesMut::new();
                    while chunk.len() < size {
                        let bytes = self.read_content(size - chunk.len()).await.ok_or(())?;
                        chunk.extend_from_slice(&bytes);
                    }
                    assert_eq!(self.line().await.ok_or(())?, "");
                    return Ok(Some(chunk.freeze()));
                }
                self.left = Left::Nothing;
                loop {
                    let line = self.line().await.ok_or(())?;
                    let Some((name, value)) = line.split_once(": ") else {
                        return Ok(None);
                    };
                    let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
                    self.trailers.append(name, value.parse().unwrap());
                }
            }
        }
    }

    async fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    async fn interim(&mut self, status: u16) {
        let head = format!("HTTP/1.1 {status} x\r\nx-interim: 1\r\n\r\n");
        self.write(head.as_bytes()).await.ok();
    }

    async fn respond(&mut self, status: u16, fields: &[(&str, &str)], length: Option<usize>) {
        let mut head = format!("HTTP/1.1 {status} x\r\n");
        for (name, value) in fields {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        self.is_chunked = length.is_none() && !matches!(status, 204 | 304);
        match length {
            Some(length) => write!(head, "content-length: {length}\r\n").unwrap(),
            None if self.is_chunked => head += "transfer-encoding: chunked\r\n",
            None => {}
        }
        head += "\r\n";
        self.write(head.as_bytes()).await.ok();
    }

    async fn send(&mut self, bytes: Bytes) -> Result<(), ()> {
        if !self.is_chunked {
            return self.write(&bytes).await;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(&bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk).await
    }

    async fn finish(&mut self, trailers: &HeaderMap) {
        if self.is_chunked {
            let mut end = "0\r\n".to_owned();
            for (name, value) in trailers {
                write!(end, "{name}: {}\r\n", value.to_str().unwrap()).unwrap();
            }
            end += "\r\n";
            self.write(end.as_bytes()).await.ok();
        }
        // The rest of an unread request would be taken for the next one.
        self.is_over |= !matches!(self.left, Left::Nothing | Left::Known(0));
    }

    async fn reset(&mut self) {
        self.is_over = true;
    }

    async fn tunnel(&mut self) {
        let is_connect = self.method == "CONNECT";
        let head = if is_connect {
            "HTTP/1.1 200 x\r\n\r\nfirst "
        } else {
            "HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nfirst "
        };
        self.write(head.as_bytes()).await.ok();
        while let Some(bytes) = self.read_content(usize::MAX).await {
            if self.write(&bytes).await.is_err() {
                break;
            }
        }
        self.is_over = true;
    }
}
