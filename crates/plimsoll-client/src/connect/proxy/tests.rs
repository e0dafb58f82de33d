use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Proxy {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn rules(variables: &[(&str, &str)]) -> ProxyRules {
    ProxyRules::from_variables(variables.iter().copied()).unwrap()
}

fn selected(rules: &ProxyRules, url: &str) -> Option<String> {
    rules
        .select(&Endpoint::parse(url).unwrap())
        .map(ToString::to_string)
}

#[test]
fn forms_of_curl() {
    for (text, printed) in [
        ("proxy.test", "http://proxy.test:1080"),
        ("proxy.test:3128", "http://proxy.test:3128"),
        ("http://proxy.test:80", "http://proxy.test:80"),
        ("http://proxy.test/", "http://proxy.test:1080"),
        ("https://proxy.test", "https://proxy.test:443"),
        ("SOCKS5://127.0.0.1", "socks5://127.0.0.1:1080"),
        ("socks5h://proxy.test:9", "socks5h://proxy.test:9"),
        ("socks4://[::1]:9", "socks4://[::1]:9"),
        (
            "socks4a://Prüfung.test:9",
            "socks4a://xn--prfung-4ya.test:9",
        ),
    ] {
        assert_eq!(parse(text).to_string(), printed, "{text}");
    }
}

#[test]
fn credentials_are_decoded_and_never_printed() {
    let proxy = parse("http://us%40er:hunter%202@proxy.test");
    let (user, password) = proxy.credentials().unwrap();
    assert_eq!((user, password.expose()), ("us@er", "hunter 2"));
    assert!(proxy.authorization().is_some());
    assert!(!format!("{proxy} {proxy:?}").contains("hunter"));
}

#[test]
fn errors_say_what_to_do() {
    let error = "ftp://proxy.test".parse::<Proxy>().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unknown proxy scheme `ftp`; plimsoll speaks http://")
    );
    assert!("".parse::<Proxy>().is_err());
    assert!("http://".parse::<Proxy>().is_err());
    assert!("proxy.test:99999".parse::<Proxy>().is_err());
}

#[test]
fn variables_as_curl_reads_them() {
    let http = "http://a.test";
    let https = "https://a.test";
    for (variables, for_http, for_https) in [
        (vec![], None, None),
        (vec![("http_proxy", "p:1")], Some("http://p:1"), None),
        // A CGI client could set this one.
        (vec![("HTTP_PROXY", "p:1")], None, None),
        (vec![("HTTPS_PROXY", "p:1")], None, Some("http://p:1")),
        (
            vec![("HTTPS_PROXY", "p:1"), ("https_proxy", "p:2")],
            None,
            Some("http://p:2"),
        ),
        (
            vec![("ALL_PROXY", "socks5://p:1")],
            Some("socks5://p:1"),
            Some("socks5://p:1"),
        ),
        (
            vec![("all_proxy", "p:1"), ("http_proxy", "p:2")],
            Some("http://p:2"),
            Some("http://p:1"),
        ),
        (
            vec![("http_proxy", ""), ("all_proxy", "p:1")],
            Some("http://p:1"),
            Some("http://p:1"),
        ),
        (vec![("all_proxy", "p:1"), ("NO_PROXY", "*")], None, None),
        (
            vec![
                ("all_proxy", "p:1"),
                ("no_proxy", "b.test"),
                ("NO_PROXY", "*"),
            ],
            Some("http://p:1"),
            Some("http://p:1"),
        ),
        (vec![("PATH", "/bin")], None, None),
    ] {
        let rules = rules(&variables);
        assert_eq!(selected(&rules, http).as_deref(), for_http, "{variables:?}");
        assert_eq!(
            selected(&rules, https).as_deref(),
            for_https,
            "{variables:?}"
        );
    }
}

#[test]
fn a_wrong_variable_is_named() {
    let error = ProxyRules::from_variables([("all_proxy", "gopher://p")]).unwrap_err();
    assert_eq!(error.to_string(), "environment variable `all_proxy`");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.starts_with("unknown proxy scheme `gopher`"),
        "{cause}"
    );
    let error = ProxyRules::from_variables([("no_proxy", "a/b")]).unwrap_err();
    assert_eq!(error.to_string(), "environment variable `no_proxy`");
}

#[test]
fn exceptions_hold_for_a_given_proxy_too() {
    let rules = ProxyRules::always(parse("p:1")).except("a.test".parse().unwrap());
    assert_eq!(selected(&rules, "https://a.test"), None);
    assert_eq!(
        selected(&rules, "https://b.test").as_deref(),
        Some("http://p:1")
    );
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,40}") {
        if let Ok(proxy) = text.parse::<Proxy>() {
            prop_assert_eq!(proxy.to_string().parse::<Proxy>().map(|p| p.to_string()), Ok(proxy.to_string()));
        }
    }
}
