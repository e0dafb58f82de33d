//! A response that was made for one request.

use http::StatusCode;
use http::header::{DATE, HeaderMap, HeaderValue, TRAILER};
use http_body::Body as _;
use plimsoll_wire::http::{FieldList, announced_trailers, may_be_trailer};

use super::{HandOver, ResponseBody};
use crate::message::verbatim::Verbatim;

#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) status: StatusCode,
    /// The reason phrase that HTTP/1 writes in place of the standard one.
    pub(crate) reason: Option<Box<str>>,
    /// Fields that are sent as they are, before those of the map; see [`Built::spread`].
    pub(crate) verbatim: Verbatim,
    pub(crate) fields: HeaderMap,
    /// The order and the case in which HTTP/1 writes fields, of those that are still there.
    pub(crate) order: Option<Box<FieldList>>,
    pub(crate) content: ResponseBody,
    /// It is that of a server behind this one.
    pub(crate) is_relayed: bool,
    pub(crate) hand_over: Option<Box<HandOver>>,
}

impl Built {
    /// Whether there is the date of an origin, so that the server adds none of its own (RFC 9110, section 6.6.1).
    pub(crate) fn has_date(&self) -> bool {
        self.fields.contains_key(DATE) || self.verbatim.has("date")
    }

    /// Has the `Trailer` field name only what may follow the content (RFC 9110, section 6.6.2); with no name left there is
    /// none.
    ///
    /// - `may_follow`: whether trailers can follow content of that length.
    pub(crate) fn announce_trailers(&mut self, may_follow: impl FnOnce(Option<u64>) -> bool) {
        if !self.verbatim.has("trailer") && !self.fields.contains_key(TRAILER) {
            return;
        }
        self.spread();
        let have_room = match &self.content {
            ResponseBody::Stream(body) => may_follow(body.size_hint().exact()),
            _ => false,
        };
        let values = self.fields.get_all(TRAILER).iter();
        let names = values.map(|value| announced_trailers(value.as_bytes(), may_be_trailer));
        let names = names.filter(|names| have_room && !names.is_empty());
        let names = names.filter_map(|names| HeaderValue::from_bytes(&names).ok());
        let names: Vec<_> = names.collect();
        self.fields.remove(TRAILER);
        for names in names {
            self.fields.append(TRAILER, names);
        }
    }

    /// Moves the fields of the list into the map, to be changed; the list is then the order in which they are sent.
    pub(crate) fn spread(&mut self) {
        if self.verbatim.is_empty() {
            return;
        }
        let list = std::mem::take(&mut self.verbatim).into_list();
        self.order = Some(Box::new(list.clone()));
        self.verbatim = list.into();
        self.fields = self.take_fields();
    }

    /// All fields, those of the list before the others.
    pub(super) fn take_fields(&mut self) -> HeaderMap {
        let others = std::mem::take(&mut self.fields);
        if self.verbatim.is_empty() {
            return others;
        }
        let mut fields = std::mem::take(&mut self.verbatim).into_list().into_map();
        let mut current = None;
        for (name, value) in others {
            // A further value of a name comes without it.
            current = name.or(current);
            if let Some(name) = &current {
                fields.append(name, value);
            }
        }
        fields
    }
}
