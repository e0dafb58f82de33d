use proptest::prelude::*;

use super::*;
use crate::Endpoint;

fn exempt(list: &str, url: &str) -> bool {
    let list: NoProxy = list.parse().unwrap();
    let endpoint = Endpoint::parse(url).unwrap();
    list.matches(&endpoint.host(), endpoint.port())
}

#[test]
fn what_is_exempt() {
    for (list, url, expected) in [
        ("", "http://a.test", false),
        ("*", "http://a.test", true),
        ("*", "http://10.0.0.1", true),
        ("a.test", "http://a.test", true),
        ("a.test", "http://A.TEST:8080", true),
        ("a.test", "http://www.a.test", true),
        ("a.test", "http://ba.test", false),
        ("a.test", "http://a.test.b", false),
        (".a.test", "http://a.test", true),
        (".a.test", "http://www.a.test", true),
        ("*.a.test", "http://www.a.test", true),
        ("a.test.", "http://a.test", true),
        ("a.test", "http://a.test./", true),
        ("b.test,a.test", "http://a.test", true),
        ("b.test a.test", "http://a.test", true),
        (" b.test, a.test ,", "http://a.test", true),
        ("localhost", "http://localhost", true),
        ("localhost", "http://127.0.0.1", false),
        ("a.test:8080", "http://a.test:8080", true),
        ("a.test:8080", "http://a.test", false),
        ("a.test:443", "https://www.a.test", true),
        ("10.0.0.1", "http://10.0.0.1", true),
        ("10.0.0.1", "http://10.0.0.10", false),
        ("10.0.0.1:81", "http://10.0.0.1:81", true),
        ("10.0.0.1:81", "http://10.0.0.1:82", false),
        ("10.0.0.0/8", "http://10.200.3.4", true),
        ("10.0.0.0/8", "http://11.0.0.1", false),
        ("10.0.0.0/8", "http://10.test", false),
        ("::1", "http://[::1]:8080", true),
        ("[::1]", "http://[::1]", true),
        ("[::1]:80", "http://[::1]", true),
        ("[::1]:80", "http://[::1]:81", false),
        ("fe80::/10", "http://[fe80::1234]", true),
        ("fe80::/10", "http://[fd00::1]", false),
        ("bücher.test", "http://xn--bcher-kva.test", true),
    ] {
        assert_eq!(exempt(list, url), expected, "`{list}` and {url}");
    }
}

#[test]
fn what_means_nothing_is_refused() {
    for list in ["a.test:http", "10.0.0.0/40", "a/b", "[::1", ":80"] {
        let error = list.parse::<NoProxy>().unwrap_err();
        assert!(error.to_string().contains(list), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,40}") {
        if let Err(NoProxyError(entry)) = text.parse::<NoProxy>() {
            prop_assert!(text.contains(&entry));
        }
    }
}
