use proptest::prelude::*;

use super::*;

#[test]
fn heads_of_answers() {
    let answer = |text: &str| parse_answer(text.as_bytes());
    assert_eq!(answer("HTTP/1.1 200 Conn"), Ok(None));
    assert_eq!(
        answer("HTTP/1.0 200 Connection established\r\nvia: x\r\n\r\nrest"),
        Ok(Some(Answer {
            status: 200,
            reason: "Connection established".to_owned(),
            length: "HTTP/1.0 200 Connection established\r\nvia: x\r\n\r\n".len(),
        }))
    );
    assert!(answer("SSH-2.0-OpenSSH\r\n").is_err());
}

#[test]
fn the_request_carries_credentials_only_if_there_are_some() {
    let endpoint = Endpoint::parse("https://a.test").unwrap();
    let head = |proxy: &str| connect_head(&proxy.parse().unwrap(), &endpoint);
    assert_eq!(
        head("p:1"),
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
    );
    assert_eq!(
        head("Aladdin:open%20sesame@p:1"),
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\
         Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(answer)) = parse_answer(&bytes) {
            prop_assert!(answer.length <= bytes.len());
        }
    }
}
