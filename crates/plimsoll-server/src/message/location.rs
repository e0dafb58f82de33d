//! Targets of redirects with places for what a request has.

use std::borrow::Cow;

use regex::{Captures, Regex};

use crate::message::request::{Request, Scheme};

/// A target in which `{scheme}`, `{host}`, `{authority}`, `{path}`, `{query}` and the groups of a regular expression stand for those of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Scheme,
    /// Without the port.
    Host,
    /// With the port, as the client sent it.
    Authority,
    Path,
    /// With its question mark, if there is one.
    Query,
    /// By its number.
    Group(usize),
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// A place that is not known.
    #[error(
        "`{{{0}}}` is not known; there are {{scheme}}, {{host}}, {{authority}}, {{path}}, {{query}} and the groups of a regular expression, such as \
         {{1}}"
    )]
    Place(String),
    /// A brace without its other half.
    #[error("a brace is not closed")]
    Brace,
    /// A character that cannot be part of a header field.
    #[error("contains a blank, a control character or one beyond ASCII; encode it with %XX")]
    Character,
}

/// The parts of a request that targets are made of.
#[derive(Debug, Clone)]
pub(crate) struct RequestParts<'a> {
    scheme: Scheme,
    host: Cow<'a, str>,
    authority: Cow<'a, str>,
    path: Cow<'a, str>,
    query: Option<Cow<'a, str>>,
}

impl<'a> RequestParts<'a> {
    pub(crate) fn of(request: &Request<'a>) -> Self {
        Self {
            scheme: request.scheme,
            host: request.host().into(),
            authority: request.authority.into(),
            path: request.path.into(),
            query: request.query.map(Cow::Borrowed),
        }
    }

    /// For as long as the response takes.
    pub(crate) fn into_owned(self) -> RequestParts<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        RequestParts {
            scheme: self.scheme,
            host: owned(self.host),
            authority: owned(self.authority),
            path: owned(self.path),
            query: self.query.map(owned),
        }
    }
}

impl LocationTemplate {
    /// Parses a target.
    ///
    /// - `groups`: the expression whose groups may stand in it.
    pub fn parse(text: &str, groups: Option<&Regex>) -> Result<Self, LocationError> {
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
            parts.push(match place {
                "scheme" => Part::Scheme,
                "host" => Part::Host,
                "authority" => Part::Authority,
                "path" => Part::Path,
                "query" => Part::Query,
                other => {
                    let group = groups.and_then(|groups| group(groups, other));
                    Part::Group(group.ok_or_else(|| LocationError::Place(other.to_owned()))?)
                }
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(LocationError::Brace);
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// The target for a request.
    ///
    /// - `group`: the text of a group behind what is there already; it may be absent.
    pub(crate) fn fill(
        &self,
        request: &RequestParts<'_>,
        group: &dyn Fn(&str, usize) -> Option<String>,
    ) -> String {
        let mut location = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => location.push_str(text),
                Part::Scheme => location.push_str(match request.scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                }),
                Part::Host => location.push_str(&request.host),
                Part::Authority => location.push_str(&request.authority),
                Part::Path => push_path(&mut location, &request.path),
                // The target may have a query already.
                Part::Query => {
                    if let Some(query) = &request.query {
                        location.push(if location.contains('?') { '&' } else { '?' });
                        location.push_str(query);
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
    use std::fmt::Write as _;

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

    fn request<'a>(path: &'a str, query: Option<&'a str>) -> RequestParts<'a> {
        RequestParts {
            scheme: Scheme::Https,
            host: "a.test".into(),
            authority: "a.test:8443".into(),
            path: path.into(),
            query: query.map(Cow::Borrowed),
        }
    }

    /// The target for `path`, by the groups of `from`.
    fn filled(from: &str, to: &str, path: &str, query: Option<&str>) -> String {
        let from = Regex::new(from).unwrap();
        let groups = from.captures(path).unwrap();
        let to = LocationTemplate::parse(to, Some(&from)).unwrap();
        to.fill(&request(path, query), &|location, number| {
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
            let error = LocationTemplate::parse(&text, Some(&groups)).unwrap_err();
            assert_eq!(error, LocationError::Place(place.to_owned()));
        }
        assert!(LocationTemplate::parse("/{1}", None).is_err());
        assert!(LocationTemplate::parse("/{2}{name}", Some(&groups)).is_ok());
    }
}
