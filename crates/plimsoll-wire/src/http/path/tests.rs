use proptest::prelude::*;

use super::*;

#[test]
fn paths_have_one_normal_form() {
    for (raw, text, has_gaps) in [
        ("/", "/", false),
        ("", "/", false),
        ("/a/b", "/a/b", false),
        ("/a/", "/a/", false),
        ("//", "/", true),
        ("//a//b//", "/a/b/", true),
        ("/a%20b/%C3%BC", "/a b/ü", false),
        ("/%61", "/a", false),
        ("/%2561", "/%61", false),
        ("/a%2fb", "/a%2Fb", false),
        ("/a%5cb", "/a%5Cb", false),
        ("/a+b", "/a+b", false),
        ("/.well-known/x", "/.well-known/x", false),
        ("/...", "/...", false),
        ("/a;b", "/a;b", false),
        ("/%ff", "/\u{fffd}", false),
    ] {
        let path = NormalPath::parse(raw).unwrap();
        assert_eq!((path.text(), path.has_gaps()), (text, has_gaps), "{raw}");
    }
    assert!(NormalPath::parse("/a%2Fb").unwrap().has_encoded_slash());
    assert!(!NormalPath::parse("/a%252Fb").unwrap().has_encoded_slash());
    assert!(!NormalPath::parse("/%c0%ae").unwrap().is_utf8());
}

#[test]
fn ambiguous_paths_are_refused() {
    for (raw, refusal) in [
        ("/..", PathRefusal::Dots),
        ("/a/../b", PathRefusal::Dots),
        ("/%2e%2E/b", PathRefusal::Dots),
        ("/.%2e", PathRefusal::Dots),
        ("/./a", PathRefusal::Dots),
        ("/a/..;/b", PathRefusal::Dots),
        ("/a/..%3bx=1/b", PathRefusal::Dots),
        ("/a%2f..%2fb", PathRefusal::Dots),
        ("/..%2fa", PathRefusal::Dots),
        ("/a%5C..%5cb", PathRefusal::Dots),
        ("/..%5ca", PathRefusal::Dots),
        ("/a/.;x/b", PathRefusal::Dots),
        ("/a\\b", PathRefusal::Character),
        ("/a%00b", PathRefusal::Character),
        ("/a%0a", PathRefusal::Character),
        ("/a%0Ab", PathRefusal::Character),
        ("/%0d", PathRefusal::Character),
        ("/a%", PathRefusal::Escape),
        ("/a%4", PathRefusal::Escape),
        ("/a%zz", PathRefusal::Escape),
        ("/a%+1", PathRefusal::Escape),
    ] {
        assert_eq!(NormalPath::parse(raw), Err(refusal), "{raw}");
    }
}

#[test]
fn a_path_may_be_read_in_other_ways() {
    for (raw, expected) in [
        ("/auth/z", &[][..]),
        ("/auth;x/z", &["/auth/z"]),
        ("/;x/auth/z;y=1", &["/auth/z"]),
        ("/auth%3Bx/z", &["/auth/z"]),
        ("/a%2Fb", &["/a/b"]),
        ("/a%5Cb", &["/a/b"]),
        ("/a;b%2Fc", &["/a;b/c", "/a", "/a/c", "/a"]),
    ] {
        let path = NormalPath::parse(raw).unwrap();
        let readings = path.other_readings();
        let readings: Vec<_> = readings.iter().map(NormalPath::text).collect();
        assert_eq!(readings, expected, "{raw}");
        assert_eq!(path.is_ambiguous(), !expected.is_empty(), "{raw}");
    }
}

#[test]
fn cleaned_paths_lose_their_dot_segments() {
    for (raw, text) in [
        ("/a/../b", "/a/b"),
        ("/../..//x", "/x"),
        ("/..", "/"),
        ("/a%", "/a%"),
        ("a", "/a"),
    ] {
        assert_eq!(NormalPath::cleaned(raw).text(), text, "{raw}");
    }
}

#[test]
fn prefixes_are_taken_off_in_every_spelling() {
    for (raw, prefix, rest) in [
        ("/m/x", "/m", Some("/x")),
        ("/m", "/m/", Some("")),
        ("/m/x", "/", Some("/m/x")),
        ("/M/%58", "/m", Some("/%58")),
        ("/%6d//x", "/m", Some("//x")),
        ("//m///n/x", "/m/n", Some("/x")),
        ("/mx", "/m", None),
        ("/n/x", "/m", None),
        ("/m", "/m/n", None),
        ("/Stra%C3%9Fe/x", "/straße", Some("/x")),
    ] {
        assert_eq!(below(raw, prefix), rest, "{raw} below {prefix}");
    }
}

proptest! {
    #[test]
    fn a_normal_path_has_no_ambiguous_part(raw in "/[aA.%2eEfF5cC0;/\\\\]{0,20}") {
        if let Ok(path) = NormalPath::parse(&raw) {
            prop_assert!(path.text().starts_with('/'));
            prop_assert!(!path.text().contains("//"));
            prop_assert!(!path.text().contains(['\\', '\0']));
            prop_assert!(!path.text().split('/').any(is_dots));
            // Those who decode slashes or cut parameters off find no dots either.
            for reading in path.other_readings() {
                prop_assert!(!reading.text().split('/').any(is_dots), "{:?}", reading);
                prop_assert!(reading.text().starts_with('/') && !reading.text().contains("//"));
            }
            prop_assert_eq!(NormalPath::cleaned(&raw), path);
        }
    }

    #[test]
    fn what_is_below_a_prefix_is_the_rest_of_its_normal_form(
        prefix in "(/[a-c]{1,2}){1,3}",
        raw in "(/{1,2}([a-cA-C]|%6[1-3]){1,2}){0,4}/?",
    ) {
        let path = NormalPath::parse(&raw).unwrap();
        let folded = path.folded();
        let by_text = folded
            .strip_prefix(&prefix)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let by_rest = below(&raw, &prefix);
        prop_assert_eq!(by_rest.is_some(), by_text.is_some(), "{} below {}", raw, prefix);
        if let (Some(rest), Some(text)) = (by_rest.filter(|rest| !rest.is_empty()), by_text) {
            let rest = NormalPath::parse(rest).unwrap();
            prop_assert_eq!(rest.folded(), text);
        }
    }
}
