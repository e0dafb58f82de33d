use std::sync::Arc;

use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// The first message of rustls.
fn sent_by_rustls(name: &str, alpn: &[&[u8]]) -> Vec<u8> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
    let name = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut sent = Vec::new();
    client.write_tls(&mut sent).unwrap();
    sent
}

#[test]
fn a_hello_of_rustls_is_read() {
    let sent = sent_by_rustls("Upstream.Example", &[b"h2", b"http/1.1"]);
    let hello = ClientHello::parse(&sent).unwrap().unwrap();
    assert_eq!(hello.server_name.as_deref(), Some("upstream.example"));
    assert_eq!(hello.alpn, [&b"h2"[..], b"http/1.1"]);
    assert!(!hello.is_encrypted);
    let without = sent_by_rustls("127.0.0.1", &[]);
    let without = ClientHello::parse(&without).unwrap().unwrap();
    assert_eq!(without, ClientHello::default());
    // Nothing shorter is one, and what follows does not matter.
    for length in 0..sent.len() {
        assert_eq!(ClientHello::parse(&sent[..length]), Ok(None));
    }
    let more = [&sent[..], b"\x17\x03\x03 and so on"].concat();
    assert_eq!(ClientHello::parse(&more), Ok(Some(hello)));
}

fn vector(length_bytes: usize, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[4 - length_bytes..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector(2, content)].concat()
}

fn name_of(name: &[u8]) -> Vec<u8> {
    extension(
        SERVER_NAME,
        &vector(2, &[&[0][..], &vector(2, name)].concat()),
    )
}

fn alpn_of(protocols: &[&[u8]]) -> Vec<u8> {
    let list: Vec<u8> = protocols.iter().flat_map(|it| vector(1, it)).collect();
    extension(ALPN, &vector(2, &list))
}

fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let content = [
        &[3, 3][..],
        &[7; 32],
        &vector(1, &[1; 32]),
        &vector(2, &[0x13, 0x01]),
        &vector(1, &[0]),
        &vector(2, &extensions.concat()),
    ]
    .concat();
    [&[CLIENT_HELLO][..], &vector(3, &content)].concat()
}

fn records(message: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut rest = message;
    for cut in cuts.iter().copied().chain([message.len()]) {
        let (fragment, after) = rest.split_at(cut.clamp(0, rest.len()).min(MOST_OF_RECORD));
        rest = after;
        if !fragment.is_empty() {
            sent.extend_from_slice(&[HANDSHAKE, 3, 1]);
            sent.extend(vector(2, fragment));
        }
    }
    while !rest.is_empty() {
        let (fragment, after) = rest.split_at(rest.len().min(MOST_OF_RECORD));
        rest = after;
        sent.extend_from_slice(&[HANDSHAKE, 3, 1]);
        sent.extend(vector(2, fragment));
    }
    sent
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let malformed = Err(ClientHelloError::Malformed);
    for extensions in [
        vec![name_of(b"a"), name_of(b"b")],
        vec![alpn_of(&[b"h2"]), alpn_of(&[b"h2"])],
        vec![name_of(b"")],
        vec![name_of(b"a.")],
        vec![name_of(b".a")],
        vec![name_of(b"a b")],
        vec![name_of(b"a\0b")],
        vec![name_of("ä".as_bytes())],
        vec![name_of(&[b'a'; 254])],
        vec![extension(
            SERVER_NAME,
            &vector(2, &[0, 0, 1, b'a', 0, 0, 1, b'b']),
        )],
        vec![extension(SERVER_NAME, &vector(2, &[1, 0, 1, b'a']))],
        vec![alpn_of(&[])],
        vec![alpn_of(&[b""])],
        vec![vec![0, 0, 0]],
    ] {
        let message = message(&extensions);
        assert_eq!(
            ClientHello::parse_message(&message),
            malformed,
            "{extensions:?}"
        );
        assert_eq!(
            ClientHello::parse(&records(&message, &[])),
            malformed.clone().map(Some)
        );
    }
    let mut longer = message(&[name_of(b"a")]);
    longer.push(0);
    assert_eq!(ClientHello::parse_message(&longer), malformed);
    let many = vec![&b"h2"[..]; MOST_PROTOCOLS + 1];
    let too_long = Err(ClientHelloError::TooLong);
    assert_eq!(
        ClientHello::parse_message(&message(&[alpn_of(&many)])),
        too_long
    );
    assert_eq!(
        ClientHello::parse(&[22, 3, 1, 0, 4, 1, 0, 0x80, 0]),
        Err(ClientHelloError::TooLong)
    );
    for other in [
        &b"GET / HTTP/1.1"[..],
        b"\x15\x03\x01",
        b"\x16\x02",
        b"\x16\x03\x01\0\x01\x02",
    ] {
        assert_eq!(
            ClientHello::parse(other),
            Err(ClientHelloError::OtherProtocol)
        );
    }
    let encrypted = message(&[name_of(b"front"), extension(ENCRYPTED_CLIENT_HELLO, b"x")]);
    assert!(ClientHello::parse_message(&encrypted).unwrap().is_encrypted);
}

proptest! {
    #[test]
    fn any_cut_into_records_is_the_same_and_nothing_shorter_is_a_hello(
        name in "[a-z0-9]{1,20}(\\.[a-z0-9-]{1,9}[a-z])?",
        protocols in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..5),
        padding in 0usize..20_000,
        cuts in prop::collection::vec(1usize..2_000, 0..12),
    ) {
        let protocols: Vec<&[u8]> = protocols.iter().map(Vec::as_slice).collect();
        let message = message(&[extension(21, &vec![0; padding]), name_of(name.as_bytes()), alpn_of(&protocols)]);
        let hello = ClientHello::parse_message(&message).unwrap();
        prop_assert_eq!(hello.server_name.as_ref(), Some(&name));
        prop_assert_eq!(&hello.alpn, &protocols);
        let sent = records(&message, &cuts);
        prop_assert_eq!(ClientHello::parse(&sent), Ok(Some(hello)));
        for length in (0..sent.len()).step_by(97).chain([sent.len() - 1]) {
            prop_assert_eq!(ClientHello::parse(&sent[..length]), Ok(None));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
        ClientHello::parse(&bytes).ok();
        // A hello of which one byte is another.
        let mut hello = records(&message(&[name_of(b"example.org"), alpn_of(&[b"h2"])]), &[40]);
        let at = at % hello.len();
        hello[at] = bytes.pop().unwrap_or_default();
        ClientHello::parse_message(&hello).ok();
        let whole = ClientHello::parse(&hello);
        // More bytes change nothing about what is decided already.
        for length in 0..hello.len() {
            let shorter = ClientHello::parse(&hello[..length]);
            prop_assert!(shorter == Ok(None) || shorter == whole);
        }
        if let Ok(Some(hello)) = whole {
            prop_assert!(hello.server_name.is_none_or(|name| !name.is_empty() && name.is_ascii()));
            prop_assert!(hello.alpn.iter().all(|protocol| !protocol.is_empty()));
        }
    }
}
