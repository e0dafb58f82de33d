//! A chunked body ends at the same byte for a client and for a server, however it was cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::{Event, cut, read_requests, read_response};
use plimsoll_wire::h1::DecodeError;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    let with = |head: &'static [u8], pieces: &[&[u8]]| {
        let mut all: Vec<Vec<u8>> = vec![head.to_vec()];
        all.extend(pieces.iter().map(|piece| piece.to_vec()));
        all
    };
    let response = |pieces: &[&[u8]]| {
        let all = with(RESPONSE, pieces);
        read_response(&all.iter().map(Vec::as_slice).collect::<Vec<_>>(), false)
    };
    let as_client = response(&[whole]);
    assert_eq!(as_client, response(&pieces));

    let all = with(REQUEST, &pieces);
    let as_server = read_requests(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let content: Vec<u8> = as_server
        .iter()
        .filter_map(|event| match event {
            Event::Content(content) => Some(&content[..]),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    match (
        &as_client,
        as_server
            .iter()
            .find(|event| !matches!(event, Event::Content(_) | Event::Head(..))),
    ) {
        (Ok(response), Some(Event::End(end, _))) => {
            assert_eq!(response.consumed - RESPONSE.len(), end - REQUEST.len());
            assert_eq!(response.content, content);
        }
        // A server holds sizes, extensions and trailers to more than a client does.
        (_, Some(Event::Error(_))) => {}
        (Err(DecodeError::ClosedInBody), None) => {}
        (client, server) => panic!("{client:?} for a client, {server:?} for a server"),
    }
});
