//! Request targets and authorities (RFC 9112, section 3.2; RFC 3986, section 3.2).

use crate::h1::server::RequestError;

/// The target of a request, in pieces borrowed from its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// In which of the four forms it was written.
    pub form: TargetForm,
    /// `host` or `host:port`, where the target has one: absolute-form and authority-form.
    pub authority: Option<&'a str>,
    /// From the first slash to the question mark, percent-escapes untouched; `*` in asterisk-form,
    /// empty in authority-form.
    pub path: &'a str,
    /// The query, without the question mark.
    pub query: Option<&'a str>,
}

/// The forms of RFC 9112, section 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, with CONNECT.
    Authority,
    /// `*`, with OPTIONS.
    Asterisk,
}

/// Methods of RFC 9110, section 9, and RFC 5789.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

fn is_method_in_any_case(method: &str) -> bool {
    METHODS.iter().any(|it| it.eq_ignore_ascii_case(method))
}

impl<'a> Target<'a> {
    /// Takes `text` apart.
    ///
    /// A fragment, a blank, a control character, a quote, an angle bracket or anything beyond ASCII is refused anywhere,
    /// and in the path a backslash, a backtick, and a `%` without two hexadecimal digits. Browsers send both characters
    /// in queries as they are. HTTP/2 and HTTP/3 have their `:path` read by the same function.
    ///
    /// A method that is one of HTTP but for its case is refused: conditions on methods do not hold for it here, and may
    /// behind.
    pub fn parse(method: &str, text: &'a str) -> Result<Self, RequestError> {
        if method.bytes().any(|byte| byte.is_ascii_lowercase()) && is_method_in_any_case(method) {
            return Err(RequestError::Method);
        }
        if !text.bytes().all(|byte| TARGET_BYTES[usize::from(byte)]) {
            return Err(RequestError::Target);
        }
        if method == "CONNECT" {
            let authority = Authority::parse(text).ok_or(RequestError::Target)?;
            if authority.host.is_empty() || authority.port.is_none_or(str::is_empty) {
                return Err(RequestError::Target);
            }
            return Ok(Self {
                form: TargetForm::Authority,
                authority: Some(text),
                path: "",
                query: None,
            });
        }
        if text.starts_with('/') {
            return Self::with_path(TargetForm::Origin, None, text);
        }
        if text == "*" && method == "OPTIONS" {
            return Ok(Self {
                form: TargetForm::Asterisk,
                authority: None,
                path: text,
                query: None,
            });
        }
        let (scheme, rest) = text.split_once("://").ok_or(RequestError::Target)?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(RequestError::Target);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if Authority::parse(authority).is_none_or(|authority| authority.host.is_empty()) {
            return Err(RequestError::Target);
        }
        Self::with_path(TargetForm::Absolute, Some(authority), rest)
    }

    fn with_path(
        form: TargetForm,
        authority: Option<&'a str>,
        text: &'a str,
    ) -> Result<Self, RequestError> {
        let (path, query) = match text.split_once('?') {
            None => (text, None),
            Some((path, query)) => (path, Some(query)),
        };
        if !has_whole_escapes(path.as_bytes()) || path.contains(['\\', '`']) {
            return Err(RequestError::Target);
        }
        Ok(Self {
            form,
            authority,
            // The path of an absolute URI may be left out (RFC 9112, section 3.2.2).
            path: if path.is_empty() { "/" } else { path },
            query,
        })
    }
}

/// A host and its port, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// Brackets of an IPv6 address included.
    pub(super) host: &'a str,
    pub(super) port: Option<&'a str>,
}

impl<'a> Authority<'a> {
    /// Takes `host:port` apart; `None` if it is nothing of the kind. User information is refused.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let end_of_host = if text.starts_with('[') {
            text.find(']')? + 1
        } else {
            text.bytes()
                .position(|byte| byte == b':')
                .unwrap_or(text.len())
        };
        let (host, rest) = text.split_at_checked(end_of_host)?;
        let is_host = match host.strip_prefix('[') {
            Some(address) => address
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b']')),
            None => is_name(host),
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return None,
        };
        let is_port = port.is_none_or(|port| {
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            digits && (port.is_empty() || port.parse::<u16>().is_ok())
        });
        (is_host && is_port).then_some(Self { host, port })
    }

    /// Whether both name the same place over a scheme whose default port is `default_port`.
    pub(super) fn is_same(&self, other: &Self, default_port: &str) -> bool {
        let port = |authority: &Self| match authority.port {
            None | Some("") => default_port.to_owned(),
            Some(port) => port.to_owned(),
        };
        self.host.eq_ignore_ascii_case(other.host)
            && (self.port == other.port || port(self) == port(other))
    }
}

/// Whether a host is labels with dots between them and perhaps one behind them, for the root. No label is empty: `a..test` could be the host
/// `a.test` to the next reader.
fn is_name(host: &str) -> bool {
    let mut before = b'.';
    host.bytes().all(|byte| {
        let is_part = match byte {
            b'.' => before != b'.',
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'%'),
        };
        before = byte;
        is_part
    })
}

/// Visible ASCII without what no URI has and what the next reader may take for an end.
static TARGET_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = b'!';
    while byte < 0x7f {
        allowed[byte as usize] = !matches!(byte, b'"' | b'#' | b'<' | b'>');
        byte += 1;
    }
    allowed
};

fn has_whole_escapes(path: &[u8]) -> bool {
    let mut rest = path;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        match rest.get(at + 1..at + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => rest = &rest[at + 3..],
            _ => return false,
        }
    }
    true
}
