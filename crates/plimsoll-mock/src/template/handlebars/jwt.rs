//! JSON Web Tokens (RFC 7519) as WireMock's extension for them makes them: `{{jwt maxAge='12 days' sub='alice'}}`.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::call::{Call, number};
use super::json::of_options;
use crate::template::dates;

/// Days for which a token is valid by default, as in the extension.
const DAYS: i64 = 36_500;

/// The key that signs: the extension makes one by chance, too, unless it is given one.
fn key() -> &'static hmac::Key {
    static KEY: OnceLock<hmac::Key> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut secret = [0; 32];
        fastrand::fill(&mut secret);
        hmac::Key::new(hmac::HMAC_SHA256, &secret)
    })
}

/// A token with the options as its claims.
pub(super) fn token(call: &Call<'_>) -> Result<Value, String> {
    let algorithm = call
        .option_text("alg")
        .unwrap_or_else(|| "HS256".to_owned());
    if algorithm != "HS256" {
        return Err(format!("tokens are signed by HS256 only, not {algorithm}"));
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
    let signature = hmac::sign(key(), signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}
