//! Values of fields with placeholders for parts of the request.

use std::fmt::Write as _;

use plimsoll_model::document::nearest;
use plimsoll_server::{Request, Scheme};

/// A value such as `{client}` or `port={port}`. Braces around other text, as in JSON, are text; a single word that is no
/// place is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The IP address of the client.
    Client,
    /// The host with its port, if it has one.
    Authority,
    /// Without the port.
    Host,
    Scheme,
    /// The port of the listener.
    Port,
    Path,
    /// With its question mark, if there is one.
    Query,
}

/// The places that there are.
const PLACES: [&str; 7] = [
    "client",
    "authority",
    "host",
    "scheme",
    "port",
    "path",
    "query",
];

/// A word in braces that is no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{{{0}}}` is no place; there are {{{places}}}", places = PLACES.join("}, {"))]
pub(crate) struct UnknownPlace(String);

impl UnknownPlace {
    /// The place that was probably meant.
    pub(crate) fn suggestion(&self) -> Option<&'static str> {
        let first = self.0.chars().next()?;
        // Of short words others are near by chance.
        nearest(&self.0, &PLACES).filter(|it| it.starts_with(first))
    }
}

impl Template {
    /// `None` for a text without placeholders.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, UnknownPlace> {
        let mut pieces = Vec::new();
        let (mut literal, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            let named = after.split_once('}');
            let piece = named.and_then(|(name, after)| Some((Piece::named(name)?, after)));
            if let (None, Some((name, _))) = (&piece, named)
                && is_word(name)
            {
                return Err(UnknownPlace(name.to_owned()));
            }
            if let Some((piece, after)) = piece {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
                pieces.push(piece);
                rest = after;
            } else {
                literal.push('{');
                rest = after;
            }
        }
        literal.push_str(rest);
        if pieces.is_empty() {
            return Ok(None);
        }
        pieces.push(Piece::Text(literal));
        Ok(Some(Self(pieces)))
    }

    pub(super) fn write(&self, request: &Request<'_>, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Client => _ = write!(out, "{}", request.peer.ip().to_canonical()),
                Piece::Authority => out.push_str(request.authority),
                Piece::Host => out.push_str(request.host()),
                Piece::Scheme => out.push_str(match request.scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                }),
                Piece::Port => _ = write!(out, "{}", request.connection().local.port()),
                Piece::Path => out.push_str(request.path),
                Piece::Query => {
                    if let Some(query) = request.query {
                        out.push('?');
                        out.push_str(query);
                    }
                }
            }
        }
    }
}

/// Whether a text in braces looks like the name of a place.
fn is_word(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    text.starts_with(|it: char| it.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

impl Piece {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "client" => Self::Client,
            "authority" => Self::Authority,
            "host" => Self::Host,
            "scheme" => Self::Scheme,
            "port" => Self::Port,
            "path" => Self::Path,
            "query" => Self::Query,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_in_braces_are_placeholders() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let parsed = Template::parse("a {\"b\": {client}} {path}{query}");
        let parsed = parsed.unwrap().unwrap();
        let expected = [
            text("a {\"b\": "),
            Piece::Client,
            text("} "),
            Piece::Path,
            text(""),
            Piece::Query,
            text(""),
        ];
        assert_eq!(parsed.0, expected);
        for literal in ["", "{", "}", "{}", "{\"a\": 1}", "{0}", "{a b}"] {
            assert_eq!(Template::parse(literal), Ok(None), "{literal}");
        }
        for (text, name, suggestion) in [
            ("{user}", "user", None),
            ("a {clint} b", "clint", Some("client")),
            ("{host}{qery}", "qery", Some("query")),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert_eq!(error, UnknownPlace(name.to_owned()), "{text}");
            assert_eq!(error.suggestion(), suggestion, "{text}");
        }
    }
}
