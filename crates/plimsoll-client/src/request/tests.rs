use super::*;
use crate::Redirects;

const FIELDS: [(&str, &str); 5] = [
    ("authorization", "Basic YTpi"),
    ("cookie", "a=b"),
    ("content-type", "text/plain"),
    ("accept", "*/*"),
    ("x-own", "1"),
];

/// A POST with these fields and a body, encoded for each version.
fn posts(url: &str) -> (Endpoint, [Request; 3]) {
    let endpoint = Endpoint::parse(url).unwrap();
    let headers = FIELDS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (host, path) = (endpoint.authority(), endpoint.path_and_query());
    let scheme = endpoint.scheme().name();
    let body = Some(&b"content"[..]);
    let requests = [
        Request::encode("POST", path, host, &headers, body).unwrap(),
        Request::encode_http2("POST", scheme, host, path, &headers, body).unwrap(),
        Request::encode_http3("POST", scheme, host, path, &headers, body).unwrap(),
    ];
    (endpoint, requests)
}

/// The request that follows, and its endpoint.
fn follow(request: &Request, site: &Endpoint, status: u16, location: &str) -> (Request, Endpoint) {
    let url = request.url(site).unwrap();
    let redirect = Redirects::new(1)
        .follow(request.method(), &url, status, Some(location.as_bytes()))
        .unwrap()
        .unwrap();
    let endpoint = Endpoint::try_from(&redirect.url).unwrap();
    let next = request.redirected(&redirect, &endpoint, RequestForm::Origin);
    (next.unwrap(), endpoint)
}

#[test]
fn the_next_request_has_what_the_redirect_keeps() {
    let (site, requests) = posts("http://a.example/x?y");
    for request in requests {
        assert_eq!(request.url(&site).unwrap().as_str(), "http://a.example/x?y");
        let (kept, _) = follow(&request, &site, 307, "/z");
        assert_eq!(kept.protocol(), request.protocol());
        assert_eq!((kept.method(), kept.target()), ("POST", &b"/z"[..]));
        assert_eq!(kept.host(), b"a.example");
        assert_eq!(kept.body(), b"content");
        for (name, value) in FIELDS {
            assert_eq!(kept.field(name), Some(value.as_bytes()), "{name}");
        }
        let (got, _) = follow(&request, &site, 302, "/z");
        assert_eq!(got.method(), "GET");
        assert_eq!((got.body(), got.has_body()), (&b""[..], false));
        assert_eq!(got.field("content-type"), None);
        assert_eq!(got.field("x-own"), Some(&b"1"[..]));
    }
}

#[test]
fn credentials_that_were_dropped_stay_dropped() {
    let (site, requests) = posts("http://a.example/");
    for request in requests {
        let (there, site) = follow(&request, &site, 307, "http://b.example/");
        assert_eq!(there.host(), b"b.example");
        let (further, _) = follow(&there, &site, 307, "/next");
        for request in [there, further] {
            assert_eq!(request.field("authorization"), None);
            assert_eq!(request.field("cookie"), None);
            assert_eq!(request.field("accept"), Some(&b"*/*"[..]));
            assert_eq!(request.body(), b"content");
        }
    }
}

#[test]
fn credentials_of_a_location_are_sent_to_it() {
    let (site, requests) = posts("http://a.example/");
    for request in requests {
        let (next, _) = follow(&request, &site, 307, "http://c:d@b.example/");
        assert_eq!(next.field("authorization"), Some(&b"Basic Yzpk"[..]));
    }
}
