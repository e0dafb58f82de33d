//! Checks through a proxy.

use plimsoll_monitor::Reading;
use plimsoll_monitor::probe::{HttpOptions, HttpProbe, Reach, ReachOptions};
use plimsoll_testkit::{Authority, Origin, Script, TestProxy};
use plimsoll_wire::tls::Trust;

use crate::probes::{options, read, request};

/// The result of a check of `target` by the proxy at that URL.
fn through(proxy: &str, target: &str, trust: Trust) -> Reading {
    let reach = Reach::new(ReachOptions {
        proxy: Some(proxy.parse().unwrap()),
        trust,
        ..options()
    });
    read(&HttpProbe::new(request(target), reach.unwrap()).unwrap())
}

#[test]
fn a_check_goes_through_its_proxy_and_signs_in_there() {
    let origin = Origin::hello();
    let target = origin.url("/health?full");
    for (proxy, scheme, how) in [
        (TestProxy::http(), "http", "GET"),
        (TestProxy::socks(), "socks5h", "SOCKS5"),
    ] {
        let proxy = proxy.require("ann", "secret").start();
        let url = |login: &str| format!("{scheme}://{login}{}", proxy.address());
        let reading = through(&url("ann:secret@"), &target, Trust::PublicRoots);
        assert_eq!(reading.code, Some(200), "{scheme}: {reading:?}");
        let asked = proxy.requests();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!(asked[0].how, how);
        let named = match how {
            "GET" => target.clone(),
            _ => origin.address().to_string(),
        };
        assert_eq!(asked[0].target, named);
        let refused = through(&url("ann:wrong@"), &target, Trust::PublicRoots);
        assert_ne!(refused.code, Some(200), "{scheme}: {refused:?}");
    }
}

#[test]
fn over_tls_the_proxy_sees_a_tunnel_and_the_certificate_is_the_targets() {
    let authority = Authority::new();
    let leaf = authority.issue(&["localhost", "127.0.0.1"]);
    let origin = Origin::builder().tls(leaf.server_config()).start();
    let proxy = TestProxy::http().start();
    let url = format!("http://{}", proxy.address());
    let target = origin.url("/");
    let reading = through(&url, &target, Trust::Anyone);
    assert_eq!(reading.code, Some(200), "{reading:?}");
    assert!(reading.certificate.is_some());
    assert_eq!(proxy.requests()[0].how, "CONNECT");
    let stranger = through(&url, &target, Trust::PublicRoots);
    assert!(stranger.failure.is_some(), "{stranger:?}");
}

#[test]
fn a_redirect_is_followed_through_the_proxy_too() {
    let last = Origin::hello();
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        last.url("/b")
    );
    let first = Origin::scripted(Script::serve(answer));
    let proxy = TestProxy::http().start();
    let url = format!("http://{}", proxy.address());
    let reading = through(&url, &first.url("/a"), Trust::PublicRoots);
    assert_eq!(reading.code, Some(200), "{reading:?}");
    let asked = proxy.requests();
    let targets: Vec<&str> = asked.iter().map(|it| it.target.as_str()).collect();
    assert_eq!(targets, [first.url("/a"), last.url("/b")]);
}

#[test]
fn http2_without_tls_is_refused_behind_an_http_proxy() {
    let reach = Reach::new(ReachOptions {
        proxy: Some("http://127.0.0.1:3128".parse().unwrap()),
        ..options()
    });
    let request = HttpOptions {
        http2: true,
        ..request("http://example.org/")
    };
    let error = HttpProbe::new(request, reach.unwrap()).unwrap_err();
    assert!(error.to_string().contains("HTTP proxy"), "{error}");
}
