//! The parameters of a request to an application, by the names of CGI (RFC 3875, section 4.1).

use std::ops::Range;

use plimsoll_model::{Failure, FailureKind, Phase, Protocol, Side};
use plimsoll_wire::h1::BodyLength;

use crate::forward::head::Head;
use crate::forward::pool::Destination;

/// The length of content as a parameter says it, which applications read as much as; empty without content.
///
/// - `name`: of the protocol, for the failure if the length is not known.
pub(super) fn content_length(length: BodyLength, name: &str) -> Result<String, Failure> {
    match length {
        BodyLength::None => Ok(String::new()),
        BodyLength::Known(length) => Ok(length.to_string()),
        BodyLength::Chunked => {
            let cause = format!("{name} needs the length of the content before it is sent");
            let failure = Failure::new(Phase::Send, FailureKind::Protocol);
            Err(failure.on(Side::Ours).because(cause))
        }
    }
}

/// Visits the parameters of the head, the length of the content and the fields, each name once.
pub(super) fn each_parameter(
    destination: &Destination,
    head: &Head<'_>,
    length: &str,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) {
    let mut fields = CgiFields::default();
    if let Some(parameters) = head.parameters {
        parameters.each(&mut |name, value| {
            fields.replace(name);
            visit(name, value);
        });
    }
    let authority = head.authority.unwrap_or(destination.endpoint().authority());
    fields.push(b"host", authority.as_bytes());
    let mut content_type = Vec::new();
    head.each_field(Protocol::Http1, false, &mut |name, value| {
        if name.eq_ignore_ascii_case(b"content-type") {
            content_type.clear();
            content_type.extend_from_slice(value);
        } else {
            fields.push(name, value);
        }
    });
    for (name, value) in [
        ("CONTENT_LENGTH", length.as_bytes()),
        ("CONTENT_TYPE", &content_type),
    ] {
        if !fields.is_replaced(name.as_bytes()) {
            visit(name.as_bytes(), value);
        }
    }
    fields.each(visit);
}

/// The fields of a request by their names as parameters.
#[derive(Debug)]
struct CgiFields {
    /// Names and values, in one piece of memory.
    text: Vec<u8>,
    fields: Vec<CgiField>,
    /// Parameters of the sender in place of fields.
    replaced: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct CgiField {
    /// Where it is in the text.
    name: Range<usize>,
    value: CgiValue,
    /// The field has a `_` in its name, which another field has as `-`.
    is_respelled: bool,
}

#[derive(Debug)]
enum CgiValue {
    /// Where that of one field is in the text.
    One(Range<usize>),
    /// Those of several fields: in memory of their own, where one more copies none of those before it.
    Joined(Vec<u8>),
}

impl Default for CgiFields {
    fn default() -> Self {
        // As most requests have them.
        Self {
            text: Vec::with_capacity(512),
            fields: Vec::with_capacity(16),
            replaced: Vec::new(),
        }
    }
}

impl CgiFields {
    /// Notes a parameter of the sender, which no field replaces.
    fn replace(&mut self, name: &[u8]) {
        if name.starts_with(b"HTTP_") || name.starts_with(b"CONTENT_") {
            self.replaced.push(name.to_vec());
        }
    }

    fn is_replaced(&self, name: &[u8]) -> bool {
        self.replaced.iter().any(|own| own == name)
    }

    /// Adds a field. Several of one name become one, as RFC 3875 demands (section 4.1.18).
    fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        let is_respelled = name.contains(&b'_');
        // Programs take HTTP_PROXY for their own proxy (httpoxy, CVE-2016-5385).
        let is_passed = self.push_name(name) && !name.eq_ignore_ascii_case(b"proxy");
        let name = start..self.text.len();
        if !is_passed || self.is_replaced(&self.text[name.clone()]) {
            self.text.truncate(start);
            return;
        }
        let text = &self.text;
        let is_known = |known: &&mut CgiField| text[known.name.clone()] == text[name.clone()];
        let Some(known) = self.fields.iter_mut().find(is_known) else {
            let value = CgiValue::One(push(&mut self.text, value));
            self.fields.push(CgiField {
                name,
                value,
                is_respelled,
            });
            return;
        };
        self.text.truncate(start);
        match (known.is_respelled, is_respelled) {
            // Of `X_User` and `X-User` the second is the one that others on the way have set.
            (false, true) => {}
            (true, false) => {
                known.value = CgiValue::One(push(&mut self.text, value));
                known.is_respelled = false;
            }
            _ => {
                let between: &[u8] = if self.text[known.name.clone()] == *b"HTTP_COOKIE" {
                    b"; "
                } else {
                    b", "
                };
                if let CgiValue::One(first) = &known.value {
                    known.value = CgiValue::Joined(self.text[first.clone()].to_vec());
                }
                if let CgiValue::Joined(values) = &mut known.value {
                    values.extend_from_slice(between);
                    values.extend_from_slice(value);
                }
            }
        }
    }

    /// Appends `HTTP_` and the name of a field, in upper case with `_` for `-`. Returns false if it has another character that
    /// is no letter or digit: programs read a dot as `_`, so that the field could pass for one of the gateway.
    fn push_name(&mut self, field: &[u8]) -> bool {
        let start = push(&mut self.text, b"HTTP_").end;
        self.text.extend_from_slice(field);
        self.text[start..].iter_mut().fold(true, |is_plain, byte| {
            *byte = match *byte {
                b'-' => b'_',
                byte => byte.to_ascii_uppercase(),
            };
            is_plain & (byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for field in &self.fields {
            let value = match &field.value {
                CgiValue::One(place) => &self.text[place.clone()],
                CgiValue::Joined(values) => values,
            };
            visit(&self.text[field.name.clone()], value);
        }
    }
}

/// Appends bytes, and says where they are.
fn push(text: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = text.len();
    text.extend_from_slice(bytes);
    start..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(replaced: &[&str], fields: &[(&str, &str)], expected: &[(&str, &str)]) {
        let mut list = CgiFields::default();
        for name in replaced {
            list.replace(name.as_bytes());
        }
        for (name, value) in fields {
            list.push(name.as_bytes(), value.as_bytes());
        }
        let mut seen = Vec::new();
        list.each(&mut |name, value| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            seen.push((text(name), text(value)));
        });
        let expected = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        assert_eq!(seen, expected.collect::<Vec<_>>(), "{fields:?}");
    }

    #[test]
    fn fields_have_one_parameter_for_each_name() {
        check(&[], &[("X-A", "1"), ("x-a", "2")], &[("HTTP_X_A", "1, 2")]);
        check(
            &[],
            &[("Cookie", "a=1"), ("Cookie", "b=2")],
            &[("HTTP_COOKIE", "a=1; b=2")],
        );
        check(&[], &[("HTTP-X-A", "1")], &[("HTTP_HTTP_X_A", "1")]);
        check(&[], &[("X_A", "evil"), ("X-A", "1")], &[("HTTP_X_A", "1")]);
        check(
            &[],
            &[("X-A", "1"), ("X_A", "evil"), ("X-A", "2")],
            &[("HTTP_X_A", "1, 2")],
        );
        check(&[], &[("X_A", "1"), ("X_A", "2")], &[("HTTP_X_A", "1, 2")]);
    }

    #[test]
    fn many_fields_of_one_name_take_memory_for_each_once() {
        let mut list = CgiFields::default();
        for _ in 0..4_000 {
            list.push(b"X-A", b"1");
            list.push(b"X-B", b"22");
        }
        let mut lengths = Vec::new();
        list.each(&mut |_, value| lengths.push(value.len()));
        assert_eq!(lengths, [4_000 + 3_999 * 2, 8_000 + 3_999 * 2]);
        assert!(list.text.capacity() < 1024, "{}", list.text.capacity());
    }

    #[test]
    fn fields_that_pass_for_others_are_left_out() {
        check(
            &[],
            &[("Proxy", "evil:1"), ("X.A", "evil"), ("pRoXy", "evil:1")],
            &[],
        );
        check(
            &["HTTP_X_A", "REMOTE_USER"],
            &[("X-A", "evil"), ("Remote-User", "b")],
            &[("HTTP_REMOTE_USER", "b")],
        );
    }
}
