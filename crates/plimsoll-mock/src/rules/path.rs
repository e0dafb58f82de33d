//! Paths of requests as rules and folders see them.

use std::borrow::Cow;

use plimsoll_wire::http::NormalPath;

/// The path in its normal form, without a slash at its end.
///
/// Escapes that are no UTF-8 become U+FFFD, an encoded slash stays `%2F`, `+` stays. The server refuses dot segments
/// before rules see them; a request of another origin loses them.
pub fn decoded(path: &str) -> Cow<'_, str> {
    match NormalPath::cleaned(path).into_text() {
        Cow::Borrowed(text) => Cow::Borrowed(without_slash(text)),
        Cow::Owned(text) if text.len() > 1 && text.ends_with('/') => {
            Cow::Owned(without_slash(&text).to_owned())
        }
        text @ Cow::Owned(_) => text,
    }
}

/// A path of a rule, made to be compared with those of requests: one slash between segments, none at its end, no dot
/// segments. Escapes stay as they are written.
pub fn normalized(path: &str) -> String {
    let segments = path.split('/');
    let mut normal = String::with_capacity(path.len() + 1);
    for segment in segments.filter(|segment| !matches!(*segment, "" | "." | "..")) {
        normal.push('/');
        normal.push_str(segment);
    }
    if normal.is_empty() {
        normal.push('/');
    }
    normal
}

fn without_slash(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_become_normal() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("a", "/a"),
            ("//a//b//", "/a/b"),
            ("/a/../b", "/a/b"),
            ("/..", "/"),
            ("/../..//x", "/x"),
            ("/a/..", "/a"),
            ("/a/%2e%2E/b", "/a/b"),
            ("/a%2f..%2f..%2fb", "/"),
            ("/%252e%252e/b", "/%2e%2e/b"),
            ("/p/group%2fproj", "/p/group%2Fproj"),
            ("/a+b%20c", "/a+b c"),
            ("/..a/b..", "/..a/b.."),
            ("/%ff", "/\u{fffd}"),
        ] {
            assert_eq!(decoded(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn what_is_normal_stays(path in "[/.a%2eF]{0,12}") {
            let normal = decoded(&path).into_owned();
            prop_assert!(normal.starts_with('/'));
            prop_assert!(!normal.split('/').any(|segment| segment == ".."));
            prop_assert!(normal == "/" || !normal.ends_with('/'));
            prop_assert_eq!(normalized(&normal), normal);
        }
    }
}
