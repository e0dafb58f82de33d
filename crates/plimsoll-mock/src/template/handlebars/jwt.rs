//! JSON Web Tokens (RFC 7519) as WireMock's extension for them makes them: `{{jwt maxAge='12 days' sub='alice'}}`.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use handlebars::template::{HelperTemplate, Parameter};
use ring::hmac;
use serde_json::{Value, json};

use super::call::{Call, HelperError, number};
use super::json::of_options;
use crate::template::dates;

/// Days for which a token is valid by default, as in the extension.
const DAYS: i64 = 36_500;

/// The algorithm that signs.
const ALGORITHM: &str = "HS256";

/// The secret that signs, in letters and digits: the extension makes one by chance, too, unless it is given one.
pub(super) fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| {
        let characters = std::iter::repeat_with(fastrand::alphanumeric);
        characters.take(48).collect()
    })
}

/// Refuses another algorithm before any request comes.
pub(super) fn check(helper: &HelperTemplate) -> Result<(), HelperError> {
    match helper.hash.get("alg") {
        Some(Parameter::Literal(Value::String(name))) if name != ALGORITHM => {
            Err(other(name).into())
        }
        _ => Ok(()),
    }
}

fn other(algorithm: &str) -> String {
    format!("tokens are signed by {ALGORITHM} only, not {algorithm}")
}

/// A token with the options as its claims.
pub(super) fn token(call: &Call<'_>) -> Result<Value, HelperError> {
    let algorithm = call
        .option_text("alg")
        .unwrap_or_else(|| ALGORITHM.to_owned());
    if algorithm != ALGORITHM {
        return Err(other(&algorithm).into());
    }
    let now = dates::now();
    let seconds = |text: String| dates::parsed(&text).map(|it| it.timestamp().as_second());
    let issued = now.timestamp().as_second();
    let expires = match (call.option_text("maxAge"), call.option_text("exp")) {
        (Some(age), _) => dates::moved(&now, &age)?.timestamp().as_second(),
        (None, Some(at)) => at.parse().map_or_else(|_| seconds(at), Ok)?,
        (None, None) => issued + DAYS * 86_400,
    };
    let mut claims = of_options(call, &["alg", "maxAge", "exp", "nbf"]);
    if let Some(not_before) = call.option("nbf") {
        let at = number(not_before).map(|it| json!(it));
        let at = at.map_or_else(
            || seconds(super::helpers::shown(not_before)).map(Value::from),
            Ok,
        )?;
        claims.insert("nbf".to_owned(), at);
    }
    claims.entry("iss").or_insert_with(|| json!("wiremock"));
    claims.entry("aud").or_insert_with(|| json!("wiremock.io"));
    claims.insert("iat".to_owned(), json!(issued));
    claims.insert("exp".to_owned(), json!(expires));
    let head = json!({ "alg": algorithm, "typ": "JWT" });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&head), part(&Value::Object(claims)));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret().as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}
