//! Exchanges by uwsgi.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_client::forward::{Head, Pool, PoolOptions, Speaks};
use plimsoll_client::{ConnectOptions, Endpoint};
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_wire::http::FieldList;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Chunks, run_local};
use crate::connecting::connector;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// What a server has received on each connection: the header of a packet, its variables, and the content.
type Received = Rc<RefCell<Vec<([u8; 4], Vec<u8>, Vec<u8>)>>>;

/// A server that responds behind packet and content of so many bytes, and leaves its connections open.
async fn server(response: &'static str, content: usize) -> (Endpoint, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Received::default();
    let log = Rc::clone(&received);
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let log = Rc::clone(&log);
            tokio::task::spawn_local(respond(stream, response, content, log));
        }
    });
    let endpoint = Endpoint::parse(&format!("http://{address}/")).unwrap();
    (endpoint, received)
}

async fn respond(mut stream: TcpStream, response: &str, content: usize, log: Received) {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.unwrap();
    let size = u16::from_le_bytes([header[1], header[2]]);
    let (mut variables, mut content) = (vec![0; size.into()], vec![0; content]);
    stream.read_exact(&mut variables).await.unwrap();
    stream.read_exact(&mut content).await.unwrap();
    log.borrow_mut().push((header, variables, content));
    stream.write_all(response.as_bytes()).await.unwrap();
    // Until the client closes it.
    stream.read_u8().await.ok();
}

/// The text of the response to a request with these fields.
async fn send(
    pool: &Pool,
    endpoint: &Endpoint,
    fields: &FieldList,
    body: Chunks,
) -> Result<String, Failure> {
    let mut parameters = FieldList::new();
    parameters.push(b"REQUEST_METHOD", b"POST");
    let head = Head {
        parameters: Some(&parameters),
        modifiers: [5, 6],
        ..Head::new("POST", "/", fields)
    };
    let lease = pool
        .acquire(endpoint)
        .await
        .map_err(|error| error.failure)?;
    let mut exchange = lease.begin(&head, body)?;
    let head = exchange.final_head().await.map_err(|error| error.failure)?;
    let mut text = format!("{} ", head.status.as_u16());
    while let Some(frame) = exchange.frame().await {
        let frame = frame.map_err(|error| error.failure)?;
        text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
    }
    Ok(text)
}

fn pool() -> Pool {
    let options = PoolOptions {
        speaks: Speaks::Uwsgi,
        ..PoolOptions::default()
    };
    Pool::new(connector(ConnectOptions::default()), options)
}

#[test]
fn a_request_is_a_packet_with_content_on_a_connection_of_its_own() {
    run_local(async {
        let (endpoint, received) = server(RESPONSE, 7).await;
        let pool = pool();
        let mut fields = FieldList::new();
        fields.push(b"X-A", b"1");
        for _ in 0..2 {
            let text = send(&pool, &endpoint, &fields, Chunks::whole("content")).await;
            assert_eq!(text.unwrap(), "200 hi");
        }
        let received = received.borrow();
        assert_eq!(received.len(), 2);
        for (header, variables, content) in received.iter() {
            assert_eq!((header[0], header[3]), (5, 6));
            assert_eq!(content, b"content");
            let variables = String::from_utf8_lossy(variables);
            for variable in [
                "\u{e}\0REQUEST_METHOD\u{4}\0POST",
                "\u{e}\0CONTENT_LENGTH\u{1}\u{0}7",
                "\u{8}\0HTTP_X_A\u{1}\u{0}1",
            ] {
                assert!(
                    variables.contains(variable),
                    "{variable:?} in {variables:?}"
                );
            }
        }
    });
}

#[test]
fn failures_say_whose_they_are() {
    run_local(async {
        let (endpoint, received) = server("<html>\n", 0).await;
        let pool = pool();
        let none = FieldList::new();
        let mut long = FieldList::new();
        long.push(b"X-A", "a".repeat(70_000).as_bytes());
        for (fields, body, phase, kind, side) in [
            (
                &none,
                Chunks::streamed(&["a"]),
                Phase::Send,
                FailureKind::Protocol,
                Side::Ours,
            ),
            (
                &long,
                Chunks::none(),
                Phase::Send,
                FailureKind::TooLarge,
                Side::Ours,
            ),
            (
                &none,
                Chunks::none(),
                Phase::Receive,
                FailureKind::Protocol,
                Side::Theirs,
            ),
        ] {
            let failure = send(&pool, &endpoint, fields, body).await.unwrap_err();
            assert_eq!(
                (failure.phase, failure.kind, failure.side),
                (phase, kind, side),
                "{failure:?}"
            );
        }
        // What cannot be sent is not begun.
        assert_eq!(received.borrow().len(), 1);
    });
}
