//! Exchanges over real sockets, in the clear and over TLS: framing, reuse, phases, failures.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_client::{Completed, ConnectOptions, Http1, Incomplete, ReadBuffer, Request, Stream};
use plimsoll_model::{Clock, FailureKind, Phase};
use plimsoll_testkit::{Authority, HELLO, Origin, Script, Step, until};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{Limits, ResponseHead, ResponseSink};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connecting::{connector, endpoint, phases, run};
use crate::tls::trusting;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(20);

/// Long enough to begin, short enough to wait for.
const SHORT: Duration = Duration::from_millis(150);

/// The transport of the connections of a test.
struct Transport {
    authority: Option<Authority>,
}

impl Transport {
    fn clear() -> Self {
        Self { authority: None }
    }

    fn both() -> [Self; 2] {
        let authority = Some(Authority::new());
        [Self::clear(), Self { authority }]
    }

    fn origin(&self, script: Script) -> Origin {
        let builder = Origin::builder().script(move |_| script.clone());
        match &self.authority {
            None => builder.start(),
            Some(authority) => builder
                .tls(authority.issue(&["127.0.0.1"]).server_config())
                .start(),
        }
    }

    async fn open(&self, origin: &Origin) -> Client<Stream> {
        self.open_with(origin, Limits::default()).await
    }

    async fn open_with(&self, origin: &Origin, limits: Limits) -> Client<Stream> {
        let tls = self.authority.as_ref().map(|ca| trusting(&ca.pem()));
        let connection = connector(ConnectOptions {
            tls,
            ..ConnectOptions::default()
        })
        .connect(&endpoint(&origin.url("/")), &SystemClock)
        .await
        .unwrap();
        Client::new(connection.stream, limits)
    }
}

/// One connection and what came over it.
struct Client<S> {
    http: Http1<S>,
    buffer: ReadBuffer,
    seen: Seen,
}

/// The last response.
#[derive(Default)]
struct Seen {
    heads: usize,
    content: Vec<u8>,
}

impl ResponseSink for Seen {
    fn head(&mut self, _head: &ResponseHead<'_>) {
        self.heads += 1;
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    fn new(stream: S, limits: Limits) -> Self {
        Self {
            http: Http1::new(stream, limits, SystemClock.now()),
            buffer: ReadBuffer::new(),
            seen: Seen::default(),
        }
    }

    async fn send(&mut self, request: &Request, within: Duration) -> Result<Completed, Incomplete> {
        self.seen = Seen::default();
        let begun = SystemClock.now();
        let result = self
            .http
            .exchange(
                request,
                begun,
                begun + within,
                &self.buffer,
                &mut self.seen,
                &SystemClock,
            )
            .await;
        let (phases, done, sent) = match &result {
            Ok(completed) => (completed.phases, completed.done, completed.bytes_sent),
            Err(incomplete) => (incomplete.phases, incomplete.done, incomplete.bytes_sent),
        };
        assert!(phases.total() <= done - begun, "{phases:?}");
        assert!(done <= SystemClock.now());
        assert!(sent <= request.bytes().len() as u64);
        result
    }

    async fn get(&mut self) -> Result<Completed, Incomplete> {
        self.send(&request("GET", None), LONG).await
    }
}

fn request(method: &str, body: Option<&[u8]>) -> Request {
    Request::encode(method, "/", "a.test", &[], body).unwrap()
}

fn after_head(steps: impl IntoIterator<Item = Step>) -> Script {
    steps
        .into_iter()
        .fold(Script::new().then(Step::ReadHead), Script::then)
}

fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

#[test]
fn one_connection_carries_many_exchanges() {
    for transport in Transport::both() {
        let origin = transport.origin(Script::hello());
        run(async {
            let mut client = transport.open(&origin).await;
            let request = request("GET", None);
            for _ in 0..50 {
                let completed = client.send(&request, LONG).await.unwrap();
                assert_eq!(completed.status, 200);
                assert!(completed.reusable);
                assert_eq!(
                    phases(&completed.phases),
                    [Phase::Send, Phase::Wait, Phase::Receive]
                );
                assert_eq!(completed.bytes_sent, request.bytes().len() as u64);
                assert_eq!(completed.bytes_received, HELLO.len() as u64);
                assert_eq!(client.seen.content, b"hello");
                assert_eq!(client.seen.heads, 1);
            }
            assert_eq!(origin.bytes_read(), 50 * request.bytes().len() as u64);
        });
        assert_eq!((origin.requests(), origin.connections()), (50, 1));
    }
}

/// Each answer is complete, reusable or not, and has this content.
#[test]
fn content_ends_where_its_framing_says() {
    let until_close = "HTTP/1.1 200 OK\r\n\r\nto the end";
    let old = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                   5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 1\r\n\r\n";
    let cases = [
        (
            "GET",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            true,
            "",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            true,
            "ok",
        ),
        ("GET", chunked, true, "hello world"),
        ("GET", until_close, false, "to the end"),
        ("GET", old, false, "ok"),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
            true,
            "",
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            true,
            "",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", true, ""),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n",
            true,
            "",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            false,
            "ok",
        ),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
             HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            true,
            "ok",
        ),
    ];
    for transport in Transport::both() {
        for (method, answer, reusable, content) in cases {
            for size in [1, 7, answer.len()] {
                let pieces = Step::WritePieces {
                    bytes: answer.as_bytes().to_vec(),
                    size,
                };
                let mut script = after_head([pieces]);
                if reusable {
                    // Held open: only the framing shows where the content ends.
                    script = script.then(Step::Hold);
                }
                let origin = transport.origin(script);
                run(async {
                    let mut client = transport.open(&origin).await;
                    let result = client.send(&request(method, None), LONG).await;
                    let completed = result.unwrap_or_else(|error| panic!("{answer:?}: {error:?}"));
                    assert_eq!(completed.reusable, reusable, "{answer:?}");
                    assert_eq!(String::from_utf8_lossy(&client.seen.content), content);
                    assert_eq!(client.seen.heads, 1);
                    assert_eq!(completed.bytes_received, answer.len() as u64, "{answer:?}");
                });
                origin.release();
            }
        }
    }
}

#[test]
fn bytes_without_a_request_spoil_the_connection() {
    for transport in Transport::both() {
        let mut answer = HELLO.to_vec();
        answer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        let origin = transport.origin(after_head([Step::Write(answer), Step::Swallow]));
        run(async {
            let mut client = transport.open(&origin).await;
            let completed = client.get().await.unwrap();
            assert_eq!(completed.status, 200);
            assert!(!completed.reusable);
            assert_eq!(completed.bytes_received, HELLO.len() as u64);
        });
    }
}

#[test]
fn a_large_request_is_sent_whole() {
    let body = vec![b'x'; 8 << 20];
    for transport in Transport::both() {
        let origin = transport.origin(Script::hello());
        run(async {
            let mut client = transport.open(&origin).await;
            let request = request("POST", Some(&body));
            for _ in 0..2 {
                let completed = client.send(&request, LONG).await.unwrap();
                assert!(completed.reusable);
                assert_eq!(completed.bytes_sent, request.bytes().len() as u64);
            }
            assert_eq!(origin.bytes_read(), 2 * request.bytes().len() as u64);
        });
    }
}

#[test]
fn a_large_response_is_read_whole() {
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 8388608\r\n\r\n".to_vec();
    answer.resize(answer.len() + (8 << 20), b'y');
    let length = answer.len() as u64;
    for transport in Transport::both() {
        let origin = transport.origin(Script::serve(answer.clone()));
        run(async {
            let mut client = transport.open(&origin).await;
            let completed = client.get().await.unwrap();
            assert!(completed.reusable);
            assert_eq!(completed.bytes_received, length);
            assert_eq!(client.seen.content.len(), 8 << 20);
        });
    }
}

#[test]
fn an_answer_that_overtakes_the_request_comes_through() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
    let body = vec![b'x'; 16 << 20];
    for transport in Transport::both() {
        // The peer stops reading, by holding still or by resetting the connection.
        for last in [Step::Hold, Step::Reset] {
            let origin = transport.origin(after_head([write(refusal), last]));
            run(async {
                let mut client = transport.open(&origin).await;
                let request = request("POST", Some(&body));
                let completed = client.send(&request, LONG).await.unwrap();
                assert_eq!(completed.status, 413);
                assert!(!completed.reusable);
                assert!(completed.bytes_sent < request.bytes().len() as u64);
                assert_eq!(completed.bytes_received, refusal.len() as u64);
                assert_eq!(
                    phases(&completed.phases),
                    [Phase::Send, Phase::Wait, Phase::Receive]
                );
            });
            origin.release();
        }
    }
}

/// A stream whose write side breaks before the runtime has reported that there is something to read.
struct BrokenWrite {
    reads: Vec<Poll<std::io::Result<Vec<u8>>>>,
}

impl AsyncRead for BrokenWrite {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.reads.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.reads.remove(0) {
            Poll::Pending => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Ok(bytes)) => {
                buffer.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for BrokenWrite {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn an_answer_is_looked_for_after_writing_broke() {
    let refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
    run(async {
        let reads = vec![Poll::Pending, Poll::Ready(Ok(refusal.to_vec()))];
        let mut client = Client::new(BrokenWrite { reads }, Limits::default());
        let completed = client.get().await.unwrap();
        assert_eq!(completed.status, 413);
        assert!(!completed.reusable);
    });
}

#[test]
fn a_broken_write_is_reported_as_such_where_no_answer_follows() {
    let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    run(async {
        for reads in [
            vec![Poll::Pending, Poll::Ready(Ok(Vec::new()))],
            vec![Poll::Pending, Poll::Ready(Err(reset()))],
            vec![Poll::Ready(Ok(b"HTTP/1.1 200".to_vec()))],
        ] {
            let mut client = Client::new(BrokenWrite { reads }, Limits::default());
            let incomplete = client.get().await.unwrap_err();
            assert_eq!(incomplete.failure.kind, FailureKind::Reset);
            assert_eq!(incomplete.bytes_sent, 0);
        }
    });
}

/// A response that never ends and always has more to read.
struct Endless;

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let line = b"HTTP/1.1 200 OK\r\n\r\n";
        buffer.put_slice(line);
        buffer.initialize_unfilled();
        buffer.set_filled(buffer.capacity());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_body_that_never_pauses_still_has_its_deadline() {
    run(async {
        let mut http = Http1::new(Endless, Limits::default(), SystemClock.now());
        let begun = SystemClock.now();
        let incomplete = http
            .exchange(
                &request("GET", None),
                begun,
                begun + SHORT,
                &ReadBuffer::new(),
                &mut (),
                &SystemClock,
            )
            .await
            .unwrap_err();
        assert_eq!(incomplete.failure.kind, FailureKind::Timeout);
        assert_eq!(incomplete.failure.phase, Phase::Receive);
        assert!(incomplete.bytes_received > 0);
    });
}

/// The outcome of an exchange that the origin spoils after reading its head.
async fn spoiled(transport: &Transport, steps: Vec<Step>, within: Duration) -> Incomplete {
    let origin = transport.origin(after_head(steps));
    let mut client = transport.open(&origin).await;
    let incomplete = client
        .send(&request("GET", None), within)
        .await
        .unwrap_err();
    origin.release();
    incomplete
}

#[test]
fn a_timeout_names_its_phase() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    for transport in Transport::both() {
        run(async {
            let wait = spoiled(&transport, vec![Step::Hold], SHORT).await;
            assert_eq!(wait.failure.kind, FailureKind::Timeout);
            assert_eq!(wait.failure.phase, Phase::Wait);
            assert_eq!(phases(&wait.phases), [Phase::Send]);
            assert_eq!(wait.bytes_received, 0);

            let receive = spoiled(&transport, vec![write(half), Step::Hold], SHORT).await;
            assert_eq!(receive.failure.kind, FailureKind::Timeout);
            assert_eq!(receive.failure.phase, Phase::Receive);
            assert_eq!(phases(&receive.phases), [Phase::Send, Phase::Wait]);
            assert_eq!(receive.bytes_received, half.len() as u64);
        });
    }
}

#[test]
fn a_timeout_while_sending_names_that_phase() {
    for transport in Transport::both() {
        let origin = transport.origin(Script::new().then(Step::Hold));
        run(async {
            let mut client = transport.open(&origin).await;
            let body = vec![b'x'; 32 << 20];
            let request = request("POST", Some(&body));
            let incomplete = client.send(&request, SHORT).await.unwrap_err();
            assert_eq!(incomplete.failure.kind, FailureKind::Timeout);
            assert_eq!(incomplete.failure.phase, Phase::Send);
            assert_eq!(phases(&incomplete.phases), []);
            assert!(incomplete.bytes_sent > 0);
        });
        origin.release();
    }
}

#[test]
fn a_connection_lost_names_how_and_where() {
    let half_head = "HTTP/1.1 200 OK\r\ncontent-le";
    let half_body = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    let half_chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel";
    for transport in Transport::both() {
        for (answer, last, kind, phase) in [
            ("", Step::Reset, FailureKind::Reset, Phase::Wait),
            ("", Step::FinishWriting, FailureKind::Closed, Phase::Wait),
            (
                half_head,
                Step::FinishWriting,
                FailureKind::Closed,
                Phase::Receive,
            ),
            (
                half_body,
                Step::FinishWriting,
                FailureKind::Closed,
                Phase::Receive,
            ),
            (
                half_chunk,
                Step::FinishWriting,
                FailureKind::Closed,
                Phase::Receive,
            ),
        ] {
            run(async {
                let lost = spoiled(&transport, vec![write(answer), last.clone()], LONG).await;
                assert_eq!(lost.failure.kind, kind, "{answer:?} {last:?}");
                assert_eq!(lost.failure.phase, phase, "{answer:?} {last:?}");
                assert_eq!(lost.bytes_received, answer.len() as u64);
                assert_eq!(phases(&lost.phases)[0], Phase::Send);
            });
        }
    }
}

/// A sink that lets the origin go on once content came.
struct ReleaseOnContent<'a>(&'a Origin);

impl ResponseSink for ReleaseOnContent<'_> {
    fn head(&mut self, _head: &ResponseHead<'_>) {}

    fn content(&mut self, _piece: &[u8]) {
        self.0.release();
    }
}

#[test]
fn a_reset_inside_the_body_is_a_failure_of_receiving() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    for transport in Transport::both() {
        let origin = transport.origin(after_head([write(half), Step::Hold, Step::Reset]));
        run(async {
            let mut client = transport.open(&origin).await;
            let begun = SystemClock.now();
            let incomplete = client
                .http
                .exchange(
                    &request("GET", None),
                    begun,
                    begun + LONG,
                    &client.buffer,
                    &mut ReleaseOnContent(&origin),
                    &SystemClock,
                )
                .await
                .unwrap_err();
            assert_eq!(incomplete.failure.kind, FailureKind::Reset);
            assert_eq!(incomplete.failure.phase, Phase::Receive);
            assert_eq!(phases(&incomplete.phases), [Phase::Send, Phase::Wait]);
        });
    }
}

#[test]
fn what_is_not_http_is_a_failure_of_protocol() {
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 099 Low\r\n\r\n",
    ] {
        for transport in Transport::both() {
            run(async {
                let steps = vec![write(answer), Step::Hold];
                let incomplete = spoiled(&transport, steps, LONG).await;
                assert_eq!(incomplete.failure.kind, FailureKind::Protocol, "{answer:?}");
                assert_eq!(incomplete.failure.phase, Phase::Receive, "{answer:?}");
                assert!(incomplete.failure.cause.is_some());
                assert_eq!(incomplete.bytes_received, answer.len() as u64);
            });
        }
    }
}

#[test]
fn limits_hold() {
    let limits = Limits {
        head_bytes: 200,
        headers: 3,
        body_bytes: 8,
        interim: 1,
        chunk_overhead_bytes: 8,
    };
    let long_field = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(200));
    let many_fields = "HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n\r\n";
    let long_body = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\n\r\n123456789";
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let extension =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;123456789\r\nx\r\n0\r\n\r\n";
    for (answer, kind) in [
        (long_field.as_str(), FailureKind::TooLarge),
        (many_fields, FailureKind::TooLarge),
        (long_body, FailureKind::TooLarge),
        (endless, FailureKind::TooLarge),
        (interim, FailureKind::Protocol),
        (extension, FailureKind::Protocol),
    ] {
        for size in [1, answer.len()] {
            let bytes = answer.as_bytes().to_vec();
            let transport = Transport::clear();
            let script = after_head([Step::WritePieces { bytes, size }, Step::Hold]);
            let origin = transport.origin(script);
            run(async {
                let mut client = transport.open_with(&origin, limits).await;
                let incomplete = client.get().await.unwrap_err();
                assert_eq!(incomplete.failure.kind, kind, "{answer:?}");
                assert_eq!(incomplete.failure.phase, Phase::Receive);
            });
            origin.release();
        }
    }
}

#[test]
fn an_idle_connection_is_fresh_until_the_peer_stirs() {
    for transport in Transport::both() {
        for stir in [
            Step::FinishWriting,
            write("HTTP/1.1 408 Timeout\r\n\r\n"),
            Step::Reset,
        ] {
            let serve = after_head([Step::Write(HELLO.to_vec()), Step::Hold, stir, Step::Swallow]);
            let origin = transport.origin(serve);
            run(async {
                let mut client = transport.open(&origin).await;
                assert!(client.http.is_fresh());
                assert!(client.get().await.unwrap().reusable);
                assert!(client.http.is_fresh());
                origin.release();
                until(|| !client.http.is_fresh()).await;
            });
        }
    }
}
