//! Formats of lines: texts with places, or JSON objects whose values have them.

use std::fmt;
use std::sync::Arc;

use crate::observe::access_log::line::json_text;
use crate::place::{Maps, Moment, Piece, Place, Source, Template, Values, places_of};

/// Format of a line.
#[derive(Clone)]
pub struct LogFormat(pub(super) Arc<Layout>);

/// What a line has, and which values it takes from the request and from the head of its response.
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) line: Line,
    /// A request has no line if this text is empty or `0` for it.
    when: Option<Template>,
    pub(super) of_request: Vec<Place>,
    pub(super) of_head: Vec<Place>,
}

#[derive(Clone)]
pub(super) enum Line {
    Json(Vec<Member>),
    Text(Vec<TextPiece>),
}

/// A member of an object; it is left out where its value is not there.
#[derive(Clone)]
pub(super) struct Member {
    /// The name in its quotes, with the colon.
    pub(super) name: Box<[u8]>,
    pub(super) value: Template,
    /// The value is a number, or true or false.
    pub(super) is_literal: bool,
}

#[derive(Clone)]
pub(super) enum TextPiece {
    Text(Box<str>),
    Value { place: Place, escape: Escape },
}

/// How the value of a place is kept from ending its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// It is no text of the client.
    None,
    /// Within quotes.
    Quoted,
    /// Without quotes: it has no spaces either.
    Bare,
}

/// The members of the format `json`.
const JSON: [(&str, &str); 23] = [
    ("time", "{time}"),
    ("peer", "{peer}"),
    ("method", "{method}"),
    ("host", "{authority}"),
    ("path", "{path}"),
    ("query", "{query.string}"),
    ("protocol", "{protocol}"),
    ("referer", "{header:referer}"),
    ("user_agent", "{header:user-agent}"),
    ("user", "{user}"),
    ("route", "{route}"),
    ("request_id", "{request.id}"),
    ("trace_id", "{trace.id}"),
    ("upstream", "{upstream}"),
    ("server", "{upstream.server}"),
    ("refused", "{refused}"),
    ("attempts", "{upstream.attempts}"),
    ("connect_us", "{upstream.connect.us}"),
    ("head_us", "{upstream.time.us}"),
    ("status", "{status}"),
    ("bytes", "{bytes}"),
    ("duration_us", "{duration.us}"),
    ("complete", "{complete}"),
];

/// The format `combined`, that of Apache and nginx.
const COMBINED: &str = "{client} - {user} [{time.clf}] \"{request.line}\" {status} {bytes} \"{header:referer}\" \"{header:user-agent}\"";

impl LogFormat {
    /// One JSON object with everything that is known.
    pub fn json() -> Self {
        let members = JSON.map(|(name, value)| (name.to_owned(), parsed(value)));
        Self::object(members.to_vec())
    }

    /// The combined format of Apache and nginx.
    pub fn combined() -> Self {
        Self::text(&parsed(COMBINED))
    }

    /// One JSON object with these members, which are left out where their values are not there.
    pub fn object(members: Vec<(String, Template)>) -> Self {
        let values = members.iter().map(|(_, value)| value);
        let (of_request, of_head) = needed(values.collect());
        let members = members.into_iter().map(|(name, value)| Member {
            name: member_name(&name),
            is_literal: value.as_place().is_some_and(Place::is_literal),
            value,
        });
        Self(Arc::new(Layout {
            line: Line::Json(members.collect()),
            when: None,
            of_request,
            of_head,
        }))
    }

    /// A text; values that are not there are written as `-`.
    pub fn text(template: &Template) -> Self {
        let (of_request, of_head) = needed(vec![template]);
        let mut is_quoted = false;
        let pieces = template.pieces().iter().filter_map(|piece| match piece {
            Piece::Text(text) => {
                is_quoted ^= text.matches('"').count() % 2 == 1;
                Some(TextPiece::Text(text.clone()))
            }
            Piece::Place(place) => {
                let is_ours = place.is_literal() || matches!(place, Place::Time(_));
                let escape = match (is_ours, is_quoted) {
                    (true, _) => Escape::None,
                    (_, true) => Escape::Quoted,
                    (_, false) => Escape::Bare,
                };
                let place = place.clone();
                Some(TextPiece::Value { place, escape })
            }
            Piece::Group(_) => None,
        });
        Self(Arc::new(Layout {
            line: Line::Text(pieces.collect()),
            when: None,
            of_request,
            of_head,
        }))
    }

    /// The same format, with lines only for requests of which `condition` is neither empty nor `0`.
    #[must_use]
    pub fn when(mut self, condition: Template) -> Self {
        let layout = Arc::make_mut(&mut self.0);
        let (of_request, of_head) = needed(vec![&condition]);
        for (known, more) in [
            (&mut layout.of_request, of_request),
            (&mut layout.of_head, of_head),
        ] {
            let more: Vec<_> = more.into_iter().filter(|it| !known.contains(it)).collect();
            known.extend(more);
        }
        layout.when = Some(condition);
        self
    }
}

impl Layout {
    /// Whether a request has a line.
    ///
    /// - `text`: memory for one value.
    pub(super) fn has_line(&self, values: &dyn Values, text: &mut Vec<u8>) -> bool {
        let Some(condition) = &self.when else {
            return true;
        };
        text.clear();
        condition.write(values, None, text);
        !matches!(text.as_slice(), b"" | b"0")
    }
}

impl Default for LogFormat {
    fn default() -> Self {
        Self::json()
    }
}

impl fmt::Debug for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.line {
            Line::Json(_) => "Json",
            Line::Text(_) => "Text",
        })
    }
}

/// A name in quotes, with a colon.
fn member_name(name: &str) -> Box<[u8]> {
    let mut text = vec![b'"'];
    json_text(name.as_bytes(), &mut text);
    text.extend_from_slice(b"\":");
    text.into()
}

fn parsed(text: &str) -> Template {
    Template::with_groups(text, &Maps::default(), Moment::End, None)
        .expect("formats of this file have known places")
}

/// The values to take from the request and from the head of the response.
fn needed(templates: Vec<&Template>) -> (Vec<Place>, Vec<Place>) {
    let of_request = places_of(templates.iter().copied(), Source::Request);
    let mut of_head = places_of(templates, Source::Response);
    // That one is known at the end too, and of clients that left it is another one.
    of_head.retain(|place| *place != Place::Status);
    (of_request, of_head)
}
