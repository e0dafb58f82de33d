//! What a response handler of `JetBrains`' HTTP client keeps of a response, where it is written in one plain form.
//!
//! Handlers are JavaScript. Most of them keep a value for later requests, in one form:
//! `client.global.set("token", response.body.access_token)`. That form is read; the rest is left out.

use crate::ResponsePart;

const SET: &str = "client.global.set";

/// What was read of a handler.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Handler {
    /// Names of variables with the parts of the response that they are set to.
    pub(super) sets: Vec<(String, ResponsePart)>,
    /// Variables that are set to something else.
    pub(super) computed: Vec<String>,
    /// Whether it does anything else.
    pub(super) has_more: bool,
}

impl Handler {
    /// - `script`: the text between `{%` and `%}`.
    pub(super) fn parse(script: &str) -> Self {
        let mut handler = Self::default();
        let mut rest = script;
        let mut other = String::new();
        while let Some((before, behind)) = rest.split_once(SET) {
            other.push_str(before);
            let Some((arguments, after)) = arguments(behind) else {
                other.push_str(SET);
                rest = behind;
                continue;
            };
            rest = after;
            let Some((name, value)) = arguments.split_once(',') else {
                handler.has_more = true;
                continue;
            };
            match (unquoted(name.trim()), response_part(value.trim())) {
                (Some(name), Some(part)) => handler.sets.push((name.to_owned(), part)),
                (Some(name), None) => handler.computed.push(name.to_owned()),
                (None, _) => handler.has_more = true,
            }
        }
        other.push_str(rest);
        let mut lines = other.lines().map(str::trim);
        handler.has_more |= lines.any(|line| {
            !line.starts_with("//") && line.chars().any(|char| !matches!(char, ';' | ' ' | '\t'))
        });
        handler
    }
}

/// The text between the parentheses that `text` begins with, and what is behind them.
fn arguments(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('(')?;
    let mut depth = 0_u32;
    let mut quote = None;
    for (position, char) in inner.char_indices() {
        match (quote, char) {
            (Some(open), char) if open == char => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(char),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                let (arguments, rest) = inner.split_at(position);
                return Some((arguments, rest.strip_prefix(')')?));
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    let quote = text
        .chars()
        .next()
        .filter(|char| matches!(char, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains([quote, '\\'])).then_some(inner)
}

/// `response.body.a[0]["b"]`, `response.body` or `response.headers.valueOf("Location")`.
fn response_part(text: &str) -> Option<ResponsePart> {
    let rest = text.strip_prefix("response.")?;
    if let Some(call) = rest.strip_prefix("headers.valueOf") {
        let (name, behind) = arguments(call)?;
        let name = unquoted(name.trim())?.to_ascii_lowercase();
        return behind
            .trim()
            .is_empty()
            .then_some(ResponsePart::Field(name));
    }
    let path = rest.strip_prefix("body")?;
    if path.is_empty() {
        return Some(ResponsePart::Body);
    }
    // Keys and indexes; anything else is an expression.
    is_path(path).then(|| ResponsePart::Json(format!("${path}")))
}

/// Whether a text is made of `.key`, `[0]` and `["key"]`.
fn is_path(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        rest = if let Some(key) = rest.strip_prefix('.') {
            let behind =
                key.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || char == '_');
            if behind.len() == key.len() {
                return false;
            }
            behind
        } else {
            let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((key, behind)) = inner else {
                return false;
            };
            let is_index = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            if !is_index && unquoted(key).is_none() {
                return false;
            }
            behind
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(name: &str, path: &str) -> (String, ResponsePart) {
        (name.to_owned(), ResponsePart::Json(path.to_owned()))
    }

    #[test]
    fn plain_statements_are_read() {
        let handler = Handler::parse(
            "\n  client.global.set(\"token\", response.body.data[0][\"access-token\"]);\n\
             client.global.set('at', response.headers.valueOf(\"Location\"))\n// done\n",
        );
        assert_eq!(
            handler,
            Handler {
                sets: vec![
                    json("token", "$.data[0][\"access-token\"]"),
                    ("at".to_owned(), ResponsePart::Field("location".to_owned())),
                ],
                ..Handler::default()
            }
        );
    }

    #[test]
    fn the_rest_is_reported() {
        let handler = Handler::parse(
            "if (response.status === 200) { client.global.set(\"id\", response.body.id); }\n\
             client.global.set(\"next\", response.body.id + 1);",
        );
        assert_eq!(handler.sets, [json("id", "$.id")]);
        assert_eq!(handler.computed, ["next"]);
        assert!(handler.has_more);
        let handler =
            Handler::parse("client.test(\"ok\", () => client.assert(response.status === 200));");
        assert!(handler.sets.is_empty() && handler.has_more);
        for wrong in [
            "client.global.set(",
            "client.global.set(x, response.body.y)",
            "client.global.set()",
        ] {
            let handler = Handler::parse(wrong);
            assert!(handler.sets.is_empty() && handler.has_more, "{wrong}");
        }
    }
}
