//! The floor of an HTTP/1.1 client's cost: `epoll_floor -c CONNECTIONS -z SECONDS http://ADDRESS:PORT/PATH`.
//!
//! One thread, edge-triggered readiness, one write and one read per request and nothing else: no
//! parsing beyond the first response, no latency, no timer per request. What a real client costs
//! above this is what it does with the answers. It prints its count in the shape of
//! `plimsoll load --json`, so `plimsoll compare` can read it.
//!
//! Only for servers whose answers all have the same length.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::{SystemClock, keep_from_pacing};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use socket2::{Domain, SockRef, Socket, Type};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ["-c", connections, "-z", seconds, url] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return Err("usage: epoll_floor -c CONNECTIONS -z SECONDS http://ADDRESS:PORT/PATH".into());
    };
    let connections: usize = connections.parse()?;
    let length = Duration::from_secs_f64(seconds.trim_end_matches('s').parse()?);
    let (authority, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or("the URL must be http://ADDRESS:PORT/PATH")?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {authority}\r\n\r\n");

    let clock = SystemClock;
    let began = clock.now();
    let requests = drive(authority, request.as_bytes(), connections, length)?;
    let took = clock.now().saturating_duration_since(began);
    writeln!(
        std::io::stdout(),
        r#"{{"schema":"plimsoll.load.summary/1","counts":{{"ok":{requests}}},"requests_per_second":{}}}"#,
        requests as f64 / took.as_secs_f64()
    )?;
    Ok(())
}

/// Keeps `connections` busy for `length`; the number of complete responses.
fn drive(
    authority: &str,
    request: &[u8],
    connections: usize,
    length: Duration,
) -> Result<u64, Box<dyn Error>> {
    let expected = response_length(authority, request)?;
    let address: SocketAddr = authority.parse()?;
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut streams = Vec::with_capacity(connections);
    for index in 0..connections {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        keep_from_pacing(&SockRef::from(&socket));
        socket.connect(&address.into())?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(
            &ready,
            &stream,
            epoll::EventData::new_u64(index as u64),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        streams.push((stream, 0));
    }
    for (stream, _) in &mut streams {
        stream.write_all(request)?;
    }

    let clock = SystemClock;
    let end = clock.now() + length;
    let wait = Timespec::try_from(Duration::from_millis(100))?;
    let mut events = Vec::with_capacity(connections.min(1024));
    let mut buffer = vec![0; 16 * 1024];
    let mut requests = 0;
    // The clock is read once per batch of events.
    while clock.now() < end {
        epoll::wait(&ready, spare_capacity(&mut events), Some(&wait))?;
        for event in events.drain(..) {
            let index = usize::try_from(event.data.u64())?;
            let (stream, received) = &mut streams[index];
            let length = stream.read(&mut buffer)?;
            if length == 0 {
                return Err("the server closed a connection".into());
            }
            *received += length;
            if *received >= expected {
                *received -= expected;
                requests += 1;
                stream.write_all(request)?;
            }
        }
    }
    Ok(requests)
}

/// Length of the whole response, from its head's `content-length`.
fn response_length(authority: &str, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut stream = TcpStream::connect(authority)?;
    stream.write_all(request)?;
    let mut response = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err("the server closed the connection before its head was complete".into());
        }
        response.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&response);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let body: usize = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .ok_or("the response has no content-length")?
                .1
                .trim()
                .parse()?;
            return Ok(head.len() + 4 + body);
        }
    }
}
