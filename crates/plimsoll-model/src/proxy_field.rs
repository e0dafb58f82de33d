//! Names of fields by which proxies describe the client and its request to servers.

/// Whether a field of that name, in any case, describes the client or its request as a proxy saw it: servers trust
/// it, so an intermediary removes it from what clients send, unless the client is a proxy that it trusts.
///
/// - Of RFC 7239, and those before it: `forwarded`, and every name that begins with `x-forwarded`, such as
///   `x-forwarded-for`, `-prefix`, `-user` and `-client-cert`.
/// - Other names of the client's address: `x-real-ip`, `x-client-ip`, `x-cluster-client-ip`, `true-client-ip`.
/// - Names of the URL before it was rewritten, which frameworks route by: `x-original-url`, `x-rewrite-url` and the
///   like.
pub fn is_proxy_field(name: &[u8]) -> bool {
    const PREFIX: &[u8] = b"x-forwarded";
    const OTHERS: [&[u8]; 10] = [
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-original-forwarded-for",
        b"x-original-host",
        b"x-original-method",
        b"x-original-proto",
        b"x-original-uri",
        b"x-original-url",
        b"x-rewrite-url",
    ];
    // The first letter first: most names differ in it.
    match name.first() {
        Some(b'x' | b'X') => {
            let start = name.get(..PREFIX.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
                || OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
        }
        Some(b'f' | b'F') => name.eq_ignore_ascii_case(b"forwarded"),
        Some(b't' | b'T') => name.eq_ignore_ascii_case(b"true-client-ip"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proxies_are_known_in_any_case() {
        for name in [
            "Forwarded",
            "X-Forwarded",
            "X-Forwarded-For",
            "x-forwarded-prefix",
            "X-FORWARDED-USER",
            "x-forwarded-email",
            "x-forwarded-ssl",
            "x-real-ip",
            "True-Client-IP",
            "X-Original-URL",
            "x-rewrite-url",
        ] {
            assert!(is_proxy_field(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "x",
            "via",
            "x-user",
            "x-forward",
            "forwarded-by",
            "x-original-filename",
            "te",
        ] {
            assert!(!is_proxy_field(name.as_bytes()), "{name}");
        }
    }
}
