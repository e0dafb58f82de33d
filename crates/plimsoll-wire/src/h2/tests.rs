use plimsoll_model::{FailureKind, Phase, Retry};
use proptest::prelude::*;

use super::*;
use crate::h2::hpack::{Encoder, Fields, HpackError};

/// The events of a sink, with adjacent content joined.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Head(u32, u16, String),
    Content(u32, Vec<u8>),
    Trailers(u32, String),
    Complete(u32),
    Failed(u32, StreamError),
    GoingAway(u32, ErrorCode),
}

#[derive(Debug, Default)]
struct Keep {
    wants_fields: bool,
    seen: Vec<Seen>,
    traffic: Vec<(u32, Traffic)>,
}

fn text(fields: &Fields) -> String {
    let mut text = String::new();
    for (name, value) in fields.iter() {
        for part in [name, b"=", value, b";"] {
            text.push_str(&String::from_utf8_lossy(part));
        }
    }
    text
}

impl Events for Keep {
    fn wants_fields(&self) -> bool {
        self.wants_fields
    }

    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        self.seen
            .push(Seen::Head(token, head.status, text(head.fields)));
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        assert!(!piece.is_empty());
        match self.seen.last_mut() {
            Some(Seen::Content(same, content)) if *same == token => {
                content.extend_from_slice(piece);
            }
            _ => self.seen.push(Seen::Content(token, piece.to_vec())),
        }
    }

    fn trailers(&mut self, token: u32, fields: &Fields) {
        self.seen.push(Seen::Trailers(token, text(fields)));
    }

    fn traffic(&mut self, token: u32, traffic: Traffic) {
        self.traffic.push((token, traffic));
    }

    fn complete(&mut self, token: u32) {
        self.seen.push(Seen::Complete(token));
    }

    fn failed(&mut self, token: u32, error: &StreamError) {
        self.seen.push(Seen::Failed(token, *error));
    }

    fn going_away(&mut self, last_stream: u32, code: ErrorCode) {
        self.seen.push(Seen::GoingAway(last_stream, code));
    }
}

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in entries {
        payload.extend(id.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    raw(frame::SETTINGS, 0, 0, &payload)
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    raw(frame::HEADERS, flags | END_HEADERS, stream, block)
}

fn data(stream: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    raw(frame::DATA, flags, stream, content)
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    raw(frame::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.0.to_be_bytes()].concat();
    raw(frame::GOAWAY, 0, 0, &payload)
}

/// `:status: 200`, as the static table has it.
const OK: &[u8] = &[0x88];

fn get() -> EncodedRequest {
    RequestHead::new("GET", "http", "a", "/")
        .unwrap()
        .finish(None)
}

fn post(length: usize) -> EncodedRequest {
    let body: Vec<u8> = (0..=255).cycle().take(length).collect();
    RequestHead::new("POST", "http", "a", "/")
        .unwrap()
        .finish(Some(&body))
}

fn small() -> Settings {
    Settings {
        streams: 8,
        stream_window: 1000,
        limits: Limits {
            header_block_bytes: 200,
            continuations: 3,
            headers: 8,
            header_list_bytes: 400,
            body_bytes: 500,
            interim: 2,
            unwritten_answers: 4,
            output_bytes: 20_000,
        },
        ..Settings::default()
    }
}

/// A connection whose preface is written and which has the peer's SETTINGS.
fn established(entries: &[(u16, u32)]) -> Connection {
    let mut connection = Connection::new(small());
    drain(&mut connection);
    connection
        .receive(&settings(entries), &mut Keep::default())
        .unwrap();
    assert_eq!(drain(&mut connection), raw(frame::SETTINGS, 1, 0, &[]));
    connection
}

fn drain(connection: &mut Connection) -> Vec<u8> {
    let output = connection.output().to_vec();
    connection.written(output.len());
    output
}

/// The frames of `bytes`: kind, flags, stream, payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<9>() {
        let [a, b, c, kind, flags, stream @ ..] = *header;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes(stream);
        frames.push((kind, flags, stream, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    frames
}

/// Three GETs under way with tokens 10, 11 and 12 on streams 1, 3 and 5; what comes of `input`.
fn after(input: &[Vec<u8>]) -> (Vec<Seen>, Result<(), ConnectionError>, Vec<u8>) {
    let mut connection = established(&[]);
    for token in 10..13 {
        connection.open(&get(), token).unwrap();
    }
    drain(&mut connection);
    let mut keep = Keep {
        wants_fields: true,
        ..Keep::default()
    };
    let result = connection.receive(&input.concat(), &mut keep);
    (keep.seen, result, drain(&mut connection))
}

#[track_caller]
fn ends_with(input: &[Vec<u8>], error: ConnectionError) {
    let (seen, result, output) = after(input);
    assert_eq!(result, Err(error));
    let code = error.code().unwrap();
    let goaway = [0_u32.to_be_bytes(), code.0.to_be_bytes()].concat();
    assert_eq!(
        frames(&output).last(),
        Some(&(frame::GOAWAY, 0, 0, goaway)),
        "{error}"
    );
    let ended = seen
        .iter()
        .filter(|seen| matches!(seen, Seen::Complete(_) | Seen::Failed(..)))
        .count();
    assert_eq!(ended, 3, "{seen:?}");
}

/// The first stream fails, the connection and the second stream go on.
#[track_caller]
fn fails_one(input: &[Vec<u8>], error: MessageError) {
    let mut input = input.to_vec();
    input.push(headers(3, END_STREAM, OK));
    let (seen, result, output) = after(&input);
    assert_eq!(result, Ok(()), "{error}");
    let failed = Seen::Failed(10, error.into());
    assert!(seen.contains(&failed), "{error}: {seen:?}");
    assert_eq!(seen.last(), Some(&Seen::Complete(11)), "{error}");
    let reset = (frame::RST_STREAM, 0, 1, error.code().0.to_be_bytes().into());
    assert!(frames(&output).contains(&reset), "{error}");
}

#[test]
fn it_begins_with_preface_settings_and_window() {
    let mut connection = Connection::new(Settings::default());
    let output = drain(&mut connection);
    let frames = frames(output.strip_prefix(frame::PREFACE).unwrap());
    let (kind, flags, stream, payload) = &frames[0];
    assert_eq!((*kind, *flags, *stream), (frame::SETTINGS, 0, 0));
    assert!(payload.chunks(6).any(|entry| entry == [0, 2, 0, 0, 0, 0]));
    let more = ((1_u32 << 30) - 1 - 65_535).to_be_bytes().to_vec();
    assert_eq!(frames[1], (frame::WINDOW_UPDATE, 0, 0, more));
    assert_eq!(frames.len(), 2);
}

#[test]
fn responses_interleave() {
    let (seen, result, _) = after(&[
        headers(3, 0, OK),
        headers(1, 0, &[0x8d]),
        data(3, 0, b"he"),
        data(1, END_STREAM, b"no"),
        data(3, PADDED, b"\x03llo\0\0\0"),
        data(3, PADDED | END_STREAM, b"\0"),
        headers(5, END_STREAM, &[0x89]),
    ]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        seen,
        [
            Seen::Head(11, 200, ":status=200;".into()),
            Seen::Head(10, 404, ":status=404;".into()),
            Seen::Content(11, b"he".into()),
            Seen::Content(10, b"no".into()),
            Seen::Complete(10),
            Seen::Content(11, b"llo".into()),
            Seen::Complete(11),
            Seen::Head(12, 204, ":status=204;".into()),
            Seen::Complete(12),
        ]
    );
}

#[test]
fn interim_heads_priority_continuations_and_trailers() {
    let field = b"\x00\x01a\x01b";
    let (seen, result, _) = after(&[
        headers(1, 0, b"\x08\x03103"),
        raw(
            frame::HEADERS,
            0x20 | PADDED,
            1,
            b"\x02\0\0\0\x03\x10\x88\0\0",
        ),
        raw(frame::CONTINUATION, 0, 1, &field[..2]),
        raw(frame::CONTINUATION, END_HEADERS, 1, &field[2..]),
        raw(0xfa, 0xff, 1, b"unknown"),
        data(1, 0, b"hi"),
        headers(1, END_STREAM, field),
    ]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        seen,
        [
            Seen::Head(10, 200, ":status=200;a=b;".into()),
            Seen::Content(10, b"hi".into()),
            Seen::Trailers(10, "a=b;".into()),
            Seen::Complete(10),
        ]
    );
}

#[test]
fn a_length_that_announces_nothing_that_comes() {
    let length_5 = b"\x88\x0f\x0d\x015";
    let head = RequestHead::new("HEAD", "http", "a", "/")
        .unwrap()
        .finish(None);
    let mut connection = established(&[]);
    connection.open(&head, 1).unwrap();
    let mut keep = Keep::default();
    connection
        .receive(&headers(1, END_STREAM, length_5), &mut keep)
        .unwrap();
    assert_eq!(keep.seen[1..], [Seen::Complete(1)]);

    let (seen, _, _) = after(&[headers(1, END_STREAM, b"\x8b\x0f\x0d\x015")]);
    assert_eq!(seen[1..], [Seen::Complete(10)]);
}

#[test]
fn malformed_messages_reset_their_stream() {
    let length_5 = b"\x88\x0f\x0d\x015";
    for (input, error) in [
        (vec![headers(1, END_STREAM, &[])], MessageError::Status),
        (vec![headers(1, 0, &[0x88, 0x88])], MessageError::Status),
        (vec![headers(1, 0, b"\x08\x03101")], MessageError::Upgrade),
        (
            vec![headers(1, END_STREAM, b"\x08\x03103")],
            MessageError::InterimEnds,
        ),
        (
            vec![headers(1, 0, b"\x08\x03100"); 3],
            MessageError::TooManyInterim { limit: 2 },
        ),
        (
            vec![headers(1, 0, OK), headers(1, 0, &[])],
            MessageError::Trailers,
        ),
        (
            vec![headers(1, 0, OK), headers(1, END_STREAM, OK)],
            MessageError::Trailers,
        ),
        (vec![data(1, 0, b"early")], MessageError::ContentBeforeHead),
        (
            vec![headers(1, END_STREAM, length_5)],
            MessageError::LengthMismatch,
        ),
        (
            vec![headers(1, 0, length_5), data(1, END_STREAM, b"four")],
            MessageError::LengthMismatch,
        ),
        (
            vec![headers(1, 0, length_5), data(1, 0, b"longer")],
            MessageError::LengthMismatch,
        ),
        (
            vec![headers(1, 0, &[0x89]), data(1, END_STREAM, b"x")],
            MessageError::UnexpectedContent,
        ),
        (
            vec![headers(1, 0, OK), data(1, 0, &[0; 501])],
            MessageError::BodyTooLarge { limit: 500 },
        ),
        (
            vec![headers(1, 0, b"\x88\x0f\x0d\x03501")],
            MessageError::BodyTooLarge { limit: 500 },
        ),
        (
            vec![headers(
                1,
                0,
                &[0x88, 0x95, 0x95, 0x95, 0x95, 0x95, 0x95, 0x95, 0x95],
            )],
            MessageError::TooManyHeaders { limit: 8 },
        ),
        (
            vec![headers(1, 0, OK), data(1, 0, &[0; 1001])],
            MessageError::WindowExceeded,
        ),
        (vec![window_update(1, 0)], MessageError::WindowIncrement),
        (
            vec![window_update(1, 0x7fff_ffff)],
            MessageError::WindowOverflow,
        ),
        (
            vec![raw(frame::PRIORITY, 0, 1, b"1234")],
            MessageError::PrioritySize,
        ),
    ] {
        fails_one(&input, error);
    }
}

#[test]
fn violations_end_the_connection() {
    use ConnectionError as Error;

    let size = |frame, length| Error::FrameSize { frame, length };
    let stream = |frame, stream| Error::Stream { frame, stream };
    for (input, error) in [
        (vec![data(0, 0, b"")], stream("DATA", 0)),
        (vec![data(2, 0, b"")], stream("DATA", 2)),
        (vec![data(7, 0, b"")], stream("DATA", 7)),
        (vec![headers(0, 0, OK)], stream("HEADERS", 0)),
        (vec![headers(7, 0, OK)], stream("HEADERS", 7)),
        (
            vec![headers(1, END_STREAM, OK), data(1, 0, b"more")],
            Error::StreamClosed {
                frame: "DATA",
                stream: 1,
            },
        ),
        (vec![data(1, PADDED, b"")], Error::Padding),
        (
            vec![headers(1, 0, OK), data(1, PADDED, b"\x03ab")],
            Error::Padding,
        ),
        (vec![headers(1, PADDED, b"\x02\x88")], Error::Padding),
        (vec![headers(1, PADDED, b"")], size("HEADERS", 0)),
        (vec![headers(1, 0x20, b"1234")], size("HEADERS", 4)),
        (
            vec![headers(1, 0, &[0x80])],
            Error::Compression(HpackError::Index(0)),
        ),
        (
            vec![raw(frame::HEADERS, END_HEADERS, 1, &[0x88; 201])],
            Error::BlockTooLarge { limit: 200 },
        ),
        (
            vec![
                raw(frame::HEADERS, 0, 1, &[0x88; 150]),
                raw(frame::CONTINUATION, 0, 1, &[0x88; 51]),
            ],
            Error::BlockTooLarge { limit: 200 },
        ),
        (
            [
                vec![raw(frame::HEADERS, 0, 1, OK)],
                vec![raw(frame::CONTINUATION, 0, 1, b""); 4],
            ]
            .concat(),
            Error::TooManyContinuations { limit: 3 },
        ),
        (
            vec![raw(frame::HEADERS, 0, 1, OK), data(1, 0, b"")],
            Error::Continuation,
        ),
        (
            vec![
                raw(frame::HEADERS, 0, 1, OK),
                raw(frame::CONTINUATION, 4, 3, b""),
            ],
            Error::Continuation,
        ),
        (
            vec![raw(frame::CONTINUATION, END_HEADERS, 1, OK)],
            Error::Continuation,
        ),
        (
            vec![raw(
                frame::PUSH_PROMISE,
                END_HEADERS,
                1,
                &[0, 0, 0, 2, 0x82],
            )],
            Error::Push,
        ),
        (
            vec![raw(frame::PRIORITY, 0, 0, b"12345")],
            stream("PRIORITY", 0),
        ),
        (
            vec![raw(frame::RST_STREAM, 0, 1, b"123")],
            size("RST_STREAM", 3),
        ),
        (
            vec![raw(frame::RST_STREAM, 0, 0, b"1234")],
            stream("RST_STREAM", 0),
        ),
        (vec![raw(frame::SETTINGS, 0, 1, b"")], stream("SETTINGS", 1)),
        (
            vec![raw(frame::SETTINGS, 0, 0, b"12345")],
            size("SETTINGS", 5),
        ),
        (
            vec![raw(frame::SETTINGS, 1, 0, b"123456")],
            size("SETTINGS", 6),
        ),
        (
            vec![settings(&[(2, 1)])],
            Error::Setting { id: 2, value: 1 },
        ),
        (
            vec![settings(&[(4, 1 << 31)])],
            Error::Setting {
                id: 4,
                value: 1 << 31,
            },
        ),
        (
            vec![settings(&[(5, 16_383)])],
            Error::Setting {
                id: 5,
                value: 16_383,
            },
        ),
        (
            vec![window_update(1, 0x7fff_0000), settings(&[(4, 65_536)])],
            Error::WindowOverflow,
        ),
        (vec![raw(frame::PING, 0, 1, b"12345678")], stream("PING", 1)),
        (vec![raw(frame::PING, 0, 0, b"1234567")], size("PING", 7)),
        (
            vec![raw(frame::PING, 0, 0, b"12345678"); 5],
            Error::Flood { limit: 4 },
        ),
        (
            vec![raw(frame::GOAWAY, 0, 1, b"12345678")],
            stream("GOAWAY", 1),
        ),
        (
            vec![raw(frame::GOAWAY, 0, 0, b"1234567")],
            size("GOAWAY", 7),
        ),
        (
            vec![
                goaway(3, ErrorCode::NO_ERROR),
                goaway(5, ErrorCode::NO_ERROR),
            ],
            Error::GoAwayIncreased,
        ),
        (vec![window_update(0, 0)], Error::WindowIncrement),
        (vec![window_update(0, 0x7fff_ffff)], Error::WindowOverflow),
        (vec![window_update(7, 1)], stream("WINDOW_UPDATE", 7)),
        (
            vec![raw(frame::WINDOW_UPDATE, 0, 0, b"123")],
            size("WINDOW_UPDATE", 3),
        ),
        (
            vec![vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1]],
            Error::FrameTooLarge {
                length: 16_385,
                limit: 16_384,
            },
        ),
    ] {
        ends_with(&input, error);
    }
}

#[test]
fn an_http1_answer_is_named() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
        "HTTP/1.0",
    ] {
        let mut connection = Connection::new(small());
        connection.open(&get(), 3).unwrap();
        let mut keep = Keep::default();
        let result = connection
            .receive(answer.as_bytes(), &mut keep)
            .and_then(|()| connection.end_of_stream(&mut keep));
        assert_eq!(result, Err(ConnectionError::SpeaksHttp1));
        assert_eq!(
            keep.seen,
            [Seen::Failed(3, ConnectionError::SpeaksHttp1.into())]
        );
        let failure = ConnectionError::SpeaksHttp1.failure(Phase::Wait);
        assert_eq!(failure.kind, FailureKind::Protocol);
    }
}

#[test]
fn the_first_frame_has_to_be_settings() {
    for first in [
        raw(frame::SETTINGS, 1, 0, &[]),
        raw(frame::PING, 0, 0, &[0; 8]),
        b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(),
    ] {
        let mut connection = Connection::new(small());
        let result = connection.receive(&first, &mut Keep::default());
        assert_eq!(result, Err(ConnectionError::Preface));
        assert_eq!(connection.open(&get(), 0), Err(OpenError::Retired));
    }
}

#[test]
fn streams_are_as_many_as_both_allow() {
    let mut connection = established(&[(3, 2)]);
    assert_eq!(connection.capacity(), 2);
    let first = connection.open(&get(), 0).unwrap();
    connection.open(&get(), 1).unwrap();
    assert_eq!(connection.open(&get(), 2), Err(OpenError::Full));
    assert!(connection.cancel(first));
    assert!(!connection.cancel(first));
    let third = connection.open(&get(), 2).unwrap();
    assert_eq!(third.value(), 5);
    connection
        .receive(&settings(&[(3, 100)]), &mut Keep::default())
        .unwrap();
    assert_eq!(connection.capacity(), 6, "our own limit is 8");
    assert_eq!(connection.in_flight(), 2);
}

#[test]
fn the_second_request_of_a_kind_is_a_byte_for_each_field() {
    let mut connection = established(&[]);
    let request = get();
    for _ in 0..2 {
        connection.open(&request, 0).unwrap();
    }
    let flags = END_STREAM | END_HEADERS;
    assert_eq!(
        frames(&drain(&mut connection)),
        [
            (
                frame::HEADERS,
                flags,
                1,
                vec![0x82, 0x86, 0x84, 0x41, 1, b'a']
            ),
            (frame::HEADERS, flags, 3, vec![0x82, 0x86, 0x84, 0xbe]),
        ]
    );
}

#[test]
fn what_is_under_way_for_a_cancelled_stream_counts_and_is_ignored() {
    let mut connection = established(&[]);
    let id = connection.open(&get(), 7).unwrap();
    connection.cancel(id);
    connection.open(&get(), 8).unwrap();
    let output = drain(&mut connection);
    let cancel = (frame::RST_STREAM, 0, 1, vec![0, 0, 0, 8]);
    assert!(frames(&output).contains(&cancel));
    let mut keep = Keep {
        wants_fields: true,
        ..Keep::default()
    };
    let input = [
        // Adds an entry to the dynamic table.
        headers(1, 0, b"\x88\x40\x01a\x01b"),
        data(1, 0, &[0; 600]),
        data(1, END_STREAM, &[0; 600]),
        raw(frame::RST_STREAM, 0, 1, &[0; 4]),
        window_update(1, 1),
        headers(3, END_STREAM, &[0x88, 0xbe]),
    ];
    connection.receive(&input.concat(), &mut keep).unwrap();
    assert_eq!(
        keep.seen,
        [
            Seen::Head(8, 200, ":status=200;a=b;".into()),
            Seen::Complete(8)
        ]
    );
}

#[test]
fn resets_say_whether_a_retry_is_safe() {
    let reset = |stream, code: ErrorCode| raw(frame::RST_STREAM, 0, stream, &code.0.to_be_bytes());
    let (seen, result, _) = after(&[
        reset(1, ErrorCode::REFUSED_STREAM),
        headers(3, 0, OK),
        reset(3, ErrorCode::INTERNAL_ERROR),
    ]);
    assert_eq!(result, Ok(()));
    let retries: Vec<_> = seen
        .iter()
        .filter_map(|seen| match seen {
            Seen::Failed(token, error) => Some((*token, error.failure(Phase::Wait).retry)),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [(10, Retry::Safe), (11, Retry::Never)]);
}

#[test]
fn goaway_parts_the_unprocessed_from_the_processed() {
    let mut connection = established(&[]);
    for token in 10..13 {
        connection.open(&get(), token).unwrap();
    }
    let mut keep = Keep::default();
    let code = ErrorCode::NO_ERROR;
    let input = [
        goaway(0x7fff_ffff, code),
        goaway(3, code),
        headers(1, END_STREAM, OK),
        // Known to be gone, not an error.
        headers(5, END_STREAM, OK),
    ];
    connection.receive(&input.concat(), &mut keep).unwrap();
    let gone = StreamError::GoneAway { code };
    assert_eq!(
        keep.seen,
        [
            Seen::GoingAway(0x7fff_ffff, code),
            Seen::GoingAway(3, code),
            Seen::Failed(12, gone),
            Seen::Head(10, 200, String::new()),
            Seen::Complete(10),
        ]
    );
    assert_eq!(gone.failure(Phase::Wait).retry, Retry::Safe);
    assert_eq!(connection.open(&get(), 0), Err(OpenError::Retired));
    assert_eq!(connection.in_flight(), 1);
    let closed = ConnectionError::Closed(Some(code));
    assert_eq!(connection.end_of_stream(&mut keep), Err(closed));
    assert_eq!(keep.seen.last(), Some(&Seen::Failed(11, closed.into())));
}

#[test]
fn the_end_of_a_connection_is_reported_to_each_exchange_once() {
    let mut idle = established(&[]);
    assert_eq!(idle.end_of_stream(&mut Keep::default()), Ok(()));
    assert_eq!(idle.capacity(), 0);

    let mut cut = established(&[]);
    cut.open(&get(), 1).unwrap();
    let mut keep = Keep::default();
    cut.receive(
        &[headers(1, 0, OK), data(1, 0, b"abc")[..11].to_vec()].concat(),
        &mut keep,
    )
    .unwrap();
    let error = ConnectionError::ClosedInFrame;
    assert_eq!(cut.end_of_stream(&mut keep), Err(error));
    cut.lost(&mut keep);
    assert_eq!(cut.receive(b"more", &mut keep), Err(error));
    assert_eq!(
        keep.seen[1..],
        [
            Seen::Content(1, b"ab".into()),
            Seen::Failed(1, error.into())
        ]
    );
}

#[test]
fn content_goes_as_windows_allow() {
    let mut connection = established(&[(4, 10)]);
    let request = post(25);
    connection.open(&request, 0).unwrap();
    connection.open(&request, 1).unwrap();
    let sent = |connection: &mut Connection| -> Vec<(u32, u8, usize)> {
        frames(&drain(connection))
            .into_iter()
            .filter(|(kind, ..)| *kind == frame::DATA)
            .map(|(_, flags, stream, payload)| (stream, flags, payload.len()))
            .collect()
    };
    let keep = &mut Keep::default();
    assert_eq!(sent(&mut connection), [(1, 0, 10), (3, 0, 10)]);
    connection.receive(&window_update(1, 5), keep).unwrap();
    assert_eq!(sent(&mut connection), [(1, 0, 5)]);
    // Smaller than what was sent: the windows become negative.
    connection.receive(&settings(&[(4, 5)]), keep).unwrap();
    connection.receive(&window_update(3, 5), keep).unwrap();
    assert_eq!(sent(&mut connection), []);
    connection.receive(&settings(&[(4, 100)]), keep).unwrap();
    assert_eq!(
        sent(&mut connection),
        [(1, END_STREAM, 10), (3, END_STREAM, 15)]
    );
}

#[test]
fn content_of_many_streams_takes_turns_within_the_window_of_the_connection() {
    let mut connection = established(&[(4, 1_000_000)]);
    let request = post(40_000);
    connection.open(&request, 0).unwrap();
    connection.open(&request, 1).unwrap();
    let mut bodies = [Vec::new(), Vec::new()];
    let mut credit = 65_535;
    while bodies.iter().any(|body| body.len() < 40_000) {
        let output = drain(&mut connection);
        assert!(
            output.len() < 20_000 + 16_384 + 200,
            "the buffer is bounded"
        );
        for (kind, flags, stream, payload) in frames(&output) {
            if kind == frame::DATA {
                credit -= payload.len();
                let body = &mut bodies[stream as usize / 2];
                body.extend(payload);
                assert_eq!(flags & END_STREAM != 0, body.len() == 40_000);
            }
        }
        let is_sent = bodies.iter().all(|body| body.len() == 40_000);
        if !connection.wants_write() && !is_sent {
            assert_eq!(credit, 0);
            credit += 7_000;
            let update = window_update(0, 7_000);
            connection.receive(&update, &mut Keep::default()).unwrap();
        }
    }
    assert!(bodies.iter().all(|body| body == request.body()));
}

#[test]
fn an_answer_before_the_end_of_the_request_stops_the_request() {
    let mut connection = established(&[(4, 10)]);
    connection.open(&post(25), 0).unwrap();
    drain(&mut connection);
    let mut keep = Keep::default();
    connection
        .receive(&headers(1, END_STREAM, OK), &mut keep)
        .unwrap();
    assert_eq!(keep.seen.last(), Some(&Seen::Complete(0)));
    assert_eq!(
        frames(&drain(&mut connection)),
        [(frame::RST_STREAM, 0, 1, vec![0, 0, 0, 8])]
    );
    connection
        .receive(&window_update(1, 100), &mut keep)
        .unwrap();
    assert!(!connection.wants_write());
}

#[test]
fn windows_are_given_back_at_half() {
    let mut connection = Connection::new(Settings {
        connection_window: 65_535,
        limits: Limits::default(),
        ..small()
    });
    connection
        .receive(&settings(&[]), &mut Keep::default())
        .unwrap();
    connection.open(&get(), 0).unwrap();
    drain(&mut connection);
    let mut keep = Keep::default();
    connection.receive(&headers(1, 0, OK), &mut keep).unwrap();
    let mut stream_window = 1000;
    let mut window = 65_535;
    for _ in 0..200 {
        connection
            .receive(&data(1, 0, &[0; 400]), &mut keep)
            .unwrap();
        stream_window -= 400;
        window -= 400;
        for (kind, _, stream, payload) in frames(&drain(&mut connection)) {
            assert_eq!(kind, frame::WINDOW_UPDATE);
            let increment = u32::from_be_bytes(payload.try_into().unwrap());
            *(if stream == 0 {
                &mut window
            } else {
                &mut stream_window
            }) += increment;
        }
        assert!((500..=1000).contains(&stream_window), "{stream_window}");
        assert!((32_768..=65_535).contains(&window), "{window}");
    }
}

#[test]
fn a_request_longer_than_a_frame_is_continued() {
    let mut head = RequestHead::new("GET", "http", "a", "/").unwrap();
    head.field("x", &"\u{1f6a2}".repeat(5_000)).unwrap();
    let mut connection = established(&[]);
    let request = head.finish(None);
    connection.open(&request, 0).unwrap();
    let frames = frames(&drain(&mut connection));
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].0, frames[0].1), (frame::HEADERS, END_STREAM));
    assert_eq!(
        (frames[1].0, frames[1].1),
        (frame::CONTINUATION, END_HEADERS)
    );
    let block = [&frames[0].3[..], &frames[1].3].concat();
    assert_eq!(Encoder::new().encode(&request), block);
}

#[test]
fn ping_is_answered() {
    let (_, result, output) = after(&[
        raw(frame::PING, 0, 0, b"12345678"),
        raw(frame::PING, 1, 0, b"87654321"),
    ]);
    assert_eq!(result, Ok(()));
    assert_eq!(frames(&output), [(frame::PING, 1, 0, b"12345678".to_vec())]);
}

#[test]
fn only_its_own_answer_ends_a_probe() {
    let mut connection = established(&[]);
    drain(&mut connection);
    assert!(!connection.is_probing());
    connection.probe();
    connection.probe();
    let output = drain(&mut connection);
    assert_eq!(frames(&output), [(frame::PING, 0, 0, b"plimsoll".to_vec())]);
    for (payload, is_probing) in [(b"12345678", true), (b"plimsoll", false)] {
        let answer = raw(frame::PING, 1, 0, payload);
        connection.receive(&answer, &mut Keep::default()).unwrap();
        assert_eq!(connection.is_probing(), is_probing);
    }
}

/// Frames that are mostly right.
fn traffic() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![5 => prop::sample::select(vec![1_u32, 3, 5]), 1 => 0_u32..9];
    let block = prop_oneof![
        Just(b"\x88".to_vec()),
        Just(b"\x88\x40\x01a\x01b".to_vec()),
        Just(b"\x88\xbe".to_vec()),
        Just(b"\x88\x0f\x0d\x015".to_vec()),
        Just(b"\x08\x03103".to_vec()),
        Just(b"\x00\x01a\x01b".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    let flags = prop::sample::select(vec![0_u8, 1, 4, 5, 5, 8, 9, 13, 0x24]);
    let frame = prop_oneof![
        4 => (stream.clone(), flags.clone(), block)
            .prop_map(|(stream, flags, block)| raw(frame::HEADERS, flags | 4, stream, &block)),
        4 => (stream.clone(), flags.clone(), prop::collection::vec(0_u8..4, 0..40))
            .prop_map(|(stream, flags, content)| data(stream, flags, &content)),
        1 => (stream.clone(), 0_u32..70_000).prop_map(|(stream, by)| window_update(stream, by)),
        1 => (0_u32..8, 0_u32..9).prop_map(|(last, code)| goaway(last, ErrorCode(code))),
        1 => (1_u16..7, 0_u32..70_000).prop_map(|entry| settings(&[entry])),
        1 => (0_u8..12, flags, stream, prop::collection::vec(any::<u8>(), 0..12))
            .prop_map(|(kind, flags, stream, payload)| raw(kind, flags, stream, &payload)),
    ];
    prop::collection::vec(frame, 0..12).prop_map(|frames| frames.concat())
}

/// Everything that can be seen of a connection that was fed `pieces`.
fn outcome<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    begin: &[u8],
) -> (Vec<Seen>, Result<(), ConnectionError>, Vec<u8>, usize) {
    let mut connection = Connection::new(small());
    let mut keep = Keep {
        wants_fields: true,
        ..Keep::default()
    };
    let mut result = connection.receive(begin, &mut keep);
    let mut opened = 0;
    for (token, request) in (10..).zip([get(), post(100), post(70_000)]) {
        opened += usize::from(connection.open(&request, token).is_ok());
    }
    assert_eq!(opened, if begin.is_empty() { 1 } else { 3 });
    let mut output = drain(&mut connection);
    for piece in pieces {
        if result.is_ok() {
            result = connection.receive(piece, &mut keep);
        }
    }
    if result.is_ok() {
        result = connection.end_of_stream(&mut keep);
    }
    while connection.wants_write() {
        output.extend(drain(&mut connection));
    }
    for token in (10..).take(opened) {
        let ends = keep
            .seen
            .iter()
            .filter(|seen| matches!(seen, Seen::Complete(t) | Seen::Failed(t, _) if *t == token))
            .count();
        assert_eq!(ends, 1, "token {token}: {:?}", keep.seen);
    }
    (keep.seen, result, output, connection.in_flight())
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        input in traffic(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let begin = settings(&[(4, 1_000)]);
        let whole = outcome([&input[..]], &begin);
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        places.extend([0, input.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| &input[pair[0]..pair[1]]);
        prop_assert_eq!(&outcome(pieces, &begin), &whole);
        prop_assert_eq!(&outcome(input.chunks(1), &begin), &whole);
        prop_assert_eq!(whole.3, 0);
    }

    #[test]
    fn random_bytes_never_panic(
        input in prop::collection::vec(any::<u8>(), 0..200),
        has_settings in any::<bool>(),
    ) {
        let begin = if has_settings { settings(&[]) } else { Vec::new() };
        prop_assert_eq!(outcome([&input[..]], &begin), outcome(input.chunks(3), &begin));
    }
}

#[test]
fn traffic_is_that_of_the_exchanges_own_frames() {
    let mut connection = established(&[]);
    let id = connection.open(&post(600), 1).unwrap();
    connection.open(&get(), 2).unwrap();
    assert!(connection.is_sent(id));
    let sent = frames(&drain(&mut connection));
    let bytes_of = |stream: u32| -> u64 {
        let frames = sent.iter().filter(|frame| frame.2 == stream);
        frames.map(|frame| 9 + frame.3.len() as u64).sum()
    };
    let sent = connection.traffic(id).unwrap();
    assert_eq!((sent.sent, sent.received), (bytes_of(1), 0));
    let (first, second) = (
        headers(1, 0, OK),
        data(1, PADDED | END_STREAM, b"\x03llo\0\0\0"),
    );
    let reset = raw(frame::RST_STREAM, 0, 3, &[0, 0, 0, 7]);
    let input = [&first[..], &window_update(1, 9), &second, &reset].concat();
    let mut keep = Keep::default();
    // Cut in the middle of a frame, which changes nothing.
    let (before, after) = input.split_at(first.len() + 4);
    connection.receive(before, &mut keep).unwrap();
    connection.receive(after, &mut keep).unwrap();
    let received = (first.len() + second.len()) as u64;
    let expected = [
        (
            1,
            Traffic {
                sent: bytes_of(1),
                received,
            },
        ),
        (
            2,
            Traffic {
                sent: bytes_of(3),
                received: 0,
            },
        ),
    ];
    assert_eq!(keep.traffic, expected);
    assert_eq!(connection.traffic(id), None);
}

#[test]
fn a_request_is_sent_when_its_last_piece_is_in_the_output() {
    let mut connection = established(&[(4, 100)]);
    let id = connection.open(&post(150), 1).unwrap();
    drain(&mut connection);
    assert!(!connection.is_sent(id));
    let update = window_update(1, 50);
    connection.receive(&update, &mut Keep::default()).unwrap();
    drain(&mut connection);
    assert!(connection.is_sent(id));
}
