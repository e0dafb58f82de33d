use std::io::Read;

use http::header::CONTENT_TYPE;

use super::*;

fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Zstd => zstd::stream::read::Decoder::new(bytes)
            .unwrap()
            .read_to_end(&mut out),
        Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
        Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
    }
    .unwrap();
    out
}

/// As much as can be decoded of what may go on.
fn decoded_so_far(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader: Box<dyn Read> = match coding {
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
        Coding::Brotli => Box::new(brotli::Decompressor::new(bytes, 4096)),
        Coding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
    };
    let mut byte = [0];
    while let Ok(1) = reader.read(&mut byte) {
        out.push(byte[0]);
    }
    out
}

/// Gives its pieces one by one, and is not ready between them.
struct Pieces(VecDeque<Option<Frame<Bytes>>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(None) => Poll::Pending,
            Some(Some(frame)) => Poll::Ready(Some(Ok(frame))),
        }
    }
}

fn text(content: &str) -> Response {
    Response::text(StatusCode::OK, content)
}

fn fields(response: &Response) -> &HeaderMap {
    match &response.0 {
        Kind::Prepared(prepared) => &prepared.fields,
        Kind::Built(built) => &built.fields,
    }
}

fn bytes(response: &Response) -> Option<&Bytes> {
    match &response.0 {
        Kind::Prepared(prepared) => match &prepared.content {
            WholeContent::Bytes(bytes) => Some(bytes),
            WholeContent::File(_) => None,
        },
        Kind::Built(built) => match &built.content {
            ResponseBody::Bytes(bytes) => Some(bytes),
            _ => None,
        },
    }
}

fn apply(response: Response) -> Response {
    let compress = Compress::default();
    compressed(
        &compress,
        &CompressedCopies::default(),
        Some(Coding::Gzip),
        false,
        response,
    )
}

#[test]
fn every_coding_gives_back_what_went_in() {
    let content = "hello ".repeat(5000);
    for coding in Coding::ALL {
        let compress = Compress::default();
        let kept = CompressedCopies::default();
        let response = compressed(&compress, &kept, Some(coding), false, text(&content));
        assert_eq!(fields(&response)[CONTENT_ENCODING], coding.name());
        let out = bytes(&response).unwrap();
        assert!(out.len() < content.len() / 10);
        assert_eq!(decoded(coding, out), content.as_bytes());
    }
}

#[test]
fn what_is_always_the_same_is_compressed_once() {
    let prepared = text(&"hello ".repeat(5000)).prepare();
    let (compress, kept) = (Compress::default(), CompressedCopies::default());
    let content = [0; 2].map(|_| {
        let response = Response::from(Rc::clone(&prepared));
        let response = compressed(&compress, &kept, Some(Coding::Brotli), false, response);
        bytes(&response).unwrap().clone()
    });
    assert_eq!(content[0].as_ptr(), content[1].as_ptr());
    assert_eq!(kept.borrow().len(), 1);
}

#[test]
fn fields_say_what_was_done() {
    let response = text(&"x".repeat(5000))
        .with_field(ETAG, HeaderValue::from_static("\"a\""))
        .with_field(VARY, HeaderValue::from_static("origin"))
        .with_field(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let response = apply(response);
    let fields = fields(&response);
    assert_eq!(fields[ETAG], "W/\"a\"");
    assert_eq!(fields.get(ACCEPT_RANGES), None);
    let vary: Vec<_> = fields.get_all(VARY).iter().collect();
    assert_eq!(vary, ["origin", "accept-encoding"]);
}

#[test]
fn some_responses_stay_as_they_are() {
    let long = || text(&"x".repeat(5000));
    let with = |name, value| long().with_field(name, HeaderValue::from_static(value));
    let mut image = long();
    image
        .fields_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("image/png"));
    let mut partial = long();
    if let Kind::Built(built) = &mut partial.0 {
        built.status = StatusCode::PARTIAL_CONTENT;
    }
    for response in [
        text("short"),
        with(CONTENT_ENCODING, "gzip"),
        with(CONTENT_RANGE, "bytes 0-1/2"),
        with(CACHE_CONTROL, "public, No-Transform"),
        image,
        partial,
        Response::new(StatusCode::NO_CONTENT),
    ] {
        let before = format!("{:?}", fields(&response));
        let after = apply(response);
        assert_eq!(format!("{:?}", fields(&after)), before);
    }
    // The response says `Vary` also to clients that do not accept a coding.
    let plain = compressed(
        &Compress::default(),
        &CompressedCopies::default(),
        None,
        false,
        long(),
    );
    assert_eq!(fields(&plain)[VARY], "accept-encoding");
    assert_eq!(bytes(&plain).unwrap().len(), 5000);
}

#[test]
fn types_are_compared_with_their_stars() {
    let compress = Compress::default();
    let has = |kind: &str| compress.has_type(&HeaderValue::from_str(kind).unwrap());
    for kind in [
        "text/html",
        "TEXT/CSS; charset=utf-8",
        "application/problem+json",
        "image/svg+xml",
        "application/json",
    ] {
        assert!(has(kind), "{kind}");
    }
    for kind in [
        "image/png",
        "application/octet-stream",
        "text/",
        "+json",
        "",
    ] {
        assert!(!has(kind), "{kind}");
    }
}

#[test]
fn pieces_go_on_as_they_come_and_trailers_last() {
    for coding in Coding::ALL {
        let mut trailers = HeaderMap::new();
        trailers.insert(ETAG, HeaderValue::from_static("\"x\""));
        let data = |text: &'static str| Some(Frame::data(Bytes::from(text)));
        let pieces = Pieces(VecDeque::from([
            data("one "),
            // Polled once more after what came is flushed.
            None,
            None,
            data("two "),
            data("three"),
            Some(Frame::trailers(trailers.clone())),
        ]));
        let body = ResponseBody::Stream(Box::pin(pieces));
        let response = Response::new(StatusCode::OK)
            .with_field(CONTENT_TYPE, HeaderValue::from_static("text/plain"))
            .with_body(body);
        let response = compressed(
            &Compress::default(),
            &CompressedCopies::default(),
            Some(coding),
            false,
            response,
        );
        let Kind::Built(built) = response.0 else {
            panic!("it was built for this request");
        };
        let ResponseBody::Stream(mut body) = built.content else {
            panic!("it comes in pieces");
        };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut out = Vec::new();
        let mut seen_at_pause = None;
        let mut last = None;
        loop {
            match body.as_mut().poll_frame(&mut cx) {
                Poll::Ready(None) => break,
                Poll::Ready(Some(frame)) => match frame.unwrap().into_data() {
                    Ok(data) => out.extend_from_slice(&data),
                    Err(frame) => last = frame.into_trailers().ok(),
                },
                Poll::Pending => seen_at_pause = Some(decoded_so_far(coding, &out)),
            }
        }
        assert_eq!(seen_at_pause.unwrap(), b"one ", "{coding:?}");
        assert_eq!(decoded(coding, &out), b"one two three");
        assert_eq!(last.unwrap(), trailers);
    }
}

#[test]
fn long_content_lets_others_have_their_turn() {
    let content = "hello ".repeat(100_000);
    let response = apply(text(&content));
    let Kind::Built(built) = response.0 else {
        panic!("it was built for this request");
    };
    let ResponseBody::Stream(mut body) = built.content else {
        panic!("it comes in pieces");
    };
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let (mut out, mut turns) = (Vec::new(), 0);
    loop {
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Ready(None) => break,
            Poll::Ready(Some(frame)) => out.extend_from_slice(&frame.unwrap().into_data().unwrap()),
            Poll::Pending => turns += 1,
        }
    }
    assert!(turns > 5, "{turns}");
    assert_eq!(decoded(Coding::Gzip, &out), content.as_bytes());
}

#[test]
fn head_has_the_fields_of_get_but_no_length() {
    let response = text(&"x".repeat(5000));
    let response = compressed(
        &Compress::default(),
        &CompressedCopies::default(),
        Some(Coding::Gzip),
        true,
        response,
    );
    assert_eq!(fields(&response)[CONTENT_ENCODING], "gzip");
    assert!(bytes(&response).is_none(), "its length is not known");
}
