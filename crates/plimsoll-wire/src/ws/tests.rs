use proptest::prelude::*;

use super::*;

/// Decoded events, with the pieces of a message put together.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

#[derive(Debug, Default)]
struct Sink {
    content: Vec<u8>,
    seen: Vec<Seen>,
}

impl FrameSink for Sink {
    fn piece(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        self.seen.push(match event {
            Event::Message { kind, length } => {
                assert_eq!(length, self.content.len() as u64);
                Seen::Message(kind, std::mem::take(&mut self.content))
            }
            Event::Ping(payload) => Seen::Ping(payload.to_vec()),
            Event::Pong(payload) => Seen::Pong(payload.to_vec()),
            Event::Close(close) => {
                Seen::Close(close.map(|close| (close.code, close.reason.to_owned())))
            }
        });
    }
}

fn decode(role: Role, limits: Limits, pieces: &[&[u8]]) -> (Vec<Seen>, Result<(), FrameError>) {
    decode_by(Decoder::new(role, limits), pieces)
}

/// The same with compression agreed on.
fn inflate(limits: Limits, pieces: &[&[u8]]) -> (Vec<Seen>, Result<(), FrameError>) {
    decode_by(Decoder::new(Role::Client, limits).with_deflate(), pieces)
}

fn decode_by(mut decoder: Decoder, pieces: &[&[u8]]) -> (Vec<Seen>, Result<(), FrameError>) {
    let mut sink = Sink::default();
    let mut result = Ok(());
    for piece in pieces {
        result = decoder.decode(piece, &mut sink);
        if result.is_err() {
            break;
        }
    }
    (sink.seen, result)
}

fn of_server(bytes: &[u8]) -> (Vec<Seen>, Result<(), FrameError>) {
    decode(Role::Client, Limits::default(), &[bytes])
}

fn error(bytes: &[u8]) -> FrameError {
    of_server(bytes).1.unwrap_err()
}

/// The examples of section 5.7.
#[test]
fn the_examples_of_the_specification() {
    let hello = Seen::Message(MessageKind::Text, b"Hello".to_vec());
    for frames in [&b"\x81\x05Hello"[..], b"\x01\x03Hel\x80\x02lo"] {
        assert_eq!(of_server(frames), (vec![hello.clone()], Ok(())));
    }
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    let seen = decode(Role::Server, Limits::default(), &[masked]);
    assert_eq!(seen, (vec![hello], Ok(())));
    assert_eq!(
        of_server(b"\x89\x05Hello").0,
        [Seen::Ping(b"Hello".to_vec())]
    );
    let long = [b"\x82\x7e\x01\x00", &[7; 256][..]].concat();
    let seen = of_server(&long).0;
    assert_eq!(seen, [Seen::Message(MessageKind::Binary, vec![7; 256])]);
    let longer = [&b"\x82\x7f\0\0\0\0\0\x01\0\0"[..], &vec![9; 65_536]].concat();
    let seen = of_server(&longer).0;
    assert_eq!(seen, [Seen::Message(MessageKind::Binary, vec![9; 65_536])]);
    let key = Key::new(*b"the sample nonce");
    assert_eq!(key.text(), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(key.text().len(), Key::LENGTH);
    assert_eq!(key.accept(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn what_breaks_the_rules_is_named() {
    for (bytes, wrong) in [
        (&b"\xc1\x00"[..], FrameError::Reserved),
        (b"\x83\x00", FrameError::Opcode(3)),
        (b"\x81\x80", FrameError::Mask { is_masked: true }),
        (b"\x09\x00", FrameError::FragmentedControl),
        (b"\x89\x7e", FrameError::LongControl),
        (b"\x81\x7e\x00\x7d", FrameError::Length),
        (b"\x81\x7f\0\0\0\0\0\0\xff\xff", FrameError::Length),
        (b"\x81\x7f\xff\0\0\0\0\0\0\0", FrameError::Length),
        (b"\x80\x00", FrameError::NothingToContinue),
        (b"\x01\x01a\x81\x01b", FrameError::Interleaved),
        (b"\x81\x01\xff", FrameError::Utf8),
        (b"\x81\x02\xe2\x82", FrameError::Utf8),
        (b"\x88\x01\x03", FrameError::CloseLength),
        (b"\x88\x02\x03\xed", FrameError::CloseCode(1005)),
        (b"\x88\x03\x03\xe8\xff", FrameError::Utf8),
    ] {
        assert_eq!(error(bytes), wrong, "{bytes:x?}");
    }
    let limits = Limits { message_bytes: 4 };
    let too_large = Err(FrameError::TooLarge { limit: 4 });
    let sent = b"\x01\x03abc\x80\x02de";
    assert_eq!(decode(Role::Client, limits, &[sent]), (vec![], too_large));
    let unmasked = decode(Role::Server, limits, &[b"\x81\x00"]).1;
    assert_eq!(unmasked, Err(FrameError::Mask { is_masked: false }));
    assert_eq!(FrameError::Utf8.close_code(), 1007);
    assert_eq!(FrameError::TooLarge { limit: 4 }.close_code(), 1009);
    assert_eq!(FrameError::Reserved.close_code(), 1002);
}

/// The examples of RFC 7692, section 7.2.3, and messages without compression between them.
#[test]
fn compressed_messages() {
    let hello = Seen::Message(MessageKind::Text, b"Hello".to_vec());
    let examples = [
        &b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00"[..],
        b"\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00",
        b"\xc1\x0b\x00\x05\x00\xfa\xffHello\x00",
        b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
        b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
        // Other clients accept this one too.
        b"\xc1\x07\xf3\x48\xcd\xc9\xc9\x07\x00",
        b"\x81\x05Hello",
    ];
    for frames in examples {
        let seen = inflate(Limits::default(), &[frames]);
        assert_eq!(seen, (vec![hello.clone()], Ok(())), "{frames:x?}");
    }
    let all = examples.concat();
    let bytes: Vec<_> = all.chunks(1).collect();
    let seen = inflate(Limits::default(), &bytes);
    assert_eq!(seen, (vec![hello; examples.len()], Ok(())));
    let empty = inflate(Limits::default(), &[b"\xc2\x01\x00"]).0;
    assert_eq!(empty, [Seen::Message(MessageKind::Binary, Vec::new())]);
}

#[test]
fn compressed_messages_that_break_the_rules() {
    let limits = Limits { message_bytes: 600 };
    let check = |frames: &[u8], wrong: FrameError, code: u16| {
        assert_eq!(inflate(limits, &[frames]).1, Err(wrong), "{frames:x?}");
        assert_eq!(wrong.close_code(), code);
    };
    // Only the first frame of a message has RSV1; control frames never have it.
    check(b"\x41\x01\xf2\xc0\x01\x48", FrameError::Reserved, 1002);
    check(b"\xc9\x00", FrameError::Reserved, 1002);
    check(b"\xc8\x00", FrameError::Reserved, 1002);
    check(b"\xa1\x00", FrameError::Reserved, 1002);
    check(b"\xd1\x00", FrameError::Reserved, 1002);
    check(b"\xc3\x00", FrameError::Reserved, 1002);
    // No block has type 3, and a message ends at the end of a block.
    check(b"\xc2\x01\x07", FrameError::Deflate, 1007);
    check(b"\xc2\x03\xf2\x48\xcd", FrameError::Deflate, 1007);
    check(b"\xc2\x00", FrameError::Deflate, 1007);
    // Text is checked once it is decompressed.
    let mut deflater = Deflater::default();
    let mut frame_of = |kind, content: &[u8]| {
        let (mut payload, mut frame) = (Vec::new(), Vec::new());
        deflater.deflate(content, &mut payload);
        encode_compressed(&mut frame, kind, &payload, None);
        frame
    };
    let not_text = frame_of(MessageKind::Text, b"a\xff");
    check(&not_text, FrameError::Utf8, 1007);
    let long = frame_of(MessageKind::Binary, &[7; 601]);
    assert!(long.len() < 100, "{}", long.len());
    check(&long, FrameError::TooLarge { limit: 600 }, 1009);
    assert_eq!(
        inflate(limits, &[&frame_of(MessageKind::Binary, &[7; 600])]).1,
        Ok(())
    );
    let bomb = frame_of(MessageKind::Binary, &vec![0; 4 << 20]);
    let seen = inflate(Limits::default(), &[&bomb]);
    let ratio = FrameError::Ratio { limit: 200 };
    assert_eq!((seen, ratio.close_code()), ((vec![], Err(ratio)), 1009));
}

#[test]
fn compression_is_agreed_on_or_not() {
    for (values, is_accepted) in [
        (&[][..], false),
        (&[""], false),
        (&["permessage-deflate; server_no_context_takeover"], true),
        (&[DEFLATE_OFFER], true),
        (
            &["Permessage-Deflate;server_max_window_bits=\"9\" ; Server_No_Context_Takeover"],
            true,
        ),
    ] {
        let found = accepts_deflate(values.iter().copied());
        assert_eq!(found, Ok(is_accepted), "{values:?}");
    }
    let extension = |text: &str| HandshakeError::Extension(text.to_owned());
    let deflate = |text: &str| HandshakeError::Deflate(text.to_owned());
    for (values, wrong) in [
        (
            &["x-webkit-deflate-frame"][..],
            extension("x-webkit-deflate-frame"),
        ),
        (
            &[DEFLATE_OFFER, "permessage-deflate"],
            extension("permessage-deflate"),
        ),
        (&["permessage-deflate"], deflate("permessage-deflate")),
        (
            &["permessage-deflate; client_no_context_takeover"],
            deflate("permessage-deflate; client_no_context_takeover"),
        ),
    ] {
        assert_eq!(accepts_deflate(values.iter().copied()), Err(wrong));
    }
    for parameter in [
        "server_no_context_takeover",
        "client_no_context_takeover=1",
        "client_max_window_bits=10",
        "server_max_window_bits",
        "server_max_window_bits=7",
        "server_max_window_bits=16",
        "server_max_window_bits=09",
        "server_max_window_bits=\"9",
        "level=9",
        "",
    ] {
        let text = format!("permessage-deflate; server_no_context_takeover; {parameter}");
        let found = accepts_deflate([text.as_str()]);
        assert_eq!(found, Err(deflate(text.trim())), "{parameter}");
    }
}

#[test]
fn after_a_close_nothing_counts() {
    let (seen, result) = of_server(b"\x88\x06\x03\xe8done\xff\xff\xff");
    assert_eq!(seen, [Seen::Close(Some((1000, "done".to_owned())))]);
    assert_eq!(result, Ok(()));
    assert_eq!(of_server(b"\x88\x00").0, [Seen::Close(None)]);
}

fn key() -> Key {
    Key::new(*b"the sample nonce")
}

fn answer(change: (&str, &str)) -> Vec<u8> {
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\
                Connection: keep-alive, Upgrade\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    assert!(head.contains(change.0));
    head.replace(change.0, change.1).into_bytes()
}

#[test]
fn handshakes_that_are_accepted() {
    let plain = answer(("", ""));
    let after_interim = [&b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"[..], &plain].concat();
    for head in [plain, after_interim] {
        let whole = [&head[..], b"\x81\x00"].concat();
        for cut in 0..=whole.len() {
            let mut handshake = Handshake::new(&key(), crate::h1::Limits::default());
            let (first, second) = whole.split_at(cut);
            let mut taken = handshake.decode(first).unwrap();
            if taken.is_none() {
                let more = handshake.decode(second).unwrap();
                taken = more.map(|more| cut + more);
            }
            assert_eq!(taken, Some(head.len()), "cut at {cut}");
        }
    }
}

#[test]
fn handshakes_that_are_not() {
    let refused = |bytes: &[u8]| {
        let mut handshake = Handshake::new(&key(), crate::h1::Limits::default());
        handshake.decode(bytes).unwrap_err()
    };
    for (change, wrong) in [
        (
            ("101 Switching Protocols", "403 No"),
            HandshakeError::Status(403),
        ),
        (("WebSocket\r", "h2c\r"), HandshakeError::Upgrade),
        (("HTTP/1.1", "HTTP/1.0"), HandshakeError::Upgrade),
        (("keep-alive, Upgrade", "close"), HandshakeError::Connection),
        (("s3pP", "S3pP"), HandshakeError::Accept),
        (
            ("Sec-WebSocket-Accept", "Sec-WebSocket-Other"),
            HandshakeError::Accept,
        ),
        (
            ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: x\r\n\r\n"),
            HandshakeError::Extension("x".to_owned()),
        ),
    ] {
        assert_eq!(refused(&answer(change)), wrong);
    }
    assert!(matches!(refused(b"SSH-2.0-x\r\n"), HandshakeError::Head(_)));
    let endless = [&b"HTTP/1.1 101 X\r\nA: "[..], &vec![b'a'; 70_000]].concat();
    assert!(matches!(refused(&endless), HandshakeError::Head(_)));
}

fn frames() -> impl Strategy<Value = Vec<Seen>> {
    let text = prop::collection::vec(any::<char>(), 0..200)
        .prop_map(|chars| String::from_iter(chars).into_bytes());
    let control = || prop::collection::vec(any::<u8>(), 0..=MOST_CONTROL_BYTES);
    let one = prop_oneof![
        text.prop_map(|text| Seen::Message(MessageKind::Text, text)),
        prop::collection::vec(any::<u8>(), 0..70_000)
            .prop_map(|bytes| Seen::Message(MessageKind::Binary, bytes)),
        control().prop_map(Seen::Ping),
        control().prop_map(Seen::Pong),
    ];
    prop::collection::vec(one, 1..6)
}

/// Writes messages in parts, with a ping between two of them.
fn encode(sent: &[Seen], parts: usize, mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut out = Vec::new();
    for one in sent {
        match one {
            Seen::Message(kind, content) => {
                let length = content.len().div_ceil(parts).max(1);
                let mut pieces: Vec<_> = content.chunks(length).collect();
                if pieces.is_empty() {
                    pieces.push(b"");
                }
                for (number, piece) in pieces.iter().enumerate() {
                    let is_last = number + 1 == pieces.len();
                    let opcode = match number {
                        0 => kind.opcode(),
                        _ => Opcode::Continuation,
                    };
                    encode_frame(&mut out, opcode, is_last, piece, mask);
                    if !is_last {
                        encode_frame(&mut out, Opcode::Pong, true, b"between", mask);
                    }
                }
            }
            Seen::Ping(payload) => encode_frame(&mut out, Opcode::Ping, true, payload, mask),
            Seen::Pong(payload) => encode_frame(&mut out, Opcode::Pong, true, payload, mask),
            Seen::Close(close) => {
                encode_close(&mut out, close.as_ref().map(|(code, _)| *code), mask);
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        sent in frames(),
        parts in 1..4_usize,
        mask: Option<[u8; 4]>,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = encode(&sent, parts, mask);
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<_> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (mut seen, result) = decode(role, Limits::default(), &pieces);
        prop_assert_eq!(result, Ok(()));
        seen.retain(|one| *one != Seen::Pong(b"between".to_vec()));
        prop_assert_eq!(seen, sent);
    }

    #[test]
    fn what_is_compressed_is_read(
        contents in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..20_000),
                prop::collection::vec(0..4_u8, 0..20_000),
            ],
            1..4,
        ),
        mask: Option<[u8; 4]>,
        piece in 1..5_000_usize,
    ) {
        let mut deflater = Deflater::default();
        let (mut payload, mut frames) = (b"left over".to_vec(), Vec::new());
        for content in &contents {
            deflater.deflate(content, &mut payload);
            encode_compressed(&mut frames, MessageKind::Binary, &payload, mask);
        }
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let decoder = Decoder::new(role, Limits::default()).with_deflate();
        let pieces: Vec<_> = frames.chunks(piece).collect();
        let (seen, result) = decode_by(decoder, &pieces);
        prop_assert_eq!(result, Ok(()));
        let sent: Vec<_> = contents.into_iter().map(|content| Seen::Message(MessageKind::Binary, content)).collect();
        prop_assert_eq!(seen, sent);
    }

    #[test]
    fn any_bytes_come_to_the_same_however_they_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        cut in any::<prop::sample::Index>(),
        is_server: bool,
    ) {
        let role = if is_server { Role::Server } else { Role::Client };
        let limits = Limits { message_bytes: 40 };
        let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
        prop_assert_eq!(decode(role, limits, &[&bytes]), decode(role, limits, &[first, second]));
        let compressed = |pieces: &[&[u8]]| {
            let decoder = Decoder::new(role, limits).with_deflate();
            let (seen, result) = decode_by(decoder, pieces);
            // A decompressor reports broken data before text that precedes it, so the error depends on the cut.
            (seen, result.is_err())
        };
        prop_assert_eq!(compressed(&[&bytes]), compressed(&[first, second]));
    }

    #[test]
    fn a_mask_taken_twice_is_none(payload: Vec<u8>, mask: [u8; 4], cut in any::<prop::sample::Index>()) {
        let mut masked = payload.clone();
        apply_mask(&mut masked, mask, 0);
        let cut = cut.index(payload.len() + 1);
        let (first, second) = masked.split_at_mut(cut);
        apply_mask(first, mask, 0);
        apply_mask(second, mask, cut);
        prop_assert_eq!(masked, payload);
    }
}
