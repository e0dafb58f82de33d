//! Events as servers send them.

/// A comment, which is no event: a connection that carries one from time to time is not closed for being idle.
pub const COMMENT: &str = ":\n\n";

/// An event as it is sent (WHATWG HTML, section 9.2.5).
///
/// - `fields`: whole lines besides the data, such as `event: change` with its line feed.
/// - `data`: each of its lines becomes one of its own, at every kind of line end.
pub fn encoded_event(fields: &str, data: &str) -> String {
    let mut text = fields.to_owned();
    // Every way to end a line ends it here too.
    for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_data_is_one_of_its_own() {
        assert_eq!(encoded_event("event: a\n", "b"), "event: a\ndata: b\n\n");
        assert_eq!(
            encoded_event("", "a\r\nb\rc\n"),
            "data: a\ndata: b\ndata: c\ndata: \n\n"
        );
    }
}
