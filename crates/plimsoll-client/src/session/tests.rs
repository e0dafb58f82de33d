use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_model::Secret;

use super::*;

/// A clock that stands still.
#[derive(Debug)]
struct Standing(Instant);

impl Clock for Standing {
    fn now(&self) -> Instant {
        self.0
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_hours(490_896)
    }
}

fn clock() -> Standing {
    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    Standing(Instant::now())
}

fn endpoint() -> Endpoint {
    Endpoint::parse("http://a.example:8080/shop/cart?x=1").unwrap()
}

fn requests(headers: &[(&str, &str)]) -> [Request; 2] {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let (authority, target, body) = ("a.example:8080", "/shop/cart?x=1", Some(&b"hi"[..]));
    [
        Request::encode("POST", target, authority, &headers, body).unwrap(),
        Request::encode_http2("POST", "http", authority, target, &headers, body).unwrap(),
    ]
}

fn shown(request: &Request) -> String {
    match request.http2() {
        None => String::from_utf8_lossy(request.bytes()).replace("\r\n", "|"),
        Some(http2) => {
            let fields = http2.headers().map(|(name, value)| {
                let text = String::from_utf8_lossy;
                format!("{}: {}|", text(name), text(value))
            });
            let body = String::from_utf8_lossy(http2.body());
            fields.chain(["|".to_owned(), body.into_owned()]).collect()
        }
    }
}

fn learn(session: &mut Session, status: u16, fields: &[(&str, &str)]) -> bool {
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    session.learn(&endpoint(), 0, status, fields, &clock());
    session.wants_again()
}

fn dressed(session: &mut Session, request: &Request) -> String {
    shown(session.dress(request, &mut None, &endpoint(), 0, &clock()))
}

#[test]
fn a_request_takes_cookies_along_beside_its_own() {
    let plan = SessionPlan {
        cookies: true,
        digest: None,
    };
    for request in requests(&[("Cookie", "own=1; id=0"), ("x-last", "z")]) {
        let mut session = Session::new(&plan).unwrap();
        let undressed = shown(&request);
        assert_eq!(dressed(&mut session, &request), undressed);
        assert!(!learn(
            &mut session,
            200,
            &[("Set-Cookie", "id=1"), ("set-cookie", "b=2")]
        ));
        for _ in 0..2 {
            let expected = if request.http2().is_some() {
                ":method: POST|:scheme: http|:path: /shop/cart?x=1|:authority: a.example:8080|\
                 cookie: id=1; b=2; own=1|x-last: z|content-length: 2||hi"
            } else {
                "POST /shop/cart?x=1 HTTP/1.1|host: a.example:8080|x-last: z|content-length: 2|\
                 cookie: id=1; b=2; own=1||hi"
            };
            assert_eq!(dressed(&mut session, &request), expected);
        }
        learn(
            &mut session,
            200,
            &[
                ("set-cookie", "id=; Max-Age=0"),
                ("set-cookie", "b=; Max-Age=0"),
            ],
        );
        assert_eq!(dressed(&mut session, &request), undressed);
    }
}

#[test]
fn a_challenge_is_answered_until_it_is_wrong() {
    let login = DigestLogin {
        user: "ann".to_owned(),
        password: Secret::new("secret"),
    };
    let plan = SessionPlan {
        cookies: false,
        digest: Some(Arc::new(login)),
    };
    let challenge = [(
        "WWW-Authenticate",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"",
    )];
    for request in requests(&[]) {
        let mut session = Session::new(&plan).unwrap();
        assert_eq!(dressed(&mut session, &request), shown(&request));
        assert!(learn(&mut session, 401, &challenge));
        for count in ["00000001", "00000002"] {
            let answered = dressed(&mut session, &request);
            assert!(
                answered.contains("authorization: Digest username=\"ann\""),
                "{answered}"
            );
            assert!(answered.contains("uri=\"/shop/cart?x=1\""), "{answered}");
            assert!(answered.contains(count), "{answered}");
            assert!(answered.ends_with("||hi"), "{answered}");
        }
        assert!(!learn(&mut session, 401, &challenge));
        assert!(!learn(&mut session, 200, &challenge));
        let stale = [(
            "www-authenticate",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", stale=true",
        )];
        for is_again in [true, true, true, false] {
            dressed(&mut session, &request);
            assert_eq!(learn(&mut session, 401, &stale), is_again);
        }
    }
}

#[test]
fn hosts_and_paths_are_cut_out_of_what_is_sent() {
    for (authority, host) in [
        ("a", "a"),
        ("a:80", "a"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("u:p@a:1", "a"),
    ] {
        assert_eq!(host_of(authority), host);
    }
    for (target, path) in [
        ("/a?b=http://c/d", "/a?b=http://c/d"),
        ("http://h:1/a?b", "/a?b"),
        ("http://h", "/"),
        ("*", "*"),
    ] {
        assert_eq!(path_of(target), path);
    }
}
