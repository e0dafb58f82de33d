//! The server's side of the opening handshake (RFC 6455, section 4.2; RFC 8441 over HTTP/2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{
    HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use plimsoll_wire::ws::Key;

use crate::request::RequestView;

/// Fields of a response.
type Fields = Vec<(HeaderName, HeaderValue)>;

/// Why it is not agreed: a status, fields, and what to say.
type Refused = (StatusCode, Fields, &'static str);

/// The fields of the response that agrees.
///
/// - `protocols`: that are spoken.
pub(crate) fn agreed(request: &RequestView<'_>, protocols: &[String]) -> Result<Fields, Refused> {
    let upgrade = || (UPGRADE, HeaderValue::from_static("websocket"));
    // Only an extended CONNECT comes as far as this.
    let is_connect = request.method == "CONNECT";
    if !is_connect && !has_token(request, "upgrade", "websocket") {
        let text = "this is a WebSocket: ask for it by `upgrade: websocket`\n";
        return Err((StatusCode::UPGRADE_REQUIRED, vec![upgrade()], text));
    }
    if !is_connect && request.method != "GET" {
        let text = "a WebSocket is requested by GET\n";
        return Err((StatusCode::BAD_REQUEST, Vec::new(), text));
    }
    if request.header("sec-websocket-version") != Some(b"13") {
        let known = (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let text = "`sec-websocket-version` must be 13\n";
        return Err((StatusCode::UPGRADE_REQUIRED, vec![upgrade(), known], text));
    }
    let mut fields = vec![upgrade()];
    if !is_connect {
        let key = request.header("sec-websocket-key").unwrap_or_default();
        let nonce = STANDARD.decode(key.trim_ascii()).ok();
        let Some(nonce) = nonce.and_then(|nonce| <[u8; 16]>::try_from(nonce).ok()) else {
            let text = "`sec-websocket-key` must be 16 bytes in base64\n";
            return Err((StatusCode::BAD_REQUEST, Vec::new(), text));
        };
        let accept = HeaderValue::try_from(Key::new(nonce).accept());
        fields.push((
            SEC_WEBSOCKET_ACCEPT,
            accept.expect("base64 is fit for a field"),
        ));
    }
    let offered = request
        .header_text("sec-websocket-protocol")
        .unwrap_or_default();
    let mut offered = offered.split(',').map(str::trim);
    let spoken = offered.find(|name| protocols.iter().any(|it| it == name));
    if let Some(Ok(protocol)) = spoken.map(HeaderValue::from_str) {
        fields.push((SEC_WEBSOCKET_PROTOCOL, protocol));
    }
    Ok(fields)
}

/// Whether a list of the header names `token`, whatever its case.
fn has_token(request: &RequestView<'_>, name: &str, token: &str) -> bool {
    let values = request.headers().into_iter();
    values
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::KeptRequest;

    fn agreement(method: &str, fields: &[(&str, &str)]) -> Result<Fields, u16> {
        let mut request = KeptRequest::made(method, "/");
        let fields = fields.iter();
        request.fields = fields
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_owned()))
            .collect();
        let protocols = ["b".to_owned(), "c".to_owned()];
        agreed(&request.view(), &protocols).map_err(|refused| refused.0.as_u16())
    }

    #[test]
    fn only_whole_handshakes_are_agreed_to() {
        // The key and its answer are those of RFC 6455, section 1.3.
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        let upgrade = ("upgrade", "h2c, WebSocket");
        let protocol = ("sec-websocket-protocol", "a, c, b");
        let fields = agreement("GET", &[key, version, upgrade, protocol]).unwrap();
        let shown: Vec<_> = fields
            .iter()
            .map(|(_, value)| value.to_str().unwrap())
            .collect();
        assert_eq!(shown, ["websocket", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "c"]);
        assert_eq!(agreement("GET", &[key, version]), Err(426));
        assert_eq!(agreement("GET", &[key, upgrade]), Err(426));
        assert_eq!(
            agreement("GET", &[key, ("sec-websocket-version", "8"), upgrade]),
            Err(426)
        );
        assert_eq!(agreement("GET", &[version, upgrade]), Err(400));
        assert_eq!(
            agreement("GET", &[("sec-websocket-key", "YQ=="), version, upgrade]),
            Err(400)
        );
        assert_eq!(agreement("POST", &[key, version, upgrade]), Err(400));
        assert_eq!(agreement("CONNECT", &[version]).unwrap().len(), 1);
    }
}
