//! Values of the responses to earlier requests, as VS Code, Visual Studio and httpYac write them.

use std::fmt;

use super::{TemplateError, is_variable};

/// A value of the response to another request: `login.response.body.$.token`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResponseValue {
    /// The name of the request.
    pub request: String,
    /// What is taken of its response.
    pub part: ResponsePart,
}

/// What is taken of a response.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ResponsePart {
    /// The whole body.
    Body,
    /// What a JSON path (RFC 9535) selects of the body, the first of several.
    Json(String),
    /// The first header field of that name.
    Field(String),
}

/// Whether a place is meant to be one of these.
pub(super) fn is_reference(text: &str) -> bool {
    split(text).is_some()
}

/// Name of the request, `response` or `request`, and the rest.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (request, rest) = text.split_once('.')?;
    let (side, rest) = rest.split_once('.')?;
    let is_one = is_variable(request) && matches!(side, "response" | "request");
    let part = rest.split(['.', '[']).next().unwrap_or_default();
    (is_one && matches!(part, "body" | "headers")).then_some((request, side, rest))
}

impl ResponseValue {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let wrong = |message| TemplateError::Reference {
            place: text.to_owned(),
            message,
        };
        let (request, side, rest) = split(text).ok_or_else(|| {
            wrong("write `NAME.response.body.$.key`, `NAME.response.body.*` or `NAME.response.headers.NAME`")
        })?;
        if side == "request" {
            return Err(wrong(
                "only responses can be referred to; give what requests share as a variable",
            ));
        }
        let part = if let Some(name) = rest.strip_prefix("headers") {
            let name = name.strip_prefix('.').unwrap_or_default();
            if !crate::request::is_token(name) {
                return Err(wrong(
                    "name the header field: `NAME.response.headers.Location`",
                ));
            }
            ResponsePart::Field(name.to_ascii_lowercase())
        } else {
            match rest.strip_prefix("body").unwrap_or_default() {
                "" | ".*" => ResponsePart::Body,
                path if path.starts_with("./") => {
                    return Err(wrong(
                        "XPath is not read; a script can (`plimsoll load script.js`)",
                    ));
                }
                // Without the dollar sign the path begins at the body all the same.
                path => ResponsePart::Json(format!("${}", path.strip_prefix(".$").unwrap_or(path))),
            }
        };
        Ok(Self {
            request: request.to_owned(),
            part,
        })
    }
}

/// As it is written between the braces.
impl fmt::Display for ResponseValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = &self.request;
        match &self.part {
            ResponsePart::Body => write!(f, "{request}.response.body.*"),
            ResponsePart::Json(path) => write!(f, "{request}.response.body.{path}"),
            ResponsePart::Field(name) => write!(f, "{request}.response.headers.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_editors() {
        let parsed = |text: &str| ResponseValue::parse(text).map(|value| value.part);
        for (text, part) in [
            (
                "login.response.body.$.token",
                ResponsePart::Json("$.token".to_owned()),
            ),
            (
                "login.response.body.$['a'][0]",
                ResponsePart::Json("$['a'][0]".to_owned()),
            ),
            (
                "login.response.body.token",
                ResponsePart::Json("$.token".to_owned()),
            ),
            (
                "login.response.body[0].id",
                ResponsePart::Json("$[0].id".to_owned()),
            ),
            ("login.response.body.*", ResponsePart::Body),
            ("login.response.body", ResponsePart::Body),
            (
                "login.response.headers.X-Token",
                ResponsePart::Field("x-token".to_owned()),
            ),
        ] {
            assert!(is_reference(text), "{text}");
            assert_eq!(parsed(text), Ok(part), "{text}");
        }
        for wrong in [
            "login.request.body.$.x",
            "login.response.body.//token",
            "login.response.headers.",
            "login.response.headers.a b",
        ] {
            assert!(is_reference(wrong), "{wrong}");
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        for other in [
            "login.response",
            "a.b.c",
            "response.body.x",
            "$x.response.body",
        ] {
            assert!(!is_reference(other), "{other}");
        }
    }
}
