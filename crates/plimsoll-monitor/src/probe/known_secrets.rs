//! The credentials that a check sends, which must not come back in its reasons: a target may echo its request.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::OnceLock;

use base64::Engine as _;
use percent_encoding::percent_decode_str;
use plimsoll_model::secret_values;
use regex::bytes::{NoExpand, Regex, RegexBuilder};

/// Shown in place of a credential.
pub(crate) const MASK: &str = "********";

/// Shorter credentials are only found as words of their own: otherwise they would hide parts of many words.
const WORDS_BELOW: usize = 4;

/// The beginning of a credential at the end of a text that was cut is hidden from so many characters on.
const SHORTEST_PART: usize = 4;

/// A part of a field that is shorter is an ordinary word, such as the theme in a cookie.
const SHORTEST_IN_FIELD: usize = 8;

/// Bytes of credentials that a pattern is made of; with more, nothing is shown.
const MOST_BYTES: usize = 16 * 1024;

/// Bytes that the compiled pattern may have: more than the above need.
const MOST_PATTERN: usize = 128 * 1024 * 1024;

/// The credentials of one definition.
///
/// They are found as they are, without regard to case, and as targets spell them that echo a URL, a form, JSON or HTML.
#[derive(Default)]
pub struct KnownSecrets {
    /// The longest first: a part of one may be another one.
    values: Vec<String>,
    /// Made when something is first hidden: most targets are up, and have no reasons.
    pattern: OnceLock<Option<Regex>>,
}

impl Clone for KnownSecrets {
    fn clone(&self) -> Self {
        Self {
            values: self.values.clone(),
            // One is cloned to be added to.
            pattern: OnceLock::new(),
        }
    }
}

impl KnownSecrets {
    /// Notes a credential, and what it is made of.
    pub(crate) fn add(&mut self, value: &str) {
        let decoded = percent_decode_str(value).decode_utf8_lossy();
        for value in [value, &decoded, &decoded.replace('+', " ")] {
            if !value.trim().is_empty() && !self.values.iter().any(|known| known == value) {
                self.values.push(value.to_owned());
            }
        }
        // As alternatives of one pattern the first that fits is found.
        self.values
            .sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.pattern = OnceLock::new();
    }

    /// Notes user and password, also as the field `authorization` has them. A user without a password is the credential.
    pub(crate) fn add_login(&mut self, login: &str) {
        let Some((user, password)) = login.split_once(':') else {
            self.add(login);
            return;
        };
        self.add(login);
        self.add(password);
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
        for login in [
            login.to_owned(),
            format!("{}:{}", decoded(user), decoded(password)),
        ] {
            self.add(&base64::prelude::BASE64_STANDARD.encode(login));
        }
    }

    /// Notes the value of a header field that holds a credential: all of it, and its parts.
    pub(crate) fn add_field(&mut self, value: &str) {
        self.add(value);
        for pair in value.split(';') {
            // A cookie, or a parameter of an authentication scheme.
            if let Some((_, value)) = pair.split_once('=')
                && value.len() >= SHORTEST_IN_FIELD
            {
                self.add(value.trim_matches([' ', '"']));
            }
        }
        let Some((scheme, credentials)) = value.split_once(' ') else {
            return;
        };
        let is_scheme = |it: char| it.is_ascii_alphanumeric() || it == '-';
        if !scheme.chars().all(is_scheme) {
            return;
        }
        self.add(credentials);
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(login) = base64::prelude::BASE64_STANDARD.decode(credentials.trim())
            && let Ok(login) = String::from_utf8(login)
        {
            self.add_login(&login);
        }
    }

    /// Notes the credentials of any other text: a URL, a form, JSON.
    pub(crate) fn add_text(&mut self, text: &str) {
        for value in secret_values(text) {
            // Only the place says whether it is user information.
            let is_login = text.contains(&format!("://{value}@"));
            if is_login {
                self.add_login(value);
            } else {
                self.add(value);
            }
        }
    }

    /// A text without them.
    pub(crate) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hide_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(hidden) => Cow::Owned(String::from_utf8_lossy(&hidden).into_owned()),
        }
    }

    /// The same for content, which may be cut at its end.
    pub(crate) fn hide_bytes<'t>(&self, content: &'t [u8]) -> Cow<'t, [u8]> {
        if self.values.is_empty() {
            return Cow::Borrowed(content);
        }
        let Some(pattern) = self.pattern.get_or_init(|| pattern(&self.values)) else {
            return Cow::Owned(MASK.as_bytes().to_vec());
        };
        let hidden = pattern.replace_all(content, NoExpand(MASK.as_bytes()));
        let part = self.part_at_end(&hidden);
        if part == 0 {
            return hidden;
        }
        let mut hidden = hidden.into_owned();
        hidden.truncate(hidden.len() - part);
        hidden.extend_from_slice(MASK.as_bytes());
        Cow::Owned(hidden)
    }

    /// Bytes of the longest beginning of a credential that the content ends with.
    fn part_at_end(&self, content: &[u8]) -> usize {
        let longest = |value: &String| {
            let value = value.as_bytes();
            let most = value.len().min(content.len());
            (SHORTEST_PART..=most).rev().find(|length| {
                let end = content.len() - length;
                content[end..].eq_ignore_ascii_case(&value[..*length])
            })
        };
        self.values.iter().filter_map(longest).max().unwrap_or(0)
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").finish_non_exhaustive()
    }
}

/// Finds each of the values; `None` if they are too long for that.
fn pattern(values: &[String]) -> Option<Regex> {
    if values.iter().map(String::len).sum::<usize>() > MOST_BYTES {
        return None;
    }
    let alternatives: Vec<_> = values.iter().map(|value| spellings(value)).collect();
    RegexBuilder::new(&alternatives.join("|"))
        .case_insensitive(true)
        .unicode(false)
        .size_limit(MOST_PATTERN)
        .build()
        .ok()
}

/// A pattern for a value as URLs, forms, JSON and HTML spell it.
fn spellings(value: &str) -> String {
    let is_word = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_');
    let is_short = value.chars().count() < WORDS_BELOW;
    let edge = |it| if is_short && is_word(it) { r"\b" } else { "" };
    let mut all = String::from(edge(value.chars().next()));
    for it in value.chars() {
        spellings_of_character(&mut all, it);
    }
    all.push_str(edge(value.chars().last()));
    all
}

fn spellings_of_character(all: &mut String, it: char) {
    // Writing to a text cannot fail.
    if it.is_ascii_alphanumeric() {
        all.push(it);
        return;
    }
    let code = u32::from(it);
    let mut bytes = [0; 4];
    let bytes = it.encode_utf8(&mut bytes).as_bytes();
    all.push_str("(?:");
    for byte in bytes {
        write!(all, r"\x{byte:02x}").ok();
    }
    all.push('|');
    for byte in bytes {
        write!(all, "%{byte:02x}").ok();
    }
    all.push('|');
    let mut units = [0; 2];
    for unit in it.encode_utf16(&mut units) {
        write!(all, r"\\u{unit:04x}").ok();
    }
    write!(all, "|&#0*{code};|&#x0*{code:x};").ok();
    all.push_str(match it {
        ' ' => r"|\+",
        '+' => "|-",
        '"' => r#"|\\"|&quot;"#,
        '\'' => r"|\\'|&apos;",
        '/' => r"|\\/|_",
        '\\' => r"|\\\\",
        '&' => "|&amp;",
        '<' => "|&lt;",
        '>' => "|&gt;",
        '\n' => r"|\\n",
        '\r' => r"|\\r",
        '\t' => r"|\\t",
        _ => "",
    });
    all.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownSecrets {
        let mut known = KnownSecrets::default();
        known.add_text("https://u:p%40ss%2Fw+rd@h/?api_key=SECRETKEY2&b=1");
        known.add_field("Bearer token-of-the-bearer");
        known.add_field("sid=abcdefgh; theme=dark");
        known.add("a \"quoted\" é & <one>");
        known.add("xy");
        known
    }

    #[test]
    fn credentials_are_hidden_however_they_are_spelled() {
        for echo in [
            "SECRETKEY2",
            "secretkey2",
            "/?api_key=SECRETKEY2&b=1",
            "u:p%40ss%2Fw+rd",
            "p@ss/w rd",
            r"p@ss\/w+rd",
            "dTpwQHNzL3crcmQ=",
            "Bearer token-of-the-bearer",
            "token%2Dof-the-bearer",
            "cookie: sid=abcdefgh",
            r#"a \"quoted\" \u00e9 & <one>"#,
            "a &quot;quoted&quot; é &amp; &lt;one&gt;",
            "a+%22quoted%22+%C3%A9+%26+%3Cone%3E",
            "it is xy.",
            // Cut within.
            "… SECRETK",
        ] {
            let hidden = known().hide(echo).into_owned();
            assert!(hidden.contains(MASK), "{echo}: {hidden}");
            for part in ["SECRETK", "ss", "of", "abcd", "quoted", "xy"] {
                assert!(!hidden.contains(part), "{echo}: {hidden}");
            }
        }
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "status 500",
            "galaxy",
            "b=1",
            "theme=",
            "SECRET of another",
            "",
        ] {
            assert_eq!(known().hide(text), text);
        }
        assert_eq!(KnownSecrets::default().hide("SECRETKEY2"), "SECRETKEY2");
        assert!(!format!("{:?}", known()).contains("SECRET"));
    }

    #[test]
    fn a_credential_that_is_too_long_for_a_pattern_hides_all() {
        let mut known = KnownSecrets::default();
        known.add(&"=/+\"&".repeat(MOST_BYTES));
        assert_eq!(known.hide("a reason"), MASK);
    }
}
