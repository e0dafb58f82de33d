//! Fields that many responses have: they are checked and written once.

use crate::h1::ResponseWriter;
use crate::http::FieldList;

/// Valid fields, with the lines in which HTTP/1 sends them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldLines {
    list: FieldList,
    lines: Vec<u8>,
}

impl FieldLines {
    /// Leaves out fields that are not valid.
    pub fn new(list: FieldList) -> Self {
        let mut lines = Vec::new();
        let mut valid = list;
        let mut head = ResponseWriter::continued(&mut lines);
        valid.retain(|name, value| head.field(name, value).is_ok());
        Self { list: valid, lines }
    }

    /// Fields whose lines were kept, as [`FieldLines::lines`] had them for the same list; `None` if they are no whole lines.
    pub fn from_kept(list: FieldList, lines: Vec<u8>) -> Option<Self> {
        let is_whole = lines.is_empty() || lines.ends_with(b"\r\n");
        is_whole.then_some(Self { list, lines })
    }

    /// The fields.
    pub fn list(&self) -> &FieldList {
        &self.list
    }

    /// The lines, each with its end.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_fields_that_are_valid() {
        let mut list = FieldList::new();
        list.push(b"ETag", b"\"a\"");
        list.push(b"no name", b"x");
        list.push(b"x-two", b"a\r\nb: c");
        list.push(b"Vary", b"accept");
        let fields = FieldLines::new(list);
        assert_eq!(fields.lines(), b"ETag: \"a\"\r\nVary: accept\r\n");
        let names: Vec<_> = fields.list().iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"ETag"[..], b"Vary"]);
        let (list, lines) = (fields.list().clone(), fields.lines().to_vec());
        assert_eq!(FieldLines::from_kept(list.clone(), lines), Some(fields));
        assert_eq!(FieldLines::from_kept(list, b"ETag: \"a".to_vec()), None);
    }
}
