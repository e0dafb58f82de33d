use super::*;
use crate::h2::hpack::Fields;
use crate::h2::{ConnectionError, Events, ResponseHead, Settings, StreamError};

/// Events as text.
#[derive(Debug, Default)]
struct Log(Vec<String>);

impl Events for Log {
    fn wants_fields(&self) -> bool {
        true
    }

    fn interim(&mut self, token: u32, status: u16, fields: &Fields) {
        self.0
            .push(format!("{token} interim {status} {}", fields.len()));
    }

    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        self.0.push(format!("{token} head {}", head.status));
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        self.0.push(format!("{token} content {}", piece.len()));
    }

    fn window_opened(&mut self, token: Option<u32>) {
        self.0.push(format!("window {token:?}"));
    }

    fn complete(&mut self, token: u32) {
        self.0.push(format!("{token} complete"));
    }

    fn failed(&mut self, token: u32, error: &StreamError) {
        self.0.push(format!("{token} failed: {error}"));
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

/// A connection with windows of 100 bytes each way, and a streamed request on stream 1 with token 7.
fn connection(request: StreamedRequest) -> (Connection, StreamId) {
    let mut connection = Connection::new(Settings {
        stream_window: 100,
        ..Settings::default()
    });
    let window = [0, 4, 0, 0, 0, 100, 0, 8, 0, 0, 0, 1];
    let settings = raw(frame::SETTINGS, 0, 0, &window);
    connection.receive(&settings, &mut Log::default()).unwrap();
    let id = connection
        .open_streamed(request, 7, |writer| {
            writer.field(b":method", b"POST");
            writer.field(b"X-Name", b"value");
        })
        .unwrap();
    take_output(&mut connection);
    (connection, id)
}

fn take_output(connection: &mut Connection) -> Vec<u8> {
    let output = connection.output().to_vec();
    connection.written(output.len());
    output
}

fn receive(connection: &mut Connection, bytes: &[u8]) -> Vec<String> {
    let mut log = Log::default();
    connection.receive(bytes, &mut log).unwrap();
    log.0
}

fn head(stream: u32, flags: u8) -> Vec<u8> {
    raw(frame::HEADERS, END_HEADERS | flags, stream, &[0x88])
}

#[test]
fn credit_is_returned_as_content_is_consumed() {
    let (mut connection, id) = connection(StreamedRequest {
        is_whole: true,
        ..StreamedRequest::default()
    });
    assert!(connection.is_sent(id));
    receive(&mut connection, &head(1, 0));
    receive(&mut connection, &raw(frame::DATA, 0, 1, &[0; 90]));
    assert!(take_output(&mut connection).is_empty());
    connection.consume(id, 49);
    assert!(take_output(&mut connection).is_empty());
    connection.consume(id, 41);
    let update = raw(frame::WINDOW_UPDATE, 0, 1, &90_u32.to_be_bytes());
    assert_eq!(take_output(&mut connection), update);
    // More than the window is refused on the stream, not the connection.
    let log = receive(&mut connection, &raw(frame::DATA, 0, 1, &[0; 101]));
    assert!(
        log[0].starts_with("7 failed: content exceeds the window"),
        "{log:?}"
    );
}

#[test]
fn padding_needs_no_reader_to_consume_it() {
    let (mut connection, id) = connection(StreamedRequest::default());
    receive(&mut connection, &head(1, 0));
    let padded = [&[59][..], &[1; 10], &[0; 59]].concat();
    let log = receive(&mut connection, &raw(frame::DATA, PADDED, 1, &padded));
    assert_eq!(log, ["7 content 10"]);
    let update = raw(frame::WINDOW_UPDATE, 0, 1, &60_u32.to_be_bytes());
    assert_eq!(take_output(&mut connection), update);
    connection.consume(id, 10);
}

#[test]
fn content_is_sent_as_the_window_allows() {
    let (mut connection, id) = connection(StreamedRequest::default());
    assert_eq!(connection.send_room(id), 100);
    assert_eq!(connection.send_data(id, &[1; 150], true), 100);
    assert!(!connection.is_sent(id));
    assert_eq!(
        take_output(&mut connection),
        raw(frame::DATA, 0, 1, &[1; 100])
    );
    assert_eq!(connection.send_data(id, &[1; 50], true), 0);
    let update = raw(frame::WINDOW_UPDATE, 0, 1, &60_u32.to_be_bytes());
    assert_eq!(receive(&mut connection, &update), ["window Some(7)"]);
    assert_eq!(connection.send_data(id, &[1; 50], true), 50);
    assert!(connection.is_sent(id));
    assert_eq!(
        take_output(&mut connection),
        raw(frame::DATA, END_STREAM, 1, &[1; 50])
    );
    assert_eq!(connection.send_data(id, &[1; 5], false), 0);
}

#[test]
fn trailers_end_a_request() {
    let (mut connection, id) = connection(StreamedRequest::default());
    connection.send_trailers(id, |writer| writer.field(b"x-sum", b"1"));
    assert!(connection.is_sent(id));
    let output = take_output(&mut connection);
    assert_eq!(
        (output[3], output[4]),
        (frame::HEADERS, END_HEADERS | END_STREAM)
    );
}

#[test]
fn a_request_may_go_on_behind_its_response() {
    let (mut connection, id) = connection(StreamedRequest::default());
    assert_eq!(
        receive(&mut connection, &head(1, END_STREAM)),
        ["7 head 200", "7 complete"]
    );
    assert_eq!(connection.in_flight(), 1);
    assert_eq!(connection.send_data(id, b"more", true), 4);
    assert_eq!(connection.in_flight(), 0);
    take_output(&mut connection);
}

#[test]
fn nothing_may_follow_the_end_of_a_response() {
    for frame in [head(1, 0), raw(frame::DATA, 0, 1, b"x")] {
        let (mut connection, _) = connection(StreamedRequest::default());
        receive(&mut connection, &head(1, END_STREAM));
        let error = connection.receive(&frame, &mut Log::default()).unwrap_err();
        assert!(
            matches!(error, ConnectionError::StreamClosed { .. }),
            "{error}"
        );
    }
}

#[test]
fn interim_heads_are_events() {
    let (mut connection, _) = connection(StreamedRequest::default());
    // `:status: 103` as a literal with the name of the static table.
    let interim = [&[0x08, 3][..], b"103"].concat();
    let frame = raw(frame::HEADERS, END_HEADERS, 1, &interim);
    assert_eq!(receive(&mut connection, &frame), ["7 interim 103 1"]);
}

#[test]
fn a_tunnel_has_no_announced_length() {
    let (mut connection, id) = connection(StreamedRequest {
        is_tunnel: true,
        ..StreamedRequest::default()
    });
    assert!(connection.allows_connect_protocol());
    // `:status: 200`, `content-length: 0`.
    let block = [&[0x88, 0x0f, 13, 1][..], b"0"].concat();
    receive(
        &mut connection,
        &raw(frame::HEADERS, END_HEADERS, 1, &block),
    );
    let log = receive(&mut connection, &raw(frame::DATA, END_STREAM, 1, b"bytes"));
    assert_eq!(log, ["7 content 5", "7 complete"]);
    assert_eq!(connection.send_data(id, b"back", true), 4);
}

#[test]
fn a_reset_has_the_code_of_the_caller() {
    let (mut connection, id) = connection(StreamedRequest::default());
    assert!(connection.reset(id, crate::h2::ErrorCode::INTERNAL_ERROR));
    let frame = raw(frame::RST_STREAM, 0, 1, &2_u32.to_be_bytes());
    assert_eq!(take_output(&mut connection), frame);
    assert!(!connection.reset(id, crate::h2::ErrorCode::CANCEL));
}
