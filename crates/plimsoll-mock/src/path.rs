//! Paths of requests as rules and folders see them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The path with its escapes undone, once: one slash at its beginning, none at its end, and no segment `..`.
///
/// Escapes that are no UTF-8 become U+FFFD; `+` stays.
pub fn decoded(path: &str) -> Cow<'_, str> {
    let text = if path.contains('%') {
        Cow::Owned(percent_decode_str(path).decode_utf8_lossy().into_owned())
    } else {
        Cow::Borrowed(path)
    };
    if is_normal(&text) {
        return text;
    }
    Cow::Owned(normalized(&text))
}

/// A path of a rule, made to be compared with those of requests.
pub fn normalized(path: &str) -> String {
    let mut normal = String::with_capacity(path.len() + 1);
    let inner = path.trim_matches('/');
    for segment in inner.split('/').filter(|segment| *segment != "..") {
        normal.push('/');
        normal.push_str(segment);
    }
    if normal.is_empty() || normal.len() > 1 && normal.ends_with('/') {
        // What stood behind the last slash was taken away.
        let end = normal.trim_end_matches('/').len();
        normal.truncate(end);
    }
    if normal.is_empty() {
        normal.push('/');
    }
    // Segments that were taken away at the beginning may leave slashes there.
    let slashes = normal.len() - normal.trim_start_matches('/').len();
    if slashes > 1 {
        normal.drain(..(slashes - 1).min(normal.len() - 1));
    }
    normal
}

fn is_normal(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.first() == Some(&b'/')
        && bytes.get(1) != Some(&b'/')
        && (bytes.len() == 1 || bytes.last() != Some(&b'/'))
        && !path.contains("/..")
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
            ("//a//b//", "/a//b"),
            ("/a/../b", "/a/b"),
            ("/..", "/"),
            ("/../..//x", "/x"),
            ("/a/..", "/a"),
            ("/a/%2e%2E/b", "/a/b"),
            ("/a%2f..%2f..%2fb", "/a/b"),
            ("/%252e%252e/b", "/%2e%2e/b"),
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
