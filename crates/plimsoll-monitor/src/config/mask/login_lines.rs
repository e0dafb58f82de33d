//! Credentials in lines that are sent: logins of mail, news, chat and file servers, and of Redis.
//!
//! They have no name before them by which they could be found, only a command: `AUTH PLAIN …`, `PASS …`, `a1 LOGIN user …`. What
//! answers a challenge is a line of its own, perhaps in a later step of the conversation.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::probe::known_secrets::MASK;

/// Mechanisms of SASL, with the number of lines by which a client goes on without an initial response.
const MECHANISMS: [(&str, usize); 12] = [
    ("PLAIN", 1),
    ("LOGIN", 2),
    ("CRAM-MD5", 1),
    ("DIGEST-MD5", 2),
    ("NTLM", 2),
    ("GSSAPI", 3),
    ("XOAUTH", 1),
    ("XOAUTH2", 1),
    ("OAUTHBEARER", 1),
    ("SCRAM-SHA-1", 2),
    ("SCRAM-SHA-256", 2),
    ("EXTERNAL", 1),
];

/// Goes through what is sent, text by text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LoginLines {
    /// How many of the next lines are credentials as a whole.
    answers: usize,
}

impl LoginLines {
    /// Where the credentials of the next text are.
    pub(super) fn credentials(&mut self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_end();
            if !content.is_empty() {
                let range = self.credential_of_line(content);
                found.extend(range.map(|range| start + range.start..start + range.end));
            }
            start += line.len();
        }
        found
    }

    fn credential_of_line(&mut self, line: &str) -> Option<Range<usize>> {
        if self.answers > 0 {
            self.answers -= 1;
            return Some(0..line.len());
        }
        let words = words(line);
        let word = |index: usize| line.get(words.get(index)?.clone());
        let is = |index, name: &str| {
            word(index).is_some_and(|word| word.trim_start_matches(':').eq_ignore_ascii_case(name))
        };
        let rest = |index: usize| Some(words.get(index)?.start..line.len());
        // In IMAP a command has a tag before it.
        for at in 0..2 {
            if is(at, "PASS") || is(at, "PASSWD") {
                return rest(at + 1);
            }
            if is(at, "LOGIN") || is(at, "OPER") {
                return rest(at + 2);
            }
            let mechanism_at = if is(at, "AUTHINFO") && is(at + 1, "SASL") {
                at + 2
            } else if is(at, "AUTHINFO") && is(at + 1, "PASS") {
                return rest(at + 2);
            } else if is(at, "AUTH") || is(at, "AUTHENTICATE") {
                at + 1
            } else {
                continue;
            };
            let Some((name, answers)) = MECHANISMS
                .into_iter()
                .find(|(name, _)| is(mechanism_at, name))
            else {
                // Of Redis, whose last word is the password; of IRC, a line of a login.
                let is_user = words.len() > mechanism_at + 1;
                return rest(mechanism_at + usize::from(is_user));
            };
            let initial = rest(mechanism_at + 1);
            let has_initial = initial.is_some();
            self.answers = match (name, has_initial) {
                ("PLAIN" | "EXTERNAL" | "XOAUTH" | "XOAUTH2" | "OAUTHBEARER", true) => 0,
                _ => answers - usize::from(has_initial),
            };
            return initial;
        }
        let identify = (0..words.len()).find(|index| is(*index, "IDENTIFY"))?;
        rest(identify + 1)
    }

    /// The next text with masks in place of its credentials.
    pub(super) fn masked<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let credentials = self.credentials(text);
        if credentials.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = text.to_owned();
        for range in credentials.into_iter().rev() {
            masked.replace_range(range, MASK);
        }
        Cow::Owned(masked)
    }

    /// The credentials of the next text, as they are sent and as they are.
    pub(super) fn secrets(&mut self, text: &str) -> Vec<String> {
        let mut secrets = Vec::new();
        for range in self.credentials(text) {
            let value = text.get(range).unwrap_or_default().trim_matches('"');
            secrets.push(value.to_owned());
            let decoded = BASE64_STANDARD.decode(value).ok();
            if let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                // Of PLAIN: the password behind two names.
                secrets.extend(decoded.rsplit('\0').next().map(str::to_owned));
            }
        }
        secrets
    }
}

/// Where the words of a line are.
fn words(line: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut begun = None;
    for (at, it) in line.char_indices() {
        match (it.is_whitespace(), begun) {
            (false, None) => begun = Some(at),
            (true, Some(start)) => {
                words.push(start..at);
                begun = None;
            }
            _ => {}
        }
    }
    words.extend(begun.map(|start| start..line.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_logins_are_found() {
        for (text, masked) in [
            ("AUTH PLAIN AGFubgBzZWNyZXQ=\r\n", "AUTH PLAIN ********\r\n"),
            (
                "auth plain AGFubgBzZWNyZXQ=\r\nQUIT\r\n",
                "auth plain ********\r\nQUIT\r\n",
            ),
            (
                "AUTH PLAIN\r\nAGFubg==\r\nQUIT",
                "AUTH PLAIN\r\n********\r\nQUIT",
            ),
            (
                "AUTH LOGIN\r\nYW5u\r\nc2VjcmV0\r\nQUIT",
                "AUTH LOGIN\r\n********\r\n********\r\nQUIT",
            ),
            (
                "AUTH LOGIN YW5u\r\nc2VjcmV0\r\nQUIT",
                "AUTH LOGIN ********\r\n********\r\nQUIT",
            ),
            ("AUTH secret\r\n", "AUTH ********\r\n"),
            ("AUTH ann secret\r\nPING", "AUTH ann ********\r\nPING"),
            (
                "USER ann\r\nPASS my secret\r\n",
                "USER ann\r\nPASS ********\r\n",
            ),
            ("a1 LOGIN ann secret", "a1 LOGIN ann ********"),
            (
                "a1 AUTHENTICATE PLAIN AGFubg==",
                "a1 AUTHENTICATE PLAIN ********",
            ),
            ("AUTHINFO PASS secret", "AUTHINFO PASS ********"),
            (
                "AUTHINFO SASL PLAIN AGFubg==",
                "AUTHINFO SASL PLAIN ********",
            ),
            ("OPER ann secret", "OPER ann ********"),
            (
                "PRIVMSG NickServ :IDENTIFY secret",
                "PRIVMSG NickServ :IDENTIFY ********",
            ),
            ("AUTHENTICATE AGFubgBzZWNyZXQ=", "AUTHENTICATE ********"),
            ("EHLO a\r\nMAIL FROM:<a@b>", "EHLO a\r\nMAIL FROM:<a@b>"),
            ("PASS\r\nAUTH\r\n\r\n", "PASS\r\nAUTH\r\n\r\n"),
            ("GET /login HTTP/1.1", "GET /login HTTP/1.1"),
        ] {
            assert_eq!(LoginLines::default().masked(text), masked, "{text}");
            assert_eq!(LoginLines::default().masked(masked), masked, "{masked}");
        }
    }

    #[test]
    fn the_answers_to_a_challenge_may_be_texts_of_their_own() {
        let mut lines = LoginLines::default();
        let masked: Vec<_> = ["EHLO a", "AUTH LOGIN", "YW5u", "c2VjcmV0", "QUIT"]
            .map(|text| lines.masked(text).into_owned())
            .into();
        assert_eq!(masked, ["EHLO a", "AUTH LOGIN", MASK, MASK, "QUIT"]);
        let secrets = LoginLines::default().secrets("AUTH PLAIN AGFubgBzZWNyZXQ=\r\n");
        assert_eq!(secrets, ["AGFubgBzZWNyZXQ=", "secret"]);
    }
}
