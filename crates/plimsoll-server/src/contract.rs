//! The contracts of the crate's seams, over real sockets; for tests, so it panics.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::h1::{KnownHead, Limits as ResponseLimits, ResponseDecoder};
use plimsoll_wire::h3::found_in as http3_frames;

use crate::action::MakeAction;
use crate::counters::Counters;
use crate::engine::{Engine, EnginePlan, ListenerPlan, Serves};
use crate::layer4::{MakeDatagramHandler, MakeStreamHandler};
use crate::protocol::http2::tap::frames::found_in as http2_frames;

/// A bound on every wait, generous, since a busy machine is no fault of the code under test.
const PATIENCE: Duration = Duration::from_secs(20);

/// Every request gets one whole response, in order, with or without content, read or unread.
pub fn action(make: Arc<MakeAction>) {
    let (engine, address) = start(Serves::Http {
        action: make,
        tls: None,
        http2: true,
        http3: None,
    });
    let requests: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"HEAD /x?y=z HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
        b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n",
        b"DELETE /%41/b HTTP/1.1\r\nhost: a:80\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ];
    // Alone, then all of them at once.
    for request in requests {
        let mut stream = connect(address);
        stream.write_all(request).expect("the server reads");
        read_response(&mut stream, &mut Vec::new(), request.starts_with(b"HEAD"));
    }
    let mut stream = connect(address);
    stream
        .write_all(&requests.concat())
        .expect("the server reads");
    let mut left = Vec::new();
    for request in requests {
        read_response(&mut stream, &mut left, request.starts_with(b"HEAD"));
    }
    assert!(left.is_empty(), "nothing follows the last response");
    let answered = engine.counters().snapshot().answered();
    assert_eq!(answered, 2 * requests.len() as u64);
}

/// The frames that HTTP/2 and HTTP/3 are looked at by are the same however their bytes are cut.
pub fn frames(pieces: &[&[u8]]) {
    let whole = pieces.concat();
    assert_eq!(http2_frames(pieces), http2_frames(&[&whole]));
    for is_request in [true, false] {
        let in_pieces = http3_frames(pieces, is_request);
        assert_eq!(in_pieces, http3_frames(&[&whole], is_request));
    }
}

/// A connection ends when its client ends it, and says nothing to a client that says nothing.
pub fn stream_handler(make: Arc<MakeStreamHandler>) {
    let (engine, address) = start(Serves::stream(make));
    for sent in [&b""[..], b"hello\r\n"] {
        let mut stream = connect(address);
        stream.write_all(sent).expect("the server reads");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("the stream is open");
        let mut received = Vec::new();
        Read::by_ref(&mut stream)
            .take(1 << 20)
            .read_to_end(&mut received)
            .expect("the connection ends in order");
    }
    let drained = engine.drain(PATIENCE);
    assert_eq!(drained.cut_off, 0, "every connection ended with its client");
}

/// Datagrams of any length are taken, and the handler still answers afterwards as it did before.
pub fn datagram_handler(make: Arc<MakeDatagramHandler>) {
    let (_engine, address) = start(Serves::Datagram(make));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    socket.set_read_timeout(Some(PATIENCE)).expect("it is set");
    let longest = vec![b'x'; 60_000];
    let ask = |datagram: &[u8]| {
        socket.send_to(datagram, address).expect("it is sent");
        let mut buffer = vec![0; 64 * 1024];
        let (length, from) = socket.recv_from(&mut buffer).expect("there is a reply");
        assert_eq!(from, address);
        buffer.truncate(length);
        buffer
    };
    let before = ask(b"hello");
    for datagram in [&b""[..], b"\0", &longest] {
        ask(datagram);
    }
    assert_eq!(ask(b"hello"), before);
}

fn start(serves: Serves) -> (Engine, SocketAddr) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plan = EnginePlan::new(vec![ListenerPlan::new(address, serves)]);
    let engine = Engine::start(&plan, Arc::<Counters>::default()).expect("it starts");
    let address = engine.addresses()[0];
    (engine, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is set");
    stream
}

/// Reads one response; what follows it stays in `left`.
fn read_response(stream: &mut TcpStream, left: &mut Vec<u8>, to_head: bool) {
    let mut decoder = ResponseDecoder::new(ResponseLimits::default());
    decoder.begin(to_head);
    let mut buffer = [0; 16 * 1024];
    loop {
        let found = decoder
            .decode(left, &mut (), &mut KnownHead::new())
            .expect("the response is well-formed");
        left.drain(..found.consumed);
        if found.complete {
            break;
        }
        let read = stream.read(&mut buffer).expect("the response comes");
        if read == 0 {
            decoder.end_of_stream().expect("the response is whole");
            break;
        }
        left.extend_from_slice(&buffer[..read]);
    }
    assert!((200..600).contains(&decoder.status()));
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use http::StatusCode;

    use super::*;
    use crate::worker::context::WorkerContext;
    use crate::{Action, Delay, Echo, EchoHandler, Redirect, Respond, Response};

    #[test]
    fn every_small_action() {
        let hello = || Rc::new(Respond::new(Response::text(StatusCode::OK, "hello\n")));
        action(Arc::new(move |_: &WorkerContext| hello() as Rc<dyn Action>));
        action(Arc::new(|_: &WorkerContext| {
            Rc::new(Respond::new(Response::new(StatusCode::NO_CONTENT)))
        }));
        action(Arc::new(|_: &WorkerContext| {
            Rc::new(Redirect::new(308, "/to{path}{query}").unwrap())
        }));
        action(Arc::new(|_: &WorkerContext| Rc::new(Echo)));
        action(Arc::new(move |_: &WorkerContext| {
            Rc::new(Delay::new(Duration::from_millis(2), hello()))
        }));
        action(Arc::new(|_: &WorkerContext| {
            Rc::new(Delay::new(Duration::from_millis(2), Rc::new(Echo)))
        }));
    }

    #[test]
    fn every_handler() {
        stream_handler(Arc::new(|_: &WorkerContext| Rc::new(EchoHandler)));
        datagram_handler(Arc::new(|_: &WorkerContext| Box::new(EchoHandler)));
    }
}
