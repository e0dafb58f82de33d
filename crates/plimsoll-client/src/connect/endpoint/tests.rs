use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn parts_of_a_url() {
    // text, printed, authority, port, target
    for (text, printed, authority, port, target) in [
        ("http://a.test", "http://a.test/", "a.test", 80, "/"),
        ("https://a.test", "https://a.test/", "a.test", 443, "/"),
        ("http://a.test:80/x", "http://a.test/x", "a.test", 80, "/x"),
        (
            "http://a.test:443",
            "http://a.test:443/",
            "a.test:443",
            443,
            "/",
        ),
        (
            "https://a.test:8443/p?q=1#f",
            "https://a.test:8443/p?q=1",
            "a.test:8443",
            8443,
            "/p?q=1",
        ),
        ("http://a.test?q", "http://a.test/?q", "a.test", 80, "/?q"),
        (
            "http://[::1]:8080/",
            "http://[::1]:8080/",
            "[::1]:8080",
            8080,
            "/",
        ),
        ("HTTP://A.Test/", "http://a.test/", "a.test", 80, "/"),
        (
            "http://bücher.test/ä",
            "http://xn--bcher-kva.test/%C3%A4",
            "xn--bcher-kva.test",
            80,
            "/%C3%A4",
        ),
        // Without a scheme.
        (
            "localhost:8080/x",
            "http://localhost:8080/x",
            "localhost:8080",
            8080,
            "/x",
        ),
        ("127.0.0.1:80", "http://127.0.0.1/", "127.0.0.1", 80, "/"),
        ("localhost", "http://localhost/", "localhost", 80, "/"),
        ("web//x", "http://web//x", "web", 80, "//x"),
        ("//a.test/x", "http://a.test/x", "a.test", 80, "/x"),
        ("[::1]:81", "http://[::1]:81/", "[::1]:81", 81, "/"),
        (
            "a.test?x=1:2",
            "http://a.test/?x=1:2",
            "a.test",
            80,
            "/?x=1:2",
        ),
        (" http://a.test/ ", "http://a.test/", "a.test", 80, "/"),
    ] {
        let endpoint = parse(text);
        assert_eq!(endpoint.to_string(), printed, "{text}");
        assert_eq!(endpoint.authority(), authority, "{text}");
        assert_eq!(endpoint.port(), port, "{text}");
        assert_eq!(endpoint.path_and_query(), target, "{text}");
    }
}

#[test]
fn credentials_are_decoded_and_never_printed() {
    for text in ["http://us%40er:p%3Aw@a.test/", "us%40er:p%3Aw@a.test"] {
        let endpoint = parse(text);
        let (user, password) = endpoint.credentials().unwrap();
        assert_eq!((user, password.expose()), ("us@er", "p:w"));
        assert_eq!(endpoint.to_string(), "http://a.test/");
        assert!(!format!("{endpoint:?}").contains("p:w"));
    }
    assert_eq!(parse("user:1234@a.test").credentials().unwrap().0, "user");
    assert!(parse("http://a.test/").credentials().is_none());
}

#[test]
fn connect_form_always_has_a_port() {
    assert_eq!(parse("https://a.test").authority_with_port(), "a.test:443");
    assert_eq!(parse("https://[::1]").authority_with_port(), "[::1]:443");
}

#[test]
fn errors_say_what_to_do() {
    for (text, message) in [
        (
            "ftp://a.test",
            "unknown scheme `ftp`; plimsoll speaks http:// and https://",
        ),
        (
            "file:/etc/passwd",
            "unknown scheme `file`; plimsoll speaks http:// and https://",
        ),
        ("", "the URL is empty"),
        ("http://", "`http://` has no host"),
        ("http:///x", "`http:///x` has no host"),
        ("/x", "`/x` has no host"),
        ("ftp//nope", "`ftp//nope` has no `:` behind its scheme"),
        (
            "HTTP//a.test/",
            "`HTTP//a.test/` has no `:` behind its scheme",
        ),
        (
            "http://a.test:99999/",
            "`http://a.test:99999/` is not a URL",
        ),
        ("http://user:hunter2@a b/", "`http://…@a b/` is not a URL"),
    ] {
        assert_eq!(
            Endpoint::parse(text).unwrap_err().to_string(),
            message,
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,60}") {
        if let Ok(endpoint) = Endpoint::parse(&text) {
            prop_assert!(endpoint.path_and_query().starts_with('/'));
            prop_assert!(endpoint.authority().is_ascii());
        }
    }

    #[test]
    fn what_is_printed_means_the_same(text in "(http|https)://[a-z]{1,8}(:[0-9]{1,4})?(/[a-z?=&%2]{0,12})?") {
        if let Ok(endpoint) = Endpoint::parse(&text) {
            prop_assert_eq!(Endpoint::parse(&endpoint.to_string()), Ok(endpoint));
        }
    }
}
