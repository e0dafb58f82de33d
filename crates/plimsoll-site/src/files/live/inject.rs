//! A script's element within a page.

use bytes::Bytes;

/// End of a page's body, unless it is implied.
const END: &[u8] = b"</body";

/// `page` with `tag` at the end of its body.
pub(super) fn injected(page: &[u8], tag: &str) -> Bytes {
    let end = page
        .windows(END.len())
        .rposition(|window| window.eq_ignore_ascii_case(END));
    let (before, after) = page.split_at(end.unwrap_or(page.len()));
    [before, tag.as_bytes(), after].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stands_at_the_end_of_the_body() {
        for (page, expected) in [
            ("<body>a</BODY ></html>", "<body>a<s></BODY ></html>"),
            ("<!-- </body> -->a</body>", "<!-- </body> -->a<s></body>"),
            ("<p>a", "<p>a<s>"),
            ("", "<s>"),
        ] {
            assert_eq!(injected(page.as_bytes(), "<s>"), expected.as_bytes());
        }
    }
}
