use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;

/// 2026-01-01.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(490_896)
}

fn place<'a>(host: &'a str, path: &'a str) -> CookiePlace<'a> {
    CookiePlace {
        host,
        path,
        is_secure: false,
    }
}

fn sent_at(jar: &CookieJar, place: CookiePlace<'_>, at: SystemTime) -> String {
    let mut out = Vec::new();
    jar.write(place, at, &mut out);
    String::from_utf8(out).unwrap()
}

fn sent(jar: &CookieJar, host: &str, path: &str) -> String {
    sent_at(jar, place(host, path), now())
}

/// A jar after responses of `a.example.org` to `/shop/cart?x=/y` set these.
fn jar(set: &[&str]) -> CookieJar {
    let mut jar = CookieJar::default();
    for value in set {
        jar.store_cookie(
            value.as_bytes(),
            place("a.example.org", "/shop/cart?x=/y"),
            now(),
        );
    }
    jar
}

#[test]
fn a_cookie_goes_to_its_host_and_below_its_path() {
    let jar = jar(&["id=1; HttpOnly; SameSite=Lax"]);
    for (host, path, expected) in [
        ("a.example.org", "/shop", "id=1"),
        ("A.Example.Org", "/shop/", "id=1"),
        ("a.example.org", "/shop/x/y?z", "id=1"),
        ("a.example.org", "/shopping", ""),
        ("a.example.org", "/", ""),
        ("b.a.example.org", "/shop", ""),
        ("example.org", "/shop", ""),
    ] {
        assert_eq!(sent(&jar, host, path), expected, "{host}{path}");
    }
}

#[test]
fn a_domain_is_for_the_hosts_below_it() {
    let jar = jar(&["id=1; Domain=.Example.org; Path=/"]);
    for host in ["example.org", "a.example.org", "b.c.example.org"] {
        assert_eq!(sent(&jar, host, "/x"), "id=1", "{host}");
    }
    for host in ["anexample.org", "org", "example.org.evil", "10.0.0.1"] {
        assert_eq!(sent(&jar, host, "/x"), "", "{host}");
    }
}

#[test]
fn what_is_not_the_senders_to_set_is_ignored() {
    let jar = jar(&[
        "a=1; Domain=b.example.org",
        "a=1; Domain=org",
        "a=1; Domain=ample.org",
        "=1",
        "no pair",
        "a=\u{7}",
    ]);
    assert!(jar.cookies.is_empty());
    let mut jar = CookieJar::default();
    jar.store_cookie(b"a=1; Domain=0.0.1", place("127.0.0.1", "/"), now());
    assert!(jar.cookies.is_empty());
    jar.store_cookie(b"a=1; Domain=127.0.0.1", place("127.0.0.1", "/"), now());
    assert_eq!(sent(&jar, "127.0.0.1", "/"), "a=1");
    jar.store_cookie(&[b'a', b'=', 0xff], place("127.0.0.1", "/"), now());
    let long = format!("b={}", "x".repeat(CookieJar::MOST_BYTES));
    jar.store_cookie(long.as_bytes(), place("127.0.0.1", "/"), now());
    assert_eq!(sent(&jar, "127.0.0.1", "/"), "a=1");
}

#[test]
fn a_later_cookie_of_the_same_name_takes_the_place_of_the_earlier_one() {
    let mut jar = jar(&[
        "a=1; Path=/",
        "b=2; Path=/",
        "a=3; Path=/",
        "a=4; Path=/shop",
    ]);
    assert_eq!(sent(&jar, "a.example.org", "/shop"), "a=4; a=3; b=2");
    let place = place("a.example.org", "/");
    jar.store_cookie(b"a=; Path=/; Max-Age=0", place, now());
    jar.store_cookie(
        b"b=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        place,
        now(),
    );
    assert_eq!(sent(&jar, "a.example.org", "/shop"), "a=4");
}

#[test]
fn cookies_expire() {
    let jar = jar(&[
        "age=1; Path=/; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "date=1; Path=/; Expires=Thu, 01-Jan-26 00:01:00 GMT",
        "forever=1; Path=/; Max-Age=9223372036854775807",
        "unclear=1; Path=/; Expires=soon",
    ]);
    let place = place("a.example.org", "/");
    let later = |seconds| sent_at(&jar, place, now() + Duration::from_secs(seconds));
    assert_eq!(later(59), "age=1; date=1; forever=1; unclear=1");
    assert_eq!(later(60), "forever=1; unclear=1");
}

#[test]
fn secure_ones_go_over_tls_only() {
    let jar = jar(&["a=1; Path=/; Secure"]);
    let plain = place("a.example.org", "/");
    assert_eq!(sent_at(&jar, plain, now()), "");
    let tls = CookiePlace {
        is_secure: true,
        ..plain
    };
    assert_eq!(sent_at(&jar, tls, now()), "a=1");
    assert!(jar.has(b"a", tls, now()) && !jar.has(b"a", plain, now()));
}

#[test]
fn a_full_jar_forgets_the_oldest() {
    let mut jar = CookieJar::default();
    for number in 0..=CookieJar::MOST {
        let value = format!("n{number}=1");
        jar.store_cookie(value.as_bytes(), place("h", "/"), now());
    }
    assert_eq!(jar.cookies.len(), CookieJar::MOST);
    let sent = sent(&jar, "h", "/");
    assert!(
        sent.starts_with("n1=1; n2=1;") && sent.ends_with("; n300=1"),
        "{sent}"
    );
}

proptest! {
    /// Whatever a server sends, nothing breaks, and what is sent back is what its sender may read.
    #[test]
    fn any_field_can_be_taken(
        fields in prop::collection::vec(
            "([ -~é]{0,12}|a)(=[ -~é]{0,8})?(; ?(Path|Domain|Expires|Max-Age|Secure)(=[/-9A-Za-z., :-]{0,30})?){0,3}",
            0..8,
        ),
        host in "[a-c.]{1,6}|127.0.0.1|\\[::1\\]",
        path in "[/a-b?]{0,6}",
    ) {
        let mut jar = CookieJar::default();
        for field in &fields {
            jar.store_cookie(field.as_bytes(), place(&host, &path), now());
        }
        let sent = sent(&jar, &host, &path);
        prop_assert!(!sent.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t'));
        prop_assert_eq!(self::sent(&jar, "elsewhere.example", "/"), "");
    }
}
