//! Feeding the HTTP/2 client: everything that it tells and writes, however its input was cut.

use std::collections::HashMap;

use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{
    Connection, ConnectionError, EncodedRequest, ErrorCode, Events, Limits, OpenError, RequestHead,
    ResponseHead, Settings, StreamError,
};

/// Small enough that a fuzzer reaches them.
fn settings() -> Settings {
    Settings {
        streams: 4,
        stream_window: 300,
        connection_window: 65_535,
        frame_bytes: 1 << 14,
        header_table_bytes: 200,
        limits: Limits {
            header_block_bytes: 256,
            continuations: 3,
            headers: 8,
            header_list_bytes: 512,
            body_bytes: 400,
            interim: 2,
            unwritten_answers: 8,
            output_bytes: 1000,
        },
    }
}

/// What became of one exchange.
#[derive(Debug, Default, PartialEq, Eq)]
struct Exchange {
    status: u16,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    content: Vec<u8>,
    end: Option<Result<(), StreamError>>,
}

#[derive(Debug, Default)]
struct Keep {
    exchanges: HashMap<u32, Exchange>,
    goaways: Vec<(u32, ErrorCode)>,
}

impl Keep {
    fn open(&mut self, token: u32) -> &mut Exchange {
        let exchange = self
            .exchanges
            .get_mut(&token)
            .expect("a token that we gave");
        assert!(exchange.end.is_none(), "nothing comes after the end");
        exchange
    }
}

fn copy(fields: &Fields) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    fields
        .iter()
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
}

impl Events for Keep {
    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let exchange = self.open(token);
        assert!((200..=999).contains(&head.status));
        assert_eq!(exchange.status, 0, "one head");
        exchange.status = head.status;
        exchange.fields.extend(copy(head.fields));
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        let exchange = self.open(token);
        assert!(exchange.status > 0 && !piece.is_empty());
        exchange.content.extend_from_slice(piece);
        assert!(exchange.content.len() as u64 <= settings().limits.body_bytes);
    }

    fn trailers(&mut self, token: u32, fields: &Fields) {
        self.open(token).fields.extend(copy(fields));
    }

    fn complete(&mut self, token: u32) {
        let exchange = self.open(token);
        assert!(exchange.status > 0);
        exchange.end = Some(Ok(()));
    }

    fn failed(&mut self, token: u32, error: &StreamError) {
        self.open(token).end = Some(Err(*error));
    }

    fn going_away(&mut self, last_stream: u32, code: ErrorCode) {
        self.goaways.push((last_stream, code));
    }
}

/// What can be seen of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    exchanges: Vec<(u32, Exchange)>,
    goaways: Vec<(u32, ErrorCode)>,
    end: Result<(), ConnectionError>,
    output: Vec<u8>,
}

fn requests() -> [EncodedRequest; 4] {
    let request = |method, path, body: Option<&[u8]>| {
        RequestHead::new(method, "http", "a", path)
            .expect("a valid head")
            .finish(body)
    };
    [
        request("GET", "/", None),
        request("HEAD", "/", None),
        request("POST", "/a", Some(&[b'x'; 100])),
        request("POST", "/b", Some(&[b'y'; 3000])),
    ]
}

/// Starts four exchanges once SETTINGS came, and gives one of them up if `cancel` says which.
pub fn read_connection(pieces: &[&[u8]], cancel: Option<usize>) -> Seen {
    let mut connection = Connection::new(settings());
    let mut keep = Keep::default();
    let first = connection.output().len();
    connection.written(first);
    // SETTINGS with nothing in them, so that the fuzzer need not find those first.
    connection
        .receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut keep)
        .expect("empty SETTINGS");
    let mut ids = Vec::new();
    for (token, request) in (0..).zip(requests()) {
        keep.exchanges.insert(token, Exchange::default());
        ids.push(connection.open(&request, token).expect("four are free"));
    }
    assert_eq!(connection.open(&requests()[0], 9), Err(OpenError::Full));
    if let Some(cancelled) = cancel {
        assert!(connection.cancel(ids[cancelled]));
        assert!(!connection.cancel(ids[cancelled]));
    }
    let mut end = Ok(());
    for piece in pieces {
        end = connection.receive(piece, &mut keep);
        if end.is_err() {
            break;
        }
    }
    if end.is_ok() {
        end = connection.end_of_stream(&mut keep);
    }
    let mut output = Vec::new();
    while connection.wants_write() {
        output.extend_from_slice(connection.output());
        let written = connection.output().len();
        assert!(written > 0, "there is something to write");
        connection.written(written);
    }
    assert_eq!(connection.in_flight(), 0);
    for (token, exchange) in &keep.exchanges {
        let is_cancelled = cancel.is_some_and(|index| index == *token as usize);
        assert_eq!(exchange.end.is_none(), is_cancelled, "each ends once");
    }
    let mut exchanges: Vec<_> = keep.exchanges.into_iter().collect();
    exchanges.sort_unstable_by_key(|(token, _)| *token);
    Seen {
        exchanges,
        goaways: keep.goaways,
        end,
        output,
    }
}
