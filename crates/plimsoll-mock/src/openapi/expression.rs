//! Runtime expressions: values of a request and its response (OpenAPI 3.1, section 4.8.20.4).

use serde_json::Value;

use crate::request::{RequestView, values};
use crate::store::collection::StoredResponse;

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange<'e, 'r> {
    pub(super) request: &'e RequestView<'r>,
    /// Names of places in the path with what stands there.
    pub(super) places: &'e [(&'e str, String)],
    pub(super) response: &'e StoredResponse,
}

/// Why a text with expressions cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpressionError {
    /// What follows `{$`.
    #[error("`{{${0}` has no end")]
    Unclosed(String),
    #[error("`{0}` has no value")]
    NoValue(String),
}

/// A text whose expressions in braces are replaced by their values; a text that is an expression needs no braces.
///
/// Fails with the expression that has no value.
pub(super) fn filled(text: &str, exchange: &Exchange<'_, '_>) -> Result<String, ExpressionError> {
    if text.starts_with('$') {
        return value(text, exchange);
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{$") {
        let Some((expression, after)) = behind.split_once('}') else {
            return Err(ExpressionError::Unclosed(behind.to_owned()));
        };
        filled.push_str(before);
        filled.push_str(&value(&format!("${expression}"), exchange)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn value(expression: &str, exchange: &Exchange<'_, '_>) -> Result<String, ExpressionError> {
    found(expression, exchange).ok_or_else(|| ExpressionError::NoValue(expression.to_owned()))
}

fn found(expression: &str, exchange: &Exchange<'_, '_>) -> Option<String> {
    let Exchange {
        request,
        places,
        response,
    } = exchange;
    let text = |text: &str| Some(text.to_owned());
    match expression {
        "$method" => return text(request.method),
        "$statusCode" => return text(response.status.as_str()),
        "$url" => {
            let (scheme, authority) = (request.scheme(), request.authority);
            return Some(format!("{scheme}://{authority}{}", request.own_url()));
        }
        _ => {}
    }
    let Some(source) = expression.strip_prefix("$request.") else {
        let source = expression.strip_prefix("$response.")?;
        if let Some(name) = source.strip_prefix("header.") {
            let mut fields = response.fields.iter();
            let (_, value) = fields.find(|(known, _)| known.as_str().eq_ignore_ascii_case(name))?;
            return text(value.to_str().ok()?);
        }
        let json = serde_json::from_slice(&response.content).ok();
        return in_content(source, json.as_ref(), &response.content);
    };
    if let Some(name) = source.strip_prefix("header.") {
        return text(request.header_text(name)?);
    }
    if let Some(name) = source.strip_prefix("query.") {
        return text(values(request.parameters(), name).next()?);
    }
    if let Some(name) = source.strip_prefix("path.") {
        let place = places.iter().find(|(known, _)| *known == name);
        return text(&place?.1);
    }
    if let Some(pointer) = source.strip_prefix("body#/")
        && request.json().is_none()
    {
        // The fields of a form are those of an object.
        return text(values(request.form(), pointer).next()?);
    }
    in_content(source, request.json(), request.body)
}

/// - `source`: `body`, or `body#` and a pointer into it (RFC 6901).
fn in_content(source: &str, json: Option<&Value>, content: &[u8]) -> Option<String> {
    let Some(pointer) = source.strip_prefix("body#") else {
        let is_whole = source == "body";
        return is_whole.then(|| String::from_utf8_lossy(content).into_owned());
    };
    match json?.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use http::header::{HeaderValue, LOCATION};

    use super::*;
    use crate::request::KeptRequest;

    #[test]
    fn expressions_are_replaced_by_what_was_sent() {
        let mut kept = KeptRequest::made("POST", "/orders/7?to=a%20b");
        kept.fields.push(("X-Id".to_owned(), b"5".to_vec()));
        kept.body = r#"{"url":"http://a/b","list":[{"n":1.50}],"no":null}"#.into();
        let request = kept.view();
        let places = [("id", "7".to_owned())];
        let response = StoredResponse {
            status: StatusCode::CREATED,
            fields: vec![(LOCATION, HeaderValue::from_static("/orders/8"))],
            content: r#"{"id":8}"#.into(),
            written: None,
        };
        let exchange = Exchange {
            request: &request,
            places: &places,
            response: &response,
        };
        for (text, expected) in [
            ("{$request.body#/url}", "http://a/b"),
            ("$request.body#/url", "http://a/b"),
            (
                "{$request.body#/url}/x/{$request.body#/list/0/n}?{$method}",
                "http://a/b/x/1.50?POST",
            ),
            (
                "http://a/{$request.path.id}/{$request.header.x-id}",
                "http://a/7/5",
            ),
            ("{$request.query.to}{$statusCode}", "a b201"),
            (
                "{$response.header.Location}{$response.body#/id}",
                "/orders/88",
            ),
            ("{$url}", "http://localhost/orders/7?to=a%20b"),
            ("http://a/{id}", "http://a/{id}"),
        ] {
            assert_eq!(filled(text, &exchange).as_deref(), Ok(expected), "{text}");
        }
        for (text, expected) in [
            (
                "{$request.body#/none}",
                "`$request.body#/none` has no value",
            ),
            ("{$request.body#/no}", "`$request.body#/no` has no value"),
            ("{$request.cookie.a}", "`$request.cookie.a` has no value"),
            ("{$request", "`{$request` has no end"),
        ] {
            assert_eq!(filled(text, &exchange).unwrap_err().to_string(), expected);
        }
        let mut form = KeptRequest::made("POST", "/");
        let kind = b"application/x-www-form-urlencoded".to_vec();
        form.fields.push(("content-type".to_owned(), kind));
        form.body = "url=http%3A%2F%2Fa".into();
        let request = form.view();
        let exchange = Exchange {
            request: &request,
            ..exchange
        };
        assert_eq!(
            filled("{$request.body#/url}", &exchange).as_deref(),
            Ok("http://a")
        );
    }
}
