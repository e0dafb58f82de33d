//! The least that an HTTP/1.1 server on tokio can cost: `bare_server PORT [NANOSECONDS]`.
//!
//! One thread, a task per connection, httparse, one read and one write per request: no routes, no
//! limits, no timeouts, no date. What a real server costs above this is what it does for its users.
//! With `NANOSECONDS` each request costs so much more, for `cargo xtask planted`.

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nhello world\n";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments
        .next()
        .ok_or("usage: bare_server PORT [NANOSECONDS]")?
        .parse()?;
    let planted = match arguments.next() {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds.parse()?),
        None => Duration::ZERO,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        plimsoll_wire::keep_from_pacing(&socket2::SockRef::from(&listener));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move { drop(serve(stream, planted).await) });
        }
    })
}

async fn serve(
    mut stream: TcpStream,
    planted: Duration,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut buffer = vec![0; 16 * 1024];
    let mut filled = 0;
    loop {
        let length = {
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut request = httparse::Request::new(&mut headers);
            match request.parse(&buffer[..filled])? {
                httparse::Status::Complete(length) => Some(length),
                httparse::Status::Partial => None,
            }
        };
        match length {
            Some(length) => {
                buffer.copy_within(length..filled, 0);
                filled -= length;
                if !planted.is_zero() {
                    work_for(planted);
                }
                stream.write_all(ANSWER).await?;
            }
            None => match stream.read(&mut buffer[filled..]).await? {
                0 => return Ok(()),
                read => filled += read,
            },
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program of its own, which has no clock but this"
)]
fn work_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
