//! The HTTP/2 codec against the server side of the `h2` crate, in memory.

use std::collections::HashMap;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{
    Connection, EncodedRequest, ErrorCode, Events, RequestHead, ResponseHead, Settings, StreamError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::LocalSet;

/// The outcome of one exchange.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    status: u16,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
    trailers: Vec<(String, String)>,
    is_complete: bool,
    error: Option<StreamError>,
}

#[derive(Debug, Default)]
struct Outcomes {
    by_token: HashMap<u32, Outcome>,
    ended: usize,
    goaway: Option<(u32, ErrorCode)>,
}

fn list(fields: &Fields) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    fields
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

impl Outcomes {
    fn outcome(&mut self, token: u32) -> &mut Outcome {
        self.by_token.entry(token).or_default()
    }
}

impl Events for Outcomes {
    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let outcome = self.outcome(token);
        assert_eq!(outcome.status, 0, "one head for each exchange");
        outcome.status = head.status;
        outcome.fields = list(head.fields);
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        self.outcome(token).content.extend_from_slice(piece);
    }

    fn trailers(&mut self, token: u32, fields: &Fields) {
        self.outcome(token).trailers = list(fields);
    }

    fn complete(&mut self, token: u32) {
        self.outcome(token).is_complete = true;
        self.ended += 1;
    }

    fn failed(&mut self, token: u32, error: &StreamError) {
        self.outcome(token).error = Some(*error);
        self.ended += 1;
    }

    fn going_away(&mut self, last_stream: u32, code: ErrorCode) {
        self.goaway = Some((last_stream, code));
    }
}

/// Sends `requests`, as many at a time as there is capacity, and waits for all outcomes.
async fn exchange(
    mut io: DuplexStream,
    mut connection: Connection,
    requests: &[EncodedRequest],
) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let mut waiting = (0_u32..).zip(requests);
    let mut buffer = vec![0; 16 * 1024];
    while outcomes.ended < requests.len() {
        while connection.capacity() > 0 {
            let Some((token, request)) = waiting.next() else {
                break;
            };
            connection.open(request, token).unwrap();
        }
        if connection.is_retired() && connection.in_flight() == 0 {
            break;
        }
        let has_output = connection.wants_write();
        let (mut reader, mut writer) = tokio::io::split(&mut io);
        tokio::select! {
            read = reader.read(&mut buffer) => match read.unwrap() {
                0 => {
                    connection.end_of_stream(&mut outcomes).ok();
                }
                length => {
                    connection.receive(&buffer[..length], &mut outcomes).unwrap();
                }
            },
            written = writer.write(connection.output()), if has_output => {
                connection.written(written.unwrap());
            }
        }
    }
    outcomes
}

/// Runs `respond` for each request that a server on `io` gets.
async fn serve<F, R>(io: DuplexStream, builder: h2::server::Builder, respond: F)
where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> R,
    R: Future<Output = ()> + 'static,
{
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    while let Some(Ok((request, response))) = connection.accept().await {
        tokio::task::spawn_local(respond(request, response));
    }
}

fn run<F, R>(
    builder: h2::server::Builder,
    settings: Settings,
    pipe_bytes: usize,
    requests: &[EncodedRequest],
    respond: F,
) -> Outcomes
where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> R + 'static,
    R: Future<Output = ()> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (ours, theirs) = tokio::io::duplex(pipe_bytes);
    let local = LocalSet::new();
    local.spawn_local(serve(theirs, builder, respond));
    local.block_on(
        &runtime,
        exchange(ours, Connection::new(settings), requests),
    )
}

async fn read_all(mut body: RecvStream) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        content.extend_from_slice(&piece);
    }
    content
}

/// Sends the request back: its body as the content, its path as a field, its length as a trailer.
async fn echo(request: Request<RecvStream>, mut response: SendResponse<Bytes>) {
    let path = request.uri().path().to_owned();
    let note = request.headers().get("x-note").cloned();
    let content = read_all(request.into_body()).await;
    let length = content.len();
    let mut head = Response::builder().header("x-path", path);
    if let Some(note) = note {
        head = head.header("x-note", note);
    }
    let mut body = response
        .send_response(head.body(()).unwrap(), false)
        .unwrap();
    body.send_data(content.into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-length", length.to_string().parse().unwrap());
    body.send_trailers(trailers).unwrap();
}

fn content(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 31 + seed).to_le_bytes()[0])
        .collect()
}

#[test]
fn many_streams_echo_bodies_larger_than_the_windows() {
    for (pipe_bytes, window, table) in [(64, 100, 0), (4096, 5_000, 4096), (1 << 20, 65_535, 200)] {
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(window)
            .max_concurrent_streams(7)
            .max_header_list_size(1 << 16);
        let requests: Vec<_> = (0..40)
            .map(|number| {
                let path = format!("/{}", number % 5);
                let mut head = RequestHead::new("POST", "http", "a", &path).unwrap();
                head.field("x-note", &format!("note {number}")).unwrap();
                head.finish(Some(&content(number, number * 500)))
            })
            .collect();
        let settings = Settings {
            streams: 20,
            stream_window: window,
            connection_window: 65_535,
            header_table_bytes: table,
            ..Settings::default()
        };
        let outcomes = run(builder, settings, pipe_bytes, &requests, echo);
        assert_eq!(outcomes.by_token.len(), 40);
        for (token, outcome) in outcomes.by_token {
            let number = token as usize;
            assert_eq!(outcome.status, 200);
            assert_eq!(outcome.content, content(number, number * 500));
            let field = |name: &str, value: String| (name.to_owned(), value);
            let expected = [
                field(":status", "200".into()),
                field("x-path", format!("/{}", number % 5)),
                field("x-note", format!("note {number}")),
            ];
            assert_eq!(outcome.fields, expected);
            let length = (number * 500).to_string();
            assert_eq!(outcome.trailers, [field("x-length", length)]);
            assert!(outcome.is_complete && outcome.error.is_none());
        }
    }
}

fn get(path: &str) -> EncodedRequest {
    RequestHead::new("GET", "http", "a", path)
        .unwrap()
        .finish(None)
}

#[test]
fn many_small_exchanges_reuse_streams_and_tables() {
    let requests: Vec<_> = vec![get("/"), get("/a"), get("/b")];
    let requests: Vec<_> = requests.iter().cycle().take(3_000).cloned().collect();
    let outcomes = run(
        h2::server::Builder::new(),
        Settings::default(),
        32 * 1024,
        &requests,
        async |request: Request<RecvStream>, mut response: SendResponse<Bytes>| {
            let length = request.uri().path().len();
            let head = Response::builder()
                .header("content-length", length)
                .header("x-note", "\"a note\" <{[^|~]}>")
                .body(())
                .unwrap();
            let mut body = response.send_response(head, false).unwrap();
            body.send_data(Bytes::from(vec![b'.'; length]), true)
                .unwrap();
        },
    );
    assert_eq!(outcomes.by_token.len(), 3_000);
    for (token, outcome) in &outcomes.by_token {
        assert!(outcome.is_complete, "{outcome:?}");
        assert_eq!(outcome.content.len(), if token % 3 == 0 { 1 } else { 2 });
        assert_eq!(outcome.fields[2].1, "\"a note\" <{[^|~]}>");
    }
}

#[test]
fn resets_and_refusals_are_distinguished() {
    let requests = ["/refused", "/fine", "/broken", "/inside"]
        .map(get)
        .to_vec();
    let outcomes = run(
        h2::server::Builder::new(),
        Settings::default(),
        4096,
        &requests,
        async |request: Request<RecvStream>, mut response: SendResponse<Bytes>| match request
            .uri()
            .path()
        {
            "/refused" => response.send_reset(Reason::REFUSED_STREAM),
            "/broken" => response.send_reset(Reason::INTERNAL_ERROR),
            "/inside" => {
                let mut body = response.send_response(Response::new(()), false).unwrap();
                body.send_data(Bytes::from_static(b"half"), false).unwrap();
                tokio::task::yield_now().await;
                body.send_reset(Reason::CANCEL);
            }
            _ => {
                response.send_response(Response::new(()), true).unwrap();
            }
        },
    );
    let error = |token: u32| outcomes.by_token[&token].error;
    let reset = |code| Some(StreamError::Reset { code });
    assert_eq!(error(0), reset(ErrorCode::REFUSED_STREAM));
    assert!(!error(0).unwrap().may_be_processed());
    assert_eq!(error(1), None);
    assert!(outcomes.by_token[&1].is_complete);
    assert_eq!(error(2), reset(ErrorCode::INTERNAL_ERROR));
    assert!(error(2).unwrap().may_be_processed());
    assert_eq!(error(3), reset(ErrorCode::CANCEL));
}

#[test]
fn a_graceful_shutdown_loses_no_exchange() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (ours, theirs) = tokio::io::duplex(4096);
    let local = LocalSet::new();
    local.spawn_local(async move {
        let mut connection = h2::server::handshake(theirs).await.unwrap();
        let mut accepted = 0;
        while let Some(Ok((request, response))) = connection.accept().await {
            accepted += 1;
            if accepted == 10 {
                connection.graceful_shutdown();
            }
            tokio::task::spawn_local(echo(request, response));
        }
    });
    let requests: Vec<_> = vec![get("/"); 500];
    let settings = Settings {
        streams: 10,
        ..Settings::default()
    };
    let outcomes = local.block_on(
        &runtime,
        exchange(ours, Connection::new(settings), &requests),
    );
    assert!(outcomes.goaway.is_some());
    let complete = outcomes
        .by_token
        .values()
        .filter(|outcome| outcome.is_complete)
        .count();
    let gone = outcomes
        .by_token
        .values()
        .filter(|outcome| matches!(outcome.error, Some(StreamError::GoneAway { .. })))
        .count();
    assert!(complete >= 10);
    assert_eq!(complete + gone, outcomes.by_token.len(), "{outcomes:?}");
    assert!(outcomes.by_token.len() < 500);
}
