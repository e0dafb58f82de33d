//! The least that an HTTP/1.1 reverse proxy on tokio can cost: `bare_relay PORT UPSTREAM_PORT`.
//!
//! One thread, a task and an upstream connection per client, httparse for the framing of both heads, one read and one
//! write per message: no routes, fields, pools, retries, timeouts or limits. What a real gateway costs above this is what
//! it does for its users.

use std::error::Error;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut port = || -> Result<u16, Box<dyn Error>> {
        let text = arguments
            .next()
            .ok_or("usage: bare_relay PORT UPSTREAM_PORT")?;
        Ok(text.parse()?)
    };
    let (port, upstream) = (port()?, port()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        plimsoll_wire::keep_from_pacing(&socket2::SockRef::from(&listener));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move { drop(relay(stream, upstream).await) });
        }
    })
}

async fn relay(mut client: TcpStream, upstream: u16) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
    plimsoll_wire::keep_from_pacing(&socket2::SockRef::from(&server));
    server.set_nodelay(true)?;
    let mut requests = vec![0; 16 * 1024];
    let mut responses = vec![0; 16 * 1024];
    loop {
        let Some(length) = read(&mut client, &mut requests, request_length).await? else {
            return Ok(());
        };
        server.write_all(&requests[..length]).await?;
        let length = read(&mut server, &mut responses, response_length).await?;
        client
            .write_all(&responses[..length.ok_or("closed")?])
            .await?;
    }
}

/// Reads one whole message, which is all that is on the way.
async fn read(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    length: impl Fn(&[u8]) -> Result<Option<usize>, httparse::Error>,
) -> Result<Option<usize>, Box<dyn Error + Send + Sync>> {
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Ok(None),
            read => filled += read,
        }
        if let Some(length) = length(&buffer[..filled])?
            && filled >= length
        {
            return Ok(Some(length));
        }
    }
}

fn request_length(bytes: &[u8]) -> Result<Option<usize>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    Ok(match httparse::Request::new(&mut headers).parse(bytes)? {
        httparse::Status::Complete(length) => Some(length),
        httparse::Status::Partial => None,
    })
}

fn response_length(bytes: &[u8]) -> Result<Option<usize>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(bytes)? else {
        return Ok(None);
    };
    let content = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let content = content.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    Ok(Some(head + content.unwrap_or(0)))
}
