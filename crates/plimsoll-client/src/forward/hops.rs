//! Requests that an intermediary does not forward, whatever it is configured to do: those that a server would send back
//! with everything in them, and those that have come as far as their client wants.

/// Why an intermediary responds to a request itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotForwarded {
    /// The server would send the request back to the client: cookies and authorization, which scripts of a page must not
    /// read, and the fields that the intermediary adds, which are not for clients at all (RFC 9110, section 9.3.8). The
    /// response is 405.
    Echoed,
    /// The client limits how often its OPTIONS is forwarded, and the limit is reached: the intermediary responds as the
    /// server that it asks (RFC 9110, section 7.6.2).
    LastHop,
}

impl NotForwarded {
    /// The value of `Allow` in the response.
    pub const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

    /// Whether and why a request is not forwarded.
    ///
    /// - `max_forwards`: the values of its `Max-Forwards` fields.
    pub fn check<'a>(
        method: &str,
        mut max_forwards: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        // TRACK is TRACE under the name that IIS had for it. Some servers read methods in any case.
        if method.eq_ignore_ascii_case("TRACE") || method.eq_ignore_ascii_case("TRACK") {
            return Some(Self::Echoed);
        }
        let is_last = is_limited(method) && max_forwards.any(|value| hops(value) == Some(0));
        is_last.then_some(Self::LastHop)
    }
}

/// Whether `Max-Forwards` counts for requests of that method.
pub(super) fn is_limited(method: &str) -> bool {
    method == "OPTIONS"
}

/// The value of a `Max-Forwards` field behind this intermediary; `None` if it stays as it is.
pub(super) fn one_hop_less(value: &[u8]) -> Option<String> {
    Some(hops(value)?.checked_sub(1)?.to_string())
}

/// The number in a `Max-Forwards` field.
fn hops(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let is_number = value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_back_or_has_gone_far_enough_is_not_forwarded() {
        for (method, max_forwards, expected) in [
            ("TRACE", &[][..], Some(NotForwarded::Echoed)),
            ("TRACE", &["5"], Some(NotForwarded::Echoed)),
            ("trace", &[], Some(NotForwarded::Echoed)),
            ("TRACK", &[], Some(NotForwarded::Echoed)),
            ("OPTIONS", &[], None),
            ("OPTIONS", &["1"], None),
            ("OPTIONS", &["0"], Some(NotForwarded::LastHop)),
            ("OPTIONS", &[" 00 "], Some(NotForwarded::LastHop)),
            ("OPTIONS", &["7", "0"], Some(NotForwarded::LastHop)),
            ("OPTIONS", &["-0"], None),
            ("OPTIONS", &[""], None),
            ("GET", &["0"], None),
        ] {
            let values = max_forwards.iter().map(|it| it.as_bytes());
            let found = NotForwarded::check(method, values);
            assert_eq!(found, expected, "{method} {max_forwards:?}");
        }
    }

    #[test]
    fn each_hop_takes_one() {
        for (value, expected) in [
            ("1", Some("0")),
            (" 10 ", Some("9")),
            ("0", None),
            ("+1", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(one_hop_less(value.as_bytes()).as_deref(), expected);
        }
    }
}
