//! Flags of curl, wrk, hey and ab that plimsoll has under another name: an error names ours.

use plimsoll_model::parse_duration;

use super::Problems;
use crate::problem::Problem;

/// Flags that exist only to say what to write instead.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Habits {
    /// Not supported: bodies are counted and not kept
    #[arg(short = 'o', hide = true, value_name = "FILE")]
    output_of_body: Option<String>,
}

impl Habits {
    /// Reports each of them that was given.
    pub(super) fn check(&self, problems: &mut Problems) {
        if self.output_of_body.is_some() {
            problems.push(Problem::with("-o", "bodies are counted and not kept").hint(
                "write the result with --json or, where there is one, --out DIR; test the body \
                     with --expect",
            ));
        }
    }
}

/// A method: a token of letters, with hyphens between them (`M-SEARCH`).
pub(super) fn method(text: &str) -> Result<String, String> {
    let is_method = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    if is_method {
        return Ok(text.to_owned());
    }
    Err(match parse_duration(text) {
        Ok(_) => {
            format!("`{text}` is not a method; limit the time of a request with --timeout {text}")
        }
        Err(_) => format!("`{text}` is not a method: it must be letters, such as GET"),
    })
}

/// A warning if a body looks like the duration that wrk takes with `-d`.
///
/// - `has_shape`: whether flags that wrk has as well, `-t` or `-c`, stand beside it.
pub(super) fn duration_as_body(body: Option<&str>, has_shape: bool) -> Option<Problem> {
    let body = body.filter(|_| has_shape)?;
    let has_unit = body.ends_with(|last: char| last.is_ascii_alphabetic());
    (has_unit && parse_duration(body).is_ok()).then(|| {
        Problem::with("-d", format!("sends `{body}` as the body of every request"))
            .hint(format!("set the duration of the run with -z {body}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_letters() {
        for right in ["GET", "get", "M-SEARCH", "PROPFIND"] {
            assert_eq!(method(right).as_deref(), Ok(right));
        }
        for wrong in ["5", "", "G T", "-GET", "GET1", "GET\r\nX: y", "Ä"] {
            assert!(method(wrong).is_err(), "{wrong}");
        }
        assert!(method("5").unwrap_err().contains("--timeout 5"));
        assert!(method("5s").unwrap_err().contains("--timeout 5s"));
    }

    #[test]
    fn a_body_that_is_a_duration_is_suspicious_beside_connections() {
        let hint = duration_as_body(Some("1s"), true).unwrap().hint.unwrap();
        assert!(hint.contains("-z 1s"), "{hint}");
        assert_eq!(duration_as_body(Some("1s"), false), None);
        assert_eq!(duration_as_body(Some("hello"), true), None);
        assert_eq!(duration_as_body(Some("10"), true), None);
        assert_eq!(duration_as_body(None, true), None);
    }
}
