//! Targets of redirects with places for what a request has.

use std::fmt::Write as _;

use regex::{Captures, Regex};

use crate::place::{Maps, Moment, Place, Template, UnknownPlace, Values};

/// A target in which places and the groups of a regular expression stand for those of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(Place),
    /// By its number.
    Group(usize),
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// A place that is not known.
    #[error(transparent)]
    Place(#[from] UnknownPlace),
    /// A place that is neither known nor a group.
    #[error(
        "`{{{0}}}` is no place, such as {{host}}, {{path}} or {{query}}, and no group of a regular expression, such as {{1}}"
    )]
    Group(String),
    /// A brace without its other half.
    #[error("a brace is not closed")]
    Brace,
    /// A character that cannot be part of a header field.
    #[error("contains a blank, a control character or one beyond ASCII; encode it with %XX")]
    Character,
}

impl LocationError {
    /// The place that was probably meant.
    pub(crate) fn suggestion(&self) -> Option<String> {
        match self {
            Self::Place(error) => error.suggestion(),
            Self::Group(name) => UnknownPlace::Name(name.clone()).suggestion(),
            Self::Brace | Self::Character => None,
        }
    }
}

impl LocationTemplate {
    /// Parses a target.
    ///
    /// - `groups`: the expression whose groups may stand in it.
    pub fn parse(text: &str, groups: Option<&Regex>, maps: &Maps) -> Result<Self, LocationError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LocationError::Character);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((text, after)) = rest.split_once('{') {
            let (place, after) = after.split_once('}').ok_or(LocationError::Brace)?;
            if text.contains('}') {
                return Err(LocationError::Brace);
            }
            parts.push(Part::Text(text.to_owned()));
            parts.push(match groups.and_then(|groups| group(groups, place)) {
                Some(number) => Part::Group(number),
                None => Part::Place(named(place, maps)?),
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(LocationError::Brace);
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// Its places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(place) => Some(place),
            Part::Text(_) | Part::Group(_) => None,
        })
    }

    /// The target for a request.
    ///
    /// - `group`: the text of a group behind what is there already; it may be absent.
    pub(crate) fn fill(
        &self,
        values: &dyn Values,
        group: &dyn Fn(&str, usize) -> Option<String>,
    ) -> String {
        let mut location = String::new();
        let mut value = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => location.push_str(text),
                Part::Place(place) => {
                    value.clear();
                    if values.write(place, &mut value) {
                        push_value(&mut location, place, &String::from_utf8_lossy(&value));
                    }
                }
                Part::Group(number) => {
                    let text = group(&location, *number).unwrap_or_default();
                    location.push_str(&text);
                }
            }
        }
        location
    }
}

/// The place of that name.
fn named(name: &str, maps: &Maps) -> Result<Place, LocationError> {
    let template = Template::parse(&format!("{{{name}}}"), maps, Moment::Request);
    let template = template.map_err(|error| match error {
        UnknownPlace::Name(name) => LocationError::Group(name),
        error => error.into(),
    })?;
    let place = template.as_ref().and_then(Template::as_place).cloned();
    place.ok_or_else(|| LocationError::Group(name.to_owned()))
}

/// Appends the value of a place to what is there of a target.
fn push_value(location: &mut String, place: &Place, value: &str) {
    match place {
        Place::Path | Place::Target => push_path(location, value),
        // The target may have a query already.
        Place::Query if location.contains('?') => {
            location.push('&');
            location.push_str(value.trim_start_matches('?'));
        }
        Place::Query => location.push_str(value),
        // Where it is the whole of the location, two slashes would name another host.
        _ if location.is_empty() && value.starts_with(['/', '\\']) => {
            location.push('/');
            push_encoded(location, value.trim_start_matches(['/', '\\']));
        }
        _ => push_encoded(location, value),
    }
}

/// Appends a text in which what URLs do not have is percent-encoded.
fn push_encoded(location: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            location.push(char::from(byte));
        } else {
            write!(location, "%{byte:02X}").expect("writing to memory does not fail");
        }
    }
}

fn push_path(location: &mut String, path: &str) {
    if location.is_empty() {
        // Where it is the whole of the location, two slashes would name another host.
        location.push('/');
        location.push_str(path.trim_start_matches('/'));
    } else {
        // That of `OPTIONS *` would otherwise become a part of the host.
        if !path.starts_with('/') {
            location.push('/');
        }
        location.push_str(path);
    }
}

/// The number of a group by its number or name.
fn group(groups: &Regex, name: &str) -> Option<usize> {
    match name.parse() {
        Ok(number) => (1..groups.captures_len())
            .contains(&number)
            .then_some(number),
        Err(_) => groups.capture_names().position(|it| it == Some(name)),
    }
}

/// A group of a decoded path as a part of the URL that begins with `location`.
pub(crate) fn encoded_group(
    groups: &Captures<'_>,
    number: usize,
    location: &str,
) -> Option<String> {
    let mut text = groups.get(number)?.as_str();
    // As with the path: two slashes at the start would name another host.
    if location.is_empty() || location == "/" {
        text = text.trim_start_matches('/');
    }
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to memory does not fail");
        }
    }
    // A slash or backslash that was encoded stays so in the normal path.
    let encoded = encoded.replace("%252F", "%2F").replace("%255C", "%5C");
    Some(if location.is_empty() {
        format!("/{encoded}")
    } else {
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sent<'a>(&'a str, Option<&'a str>);

    impl Values for Sent<'_> {
        fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
            let text = match place {
                Place::Scheme => "https".to_owned(),
                Place::Host => "a.test".to_owned(),
                Place::Authority => "a.test:8443".to_owned(),
                Place::Path => self.0.to_owned(),
                Place::Query => self.1.map_or(String::new(), |query| format!("?{query}")),
                Place::Header(_) => "//evil.test/ä b".to_owned(),
                _ => return false,
            };
            out.extend_from_slice(text.as_bytes());
            !text.is_empty()
        }
    }

    /// The target for `path`, by the groups of `from`.
    fn filled(from: &str, to: &str, path: &str, query: Option<&str>) -> String {
        let from = Regex::new(from).unwrap();
        let groups = from.captures(path).unwrap();
        let to = LocationTemplate::parse(to, Some(&from), &Maps::default()).unwrap();
        to.fill(&Sent(path, query), &|location, number| {
            encoded_group(&groups, number, location)
        })
    }

    #[test]
    fn groups_are_taken_over_by_number_and_name() {
        for (from, to, path, query, expected) in [
            (
                "^/a/(.*)$",
                "/b/{1}{query}",
                "/a/x/y",
                Some("z=1"),
                "/b/x/y?z=1",
            ),
            (
                "^/(?P<user>[a-z]+)/(.*)$",
                "https://{user}.{host}/{2}",
                "/ann/x",
                None,
                "https://ann.a.test/x",
            ),
            ("^/a(/b)?$", "/c{1}", "/a", None, "/c"),
            (
                "^/a/(.*)$",
                "/b/{1}?from={1}{query}",
                "/a/x",
                Some("z=1"),
                "/b/x?from=x&z=1",
            ),
            (
                "^/a/(.*)$",
                "{scheme}://{authority}/{1}",
                "/a/x y%",
                None,
                "https://a.test:8443/x%20y%25",
            ),
            ("^/a/(.*)$", "/b/{1}", "/a/%5Cx%2Fy", None, "/b/%5Cx%2Fy"),
            ("^/a$", "{header:x-to}", "/a", None, "/evil.test/%C3%A4%20b"),
            (
                "^/a$",
                "/b?c={header:x-to}",
                "/a",
                None,
                "/b?c=//evil.test/%C3%A4%20b",
            ),
            // Not another host.
            ("^/a(.*)$", "{1}", "/a//evil.test", None, "/evil.test"),
            ("^/a(.*)$", "/{1}", "/a/evil.test", None, "/evil.test"),
            (
                "(?s)^/a(.*)$",
                "/b{1}",
                "/a\r\nx: y",
                None,
                "/b%0D%0Ax:%20y",
            ),
        ] {
            assert_eq!(
                filled(from, to, path, query),
                expected,
                "{from} {to} {path}"
            );
        }
    }

    #[test]
    fn unknown_groups_are_refused() {
        let groups = Regex::new("^/(?P<name>.)(.)$").unwrap();
        for place in ["3", "0", "other"] {
            let text = format!("/{{{place}}}");
            let error = LocationTemplate::parse(&text, Some(&groups), &Maps::default());
            assert_eq!(error.unwrap_err(), LocationError::Group(place.to_owned()));
        }
        assert!(LocationTemplate::parse("/{1}", None, &Maps::default()).is_err());
        assert!(LocationTemplate::parse("/{2}{name}", Some(&groups), &Maps::default()).is_ok());
    }
}
