//! The smallest server that `plimsoll compare --drive` can start: `small_server PORT [CONTENT]` answers every
//! connection's first request with `ok`, or the content.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .ok_or("usage: small_server PORT [CONTENT]")?
        .parse()?;
    let content = std::env::args().nth(2).unwrap_or_else(|| "ok".to_owned());
    let length = content.len();
    let answer = format!("HTTP/1.0 200 OK\r\ncontent-length: {length}\r\n\r\n{content}");
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut head = [0; 1024];
        // A client that went away is no reason to stop.
        if stream.read(&mut head).is_ok_and(|length| length > 0) {
            stream.write_all(answer.as_bytes()).ok();
        }
    }
    Ok(())
}
