use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

fn plan(proxies: ProxyRules) -> ConnectPlan {
    ConnectPlan::new(ConnectOptions {
        proxies,
        ..ConnectOptions::default()
    })
    .unwrap()
}

#[test]
fn only_an_http_proxy_sees_absolute_form_and_only_for_http() {
    let absolute = |proxy_authorization| RequestForm::Absolute {
        proxy_authorization,
    };
    for (proxy, url, expected) in [
        ("p:1", "http://a.test", absolute(None)),
        (
            "http://Aladdin:open%20sesame@p:1",
            "http://a.test",
            absolute(Some(Secret::new("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))),
        ),
        ("p:1", "https://a.test", RequestForm::Origin),
        ("socks5://p:1", "http://a.test", RequestForm::Origin),
        ("p:1", "http://exempt.test", RequestForm::Origin),
    ] {
        let rules =
            ProxyRules::always(proxy.parse().unwrap()).except("exempt.test".parse().unwrap());
        assert_eq!(
            plan(rules).request_form(&endpoint(url)),
            expected,
            "{proxy} {url}"
        );
    }
    assert_eq!(
        plan(ProxyRules::none()).request_form(&endpoint("http://a.test")),
        RequestForm::Origin
    );
}

#[test]
fn a_unix_socket_takes_the_place_of_the_proxy() {
    let plan = ConnectPlan::new(ConnectOptions {
        unix_socket: Some("/run/app.sock".into()),
        proxies: ProxyRules::always("p:1".parse().unwrap()),
        ..ConnectOptions::default()
    })
    .unwrap();
    assert_eq!(
        plan.request_form(&endpoint("http://a.test")),
        RequestForm::Origin
    );
}

#[test]
fn contradictions_are_refused() {
    let options = |source: IpAddr, family| ConnectOptions {
        source: Some(source),
        family,
        ..ConnectOptions::default()
    };
    let error =
        ConnectPlan::new(options(Ipv4Addr::LOCALHOST.into(), AddressFamily::Ipv6)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the source address 127.0.0.1 is not of the requested address family"
    );
    let plan = ConnectPlan::new(options(Ipv6Addr::LOCALHOST.into(), AddressFamily::Any)).unwrap();
    assert_eq!(plan.options.family, AddressFamily::Ipv6);

    let error = ConnectPlan::new(ConnectOptions {
        proxies: ProxyRules::always("https://user:hunter2@p:1".parse().unwrap()),
        ..ConnectOptions::default()
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the proxy https://p:1 needs TLS settings for proxies"
    );
}
