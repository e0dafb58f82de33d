//! Text within HTML and XML.

/// Text for HTML and XML, attributes included; characters that XML 1.0 forbids are replaced.
pub fn escaped_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_xml_char(c) => escaped.push(c),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

/// Whether XML 1.0 (section 2.2) has the character, and readers show it.
pub fn is_xml_char(character: char) -> bool {
    let is_blank = matches!(character, '\t' | '\n' | '\r');
    is_blank || !(character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_an_element_or_an_attribute() {
        assert_eq!(
            escaped_html("<a href='x' title=\"y\">&\n\u{1}\u{fffe}é"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;\n\u{fffd}\u{fffd}é"
        );
    }
}
