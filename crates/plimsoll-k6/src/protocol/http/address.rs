//! URLs as scripts write them and k6 shows them: RFC 3986 as Go's `net/url` reads it, without the normal form of browsers.
//!
//! Neither a slash is added nor a default port removed, dots in paths stay, and only what a URL cannot contain is escaped. Names, tags and
//! `Response.url` are such texts, and requests are sent for such paths.

use std::fmt::{self, Write as _};
use std::net::Ipv6Addr;

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Address {
    /// In lower case; empty for a relative one.
    scheme: String,
    /// Without a slash behind the scheme: `mailto:ann@example.com`.
    opaque: String,
    /// Escaped, with the password behind a colon.
    user: Option<User>,
    /// Host and port as written, decoded.
    host: String,
    /// Escaped; empty if there is none.
    path: String,
    query: Option<String>,
    /// Escaped.
    fragment: String,
    /// There was no `//` behind the scheme.
    omits_host: bool,
}

/// Escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    name: String,
    password: Option<String>,
}

/// Why a text is no URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse {text:?}: {cause}")]
pub(crate) struct AddressError {
    text: String,
    cause: AddressCause,
}

/// What is wrong in a URL, in the words of Go's `net/url`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum AddressCause {
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    #[error("missing protocol scheme")]
    NoScheme,
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    #[error("net/url: invalid userinfo")]
    User,
    #[error("invalid character {0:?} in host name")]
    HostCharacter(String),
    #[error("missing ']' in host")]
    OpenBracket,
    #[error("invalid IP-literal")]
    Bracket,
    #[error("invalid host: {0:?} is no IPv6 address")]
    NotIpv6(String),
    #[error("invalid port {0:?} after host")]
    Port(String),
    #[error("invalid URL escape {0:?}")]
    Escape(String),
}

/// A part of a URL, by which characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    User,
    Fragment,
}

impl Part {
    /// Whether a byte of this part stands for itself in a text that is escaped anew.
    fn keeps(self, byte: u8) -> bool {
        match byte {
            b'-' | b'_' | b'.' | b'~' => true,
            _ if byte.is_ascii_alphanumeric() => true,
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match self {
                Self::Path => byte != b'?',
                Self::User => !matches!(byte, b'@' | b'/' | b'?' | b':'),
                Self::Fragment => true,
                Self::Host => !matches!(byte, b'/' | b'?' | b'@'),
            },
            b'!' | b'(' | b')' | b'*' => matches!(self, Self::Host | Self::Fragment),
            b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => self == Self::Host,
            _ => false,
        }
    }

    /// Whether a byte may stand in this part as it was written.
    fn allows(self, byte: u8) -> bool {
        self.keeps(byte) || matches!(byte, b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'%')
    }

    fn escape(self, bytes: &[u8]) -> String {
        let mut escaped = String::with_capacity(bytes.len());
        for byte in bytes {
            if self.keeps(*byte) {
                escaped.push(char::from(*byte));
            } else {
                // Writing to a text does not fail.
                write!(escaped, "%{byte:02X}").ok();
            }
        }
        escaped
    }

    /// The bytes of an escaped text.
    fn unescape(self, text: &str) -> Result<Vec<u8>, AddressCause> {
        let bytes = text.as_bytes();
        let mut decoded = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if *byte != b'%' {
                if self == Self::Host && byte.is_ascii() && !self.keeps(*byte) {
                    let character = char::from(*byte).to_string();
                    return Err(AddressCause::HostCharacter(character));
                }
                decoded.push(*byte);
                at += 1;
                continue;
            }
            let digits = bytes.get(at + 1..at + 3).and_then(hex_pair);
            // In a host, only bytes beyond ASCII are escaped.
            let value = digits.filter(|value| self != Self::Host || *value >= 0x80);
            let Some(value) = value else {
                let end = bytes.len().min(at + 3);
                let escape = String::from_utf8_lossy(&bytes[at..end]);
                return Err(AddressCause::Escape(escape.into_owned()));
            };
            decoded.push(value);
            at += 3;
        }
        Ok(decoded)
    }

    /// The text as it was written where that is valid, otherwise escaped anew.
    fn escaped(self, text: &str) -> Result<String, AddressCause> {
        let decoded = self.unescape(text)?;
        if text.bytes().all(|byte| self.allows(byte)) {
            return Ok(text.to_owned());
        }
        Ok(self.escape(&decoded))
    }
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(*digits.first()?)? * 16 + digit(*digits.get(1)?)?;
    u8::try_from(value).ok()
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let failed = |text: &str, cause: AddressCause| AddressError {
            text: text.to_owned(),
            cause,
        };
        let mut address = Self::without_fragment(before).map_err(|cause| failed(before, cause))?;
        let fragment = Part::Fragment.escaped(fragment);
        address.fragment = fragment.map_err(|cause| failed(text, cause))?;
        Ok(address)
    }

    fn without_fragment(text: &str) -> Result<Self, AddressCause> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(AddressCause::ControlCharacter);
        }
        let mut address = Self::default();
        let (scheme, rest) = scheme(text)?;
        address.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        address.query = query;
        if !rest.starts_with('/') {
            if !address.scheme.is_empty() {
                rest.clone_into(&mut address.opaque);
                return Ok(address);
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err(AddressCause::ColonInFirstSegment);
            }
        }
        let mut path = rest;
        let is_relative = address.scheme.is_empty();
        if let Some(after) = rest.strip_prefix("//")
            && !(is_relative && after.starts_with('/'))
        {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, rest) = after.split_at(end);
            address.set_authority(authority)?;
            path = rest;
        } else {
            address.omits_host = !is_relative;
        }
        address.path = Part::Path.escaped(path)?;
        Ok(address)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), AddressCause> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = self.checked_host(host)?;
        let Some(user) = user else {
            return Ok(());
        };
        let is_valid = |byte: u8| Part::User.keeps(byte) || b"!'()*%:@".contains(&byte);
        if !user.bytes().all(is_valid) {
            return Err(AddressCause::User);
        }
        let again = |text: &str| {
            Part::User
                .unescape(text)
                .map(|bytes| Part::User.escape(&bytes))
        };
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        self.user = Some(User {
            name: again(name)?,
            password: password.map(again).transpose()?,
        });
        Ok(())
    }

    fn checked_host(&self, host: &str) -> Result<String, AddressCause> {
        let decoded = |text: &str| {
            let bytes = Part::Host.unescape(text)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let is_port = |text: &str| {
            let digits = text.strip_prefix(':');
            text.is_empty() || digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let invalid_port = |text: &str| AddressCause::Port(text.to_owned());
        if let Some(inner) = host.strip_prefix('[') {
            let (literal, port) = inner.rsplit_once(']').ok_or(AddressCause::OpenBracket)?;
            if !is_port(port) {
                return Err(invalid_port(port));
            }
            let address = literal.split("%25").next().unwrap_or_default();
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(AddressCause::NotIpv6(literal.to_owned()));
            }
            return Ok(format!("[{}]{port}", literal.replacen("%25", "%", 1)));
        }
        if host.contains('[') {
            return Err(AddressCause::Bracket);
        }
        let is_http = matches!(self.scheme.as_str(), "http" | "https");
        let colon = if is_http {
            host.find(':')
        } else {
            host.rfind(':')
        };
        if let Some(colon) = colon {
            let port = host.get(colon..).unwrap_or_default();
            if !is_port(port) {
                return Err(invalid_port(port));
            }
        }
        decoded(host)
    }

    /// The same with another scheme, in lower case.
    #[must_use]
    pub(crate) fn with_scheme(&self, scheme: &str) -> Self {
        Self {
            scheme: scheme.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Host and port as written; empty if there is none.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The host without its port.
    pub(crate) fn host_name(&self) -> &str {
        let end = match self.host.rfind(']') {
            Some(end) => Some(end + 1),
            None => self.host.find(':'),
        };
        end.and_then(|end| self.host.get(..end))
            .unwrap_or(&self.host)
    }

    /// The text that a request line has: path and query.
    pub(crate) fn target(&self) -> String {
        let mut target = match (self.opaque.as_str(), self.path.as_str()) {
            ("", "") => "/".to_owned(),
            ("", path) => path.to_owned(),
            (opaque, _) => opaque.to_owned(),
        };
        if let Some(query) = &self.query {
            target.push('?');
            target.push_str(query);
        }
        // A server would take the rest for the version of HTTP.
        target.replace(' ', "%20")
    }

    /// The text with asterisks in place of user and password, as metrics show it.
    pub(crate) fn masked(&self) -> String {
        let Some(user) = &self.user else {
            return self.to_string();
        };
        let mask = || "****".to_owned();
        let masked = Self {
            user: Some(User {
                name: mask(),
                password: user.password.as_ref().map(|_| mask()),
            }),
            ..self.clone()
        };
        masked.to_string()
    }

    /// The text without user and password.
    pub(crate) fn without_user(&self) -> String {
        let bare = Self {
            user: None,
            ..self.clone()
        };
        bare.to_string()
    }

    /// The address that a reference on the page of this one stands for (RFC 3986, section 5.2).
    pub(crate) fn join(&self, reference: &str) -> Result<Self, AddressError> {
        let mut joined = Self::parse(reference)?;
        if joined.scheme.is_empty() {
            joined.scheme.clone_from(&self.scheme);
            if joined.host.is_empty() && joined.user.is_none() && joined.opaque.is_empty() {
                if joined.path.is_empty() && joined.query.is_none() {
                    joined.query.clone_from(&self.query);
                    if joined.fragment.is_empty() {
                        joined.fragment.clone_from(&self.fragment);
                    }
                }
                joined.host.clone_from(&self.host);
                joined.user.clone_from(&self.user);
                joined.omits_host = self.omits_host;
                joined.path = resolved(&self.path, &joined.path);
                return Ok(joined);
            }
        }
        joined.path = resolved(&joined.path, "");
        Ok(joined)
    }
}

/// The scheme of a text, and what is behind its colon.
fn scheme(text: &str) -> Result<(&str, &str), AddressCause> {
    let Some((name, rest)) = text.split_once(':') else {
        return Ok(("", text));
    };
    if name.is_empty() {
        return Err(AddressCause::NoScheme);
    }
    let mut bytes = name.bytes();
    let is_first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if is_first && bytes.all(is_part) {
        Ok((name, rest))
    } else {
        Ok(("", text))
    }
}

/// A path without `.` and `..`.
///
/// - `reference`: relative to `base`; empty for `base` itself.
fn resolved(base: &str, reference: &str) -> String {
    let full = if reference.is_empty() {
        base.to_owned()
    } else if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let folder = base.rfind('/').and_then(|end| base.get(..=end));
        format!("{}{reference}", folder.unwrap_or_default())
    };
    if full.is_empty() {
        return full;
    }
    let mut segments: Vec<&str> = Vec::new();
    let relative = full.strip_prefix('/').unwrap_or(&full);
    let last = relative.split('/').count() - 1;
    for (index, segment) in relative.split('/').enumerate() {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
        if index == last && matches!(segment, "." | "..") {
            segments.push("");
        }
    }
    format!("/{}", segments.join("/"))
}

/// As k6 writes it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let has_authority = !self.host.is_empty() || self.user.is_some();
            let is_absolute = !self.scheme.is_empty() && !self.omits_host && !self.path.is_empty();
            if has_authority || is_absolute {
                f.write_str("//")?;
            }
            if let Some(User { name, password }) = &self.user {
                f.write_str(name)?;
                if let Some(password) = password {
                    write!(f, ":{password}")?;
                }
                f.write_str("@")?;
            }
            f.write_str(&Part::Host.escape(self.host.as_bytes()))?;
            if !self.path.is_empty() && !self.path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            f.write_str(&self.path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What k6 v2.2.0 shows as `Response.url`, and what it sends.
    const SHOWN: [(&str, &str, &str); 18] = [
        ("http://a.test:1", "http://a.test:1", "/"),
        ("HTTP://A.test", "http://A.test", "/"),
        ("http://a.test:80/", "http://a.test:80/", "/"),
        ("http://a.test/a/../b", "http://a.test/a/../b", "/a/../b"),
        ("http://a.test//x/./y", "http://a.test//x/./y", "//x/./y"),
        ("http://a.test?q=1", "http://a.test?q=1", "/?q=1"),
        ("http://a.test/?", "http://a.test/?", "/?"),
        ("http://a.test/a b", "http://a.test/a%20b", "/a%20b"),
        (
            "http://a.test/a!b c",
            "http://a.test/a%21b%20c",
            "/a%21b%20c",
        ),
        ("http://a.test/a!(b)*'", "http://a.test/a!(b)*'", "/a!(b)*'"),
        ("http://a.test/%7e%2F", "http://a.test/%7e%2F", "/%7e%2F"),
        ("http://a.test/ü", "http://a.test/%C3%BC", "/%C3%BC"),
        ("http://a.test/{id}", "http://a.test/%7Bid%7D", "/%7Bid%7D"),
        ("http://a.test/?q={ü}|", "http://a.test/?q={ü}|", "/?q={ü}|"),
        ("http://a.test/x#a b", "http://a.test/x#a%20b", "/x"),
        (
            "http://ann:p%40ss@a.test/",
            "http://ann:p%40ss@a.test/",
            "/",
        ),
        ("http://[::1]:8080/x", "http://[::1]:8080/x", "/x"),
        ("http://a.test/?a=b?c", "http://a.test/?a=b?c", "/?a=b?c"),
    ];

    #[test]
    fn urls_stay_as_they_are_written() {
        for (text, shown, target) in SHOWN {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.target(), target, "{text}");
        }
    }

    #[test]
    fn errors_are_those_of_k6() {
        for (text, error) in [
            (
                "http://a/%zz",
                r#"parse "http://a/%zz": invalid URL escape "%zz""#,
            ),
            (
                "http://a/%4",
                r#"parse "http://a/%4": invalid URL escape "%4""#,
            ),
            ("://x", r#"parse "://x": missing protocol scheme"#),
            (
                " http://a",
                r#"parse " http://a": first path segment in URL cannot contain colon"#,
            ),
            (
                "http://a b/",
                r#"parse "http://a b/": invalid character " " in host name"#,
            ),
            (
                "http://a:b/",
                r#"parse "http://a:b/": invalid port ":b" after host"#,
            ),
            (
                "http://[::1/",
                r#"parse "http://[::1/": missing ']' in host"#,
            ),
            (
                "http://a/\u{7}",
                "parse \"http://a/\\u{7}\": net/url: invalid control character in URL",
            ),
        ] {
            assert_eq!(Address::parse(text).unwrap_err().to_string(), error);
        }
        for text in [
            "",
            "/x",
            "x",
            "http:",
            "http:/x",
            "http:///x",
            "mailto:a@b",
            "*",
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.host(), "", "{text}");
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn references_are_relative_to_the_address() {
        let base = Address::parse("http://ann@a.test/x/y/../z?q#f").unwrap();
        for (reference, expected) in [
            ("b", "http://ann@a.test/x/b"),
            ("../b", "http://ann@a.test/b"),
            ("/b/./c/..", "http://ann@a.test/b/"),
            ("?r", "http://ann@a.test/x/z?r"),
            ("", "http://ann@a.test/x/z?q#f"),
            ("//b.test", "http://b.test"),
            ("https://b.test/a/../c#d", "https://b.test/c#d"),
            ("/b%2Fc", "http://ann@a.test/b%2Fc"),
        ] {
            let joined = base.join(reference).unwrap();
            assert_eq!(joined.to_string(), expected, "{reference}");
        }
        assert!(base.join("http://b/%zz").is_err());
    }

    #[test]
    fn credentials_are_masked() {
        for (text, masked) in [
            ("http://ann:secret@a/x", "http://****:****@a/x"),
            ("http://ann@a", "http://****@a"),
            ("http://a", "http://a"),
        ] {
            assert_eq!(Address::parse(text).unwrap().masked(), masked);
        }
        let address = Address::parse("http://ann:secret@a/x").unwrap();
        assert_eq!(address.without_user(), "http://a/x");
        assert_eq!((address.host(), address.host_name()), ("a", "a"));
        let address = Address::parse("http://[::1]:80/").unwrap();
        assert_eq!((address.host(), address.host_name()), ("[::1]:80", "[::1]"));
    }

    proptest! {
        #[test]
        fn a_shown_url_is_shown_the_same_again(text in "(http://[a-z.]{1,8}(:[0-9]{1,4})?)?/?[ -~ü]{0,24}") {
            if let Ok(address) = Address::parse(&text) {
                let shown = address.to_string();
                // Text without a scheme may read as one with a scheme or a host once it is escaped.
                if !address.scheme().is_empty() {
                    let again = Address::parse(&shown).map(|it| it.to_string());
                    prop_assert_eq!(again.ok(), Some(shown));
                }
            }
        }
    }
}
