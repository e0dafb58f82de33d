//! Trailers on their way back, what announces them, and what is counted of those that do not pass.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Head, Speaks};
use plimsoll_testkit::http::exchange;
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually};

use crate::client::{pool, run_local};
use crate::pairs::Sent;
use crate::server::Served;

fn gateway(server: &Origin) -> Served {
    let url = server.url("");
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n\
        [[route]]\nproxy = {{ to = \"{}\", headers = {{ x-tenant = \"safe\" }} }}\n",
        url.trim_end_matches('/')
    ))
}

fn fronts(gateway: &Served) -> [(Speaks, String); 3] {
    let (clear, tls) = (gateway.addresses[0], gateway.addresses[1]);
    [
        (Speaks::Http1, format!("http://{clear}")),
        (Speaks::Http2, format!("http://{clear}")),
        (Speaks::Http3, format!("https://{tls}")),
    ]
}

/// Posts content with these trailers; returns the fields and the trailers of the response.
async fn post(
    (speaks, url): &(Speaks, String),
    fields: &[(&str, &str)],
    trailers: HeaderMap,
) -> (HeaderMap, HeaderMap) {
    let endpoint = Endpoint::parse(url).unwrap();
    let lease = pool(*speaks).acquire(&endpoint).await.unwrap();
    let body = Sent::of_pieces([Frame::data("hi".into()), Frame::trailers(trailers)]);
    let fields = fields.to_vec();
    let mut exchange = lease.begin(&Head::new("POST", "/", &fields), body).unwrap();
    let head = exchange.final_head().await.unwrap();
    assert_eq!(head.status, 200);
    let content = exchange.into_response_body().collect().await.unwrap();
    let trailers = content.trailers().cloned().unwrap_or_default();
    (head.fields.to_map(), trailers)
}

#[test]
fn trailers_of_a_server_are_no_fields_of_heads() {
    let evil = [
        "authorization",
        "set-cookie",
        "content-type",
        "content-length",
        "transfer-encoding",
        "location",
        "cache-control",
        "age",
        "date",
        "expires",
        "retry-after",
        "vary",
        "warning",
        "www-authenticate",
        "proxy-authenticate",
        "content-range",
        "if-match",
    ];
    let lines = evil.map(|name| format!("{name}: evil\r\n")).concat();
    let announced = evil.join(", ");
    let server = Origin::scripted(Script::serve(format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-hop\r\n\
        Trailer: {announced}, x-hop, grpc-status\r\nTrailer: x-hop\r\nTrailer: x-sum\r\n\r\n\
        2\r\nhi\r\n0\r\n{lines}x-hop: evil\r\ngrpc-status: 5\r\nx-sum: 7\r\n\r\n"
    )));
    let gateway = gateway(&server);
    let dropped = u64::try_from(evil.len()).unwrap();
    for (round, front) in (1..).zip(fronts(&gateway)) {
        let (fields, trailers) = run_local(async {
            let endpoint = Endpoint::parse(&front.1).unwrap();
            let lease = pool(front.0).acquire(&endpoint).await.unwrap();
            let fields = [("te", "trailers")];
            let head = Head::new("GET", "/", &fields);
            let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
            let head = exchange.final_head().await.unwrap();
            let content = exchange.into_response_body().collect().await.unwrap();
            let trailers = content.trailers().cloned().unwrap_or_default();
            (head.fields.to_map(), trailers)
        });
        let names: Vec<_> = fields.get_all("trailer").iter().collect();
        assert_eq!(names, ["grpc-status", "x-sum"], "{:?}", front.0);
        assert_eq!(trailers.len(), 2, "{:?}: {trailers:?}", front.0);
        assert_eq!(trailers["grpc-status"], "5");
        assert_eq!(trailers["x-sum"], "7");
        eventually(|| gateway.dropped_fields() == dropped * round);
    }
}

#[test]
fn a_trailer_that_does_not_follow_is_not_announced() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTrailer: x-sum\r\n\r\nhi",
        "HTTP/1.1 204 No Content\r\nTrailer: x-sum\r\n\r\n",
    ] {
        let server = Origin::scripted(Script::serve(response));
        let gateway = gateway(&server);
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let received = exchange(gateway.address(), request);
        let head = received.head.to_ascii_lowercase();
        assert!(!head.contains("trailer"), "{head}");
    }
    // HTTP/1.0 has no room for trailers.
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
        2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n";
    let server = Origin::scripted(Script::serve(chunked));
    let gateway = gateway(&server);
    let received = exchange(gateway.address(), b"GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(received.body, b"hi");
    let head = received.head.to_ascii_lowercase();
    assert!(!head.contains("trailer"), "{head}");
}

/// What a client announces is what the server gets, and what it does not get is counted.
#[test]
fn trailers_of_a_client_are_announced_as_they_are_sent() {
    let logic = Logic::new(|question| {
        let announced = question.field("trailer").unwrap_or("none");
        Reply::new(200, &[("x-announced", announced)])
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    let server = Origin::builder().script(script).start();
    let gateway = gateway(&server);
    for (round, front) in (1..).zip(fronts(&gateway)) {
        let fields = [
            ("te", "trailers"),
            ("trailer", "cookie, x-sum, x-tenant, range"),
        ];
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "x-tenant", "x_forwarded_for"] {
            trailers.insert(name, HeaderValue::from_static("1"));
        }
        let (fields, _) = run_local(post(&front, &fields, trailers));
        assert_eq!(fields["x-announced"], "x-sum", "{:?}", front.0);
        // `x-tenant` is not counted in heads either: the route replaces it.
        eventually(|| gateway.dropped_fields() == round);
        let without = [("trailer", "x-sum")];
        let get = async {
            let endpoint = Endpoint::parse(&front.1).unwrap();
            let lease = pool(front.0).acquire(&endpoint).await.unwrap();
            let head = Head::new("GET", "/", &without);
            let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
            exchange.final_head().await.unwrap().fields.to_map()
        };
        let fields = run_local(get);
        assert_eq!(fields["x-announced"], "none", "{:?}", front.0);
    }
}
