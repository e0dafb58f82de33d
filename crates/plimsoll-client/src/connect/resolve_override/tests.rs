use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> ResolveOverride {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(addresses: Option<&[IpAddr]>) -> Vec<String> {
    addresses
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn forms_of_curl() {
    let overrides = Overrides::new(vec![
        parse("*:80:127.0.0.1"),
        parse("a.test:80:127.0.0.2,[::1],::2"),
        parse("[2001:db8::1]:80:127.0.0.3"),
        parse("B.Test:443:[::1]"),
    ]);
    let find = |host: &str, port| {
        let host = Host::parse(host).unwrap();
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        };
        shown(overrides.find(&host, port))
    };
    assert_eq!(find("a.test", 80), ["127.0.0.2", "::1", "::2"]);
    assert_eq!(find("other.test", 80), ["127.0.0.1"]);
    assert_eq!(find("[2001:db8::1]", 80), ["127.0.0.3"]);
    assert_eq!(find("b.test", 443), ["::1"]);
    assert!(find("a.test", 81).is_empty());
}

#[test]
fn the_last_one_counts() {
    let overrides = Overrides::new(vec![parse("a:1:127.0.0.1"), parse("a:1:127.0.0.2")]);
    assert_eq!(shown(overrides.find(&Host::Domain("a"), 1)), ["127.0.0.2"]);
}

#[test]
fn errors_name_the_part() {
    for (text, message) in [
        (
            "a.test",
            "expected HOST:PORT:ADDRESS, such as `example.com:443:127.0.0.1`",
        ),
        (
            "a.test:80",
            "expected HOST:PORT:ADDRESS, such as `example.com:443:127.0.0.1`",
        ),
        (
            ":80:127.0.0.1",
            "expected HOST:PORT:ADDRESS, such as `example.com:443:127.0.0.1`",
        ),
        ("a b:80:127.0.0.1", "`a b` is not a host name"),
        ("a:http:127.0.0.1", "`http` is not a port"),
        ("a:80:b", "`b` is not an IP address"),
        ("a:80:", "`` is not an IP address"),
        ("a:80:[127.0.0.1]", "`[127.0.0.1]` is not an IP address"),
    ] {
        let error = text.parse::<ResolveOverride>().unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,40}") {
        if let Ok(parsed) = text.parse::<ResolveOverride>() {
            prop_assert!(!parsed.addresses().is_empty());
        }
    }

    #[test]
    fn near_misses_are_answered(text in r"\[?[a:.*0-9\]]{0,6}:[0-9]{0,6}:[\[0-9a-f:.,\]]{0,20}") {
        if let Ok(parsed) = text.parse::<ResolveOverride>() {
            prop_assert!(!parsed.addresses().is_empty());
        }
    }
}
