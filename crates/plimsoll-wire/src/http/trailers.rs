//! Which trailers of a message pass, and what its `Trailer` field says about them.

use http::HeaderMap;

/// Removes the trailers for which `passes` returns false. It is called once for each field, with the name in lower case.
pub fn retain_trailers(trailers: &mut HeaderMap, mut passes: impl FnMut(&str) -> bool) {
    let fields = trailers.iter().map(|(name, _)| name);
    let removed = fields.filter(|name| !passes(name.as_str()));
    for name in removed.cloned().collect::<Vec<_>>() {
        trailers.remove(name);
    }
}

/// The value of a `Trailer` field with only the names for which `passes` returns true (RFC 9110, section 6.6.2); empty if
/// there are none.
pub fn announced_trailers(value: &[u8], mut passes: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let names = names.filter(|name| !name.is_empty() && passes(name));
    names.collect::<Vec<_>>().join(&b", "[..])
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn fields_are_removed_by_name() {
        let fields = [("x-sum", "1"), ("x-gone", "2"), ("x-gone", "3")];
        let mut trailers: HeaderMap = fields
            .into_iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        let mut calls = 0;
        retain_trailers(&mut trailers, |name| {
            calls += 1;
            name != "x-gone"
        });
        assert_eq!((calls, trailers.len()), (3, 1));
        assert_eq!(trailers["x-sum"], "1");
    }

    #[test]
    fn names_leave_the_announcement() {
        for (value, expected) in [
            ("x-sum", "x-sum"),
            ("Cookie, X-Sum ,,x-b", "X-Sum, x-b"),
            ("cookie", ""),
            ("", ""),
        ] {
            let announced = announced_trailers(value.as_bytes(), |name| {
                !name.eq_ignore_ascii_case(b"cookie")
            });
            assert_eq!(announced, expected.as_bytes(), "{value}");
        }
    }
}
