//! Header fields of a request, wherever they lie, and changes laid over them.
//!
//! A layer that changes fields does not copy them: it lays its edits over what it got. Fields of HTTP/1 keep their order
//! and the case of their names through any number of layers, and in an [`OwnedRequest`](crate::OwnedRequest).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use plimsoll_wire::h1::Header;
use plimsoll_wire::http::FieldList;

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

/// A field, and whether a layer has set it.
type Marked<'a> = (&'a str, &'a [u8], bool);

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

    fn iter(self) -> impl Iterator<Item = Marked<'a>> + use<'a> {
        let (http1, map, kept) = match self {
            Self::Http1(headers) => (Some(headers), None, None),
            Self::Map(headers) => (None, Some(headers), None),
            Self::Kept(kept) => (None, None, Some(kept)),
        };
        let http1 = http1.into_iter().flatten();
        let map = map.into_iter().flatten();
        http1
            .map(|header| (header.name, header.value, false))
            .chain(map.map(|(name, value)| (name.as_str(), value.as_bytes(), false)))
            .chain(kept.into_iter().flat_map(KeptFields::iter))
    }
}

impl KeptFields {
    fn iter(&self) -> impl Iterator<Item = Marked<'_>> {
        let fields = self.list.iter().enumerate();
        fields.map(|(place, (name, value))| {
            // The names were text when they were kept.
            let name = std::str::from_utf8(name).unwrap_or_default();
            (name, value, self.layered.contains(&place))
        })
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
            fields: self.fields,
            edits: Some(overlay),
        }
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        match self.edits {
            None => self.fields.get(name),
            Some(overlay) => overlay.get(self.fields, name),
        }
    }

    /// Every field with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.marked().map(|(name, value, _)| (name, value))
    }

    /// Every field, and whether a layer has set it.
    pub(crate) fn marked(&self) -> impl Iterator<Item = Marked<'a>> + use<'a> {
        let (plain, edited) = match self.edits {
            None => (Some(self.fields.iter()), None),
            Some(overlay) => (None, Some(overlay.all(self.fields))),
        };
        let plain = plain.into_iter().flatten();
        plain.chain(edited.into_iter().flatten())
    }

    /// The same in memory of their own.
    pub(crate) fn keep(&self) -> KeptFields {
        let (count, bytes) = self.marked().fold((0, 0), |(count, bytes), field| {
            (count + 1, bytes + field.0.len() + field.1.len())
        });
        let mut kept = KeptFields {
            list: FieldList::with_capacity(count, bytes),
            layered: Vec::new(),
        };
        for (name, value, is_layered) in self.marked() {
            if is_layered {
                kept.layered.push(kept.list.len());
            }
            kept.list.push(name.as_bytes(), value);
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
            let is_of_name =
                |(name, _, _): &Marked<'_>| name.eq_ignore_ascii_case(edit.name().as_str());
            match edit {
                Edit::Remove(_) => all.retain(|field| !is_of_name(field)),
                Edit::Set(name, value) => {
                    let Some(first) = all.iter().position(is_of_name) else {
                        all.push((name.as_str(), value.as_bytes(), true));
                        continue;
                    };
                    (all[first].1, all[first].2) = (value.as_bytes(), true);
                    let mut at = 0;
                    all.retain(|field| {
                        at += 1;
                        at - 1 <= first || !is_of_name(field)
                    });
                }
                Edit::Add(name, value) => all.push((name.as_str(), value.as_bytes(), true)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
