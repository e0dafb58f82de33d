//! Header fields of a request, wherever they lie, and changes laid over them.
//!
//! A layer that changes fields does not copy them: it lays its edits over what it got. Fields of HTTP/1 keep their order
//! and the case of their names through any number of layers, and in an [`OwnedRequest`](crate::OwnedRequest).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use plimsoll_wire::h1::Header;
use plimsoll_wire::http::{FieldList, FieldListIter, NameFilter};

/// Storage of a request's header fields.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fields<'a> {
    Http1(&'a [Header<'a>]),
    /// Of HTTP/2 and HTTP/3.
    Map(&'a HeaderMap),
    /// Of a request that was kept.
    Kept(&'a KeptFields),
}

/// Fields in memory of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptFields {
    list: FieldList,
    /// The places of those that layers have set.
    layered: Vec<usize>,
}

/// The name of a field. Kept ones are checked to be text again only where text is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'a> {
    Text(&'a str),
    Kept(&'a [u8]),
}

impl<'a> Name<'a> {
    #[inline]
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Text(name) => name.as_bytes(),
            Self::Kept(name) => name,
        }
    }

    #[inline]
    pub(crate) fn as_str(self) -> &'a str {
        match self {
            Self::Text(name) => name,
            // It was text when it was kept.
            Self::Kept(name) => std::str::from_utf8(name).unwrap_or_default(),
        }
    }
}

/// A field, and whether a layer has set it, or added to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marked<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) value: &'a [u8],
    pub(crate) is_layered: bool,
}

impl<'a> Marked<'a> {
    fn received(name: &'a str, value: &'a [u8]) -> Self {
        Self {
            name: Name::Text(name),
            value,
            is_layered: false,
        }
    }

    fn layered(name: &'a HeaderName, value: &'a HeaderValue) -> Self {
        Self {
            name: Name::Text(name.as_str()),
            value: value.as_bytes(),
            is_layered: true,
        }
    }

    fn is_of(&self, name: &HeaderName) -> bool {
        let known = self.name.as_bytes();
        known.eq_ignore_ascii_case(name.as_str().as_bytes())
    }
}

impl<'a> Fields<'a> {
    /// The value of the first field of that name, whatever its case.
    fn get(self, name: &str) -> Option<&'a [u8]> {
        match self {
            Self::Http1(headers) => headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| header.value),
            Self::Map(headers) => headers.get(name).map(HeaderValue::as_bytes),
            Self::Kept(kept) => kept.list.get(name),
        }
    }

    fn iter(self) -> FieldsIter<'a> {
        match self {
            Self::Http1(headers) => FieldsIter::Http1(headers.iter()),
            Self::Map(headers) => FieldsIter::Map(headers.iter()),
            Self::Kept(kept) => FieldsIter::Kept {
                fields: kept.list.iter(),
                layered: &kept.layered,
                place: 0,
            },
        }
    }

    /// Which names may be among them.
    fn names(self) -> NameFilter {
        match self {
            Self::Http1(headers) => {
                let mut names = NameFilter::NONE;
                for header in headers {
                    names.add(header.name.as_bytes());
                }
                names
            }
            // A map looks its names up by itself.
            Self::Map(_) => NameFilter::ANY,
            Self::Kept(kept) => kept.list.names(),
        }
    }

    /// Whether layers have set some of them.
    fn have_layered(self) -> bool {
        matches!(self, Self::Kept(kept) if !kept.layered.is_empty())
    }
}

/// Fields in their order. One type without adapters: each request is iterated several times.
pub(crate) enum FieldsIter<'a> {
    Http1(std::slice::Iter<'a, Header<'a>>),
    Map(http::header::Iter<'a, HeaderValue>),
    Kept {
        fields: FieldListIter<'a>,
        layered: &'a [usize],
        place: usize,
    },
    /// With edits.
    Edited(std::vec::IntoIter<Marked<'a>>),
}

impl FieldsIter<'_> {
    fn none() -> Self {
        Self::Edited(Vec::new().into_iter())
    }
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = Marked<'a>;

    #[inline]
    fn next(&mut self) -> Option<Marked<'a>> {
        match self {
            Self::Http1(headers) => {
                let header = headers.next()?;
                Some(Marked::received(header.name, header.value))
            }
            Self::Map(headers) => {
                let (name, value) = headers.next()?;
                Some(Marked::received(name.as_str(), value.as_bytes()))
            }
            Self::Kept {
                fields,
                layered,
                place,
            } => {
                let (name, value) = fields.next()?;
                let is_layered = layered.contains(place);
                *place += 1;
                Some(Marked {
                    name: Name::Kept(name),
                    value,
                    is_layered,
                })
            }
            Self::Edited(fields) => fields.next(),
        }
    }
}

/// Changes of header fields, in the order in which they are made.
#[derive(Debug, Clone, Default)]
pub struct FieldEdits(Vec<Edit>);

#[derive(Debug, Clone)]
enum Edit {
    Remove(HeaderName),
    Set(HeaderName, HeaderValue),
    Add(HeaderName, HeaderValue),
}

impl Edit {
    fn name(&self) -> &HeaderName {
        let (Self::Remove(name) | Self::Set(name, _) | Self::Add(name, _)) = self;
        name
    }
}

impl FieldEdits {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Then removes every field of that name.
    #[must_use]
    pub fn remove(mut self, name: HeaderName) -> Self {
        self.0.push(Edit::Remove(name));
        self
    }

    /// Then has one field of that name, with this value: in the place of the first one, else behind all fields.
    #[must_use]
    pub fn set(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.push(Edit::Set(name, value));
        self
    }

    /// Then adds a field behind all others.
    #[must_use]
    pub fn add(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.push(Edit::Add(name, value));
        self
    }

    /// Makes them in `fields`.
    pub(crate) fn apply(&self, fields: &mut HeaderMap) {
        for edit in &self.0 {
            match edit {
                Edit::Remove(name) => {
                    fields.remove(name);
                }
                Edit::Set(name, value) => {
                    fields.insert(name.clone(), value.clone());
                }
                Edit::Add(name, value) => {
                    fields.append(name.clone(), value.clone());
                }
            }
        }
    }
}

/// Fields with the edits of the layers that a request has passed, the last one on top.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EditedFields<'a> {
    fields: Fields<'a>,
    /// Of `fields`.
    names: NameFilter,
    edits: Option<&'a Overlay<'a>>,
}

/// The edits of one layer, over those of the layers before it.
#[derive(Debug)]
pub(crate) struct Overlay<'a> {
    edits: &'a FieldEdits,
    below: Option<&'a Overlay<'a>>,
}

impl<'a> EditedFields<'a> {
    pub(crate) fn new(fields: Fields<'a>) -> Self {
        Self {
            fields,
            names: fields.names(),
            edits: None,
        }
    }

    /// The layer of `edits` over these.
    pub(crate) fn overlay<'b>(&self, edits: &'b FieldEdits) -> Overlay<'b>
    where
        'a: 'b,
    {
        Overlay {
            edits,
            below: self.edits,
        }
    }

    /// The same fields beneath `overlay`, which was made over them.
    pub(crate) fn beneath<'b>(&self, overlay: &'b Overlay<'b>) -> EditedFields<'b>
    where
        'a: 'b,
    {
        EditedFields {
            edits: Some(overlay),
            ..*self
        }
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        match self.edits {
            None if !self.names.may_have(name.as_bytes()) => None,
            None => self.fields.get(name),
            Some(overlay) => overlay.get(self.fields, name),
        }
    }

    /// The values of the fields of that name, whatever its case, in their order.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let fields = match self.edits {
            None if !self.names.may_have(name.as_bytes()) => FieldsIter::none(),
            _ => self.marked(),
        };
        let named = fields.filter(|field| {
            let known = field.name.as_bytes();
            known.eq_ignore_ascii_case(name.as_bytes())
        });
        named.map(|field| field.value)
    }

    /// Whether all names and values are valid: what a decoder or a map has is, and so is what layers set.
    pub(crate) fn are_valid(&self) -> bool {
        match self.fields {
            Fields::Http1(_) | Fields::Map(_) => true,
            Fields::Kept(kept) => kept.list.lines().is_some(),
        }
    }

    /// Whether layers may have set some of them.
    pub(crate) fn have_layered(&self) -> bool {
        self.edits.is_some() || self.fields.have_layered()
    }

    /// Every field with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.marked()
            .map(|field| (field.name.as_str(), field.value))
    }

    /// Every field, and whether a layer has set it.
    pub(crate) fn marked(&self) -> FieldsIter<'a> {
        match self.edits {
            None => self.fields.iter(),
            Some(overlay) => FieldsIter::Edited(overlay.all(self.fields).into_iter()),
        }
    }

    /// The fields that layers have set are among these: none if no layer has set any.
    pub(crate) fn layered(&self) -> FieldsIter<'a> {
        if self.have_layered() {
            self.marked()
        } else {
            FieldsIter::none()
        }
    }

    /// The same in memory of their own.
    pub(crate) fn keep(&self) -> KeptFields {
        let (count, bytes) = self.marked().fold((0, 0), |(count, bytes), field| {
            let length = field.name.as_bytes().len() + field.value.len();
            (count + 1, bytes + length)
        });
        let mut kept = KeptFields {
            list: FieldList::with_capacity(count, bytes),
            layered: Vec::new(),
        };
        for field in self.marked() {
            if field.is_layered {
                kept.layered.push(kept.list.len());
            }
            kept.list.push_valid(field.name.as_bytes(), field.value);
        }
        kept
    }

    /// The names that layers have set or removed.
    pub(crate) fn edited_names(&self) -> Vec<HeaderName> {
        let overlays = std::iter::successors(self.edits, |overlay| overlay.below);
        let edits = overlays.flat_map(|overlay| &overlay.edits.0);
        edits.map(|edit| edit.name().clone()).collect()
    }

    /// The map that they lie in, if they do and nothing was changed.
    pub(crate) fn as_map(&self) -> Option<&'a HeaderMap> {
        match self.fields {
            Fields::Map(map) if self.edits.is_none() => Some(map),
            _ => None,
        }
    }
}

impl<'a> Overlay<'a> {
    fn get(&self, fields: Fields<'a>, name: &str) -> Option<&'a [u8]> {
        let mut found = match self.below {
            None => fields.get(name),
            Some(below) => below.get(fields, name),
        };
        for edit in &self.edits.0 {
            if !edit.name().as_str().eq_ignore_ascii_case(name) {
                continue;
            }
            found = match edit {
                Edit::Remove(_) => None,
                Edit::Set(_, value) => Some(value.as_bytes()),
                Edit::Add(_, value) => found.or(Some(value.as_bytes())),
            };
        }
        found
    }

    fn all(&self, fields: Fields<'a>) -> Vec<Marked<'a>> {
        let mut all = match self.below {
            None => fields.iter().collect(),
            Some(below) => below.all(fields),
        };
        for edit in &self.edits.0 {
            match edit {
                Edit::Remove(name) => all.retain(|field| !field.is_of(name)),
                Edit::Set(name, value) => {
                    let Some(first) = all.iter().position(|field| field.is_of(name)) else {
                        all.push(Marked::layered(name, value));
                        continue;
                    };
                    (all[first].value, all[first].is_layered) = (value.as_bytes(), true);
                    let mut at = 0;
                    all.retain(|field| {
                        at += 1;
                        at - 1 <= first || !field.is_of(name)
                    });
                }
                Edit::Add(name, value) => {
                    // The layer leaves what the client sent beside its own, unless that is for this connection alone.
                    if !is_nominated(&all, name) {
                        let sent = all.iter_mut().filter(|field| field.is_of(name));
                        sent.for_each(|field| field.is_layered = true);
                    }
                    all.push(Marked::layered(name, value));
                }
            }
        }
        all
    }
}

/// Whether a `Connection` field among these nominates a name (RFC 9110, section 7.6.1).
fn is_nominated(fields: &[Marked<'_>], name: &HeaderName) -> bool {
    let own = fields
        .iter()
        .filter(|field| field.is_of(&http::header::CONNECTION));
    own.flat_map(|field| field.value.split(|byte| *byte == b','))
        .any(|it| {
            it.trim_ascii()
                .eq_ignore_ascii_case(name.as_str().as_bytes())
        })
}

#[cfg(test)]
mod tests;
