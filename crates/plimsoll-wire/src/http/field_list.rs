//! Header fields of one message in their order and with their names as they were written.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Fields in one piece of memory, so that a list of any length takes two allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    text: Vec<u8>,
    /// Ends of the name and the value of each field.
    ends: Vec<(u32, u32)>,
}

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
            text: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(fields),
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

    /// The value of the first field of that name, whatever its case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut start = 0;
        for &(name_end, end) in &self.ends {
            let (name_end, end) = (name_end as usize, end as usize);
            // Lengths first: most names differ in them, and then the text is not looked at.
            if name_end - start == name.len()
                && self.text[start..name_end].eq_ignore_ascii_case(name.as_bytes())
            {
                return Some(&self.text[name_end..end]);
            }
            start = end;
        }
        None
    }

    /// Every field in its order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            text: &self.text,
            ends: self.ends.iter(),
            start: 0,
        }
    }

    /// Adds a field behind the others; that name and value are valid is for the caller to ensure.
    ///
    /// Does nothing if all fields together would be longer than 4 GiB, which limits on heads prevent.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let name_end = self.text.len() + name.len();
        let end = name_end + value.len();
        let (Ok(name_end), Ok(end)) = (u32::try_from(name_end), u32::try_from(end)) else {
            return;
        };
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.ends.push((name_end, end));
    }

    /// Removes the fields for which `is_kept` returns false. Allocates nothing.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&[u8], &[u8]) -> bool) {
        let (mut read, mut written) = (0, 0);
        let mut shift = 0_u32;
        let text = &mut self.text;
        self.ends.retain_mut(|ends| {
            let (name_end, end) = (ends.0 as usize, ends.1 as usize);
            let is_kept = is_kept(&text[read..name_end], &text[name_end..end]);
            if is_kept {
                text.copy_within(read..end, written);
                written += end - read;
                *ends = (ends.0 - shift, ends.1 - shift);
            } else {
                shift += ends.1 - u32::try_from(read).unwrap_or(ends.1);
            }
            read = end;
            is_kept
        });
        text.truncate(written);
    }

    /// The fields as a map, without those that are not valid. Values are not copied.
    pub fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.len());
        let text = Bytes::from(self.text);
        let mut start = 0;
        for (name_end, end) in self.ends {
            let (name_end, end) = (name_end as usize, end as usize);
            if let Ok(name) = HeaderName::from_bytes(&text[start..name_end])
                && let Ok(value) = HeaderValue::from_maybe_shared(text.slice(name_end..end))
            {
                map.append(name, value);
            }
            start = end;
        }
        map
    }
}

/// The names and values of a [`FieldList`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    text: &'a [u8],
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
        let field = (&self.text[self.start..name_end], &self.text[name_end..end]);
        self.start = end;
        Some(field)
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
    }
}
