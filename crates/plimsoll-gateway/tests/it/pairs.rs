//! Every version of HTTP in front with every version behind: content both ways, streamed; trailers and interim responses;
//! clients that leave; sides that do not read.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Head, Speaks};
use plimsoll_server::config::ActionKind;
use plimsoll_server::{Action, Answer, Request, Response, ResponseBody, WorkerContext};
use plimsoll_testkit::http::get;
use plimsoll_testkit::{Origin, Script, until};

use crate::client::{pool, post, run_local};
use crate::hostile::{MOST_HELD, peak};
use crate::server::Served;

/// Far more than every window and buffer on the way.
const BYTES: usize = 64 * 1024 * 1024;

const LISTEN_TLS: &str =
    "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";

fn content() -> Bytes {
    // No piece of it is like another one at the same place, so that a repeated or lost piece shows.
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        // Knuth, "The Art of Computer Programming", volume 2, section 3.3.4.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_le_bytes()
    });
    words.take(BYTES / 8).flatten().collect()
}

/// A gateway to a server by every version of HTTP, one behind each path.
struct Pairs {
    gateway: Served,
    _backend: Served,
}

/// A version in front with one behind.
struct Pair {
    name: String,
    speaks: Speaks,
    url: String,
}

impl Pairs {
    /// - `routes`: those of the server.
    fn new(routes: &str) -> Self {
        let backend = Served::new(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{LISTEN_TLS}{routes}"
        ));
        let (clear, tls) = (backend.addresses[0], backend.addresses[1]);
        let backs = [
            ("h1", format!("http://{clear}"), "http1"),
            ("h2c", format!("http://{clear}"), "http2"),
            ("h1s", format!("https://{tls}"), "http1"),
            ("h2", format!("https://{tls}"), "http2"),
            ("h3", format!("https://{tls}"), "http3"),
        ];
        let mut text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{LISTEN_TLS}[[route]]\npath = \"/peak\"\npeak = {{}}\n"
        );
        for (name, url, protocol) in &backs {
            let part = format!(
                "[[route]]\nprefix = \"/{name}\"\nproxy = {{ to = \"{name}\", strip = true }}\n\
                 [upstream.{name}]\nservers = [\"{url}\"]\nprotocol = \"{protocol}\"\ntls = {{ insecure = true }}\n"
            );
            text.push_str(&part);
        }
        Self {
            gateway: Served::new(&text),
            _backend: backend,
        }
    }

    fn all(&self) -> Vec<Pair> {
        let (clear, tls) = (self.gateway.addresses[0], self.gateway.addresses[1]);
        let fronts = [
            ("h1", Speaks::Http1, format!("http://{clear}")),
            ("h2c", Speaks::Http2, format!("http://{clear}")),
            ("h1s", Speaks::Http1, format!("https://{tls}")),
            ("h2", Speaks::Http2, format!("https://{tls}")),
            ("h3", Speaks::Http3, format!("https://{tls}")),
        ];
        let backs = ["h1", "h2c", "h1s", "h2", "h3"];
        let pairs = fronts.iter().flat_map(|(front, speaks, url)| {
            backs.map(|back| Pair {
                name: format!("{front} to {back}"),
                speaks: *speaks,
                url: format!("{url}/{back}"),
            })
        });
        pairs.collect()
    }
}

#[test]
fn every_pair_carries_content_both_ways() {
    let pairs = Pairs::new("[[route]]\necho = {}\n");
    let content = content();
    for Pair { name, speaks, url } in pairs.all() {
        let (status, received, _) = post(speaks, &url, content.clone());
        assert_eq!(status, 200, "{name}");
        assert!(received == content, "{name}: {}", received.len());
    }
}

/// Content of a request, piece by piece.
pub(crate) struct Sent {
    pieces: Vec<Frame<Bytes>>,
    /// Bytes that the head announces.
    announced: Option<u64>,
    /// Nothing follows the pieces, not even the end.
    is_open: bool,
}

impl Sent {
    /// These pieces, without an announced length.
    pub(crate) fn of_pieces<const COUNT: usize>(pieces: [Frame<Bytes>; COUNT]) -> Self {
        Self {
            pieces: pieces.into_iter().rev().collect(),
            announced: None,
            is_open: false,
        }
    }
}

impl Sent {
    /// The same without an end.
    pub(crate) fn left_open(mut self) -> Self {
        self.is_open = true;
        self
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let sent = self.get_mut();
        match sent.pieces.pop() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None if sent.is_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && !self.is_open
    }

    fn size_hint(&self) -> SizeHint {
        self.announced
            .map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// The server responds while the upload goes on, and reads none of it.
#[test]
fn every_pair_carries_an_early_response() {
    for early in [200, 413] {
        let respond = format!("respond = {{ status = {early}, body = \"early\" }}");
        let pairs = Pairs::new(&format!("[[route]]\n{respond}\n"));
        for Pair { name, speaks, url } in pairs.all() {
            let sent = Sent::of_pieces([Frame::data("content".into())]).left_open();
            let (status, content) = run_local(async {
                let endpoint = Endpoint::parse(&url).unwrap();
                let lease = pool(speaks).acquire(&endpoint).await.unwrap();
                let head = Head::new("POST", endpoint.path_and_query(), &());
                let mut exchange = lease.begin(&head, sent).unwrap();
                let head = exchange.final_head().await.unwrap();
                let content = exchange.into_response_body().collect().await.unwrap();
                (head.status.as_u16(), content.to_bytes())
            });
            assert_eq!((status, &content[..]), (early, &b"early"[..]), "{name}");
        }
    }
}

#[test]
fn every_pair_carries_trailers_both_ways() {
    let pairs = Pairs::new("[[route]]\necho = {}\n");
    for Pair { name, speaks, url } in pairs.all() {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-sum"),
            HeaderValue::from_static("7"),
        )]);
        let sent = Sent::of_pieces([
            Frame::data("content".into()),
            Frame::trailers(trailers.clone()),
        ]);
        let received = run_local(async {
            let endpoint = Endpoint::parse(&url).unwrap();
            let lease = pool(speaks).acquire(&endpoint).await.unwrap();
            let fields = [("te", "trailers")];
            let head = Head::new("POST", endpoint.path_and_query(), &fields);
            let mut exchange = lease.begin(&head, sent).unwrap();
            let head = exchange.final_head().await.unwrap();
            assert_eq!(head.status, 200, "{name}");
            exchange.into_response_body().collect().await.unwrap()
        });
        assert_eq!(received.trailers(), Some(&trailers), "{name}");
        assert_eq!(received.to_bytes(), "content", "{name}");
    }
}

#[test]
fn every_pair_carries_interim_responses_and_the_length_of_a_head() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let to_get = Origin::scripted(Script::serve(format!("{hints}{head}hello")));
    let to_head = Origin::scripted(Script::serve(format!("{hints}{head}")));
    let pairs = Pairs::new(&format!(
        "[[route]]\nmethod = \"HEAD\"\nproxy = \"{}\"\n[[route]]\nproxy = \"{}\"\n",
        to_head.url("").trim_end_matches('/'),
        to_get.url("").trim_end_matches('/'),
    ));
    for Pair { name, speaks, url } in pairs.all() {
        for (method, expected) in [("GET", "hello"), ("HEAD", "")] {
            run_local(async {
                let endpoint = Endpoint::parse(&url).unwrap();
                let lease = pool(speaks).acquire(&endpoint).await.unwrap();
                let head = Head::new(method, endpoint.path_and_query(), &());
                let none = http_body_util::Empty::<Bytes>::new();
                let mut exchange = lease.begin(&head, none).unwrap();
                let interim = exchange.head().await.unwrap();
                assert_eq!(interim.status, 103, "{name}: {method}");
                let link = interim.fields.field("link");
                assert_eq!(link, Some(b"</a.css>".as_slice()), "{name}: {method}");
                let head = exchange.head().await.unwrap();
                assert_eq!(head.status, 200, "{name}: {method}");
                let length = head.fields.field("content-length");
                assert_eq!(length, Some(b"5".as_slice()), "{name}: {method}");
                let received = exchange.into_response_body().collect().await.unwrap();
                assert_eq!(received.to_bytes(), expected, "{name}: {method}");
            });
        }
    }
}

/// How the requests of [`WATCH`] went; only one test has such a route.
static WATCHED: Watched = Watched {
    begun: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
    complete: AtomicU64::new(0),
    left: AtomicU64::new(0),
};

struct Watched {
    begun: AtomicU64,
    bytes: AtomicU64,
    /// Requests with content that came to its end.
    complete: AtomicU64,
    /// Requests that ended without a response.
    left: AtomicU64,
}

/// The action `watch` of a route: reads requests, never responds, and counts what becomes of them.
pub(crate) const WATCH: ActionKind = ActionKind {
    key: "watch",
    compile: |_, _| {
        Some(Arc::new(|_: &WorkerContext| {
            Rc::new(Watch) as Rc<dyn Action>
        }))
    },
};

struct Watch;

struct CountDrop;

impl Drop for CountDrop {
    fn drop(&mut self) {
        WATCHED.left.fetch_add(1, Ordering::SeqCst);
    }
}

impl Action for Watch {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut body = request.take_body();
        let has_content = !body.is_end_stream();
        WATCHED.begun.fetch_add(1, Ordering::SeqCst);
        let count = CountDrop;
        Answer::later(async move {
            let _count = count;
            loop {
                match body.frame().await {
                    Some(Ok(frame)) => {
                        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                        WATCHED.bytes.fetch_add(bytes, Ordering::SeqCst);
                    }
                    Some(Err(_)) => return Response::text(StatusCode::BAD_REQUEST, "broken"),
                    None => break,
                }
            }
            WATCHED
                .complete
                .fetch_add(u64::from(has_content), Ordering::SeqCst);
            pending().await
        })
    }
}

#[test]
fn every_pair_cancels_what_a_client_leaves_and_never_completes_its_content() {
    let pairs = Pairs::new("[[route]]\nwatch = {}\n");
    let mut requests = 0;
    for Pair { name, speaks, url } in pairs.all() {
        // Without content, and with some that breaks off: of unknown length, and of an announced one.
        for (pieces, announced) in [(0, None), (1, None), (1, Some(10))] {
            requests += 1;
            let bytes = WATCHED.bytes.load(Ordering::SeqCst) + pieces * 5;
            run_local(async {
                let endpoint = Endpoint::parse(&url).unwrap();
                let pool = pool(speaks);
                let lease = pool.acquire(&endpoint).await.unwrap();
                let method = if pieces == 0 { "GET" } else { "POST" };
                let head = Head::new(method, endpoint.path_and_query(), &());
                let sent = Sent {
                    pieces: (0..pieces).map(|_| Frame::data("hello".into())).collect(),
                    announced,
                    is_open: pieces > 0,
                };
                let mut exchange = lease.begin(&head, sent).unwrap();
                let arrived = until(|| {
                    WATCHED.begun.load(Ordering::SeqCst) == requests
                        && WATCHED.bytes.load(Ordering::SeqCst) == bytes
                });
                tokio::select! {
                    head = exchange.final_head() => panic!("{name}: {head:?}"),
                    () = arrived => {}
                }
                assert_eq!(WATCHED.left.load(Ordering::SeqCst), requests - 1, "{name}");
                drop(exchange);
                // The connection is still the client's: over HTTP/2 and HTTP/3 only the stream ends.
                until(|| WATCHED.left.load(Ordering::SeqCst) == requests).await;
            });
        }
        assert_eq!(WATCHED.complete.load(Ordering::SeqCst), 0, "{name}");
    }
}

/// Bytes that routes with [`FLOOD`] have sent; only one test has such a route.
static FLOODED: AtomicU64 = AtomicU64::new(0);

/// The action `flood` of a route: content without end. The request's is not read.
pub(crate) const FLOOD: ActionKind = ActionKind {
    key: "flood",
    compile: |_, _| {
        Some(Arc::new(|_: &WorkerContext| {
            Rc::new(Flood) as Rc<dyn Action>
        }))
    },
};

struct Flood;

impl Action for Flood {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if request.method == "POST" {
            let body = request.take_body();
            return Answer::later(async move {
                let _unread = body;
                pending().await
            });
        }
        let flood = Endless { counter: &FLOODED };
        let body = ResponseBody::Stream(Box::pin(flood.map_err(|never| match never {})));
        Answer::now(Response::new(StatusCode::OK).with_body(body))
    }
}

/// Content without end that counts what is taken of it.
struct Endless {
    counter: &'static AtomicU64,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 16 << 10] = [b'x'; 16 << 10];
        self.counter.fetch_add(PIECE.len() as u64, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE)))))
    }
}

/// More than windows and the buffers of sockets hold.
pub(crate) const MOST_TAKEN: u64 = 64 << 20;

/// Waits until a number stays the same while the gateway serves others, or is too large.
pub(crate) async fn until_still(counter: &AtomicU64, before: u64, gateway: &Served) -> u64 {
    let address = gateway.address();
    loop {
        let last = counter.load(Ordering::SeqCst);
        for _ in 0..20 {
            let other = tokio::task::spawn_blocking(move || get(address, "/peak"));
            assert_eq!(other.await.unwrap().status, 200);
        }
        let now = counter.load(Ordering::SeqCst);
        if (now == last && now > before) || now - before > MOST_TAKEN {
            return now - before;
        }
    }
}

#[test]
fn every_pair_holds_back_a_side_whose_other_one_does_not_read() {
    static UPLOADED: AtomicU64 = AtomicU64::new(0);
    let pairs = Pairs::new("[[route]]\nflood = {}\n");
    let gateway = &pairs.gateway;
    for Pair { name, speaks, url } in pairs.all() {
        run_local(async {
            let endpoint = Endpoint::parse(&url).unwrap();
            let path = endpoint.path_and_query();
            let pool = pool(speaks);
            peak(gateway);
            // A client that does not read.
            let before = FLOODED.load(Ordering::SeqCst);
            let lease = pool.acquire(&endpoint).await.unwrap();
            let none = http_body_util::Empty::<Bytes>::new();
            let mut exchange = lease.begin(&Head::new("GET", path, &()), none).unwrap();
            assert_eq!(exchange.final_head().await.unwrap().status, 200, "{name}");
            let taken = until_still(&FLOODED, before, gateway).await;
            assert!(taken < MOST_TAKEN, "{name}: {taken}");
            let before = peak(gateway);
            assert!(before < MOST_HELD, "{name}: {before}");
            drop(exchange);
            // A server that does not read.
            peak(gateway);
            let before = UPLOADED.load(Ordering::SeqCst);
            let lease = pool.acquire(&endpoint).await.unwrap();
            let endless = Endless { counter: &UPLOADED };
            let head = Head::new("POST", path, &());
            let mut exchange = lease.begin(&head, endless).unwrap();
            let taken = tokio::select! {
                head = exchange.final_head() => panic!("{name}: {head:?}"),
                taken = until_still(&UPLOADED, before, gateway) => taken,
            };
            assert!(taken < MOST_TAKEN, "{name}: {taken}");
            let before = peak(gateway);
            assert!(before < MOST_HELD, "{name}: {before}");
        });
    }
}
