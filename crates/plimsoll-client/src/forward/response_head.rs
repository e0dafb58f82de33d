//! Heads of responses: their fields are kept in one piece of memory until they are sent on.

use http::{HeaderMap, StatusCode, Version};
use plimsoll_wire::h1;
use plimsoll_wire::http::{FieldClass, FieldList, Nominated, announced_trailers};

use super::head::{FieldSource, is_trailer};

/// An empty list with room for these fields.
fn with_room_for<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> FieldList {
    let (count, bytes) = fields.fold((0, 0), |(count, bytes), (name, value)| {
        (count + 1, bytes + name.len() + value.len())
    });
    FieldList::with_capacity(count, bytes)
}

/// Header fields of a response, in the order and the case in which they came.
#[derive(Debug, Clone, Default)]
pub struct Fields(FieldList);

impl Fields {
    /// Copies fields into one piece of memory; pseudo-header fields are left out.
    pub(super) fn copied<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Self {
        let fields = fields.filter(|(name, _)| !name.starts_with(b":"));
        let mut list = with_room_for(fields.clone());
        for (name, value) in fields {
            list.push(name, value);
        }
        Self(list)
    }

    /// The same for fields that a decoder of HTTP/1 has read, which are valid and have no pseudo-header fields among them.
    pub(super) fn decoded(headers: &[h1::Header<'_>]) -> Self {
        let fields = headers
            .iter()
            .map(|header| (header.name.as_bytes(), header.value));
        let mut list = with_room_for(fields.clone());
        for (name, value) in fields {
            list.push_valid(name, value);
        }
        Self(list)
    }

    /// The same fields out of a map.
    pub(super) fn of_map(map: &HeaderMap) -> Self {
        let pairs: Vec<_> = map
            .iter()
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        Self::copied(pairs.into_iter())
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter()
    }

    /// The value of the first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name)
    }

    /// All fields as a map.
    pub fn to_map(&self) -> HeaderMap {
        self.0.clone().into_map()
    }

    /// The fields that an intermediary forwards, as a map: see [`into_forwarded`](Self::into_forwarded).
    pub fn to_forwarded_map(&self) -> HeaderMap {
        self.clone().into_forwarded().into_map()
    }

    /// The fields that an intermediary forwards: without those of the connection, those that `Connection` nominates, and
    /// `content-length`, which the sender of the forwarded message writes. Allocates nothing.
    pub fn into_forwarded(mut self) -> FieldList {
        let mut nominated = Nominated::default();
        if self.0.names().may_have(b"connection") {
            for (name, value) in &self.0 {
                nominated.note(name, value);
            }
        }
        self.0.retain(|name, _| is_forwarded(name, &nominated));
        if !nominated.is_empty() && self.0.get("trailer").is_some() {
            self.0 = without_announced(&self.0, &nominated);
        }
        self.0
    }

    /// Trailers as a map. What sends them on leaves out the names that [may not stand there](may_be_trailer).
    ///
    /// - `nominated`: the names in the `Connection` fields of their head.
    pub(super) fn into_trailers(mut self, nominated: &Nominated) -> HeaderMap {
        if !nominated.is_empty() {
            self.0.retain(|name, _| !nominated.contains(name));
        }
        self.0.into_map()
    }
}

/// Whether an intermediary forwards a field of that name.
///
/// - `nominated`: the names in its `Connection` fields.
fn is_forwarded(name: &[u8], nominated: &Nominated) -> bool {
    let class = FieldClass::from_name(name);
    !class.is_hop_by_hop() && !class.is_framing() && !nominated.contains(name)
}

/// Fields whose `Trailer` announces no trailers that belong to the connection.
fn without_announced(fields: &FieldList, nominated: &Nominated) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in fields {
        if !is_trailer(name) {
            list.push(name, value);
            continue;
        }
        let announced = announced_trailers(value, |name| !nominated.contains(name));
        if !announced.is_empty() {
            list.push(name, &announced);
        }
    }
    list
}

impl FieldSource for Fields {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.iter() {
            visit(name, value);
        }
    }
}

/// The head of a response, interim or final.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, if it is not the standard one of the status; only HTTP/1 has any.
    pub reason: Option<Box<str>>,
    /// The version of HTTP that it came by.
    pub version: Version,
    /// The fields.
    pub fields: Fields,
}

impl ResponseHead {
    /// Whether another head follows: 1xx other than 101.
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn responses_keep_order_and_case_and_lose_the_connection_in_maps() {
        let pairs: [(&[u8], &[u8]); 6] = [
            (b":status", b"200"),
            (b"X-A", b"1"),
            (b"Connection", b"x-b"),
            (b"X-B", b"2"),
            (b"Content-Length", b"3"),
            (b"x-a", b"\xff"),
        ];
        let fields = Fields::copied(pairs.into_iter());
        assert_eq!(fields.len(), 5);
        assert_eq!(fields.iter().next(), Some((&b"X-A"[..], &b"1"[..])));
        assert_eq!(fields.field("x-b"), Some(&b"2"[..]));
        assert_eq!(fields.to_map().len(), 5);
        let map = fields.to_forwarded_map();
        let values: Vec<_> = map
            .get_all("x-a")
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        assert_eq!(values, [&b"1"[..], b"\xff"]);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn trailers_that_belong_to_the_connection_are_neither_sent_on_nor_announced() {
        let mut nominated = Nominated::default();
        nominated.note(b"connection", b"X-Hop");
        let pairs: [(&[u8], &[u8]); 2] = [(b"x-sum", b"1"), (b"x-hop", b"3")];
        let map = Fields::copied(pairs.into_iter()).into_trailers(&nominated);
        assert_eq!(map.len(), 1);
        let head: [(&[u8], &[u8]); 3] = [
            (b"Connection", b"x-hop"),
            (b"Trailer", b"x-hop"),
            (b"trailer", b"x-sum,x-hop"),
        ];
        let forwarded = Fields::copied(head.into_iter()).into_forwarded();
        let seen: Vec<_> = forwarded.iter().collect();
        assert_eq!(seen, [(&b"trailer"[..], &b"x-sum"[..])]);
    }
}
