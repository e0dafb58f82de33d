//! Times, sizes and log-format texts of HAProxy.

use super::super::nginx::Directive;

/// A time, in milliseconds unless it has a unit, as plimsoll writes it.
pub(super) fn time(text: &str) -> Option<String> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let (factor, unit) = match text.get(digits.len()..)? {
        "us" => return Some(format!("{}ms", number.div_ceil(1000))),
        "" | "ms" => (1, "ms"),
        "s" => (1, "s"),
        "m" => (1, "m"),
        "h" => (1, "h"),
        "d" => (24, "h"),
        _ => return None,
    };
    Some(format!("{}{unit}", number.checked_mul(factor)?))
}

/// The argument behind a word, such as `weight` of a server.
pub(super) fn after<'d>(directive: &'d Directive, word: &str) -> Option<&'d str> {
    let at = directive.arguments.iter().position(|it| it == word)?;
    directive.arguments.get(at + 1).map(String::as_str)
}

/// Whether a line has the word.
pub(super) fn has(directive: &Directive, word: &str) -> bool {
    directive.arguments.iter().any(|it| it == word)
}

/// A text with places for its samples; `None` if one of them has none, or if braces of the text would be read as places.
pub(super) fn with_places(text: &str) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        if before.contains(['{', '}']) {
            return None;
        }
        filled.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            filled.push('%');
            rest = after;
        } else if let Some(after) = after.strip_prefix('[') {
            let (sample, behind) = after.split_once(']')?;
            filled.push_str(&place(sample)?);
            rest = behind;
        } else {
            let (place, behind) = SHORT
                .iter()
                .find_map(|(name, place)| Some((*place, after.strip_prefix(name)?)))?;
            filled.push_str(place);
            rest = behind;
        }
    }
    if rest.contains(['{', '}']) {
        return None;
    }
    filled.push_str(rest);
    Some(filled)
}

/// Aliases of log formats that name what a request has.
const SHORT: [(&str, &str); 10] = [
    ("ci", "{client}"),
    ("cp", "{client.port}"),
    ("fi", "{server.address}"),
    ("fp", "{port}"),
    ("HM", "{method}"),
    ("HP", "{path}"),
    ("HQ", "{query}"),
    ("HU", "{target}"),
    ("HV", "{protocol}"),
    ("ID", "{request.id}"),
];

/// The place of a sample.
fn place(sample: &str) -> Option<String> {
    let sample = sample.trim();
    let fixed = match sample {
        "src" => "{client}",
        "src_port" => "{client.port}",
        "dst" => "{server.address}",
        "dst_port" => "{port}",
        "method" => "{method}",
        "path" => "{path}",
        "query" => "{query.string}",
        "url" | "pathq" | "capture.req.uri" => "{target}",
        "ssl_fc,iif(https,http)" => "{scheme}",
        "ssl_fc_sni" => "{tls.sni}",
        "ssl_fc_protocol" => "{tls.version}",
        "ssl_c_s_dn" | "ssl_c_s_dn()" => "{tls.client.subject}",
        "uuid()" | "uuid" | "unique-id" => "{request.id}",
        "req.hdr(host)" | "hdr(host)" | "req.hdr(Host)" | "hdr(Host)" => "{authority}",
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(fixed.to_owned());
    }
    let (name, argument) = sample.split_once('(')?;
    let argument = argument.strip_suffix(')')?;
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    if argument.is_empty() || !argument.bytes().all(is_name) {
        return None;
    }
    let kind = match name.strip_prefix("req.").unwrap_or(name) {
        "hdr" | "fhdr" => "header",
        "cook" => "cookie",
        "url_param" | "urlp" => "query",
        _ => return None,
    };
    Some(format!("{{{kind}:{argument}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_places() {
        for (text, expected) in [
            ("plain 100%%", Some("plain 100%")),
            ("%[src]:%[src_port]", Some("{client}:{client.port}")),
            ("%[req.hdr(X-A)] %HM", Some("{header:X-A} {method}")),
            ("%[ssl_fc,iif(https,http)]", Some("{scheme}")),
            ("%[var(txn.a)]", None),
            ("%[src", None),
            ("{a}", None),
            ("%zz", None),
        ] {
            assert_eq!(with_places(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("5s", Some("5s")),
            ("500", Some("500ms")),
            ("1d", Some("24h")),
            ("x", None),
        ] {
            assert_eq!(time(text).as_deref(), expected, "{text}");
        }
    }
}
