use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::*;
use crate::{MaterialFiles, eventually};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

fn read_to_end(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).map(|_| all)
}

#[test]
fn hello_keeps_the_connection_and_counts() {
    let origin = Origin::hello();
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    for _ in 0..3 {
        stream.write_all(REQUEST).unwrap();
        let mut answer = vec![0; HELLO.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, HELLO);
    }
    assert_eq!((origin.requests(), origin.connections()), (3, 1));
    drop(stream);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn bodies_and_pipelined_requests_are_distinguished() {
    let origin = Origin::hello();
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream
        .write_all(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut answers = vec![0; 2 * HELLO.len()];
    stream.read_exact(&mut answers).unwrap();
    assert_eq!(origin.requests(), 2);
    assert!(origin.heads()[1].starts_with("GET"));
}

#[test]
fn a_stall_holds_answers_back() {
    let origin = Origin::hello();
    origin.stall();
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(REQUEST).unwrap();
    eventually(|| origin.requests() == 1);
    stream.set_nonblocking(true).unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    origin.resume();
    let mut answer = vec![0; HELLO.len()];
    stream.read_exact(&mut answer).unwrap();
}

#[test]
fn reset_is_a_reset_and_close_is_orderly() {
    let origin = Origin::scripted(Script::new().then(Step::ReadHead).then(Step::Reset));
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(REQUEST).unwrap();
    let error = read_to_end(&mut stream).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let origin = Origin::scripted(Script::answer_once("bye"));
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(REQUEST).unwrap();
    stream.write_all(REQUEST).unwrap();
    assert_eq!(read_to_end(&mut stream).unwrap(), b"bye");
}

#[test]
fn held_until_released() {
    let origin = Origin::scripted(Script::new().then(Step::Hold).then(Step::WritePieces {
        bytes: b"pieces".to_vec(),
        size: 2,
    }));
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    eventually(|| origin.open_connections() == 1);
    origin.release();
    // Only the end of our side ends the origin's reading.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut stream).unwrap(), b"pieces");
}

#[test]
fn listens_on_a_unix_socket() {
    let files = MaterialFiles::new();
    let origin = Origin::builder().unix(files.path("socket")).start();
    let mut stream = UnixStream::connect(files.path("socket")).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut answer = vec![0; HELLO.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(origin.url("/x"), "http://localhost/x");
}

#[test]
fn scripts_may_differ_by_connection() {
    let origin = Origin::builder()
        .script(|number| Script::new().then(Step::Write(number.to_string().into_bytes())))
        .start();
    for expected in ["0", "1"] {
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut stream).unwrap(), expected.as_bytes());
    }
}
