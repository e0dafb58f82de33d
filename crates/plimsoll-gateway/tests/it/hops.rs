//! Requests that the gateway responds to itself: TRACE, and an OPTIONS that has come far enough.

use bytes::Bytes;
use http_body_util::Full;
use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Head, Pool, ResponseHead, Speaks};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually};

use crate::client::{pool, run_local};
use crate::server::Served;

/// A server that echoes the fields of a request as those of its response.
fn echoing() -> Origin {
    let logic = Logic::new(|question| {
        let fields = question.fields.iter();
        let fields: Vec<_> = fields
            .filter(|(name, _)| name.starts_with("max-") || name.starts_with("x-"))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Reply::new(200, &fields)
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}

/// A gateway with everything that sends requests of its own: a service that authorizes, a mirror, a cache.
fn gateway(server: &Origin, service: &Origin, mirror: &Origin) -> Served {
    let url = |origin: &Origin| origin.url("").trim_end_matches('/').to_owned();
    let to = url(server);
    let proxy = format!(
        "[[route]]\nprefix = \"/cached\"\nproxy = {{ to = \"{to}\", cache = true }}\n\
        [[route]]\nproxy = {{ to = \"{to}\", mirror = \"{}\", auth = {{ to = \"{}\" }}, \
        headers = {{ x-secret = \"ours\" }} }}\n",
        url(mirror),
        url(service),
    );
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n{proxy}"
    ))
}

async fn head_of(pool: &Pool, url: &str, method: &str, fields: &[(&str, &str)]) -> ResponseHead {
    let endpoint = Endpoint::parse(url).unwrap();
    let lease = pool.acquire(&endpoint).await.unwrap();
    let fields = fields.to_vec();
    let head = Head::new(method, endpoint.path_and_query(), &fields);
    let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
    let head = exchange.final_head().await.unwrap();
    while exchange.frame().await.is_some() {}
    head
}

fn fronts(gateway: &Served) -> [(Speaks, String); 3] {
    let (clear, tls) = (gateway.addresses[0], gateway.addresses[1]);
    [
        (Speaks::Http1, format!("http://{clear}")),
        (Speaks::Http2, format!("http://{clear}")),
        (Speaks::Http3, format!("https://{tls}")),
    ]
}

/// A server would send credentials back, and what the gateway adds.
#[test]
fn a_request_that_servers_echo_reaches_none() {
    let (server, service, mirror) = (echoing(), echoing(), echoing());
    let gateway = gateway(&server, &service, &mirror);
    for (speaks, url) in fronts(&gateway) {
        for (method, path) in [
            ("TRACE", "/"),
            ("TRACE", "/cached"),
            ("TRACK", "/"),
            ("Track", "/"),
        ] {
            let url = format!("{url}{path}");
            let fields = [("authorization", "Bearer t"), ("max-forwards", "3")];
            let head = run_local(async { head_of(&pool(speaks), &url, method, &fields).await });
            assert_eq!(head.status, 405, "{method} {speaks:?}");
            let allowed = head.fields.field("allow").unwrap();
            assert!(!allowed.windows(5).any(|it| it == b"TRACE"));
            assert_eq!(head.fields.field("x-secret"), None);
        }
    }
    // A request that is forwarded shows that the others would have been.
    let (_, url) = &fronts(&gateway)[0];
    let head = run_local(async { head_of(&pool(Speaks::Http1), url, "GET", &[]).await });
    assert_eq!(head.status, 200);
    eventually(|| mirror.requests() == 1);
    assert_eq!((server.requests(), service.requests()), (1, 1));
}

#[test]
fn an_options_goes_as_far_as_its_client_wants() {
    let (server, service, mirror) = (echoing(), echoing(), echoing());
    let gateway = gateway(&server, &service, &mirror);
    for (speaks, url) in fronts(&gateway) {
        for (method, sent, status, received) in [
            ("OPTIONS", "0", 204, None),
            ("OPTIONS", "1", 200, Some("0")),
            ("OPTIONS", "x", 200, Some("x")),
            ("POST", "0", 200, Some("0")),
        ] {
            let fields = [("max-forwards", sent)];
            let head = run_local(async { head_of(&pool(speaks), &url, method, &fields).await });
            assert_eq!(head.status, status, "{method} {sent} {speaks:?}");
            let value = head.fields.field("max-forwards");
            assert_eq!(value, received.map(str::as_bytes), "{speaks:?}");
            assert_eq!(head.fields.field("allow").is_some(), status == 204);
        }
    }
}
