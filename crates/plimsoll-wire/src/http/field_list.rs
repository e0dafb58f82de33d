//! Header fields of one message in their order and with their names as they were written.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::h1::{has_control, is_name};
use crate::http::NameFilter;

/// Fields in one piece of memory, so that a list of any length takes two allocations.
///
/// They lie there as HTTP/1 sends them, so that [valid](Self::lines) ones are sent without a look at each.
#[derive(Debug, Clone)]
pub struct FieldList {
    /// `name: value` and the end of the line, for each field.
    lines: Vec<u8>,
    /// Ends of the name and the value of each field.
    ends: Vec<(u32, u32)>,
    names: NameFilter,
    is_valid: bool,
}

/// Between name and value.
const COLON: &[u8] = b": ";

/// Fields that responses get beside their own, such as their date and length: a map that has to grow for them is made anew.
const ROOM: usize = 3;

/// Behind the value.
const LINE_END: &[u8] = b"\r\n";

impl Default for FieldList {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl PartialEq for FieldList {
    fn eq(&self, other: &Self) -> bool {
        // The rest follows from these.
        self.ends == other.ends && self.lines == other.lines
    }
}

impl Eq for FieldList {}

impl FieldList {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// No fields, with room for so many.
    ///
    /// - `bytes`: names and values together.
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self {
            lines: Vec::with_capacity(bytes + fields * (COLON.len() + LINE_END.len())),
            ends: Vec::with_capacity(fields),
            names: NameFilter::NONE,
            is_valid: true,
        }
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Which names may be among them.
    pub fn names(&self) -> NameFilter {
        self.names
    }

    /// The fields as HTTP/1 sends them; `None` if one of them is not valid, and would be read as something else.
    pub fn lines(&self) -> Option<&[u8]> {
        self.is_valid.then_some(&self.lines)
    }

    /// The value of the first field of that name, whatever its case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        if !self.names.may_have(name.as_bytes()) {
            return None;
        }
        let mut fields = self.iter();
        // Lengths first: most names differ in them, and then the text is not looked at.
        let is_named =
            |known: &[u8]| known.len() == name.len() && known.eq_ignore_ascii_case(name.as_bytes());
        let found = fields.find(|(known, _)| is_named(known));
        found.map(|(_, value)| value)
    }

    /// Every field in its order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            lines: &self.lines,
            ends: self.ends.iter(),
            start: 0,
        }
    }

    /// Adds a field behind the others. One that is not valid stays in the list, which has no [lines](Self::lines) then.
    ///
    /// Does nothing if all fields together would be longer than 4 GiB, which limits on heads prevent.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.is_valid &= is_name(name) && !has_control(value);
        self.append(name, value);
    }

    /// The same for a field whose name and value are known to be valid, since they were read as a field or are those of a map.
    #[inline]
    pub fn push_valid(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(is_name(name) && !has_control(value), "{name:?}: {value:?}");
        self.append(name, value);
    }

    #[inline]
    fn append(&mut self, name: &[u8], value: &[u8]) {
        let name_end = self.lines.len() + name.len();
        let end = name_end + COLON.len() + value.len();
        let (Ok(name_end), Ok(end)) = (u32::try_from(name_end), u32::try_from(end)) else {
            return;
        };
        self.lines.extend_from_slice(name);
        self.lines.extend_from_slice(COLON);
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(LINE_END);
        self.ends.push((name_end, end));
        self.names.add(name);
    }

    /// Removes the fields that are not valid.
    #[must_use]
    pub fn into_valid(mut self) -> Self {
        if !self.is_valid {
            self.retain(|name, value| is_name(name) && !has_control(value));
            self.is_valid = true;
        }
        self
    }

    /// Removes the fields for which `is_kept` returns false. Allocates nothing.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&[u8], &[u8]) -> bool) {
        let (mut read, mut written) = (0, 0);
        let mut shift = 0_u32;
        let lines = &mut self.lines;
        let mut names = NameFilter::NONE;
        self.ends.retain_mut(|ends| {
            let (name_end, end) = (ends.0 as usize, ends.1 as usize);
            let name = &lines[read..name_end];
            let is_kept = is_kept(name, &lines[name_end + COLON.len()..end]);
            let next = end + LINE_END.len();
            if is_kept {
                names.add(name);
                if shift > 0 {
                    lines.copy_within(read..next, written);
                    *ends = (ends.0 - shift, ends.1 - shift);
                }
                written += next - read;
            } else {
                // All ends are numbers of 32 bits.
                shift += u32::try_from(next - read).unwrap_or(u32::MAX);
            }
            read = next;
            is_kept
        });
        self.names = names;
        lines.truncate(written);
    }

    /// The fields as a map, without those that are not valid. Values are not copied.
    pub fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.len() + ROOM);
        let lines = Bytes::from(self.lines);
        let mut start = 0;
        for (name_end, end) in self.ends {
            let (name_end, end) = (name_end as usize, end as usize);
            let value = lines.slice(name_end + COLON.len()..end);
            if let Ok(name) = HeaderName::from_bytes(&lines[start..name_end])
                && let Ok(value) = HeaderValue::from_maybe_shared(value)
            {
                map.append(name, value);
            }
            start = end + LINE_END.len();
        }
        map
    }
}

/// The names and values of a [`FieldList`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    lines: &'a [u8],
    ends: std::slice::Iter<'a, (u32, u32)>,
    /// Where the next name begins.
    start: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let &(name_end, end) = self.ends.next()?;
        let (name_end, end) = (name_end as usize, end as usize);
        let name = &self.lines[self.start..name_end];
        let value = &self.lines[name_end + COLON.len()..end];
        self.start = end + LINE_END.len();
        Some((name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

impl<'a> IntoIterator for &'a FieldList {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a, N: AsRef<[u8]> + 'a> FromIterator<(N, &'a [u8])> for FieldList {
    fn from_iter<I: IntoIterator<Item = (N, &'a [u8])>>(fields: I) -> Self {
        let mut list = Self::new();
        for (name, value) in fields {
            list.push(name.as_ref(), value);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h1::{
        HeadStorage, KnownHead, Limits, RequestDecoder, RequestLimits, ResponseDecoder,
        ResponseHead, ResponseSink, ResponseWriter,
    };

    /// The fields of a response.
    #[derive(Default)]
    struct Seen(Vec<(Vec<u8>, Vec<u8>)>);

    impl ResponseSink for Seen {
        fn head(&mut self, head: &ResponseHead<'_>) {
            let fields = head.headers.iter();
            self.0 = fields
                .map(|field| (field.name.as_bytes().to_vec(), field.value.to_vec()))
                .collect();
        }

        fn content(&mut self, _piece: &[u8]) {}
    }

    proptest! {
        /// A list does what a vector of pairs does.
        #[test]
        fn a_list_agrees_with_pairs(
            pairs in prop::collection::vec(("[a-cA-C]{0,3}", prop::collection::vec(any::<u8>(), 0..4)), 0..9),
            kept in prop::collection::vec(any::<bool>(), 9),
        ) {
            let borrowed = pairs.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
            let mut list: FieldList = borrowed.collect();
            let mut expected: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())).collect();
            let get = |name: &str| expected.iter().find(|it| it.0.eq_ignore_ascii_case(name.as_bytes())).map(|it| it.1);
            prop_assert_eq!(list.get("AB"), get("ab"));
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), expected.clone());
            let mut answers = kept.iter();
            list.retain(|_, _| *answers.next().unwrap());
            let mut answers = kept.iter();
            expected.retain(|_| *answers.next().unwrap());
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!((list.len(), list.is_empty()), (expected.len(), expected.is_empty()));
            list.push(b"z", b"1");
            prop_assert_eq!(list.get("Z"), Some(&b"1"[..]));
            expected.push((b"z", b"1"));
            let valid = |it: &&(&[u8], &[u8])| HeaderName::from_bytes(it.0).is_ok() && HeaderValue::from_bytes(it.1).is_ok();
            let map = list.into_map();
            prop_assert_eq!(map.len(), expected.iter().filter(valid).count());
            prop_assert_eq!(&map["z"], "1");
        }

        /// Fields are added without a check where a decoder has read them or a map holds them: both take valid ones alone.
        #[test]
        fn what_decoders_and_maps_take_is_valid(
            name in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'-'), any::<u8>()], 1..4),
            value in prop::collection::vec(prop_oneof![Just(b'x'), Just(b'\t'), any::<u8>()], 0..40),
        ) {
            let field = [&name, &b": "[..], &value, b"\r\n\r\n"].concat();
            let is_valid = |name: &[u8], value: &[u8]| is_name(name) && !has_control(value);
            let head = [b"GET / HTTP/1.1\r\nhost: a\r\n", &field[..]].concat();
            let mut storage = HeadStorage::new();
            let read = RequestDecoder::new(RequestLimits::default()).decode_head(&head, &mut storage);
            if let Ok(Some((head, _))) = read {
                let mut fields = head.headers.iter();
                prop_assert!(fields.all(|it| is_valid(it.name.as_bytes(), it.value)));
            }
            let head = [b"HTTP/1.1 200 OK\r\n", &field[..]].concat();
            let mut seen = Seen::default();
            let mut decoder = ResponseDecoder::new(Limits::default());
            decoder.begin(false);
            decoder.decode(&head, &mut seen, &mut KnownHead::new()).ok();
            prop_assert!(seen.0.iter().all(|(name, value)| is_valid(name, value)));
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&name), HeaderValue::from_bytes(&value)) {
                prop_assert!(is_valid(name.as_str().as_bytes(), value.as_bytes()));
            }
        }

        /// Lines are those that the writer of responses makes of the same fields, and there are none with one that it refuses.
        #[test]
        fn lines_are_what_the_writer_makes_of_valid_fields(
            pairs in prop::collection::vec(("[ -~]{0,3}", "[\t-~]{0,5}"), 0..5),
            kept in prop::collection::vec(any::<bool>(), 5),
        ) {
            let borrowed = pairs.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            let mut list: FieldList = borrowed.collect();
            let mut written = Vec::new();
            let mut writer = ResponseWriter::continued(&mut written);
            let all_valid = pairs.iter().fold(true, |all, (name, value)| {
                writer.field(name, value.as_bytes()).is_ok() && all
            });
            prop_assert_eq!(list.lines(), all_valid.then_some(&*written));
            let valid = list.clone().into_valid();
            prop_assert_eq!(valid.lines(), Some(&*written));
            let mut again = FieldList::new();
            for (name, value) in &valid {
                again.push_valid(name, value);
            }
            prop_assert_eq!(again.lines(), Some(&*written));
            let mut answers = kept.iter();
            list.retain(|_, _| *answers.next().unwrap());
            let left: FieldList = list.iter().collect();
            prop_assert_eq!(&left, &list);
            prop_assert_eq!(left.names(), list.names());
        }
    }
}
