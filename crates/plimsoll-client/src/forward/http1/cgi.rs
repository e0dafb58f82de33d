//! The parameters of a request to an application, by the names of CGI (RFC 3875, section 4.1).

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
#[derive(Debug, Default)]
struct CgiFields {
    fields: Vec<CgiField>,
    /// Parameters of the sender in place of fields.
    replaced: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct CgiField {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The field has a `_` in its name, which another field has as `-`.
    is_respelled: bool,
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
        // Programs read a dot as `_`, so that another field could pass for one of the gateway.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        // Programs take HTTP_PROXY for their own proxy (httpoxy, CVE-2016-5385).
        if !name.iter().all(is_plain) || name.eq_ignore_ascii_case(b"proxy") {
            return;
        }
        let is_respelled = name.contains(&b'_');
        let name = parameter_name(name);
        if self.is_replaced(&name) {
            return;
        }
        let Some(known) = self.fields.iter_mut().find(|known| known.name == name) else {
            let value = value.to_vec();
            return self.fields.push(CgiField {
                name,
                value,
                is_respelled,
            });
        };
        match (known.is_respelled, is_respelled) {
            // Of `X_User` and `X-User` the second is the one that others on the way have set.
            (false, true) => {}
            (true, false) => {
                known.value = value.to_vec();
                known.is_respelled = false;
            }
            _ => {
                let between: &[u8] = if known.name == b"HTTP_COOKIE" {
                    b"; "
                } else {
                    b", "
                };
                known.value.extend_from_slice(between);
                known.value.extend_from_slice(value);
            }
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for field in &self.fields {
            visit(&field.name, &field.value);
        }
    }
}

/// `HTTP_` and the name of a field, in upper case with `_` for `-`.
fn parameter_name(field: &[u8]) -> Vec<u8> {
    let folded = field.iter().map(|byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    });
    b"HTTP_".iter().copied().chain(folded).collect()
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
