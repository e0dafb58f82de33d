//! The normal form of a request path.
//!
//! Routes, mocks and sites all read paths through [`NormalPath`]. A password on a route protects the files below it
//! only if the route and the files read every path in the same way.

use std::borrow::Cow;

/// A path, decoded once and without ambiguous parts.
///
/// - Percent-escapes are decoded once. An encoded slash stays `%2F`, because it belongs to its segment, and an encoded
///   backslash `%5C`.
/// - Repeated slashes count as one. A slash at the end is kept.
/// - Dot segments, NUL and line ends are refused, in every spelling, and a plain backslash. Expressions differ about line
///   ends: `.` and `$` of one may pass over what those of another stop at, and so may a guard.
/// - Parameters of a segment (`;x=y`) are a part of it.
///
/// Servers differ about encoded slashes, backslashes and parameters: [`other_readings`](Self::other_readings) are what
/// they may make of the path.
/// - Letters keep their case. Routes compare paths with [`folded`](Self::folded), so that a route also covers the
///   other spellings of its path on servers and file systems that ignore case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct NormalPath<'a> {
    text: Cow<'a, str>,
    has_gaps: bool,
    has_encoded_slash: bool,
    has_parameters: bool,
    is_utf8: bool,
}

/// Why a path has no normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// A percent sign without two hexadecimal digits.
    #[error("the path has a `%` without two hexadecimal digits")]
    Escape,
    /// NUL, CR or LF, plain or escaped, or a plain backslash.
    #[error("the path contains NUL, a line end or a backslash")]
    Character,
    /// `.` or `..`, plain or escaped, also with parameters (`..;x`) or beside an encoded slash.
    #[error("the path contains a segment `.` or `..`")]
    Dots,
}

/// Treatment of refused parts of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Refuse,
    /// Drops dot segments and keeps everything else.
    Clean,
}

impl<'a> NormalPath<'a> {
    /// Normalises the path of a request.
    ///
    /// - `raw`: from the first slash to the question mark, as the client sent it.
    #[inline]
    pub fn parse(raw: &'a str) -> Result<Self, PathRefusal> {
        if is_normal(raw) {
            return Ok(Self::plain(raw));
        }
        Self::walk(raw, Policy::Refuse)
    }

    /// Normalises a path without refusing any: drops dot segments and keeps all other characters.
    pub fn cleaned(raw: &'a str) -> Self {
        if is_normal(raw) {
            return Self::plain(raw);
        }
        Self::walk(raw, Policy::Clean).unwrap_or_else(|_| Self::plain("/"))
    }

    /// The path as text. It begins with a slash.
    #[inline]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The path as text, without copying it again.
    pub fn into_text(self) -> Cow<'a, str> {
        self.text
    }

    /// The path for comparisons that ignore case.
    #[inline]
    pub fn folded(&self) -> Cow<'_, str> {
        fold_case(&self.text)
    }

    /// The path ends with a slash.
    pub fn has_slash(&self) -> bool {
        self.text.ends_with('/')
    }

    /// The path had repeated slashes.
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// A segment contains `%2F` or `%5C`.
    pub fn has_encoded_slash(&self) -> bool {
        self.has_encoded_slash
    }

    /// The decoded bytes were UTF-8. Other bytes become U+FFFD in the text.
    pub fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    /// Servers may read the path otherwise than it stands here.
    #[inline]
    pub fn is_ambiguous(&self) -> bool {
        self.has_encoded_slash || self.has_parameters
    }

    /// The path as servers may read it: with encoded slashes and backslashes as separators, without the parameters of its
    /// segments, and with both, in either order. Empty unless it [is ambiguous](Self::is_ambiguous).
    #[must_use]
    pub fn other_readings(&self) -> Vec<NormalPath<'static>> {
        let mut readings = Vec::new();
        if self.has_encoded_slash {
            readings.push(with_slashes_decoded(&self.text));
        }
        if self.has_parameters {
            readings.push(without_parameters(&self.text));
        }
        if self.has_encoded_slash && self.has_parameters {
            readings.push(without_parameters(&with_slashes_decoded(&self.text)));
            readings.push(with_slashes_decoded(&without_parameters(&self.text)));
        }
        let of_text = |text| NormalPath {
            text: Cow::Owned(text),
            has_gaps: self.has_gaps,
            has_encoded_slash: false,
            has_parameters: false,
            is_utf8: self.is_utf8,
        };
        readings.into_iter().map(of_text).collect()
    }

    fn plain(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            has_gaps: false,
            has_encoded_slash: false,
            has_parameters: false,
            is_utf8: true,
        }
    }

    fn walk(raw: &str, policy: Policy) -> Result<Self, PathRefusal> {
        let mut normal = Self {
            text: Cow::Borrowed("/"),
            has_gaps: false,
            has_encoded_slash: false,
            has_parameters: false,
            is_utf8: true,
        };
        let mut text = String::with_capacity(raw.len() + 1);
        let mut has_slash = true;
        let mut segments = raw.strip_prefix('/').unwrap_or(raw).split('/').peekable();
        while let Some(segment) = segments.next() {
            has_slash = segments.peek().is_none() && segment.is_empty();
            if segment.is_empty() {
                normal.has_gaps |= !has_slash;
                continue;
            }
            let (bytes, has_encoded_slash) = decode(segment, policy)?;
            let name = String::from_utf8_lossy(&bytes);
            if name
                .split("%2F")
                .flat_map(|it| it.split("%5C"))
                .any(is_dots)
            {
                match policy {
                    Policy::Refuse => return Err(PathRefusal::Dots),
                    Policy::Clean => continue,
                }
            }
            normal.has_encoded_slash |= has_encoded_slash;
            normal.has_parameters |= name.contains(';');
            normal.is_utf8 &= matches!(name, Cow::Borrowed(_));
            text.push('/');
            text.push_str(&name);
        }
        if has_slash || text.is_empty() {
            text.push('/');
        }
        normal.text = Cow::Owned(text);
        Ok(normal)
    }
}

/// The rest of `raw` below `prefix`, as the client sent it: empty, or beginning with a slash.
///
/// Compares normal forms and ignores case, as routes do. `None` if `raw` is not below `prefix`.
pub fn below<'a>(raw: &'a str, prefix: &str) -> Option<&'a str> {
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return Some(raw);
    }
    if let Some(rest) = raw.strip_prefix(prefix)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return Some(rest);
    }
    let wanted = NormalPath::cleaned(prefix);
    let mut names = wanted.text().split('/').skip(1).count();
    let mut end = 0;
    while names > 0 {
        let rest = raw.get(end..)?;
        let start = rest.len() - rest.trim_start_matches('/').len();
        let name = rest.get(start..)?;
        if start == 0 || name.is_empty() {
            return None;
        }
        end += start + name.find('/').unwrap_or(name.len());
        names -= 1;
    }
    let (head, rest) = raw.split_at_checked(end)?;
    (NormalPath::parse(head).ok()?.folded() == wanted.folded()).then_some(rest)
}

/// Lower case, character by character, whatever stands beside them: two names that are equal in any case have the same
/// form within a path and alone.
#[inline]
pub fn fold_case(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
}

/// Whether `raw` is its own normal form, by a look at its bytes: no escape, no parameters, no second slash, no segment
/// that begins with a dot.
#[inline]
fn is_normal(raw: &str) -> bool {
    let mut before = 0;
    for byte in raw.bytes() {
        if matches!(byte, b'%' | b'\\' | b';' | 0)
            || (before == b'/' && matches!(byte, b'/' | b'.'))
        {
            return false;
        }
        before = byte;
    }
    raw.starts_with('/')
}

/// `.` or `..`, perhaps with parameters that some servers cut off (`..;x`).
fn is_dots(name: &str) -> bool {
    let name = name.split(';').next().unwrap_or_default();
    name == "." || name == ".."
}

fn with_slashes_decoded(text: &str) -> String {
    without_gaps(&text.replace("%2F", "/").replace("%5C", "/"))
}

fn without_parameters(text: &str) -> String {
    let segments = text.split('/');
    let names = segments.map(|it| it.split(';').next().unwrap_or_default());
    without_gaps(&names.collect::<Vec<_>>().join("/"))
}

fn without_gaps(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains("//") {
        text = text.replace("//", "/");
    }
    text
}

/// The bytes of a segment, and whether it has an encoded slash or backslash.
fn decode(segment: &str, policy: Policy) -> Result<(Vec<u8>, bool), PathRefusal> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut has_encoded_slash = false;
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let mut byte = first;
        if first == b'%' {
            let digits = after.split_at_checked(2);
            match digits.and_then(|(digits, after)| Some((escaped(digits)?, after))) {
                Some((slash @ (b'/' | b'\\'), after)) => {
                    has_encoded_slash = true;
                    bytes.extend_from_slice(if slash == b'/' { b"%2F" } else { b"%5C" });
                    rest = after;
                    continue;
                }
                Some((decoded, after)) => {
                    byte = decoded;
                    rest = after;
                }
                None if policy == Policy::Refuse => return Err(PathRefusal::Escape),
                None => {}
            }
        }
        if matches!(byte, 0 | b'\r' | b'\n' | b'\\') && policy == Policy::Refuse {
            return Err(PathRefusal::Character);
        }
        bytes.push(byte);
    }
    Ok((bytes, has_encoded_slash))
}

fn escaped(digits: &[u8]) -> Option<u8> {
    let digits = str::from_utf8(digits).ok()?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
