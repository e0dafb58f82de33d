//! Texts with places.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::bytes::{Captures, Regex};

use super::map::Map;
use super::name::{self, Name, UnknownPlace};
use super::{Moment, Place, Values};
use crate::message::connection::ConnectionInfo;
use crate::message::request::Request;

/// A text with places, such as `{client}` or `port={port}`.
///
/// Braces around other text, as in JSON, are text; a single word that is no place is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Box<str>),
    Place(Place),
    /// A group of the expression that the text stands behind.
    Group(usize),
}

/// The maps of a configuration by their names.
#[derive(Debug, Clone, Default)]
pub struct Maps(pub(crate) Arc<BTreeMap<String, Arc<Map>>>);

impl Maps {
    fn find(&self, name: &str) -> Result<Place, UnknownPlace> {
        let found = self.0.get(name).map(|map| Place::Map(Arc::clone(map)));
        found.ok_or_else(|| {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            UnknownPlace::Map {
                name: name.to_owned(),
                known: if known.is_empty() {
                    String::new()
                } else {
                    format!("; there are {}", known.join(", "))
                },
            }
        })
    }
}

impl Template {
    /// `None` for a text without places.
    ///
    /// - `moment`: when it is filled.
    pub fn parse(text: &str, maps: &Maps, moment: Moment) -> Result<Option<Self>, UnknownPlace> {
        let template = Self::with_groups(text, maps, moment, None)?;
        Ok(Some(template).filter(|it| it.as_text().is_none()))
    }

    /// Any text, in which groups of an expression may stand by number or name.
    pub(crate) fn with_groups(
        text: &str,
        maps: &Maps,
        moment: Moment,
        groups: Option<&Regex>,
    ) -> Result<Self, UnknownPlace> {
        let mut pieces = Vec::new();
        let (mut literal, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            let piece = match after.split_once('}') {
                None => None,
                Some((name, after)) => match groups.and_then(|it| group(it, name)) {
                    Some(number) => Some((Piece::Group(number), after)),
                    None => place(name, maps, moment)?.map(|it| (Piece::Place(it), after)),
                },
            };
            if let Some((piece, after)) = piece {
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                }
                pieces.push(piece);
                rest = after;
            } else {
                literal.push('{');
                rest = after;
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Ok(Self {
            pieces: pieces.into(),
        })
    }

    /// The text, if it has neither places nor groups.
    pub fn as_text(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The value of the place, if it is nothing but one.
    pub(crate) fn as_place(&self) -> Option<&Place> {
        match &*self.pieces {
            [Piece::Place(place)] => Some(place),
            _ => None,
        }
    }

    /// Its places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(place) => Some(place),
            Piece::Text(_) | Piece::Group(_) => None,
        })
    }

    /// Whether one of its places is known once credentials have been checked.
    pub(crate) fn is_of_user(&self) -> bool {
        self.places().any(Place::is_of_user)
    }

    /// Every value that it can have, if these are known: it is a text, or a map of texts behind one or not.
    pub fn constants(&self) -> Option<Vec<String>> {
        match &*self.pieces {
            [Piece::Text(text)] => Some(vec![text.to_string()]),
            [Piece::Place(Place::Map(map))] => map.constants(),
            [Piece::Text(before), Piece::Place(Place::Map(map))] => {
                let values = map.constants()?.into_iter();
                Some(values.map(|value| format!("{before}{value}")).collect())
            }
            _ => None,
        }
    }

    /// Appends the text for a request; values that are not there are empty.
    pub fn fill(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.write(request, None, out);
    }

    /// Appends the text for a connection that is not HTTP; it was parsed for [`Moment::Connection`].
    pub fn fill_for_connection(&self, connection: &ConnectionInfo, out: &mut Vec<u8>) {
        self.write(connection, None, out);
    }

    /// The value of a field for a request. `None` where nothing is left of it, and where no field may have it (RFC 9110, section
    /// 5.5): content may have line breaks, with which a client could inject fields.
    ///
    /// - `text`: for its bytes; what is in it is lost.
    pub fn field<'t>(&self, request: &Request<'_>, text: &'t mut Vec<u8>) -> Option<&'t [u8]> {
        self.field_of(request, text)
    }

    /// The same for what is known of a request or a response.
    pub(crate) fn field_of<'t>(
        &self,
        values: &dyn Values,
        text: &'t mut Vec<u8>,
    ) -> Option<&'t [u8]> {
        text.clear();
        self.write(values, None, text);
        let may_be = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        (!text.is_empty() && text.iter().all(may_be)).then_some(text.as_slice())
    }

    /// Appends the text; values that are not there are empty.
    ///
    /// - `groups`: of the expression that it stands behind.
    pub(crate) fn write(
        &self,
        values: &dyn Values,
        groups: Option<&Captures<'_>>,
        out: &mut Vec<u8>,
    ) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Place(place) => _ = values.write(place, out),
                Piece::Group(number) => {
                    let group = groups.and_then(|it| it.get(*number));
                    out.extend_from_slice(group.map_or(b"", |it| it.as_bytes()));
                }
            }
        }
    }

    /// Its pieces, in their order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The latest source of its places.
    pub(crate) fn moment(&self) -> Moment {
        let moments = self.places().map(Place::moment);
        moments.max().unwrap_or(Moment::Connection)
    }
}

/// The place that a name in braces stands for; `None` if it is text.
pub(super) fn place(
    name: &str,
    maps: &Maps,
    moment: Moment,
) -> Result<Option<Place>, UnknownPlace> {
    let place = match name::read(name)? {
        Name::Text => return Ok(None),
        Name::Place(place) => place,
        Name::Map(map) => maps.find(map)?,
    };
    if place.moment() > moment {
        let name = name.to_owned();
        return Err(UnknownPlace::TooEarly { name, moment });
    }
    Ok(Some(place))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Template>, UnknownPlace> {
        Template::parse(text, &Maps::default(), Moment::Request)
    }

    #[test]
    fn known_words_in_braces_are_places() {
        let text = |text: &str| Piece::Text(text.into());
        let parsed = parse("a {\"b\": {client}} {path}{query}").unwrap().unwrap();
        let expected = [
            text("a {\"b\": "),
            Piece::Place(Place::Client),
            text("} "),
            Piece::Place(Place::Path),
            Piece::Place(Place::Query),
        ];
        assert_eq!(*parsed.pieces, expected);
        for literal in ["", "{", "}", "{}", "{\"a\": 1}", "{0}", "{a b}"] {
            assert_eq!(parse(literal), Ok(None), "{literal}");
        }
        for (text, name) in [("{nobody}", "nobody"), ("a {clint} b", "clint")] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, UnknownPlace::Name(name.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_connection_has_places_before_there_is_a_request() {
        let at = |text: &str| Template::parse(text, &Maps::default(), Moment::Connection);
        let text = "{client} {client.port} {server.address} {port} {connection} {tls.sni}.";
        let template = at(text).unwrap().unwrap();
        let connection = ConnectionInfo {
            id: 7,
            peer: "10.0.0.1:5".parse().unwrap(),
            local: "[::1]:25".parse().unwrap(),
            tls: None,
        };
        let mut filled = Vec::new();
        template.fill_for_connection(&connection, &mut filled);
        assert_eq!(String::from_utf8(filled).unwrap(), "10.0.0.1 5 ::1 25 7 .");
        assert!(at("{time} {tls.version} {tls.client.subject}").is_ok());
        for text in ["{path}", "{header:x}", "{request.id}", "{status}"] {
            let error = at(text).unwrap_err().to_string();
            assert!(error.ends_with("is not known of a connection, which has no requests"));
        }
    }

    #[test]
    fn places_of_the_response_are_errors_before_it() {
        let at = |text: &str, moment| Template::parse(text, &Maps::default(), moment);
        assert!(at("{status}", Moment::Request).is_err());
        assert!(at("{status}", Moment::Response).is_ok());
        assert!(at("{bytes}", Moment::Response).is_err());
        assert!(at("{bytes}{status}{host}", Moment::End).is_ok());
        let error = at("{upstream.server}", Moment::Request).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`{upstream.server}` is not known before there is a response"
        );
    }
}
