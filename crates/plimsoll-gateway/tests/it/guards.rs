//! What every guard is held to: nothing of a request that it refuses reaches the action behind it.

use bytes::Bytes;
use plimsoll_client::forward::Speaks;
use plimsoll_testkit::http::{HttpResponse, talk};
use plimsoll_testkit::{IdentityProvider, Origin, Script};

use crate::client::post;
use crate::server::Served;

/// The keys of each guard, for a route that clients without credentials are kept out of.
///
/// - `service`: a service that authorizes, and refuses.
fn guards(provider: &IdentityProvider, service: &Origin) -> Vec<(&'static str, String)> {
    let asked = service.url("/check");
    let issuer = provider.url();
    let hash = "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0";
    vec![
        (
            "basic_auth",
            format!("basic_auth = {{ users = {{ ann = \"{hash}\" }} }}"),
        ),
        (
            "jwt",
            format!("jwt = {{ issuer = \"{issuer}\", audience = \"api\" }}"),
        ),
        (
            "oidc",
            format!(
                "oidc = {{ issuer = \"{issuer}\", client_id = \"a\", url = \"https://a.test\" }}"
            ),
        ),
        ("auth", format!("auth = {{ to = \"{asked}\" }}")),
        (
            "auth, or else basic_auth",
            format!(
                "auth = {{ to = \"{asked}\" }}\nsatisfy = \"any\"\nbasic_auth = {{ users = {{ ann = \"{hash}\" }} }}"
            ),
        ),
        (
            "addresses, or else jwt",
            format!(
                "addresses = {{ deny = [\"127.0.0.0/8\"] }}\nsatisfy = \"any\"\njwt = {{ issuer = \"{issuer}\", audience = \"api\" }}"
            ),
        ),
        (
            "jwt and basic_auth",
            format!(
                "jwt = {{ issuer = \"{issuer}\", audience = \"api\", optional = true }}\nbasic_auth = {{ users = {{ ann = \"{hash}\" }} }}"
            ),
        ),
    ]
}

#[test]
fn nothing_of_a_refused_request_reaches_the_action() {
    let (provider, origin) = (
        IdentityProvider::new("https://a.test/oidc/callback"),
        Origin::hello(),
    );
    let service = Origin::scripted(Script::serve(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
    ));
    let basic = "Authorization: Basic YW5uOndyb25n\r\n";
    let bearer = "Authorization: Bearer a.b.c\r\n";
    let requests = [
        ("GET / HTTP/1.1\r\nHost: a.test\r\n", "\r\n"),
        (
            "HEAD / HTTP/1.1\r\nHost: a.test\r\nAccept: text/html\r\n",
            "\r\n",
        ),
        ("OPTIONS / HTTP/1.1\r\nHost: a.test\r\n", "\r\n"),
        (
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n",
            "\r\nabcd",
        ),
        (
            "PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n",
            "\r\n4\r\nabcd\r\n0\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n",
            "\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "\r\n",
        ),
        // Fields of credentials that the connection is said to own.
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: authorization, cookie\r\n",
            "\r\n",
        ),
        (
            "GET /oidc/callback?code=x&state=y HTTP/1.1\r\nHost: a.test\r\n",
            "\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: __Host-plimsoll-session=x\r\n",
            "\r\n",
        ),
    ];
    for (name, keys) in guards(&provider, &service) {
        let served = Served::routes(&format!(
            "[[route]]\n{keys}\nproxy = \"{}\"\n",
            origin.url("")
        ));
        for (head, rest) in requests {
            for credentials in ["", basic, bearer] {
                let close = if head.contains("Upgrade") {
                    "upgrade, close"
                } else {
                    "close"
                };
                let request = format!("{head}{credentials}Connection: {close}\r\n{rest}");
                let response = talk(served.address(), request.as_bytes());
                let response = HttpResponse::parse(&response).unwrap();
                let is_refused = matches!(response.status, 303 | 400 | 401 | 403);
                assert!(is_refused, "{name}: {request}: {response:?}");
                assert!(
                    response.interims.is_empty(),
                    "{name}: {request}: {response:?}"
                );
                let is_free =
                    response.field("x-hello").is_none() && !response.head.contains("hello");
                assert!(is_free, "{name}: {response:?}");
            }
        }
        let (status, _, _) = post(Speaks::Http2, &served.url(), Bytes::from_static(b"abcd"));
        assert_eq!(status, 401, "{name}");
        assert_eq!(origin.requests(), 0, "{name}");
    }
}
