use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Type, data and last ID of every event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen(Vec<(String, String, String)>);

impl EventSink for Seen {
    fn event(&mut self, event: Event<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((
            text(event.kind),
            text(event.data),
            text(event.last_event_id),
        ));
    }
}

fn read(pieces: &[&[u8]]) -> (Decoder, Vec<(String, String, String)>, Option<TooLong>) {
    let limits = Limits {
        event_bytes: 40,
        id_bytes: 8,
    };
    let mut decoder = Decoder::new(limits);
    let mut seen = Seen::default();
    for piece in pieces {
        if let Err(error) = decoder.decode(piece, &mut seen) {
            assert_eq!(decoder.decode(b"data: x\n\n", &mut seen), Err(error));
            return (decoder, seen.0, Some(error));
        }
    }
    (decoder, seen.0, None)
}

#[track_caller]
fn assert_events(stream: &str, expected: &[(&str, &str, &str)]) {
    let (_, seen, error) = read(&[stream.as_bytes()]);
    assert_eq!(error, None, "{stream:?}");
    let seen: Vec<_> = seen
        .iter()
        .map(|(kind, data, id)| (kind.as_str(), data.as_str(), id.as_str()))
        .collect();
    assert_eq!(seen, expected, "{stream:?}");
}

#[test]
fn the_examples_of_the_standard_are_read_as_it_says() {
    assert_events(
        "data: YHOO\ndata: +2\ndata: 10\n\n",
        &[("message", "YHOO\n+2\n10", "")],
    );
    // The third block has its data but not its empty line.
    assert_events(
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
        &[
            ("message", "first event", "1"),
            ("message", "second event", ""),
        ],
    );
    assert_events(
        "data\n\ndata\ndata\n\ndata:",
        &[("message", "", ""), ("message", "\n", "")],
    );
    assert_events(
        "data:test\n\ndata: test\n\n",
        &[("message", "test", ""), ("message", "test", "")],
    );
}

#[test]
fn lines_end_in_three_ways_and_a_mark_may_come_first() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = format!("\u{feff}event: a{end}data: 1{end}data: 2{end}{end}data: 3{end}{end}");
        assert_events(&stream, &[("a", "1\n2", ""), ("message", "3", "")]);
    }
    // Anywhere else it is a part of the field's name.
    assert_events("data: 1\n\u{feff}data: 2\n\n", &[("message", "1", "")]);
}

#[test]
fn ids_stay_until_there_is_another() {
    assert_events(
        "id: 7\ndata: a\n\ndata: b\n\nid: x\0y\ndata: c\n\nid: 8\n\ndata: d\n\n",
        &[
            ("message", "a", "7"),
            ("message", "b", "7"),
            ("message", "c", "7"),
            ("message", "d", "8"),
        ],
    );
    let (mut decoder, ..) = read(&[b"id: 1\ndata: a\n\nid: 2\ndata: b\n"]);
    // The second event is not complete.
    assert_eq!(decoder.last_event_id(), b"1");
    decoder.restart();
    let mut seen = Seen::default();
    decoder.decode(b"data: c\n\n", &mut seen).unwrap();
    assert_eq!(seen.0, [("message".into(), "c".into(), "1".into())]);
    decoder.forget();
    assert_eq!(decoder.last_event_id(), b"");
}

#[test]
fn retry_is_digits_and_nothing_else() {
    let retry = |text: &str| read(&[format!("retry: {text}\n").as_bytes()]).0.retry();
    assert_eq!(retry("1500"), Some(Duration::from_millis(1500)));
    assert_eq!(retry("0"), Some(Duration::ZERO));
    for wrong in ["", "1s", "-1", "+1", "1.5", " 1", "99999999999999999999999"] {
        assert_eq!(retry(wrong), None, "{wrong}");
    }
}

#[test]
fn other_lines_are_none() {
    assert_events("event: x\n\n", &[]);
    assert_events(": data: x\n\n", &[]);
    assert_events("Data: x\ndatas: x\n\n", &[]);
    assert_events("event: x\n\ndata: y\n\n", &[("message", "y", "")]);
}

#[test]
fn what_is_too_long_ends_the_stream() {
    let long = "x".repeat(41);
    for stream in [
        format!(":{long}"),
        format!("data: {long}\n"),
        format!("data: {0}\ndata: {0}\n", "x".repeat(20)),
        format!("event: {}\ndata: {}\n", "x".repeat(30), "x".repeat(20)),
    ] {
        assert_eq!(read(&[stream.as_bytes()]).2, Some(TooLong::Event(40)));
    }
    assert_eq!(read(&[b"id: 123456789\n"]).2, Some(TooLong::Id(8)));
    assert_eq!(read(&[b"id: 12345678\n"]).2, None);
}

#[test]
fn content_types_are_distinguished() {
    for right in [
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "text/event-stream ;",
    ] {
        assert!(is_event_stream(right.as_bytes()), "{right}");
    }
    for wrong in ["", "text/html", "text/event-streams", "application/json"] {
        assert!(!is_event_stream(wrong.as_bytes()), "{wrong}");
    }
}

/// Bytes of which many make lines.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        &b"data"[..],
        b"data: ",
        b"event:",
        b"id:",
        b"retry:",
        b": ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"1",
        b"abc",
        b"\xef\xbb\xbf",
        b"\0",
        b"\xff",
        b"0123456789",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<_> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (whole, events, error) = read(&[&bytes]);
        let (parts, in_parts, its_error) = read(&pieces);
        prop_assert_eq!(events, in_parts);
        prop_assert_eq!(error, its_error);
        prop_assert_eq!(whole.last_event_id(), parts.last_event_id());
        prop_assert_eq!(whole.retry(), parts.retry());
    }

    #[test]
    fn what_is_written_is_read(
        events in prop::collection::vec(("[a-z]{1,8}", "[ -~é]{0,8}", "[a-z0-9]{0,8}"), 0..8),
    ) {
        let blocks = events
            .iter()
            .map(|(kind, data, id)| format!("event: {kind}\ndata: {data}\nid: {id}\n\n"));
        let stream: String = blocks.collect();
        let (_, seen, error) = read(&[stream.as_bytes()]);
        prop_assert_eq!(error, None);
        prop_assert_eq!(seen, events);
    }
}
