//! The document of a WireMock mapping, complete with what WireMock adds: an id, and its defaults.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A mapping whose id is known.
///
/// - `otherwise`: its id if it says none that is a UUID.
///
/// Adds an id to a mapping; a value that is not an object stays as it is.
pub(crate) fn with_id(mapping: Value, otherwise: impl FnOnce(&Value) -> String) -> Value {
    let id = id_of(&mapping).unwrap_or_else(|| otherwise(&mapping));
    let Value::Object(mut mapping) = mapping else {
        return mapping;
    };
    mapping.insert("id".to_owned(), json!(id));
    mapping.insert("uuid".to_owned(), json!(id));
    complete(&mut mapping, "request", "method", &json!("ANY"));
    let has_none = !mapping.contains_key("response");
    let response = mapping.entry("response").or_insert_with(|| json!({}));
    let is_proxied = response.get("proxyBaseUrl").is_some();
    if has_none || !is_proxied {
        complete(&mut mapping, "response", "status", &json!(200));
    }
    Value::Object(mapping)
}

fn complete(mapping: &mut Map<String, Value>, table: &str, key: &str, value: &Value) {
    let table = mapping.entry(table).or_insert_with(|| json!({}));
    if let Value::Object(table) = table {
        table.entry(key).or_insert_with(|| value.clone());
    }
}

/// The id that a mapping gives itself, if it is a UUID; in small letters.
pub(crate) fn id_of(mapping: &Value) -> Option<String> {
    let id = ["id", "uuid"].iter().find_map(|key| mapping.get(key));
    let id = id?.as_str()?;
    is_uuid(id).then(|| id.to_ascii_lowercase())
}

/// Whether a text is a UUID as people write it (RFC 9562, section 4).
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && groups
            .iter()
            .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A UUID by chance (RFC 9562, section 5.4).
pub(crate) fn random_id() -> String {
    uuid(fastrand::u128(..), 4)
}

/// A UUID that is the same each time for the same mapping (RFC 9562, section 5.8).
///
/// - `number`: of the mapping among all, so that two equal ones get different ids.
pub(crate) fn lasting_id(mapping: &Value, number: usize) -> String {
    let digest = Sha256::digest(format!("{number} {mapping}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid(u128::from_be_bytes(bytes), 8)
}

fn uuid(bits: u128, version: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | version << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    let mut text = String::with_capacity(36);
    for (at, digit) in digits.chars().enumerate() {
        if [8, 12, 16, 20].contains(&at) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_keeps_its_id_or_gets_one() {
        let id = "76ADA7B0-49ae-4229-91c4-396a36f18e09";
        let named = with_id(json!({ "uuid": id }), |_| unreachable!("it has one"));
        assert_eq!(named["id"], id.to_ascii_lowercase());
        assert_eq!(named["request"], json!({ "method": "ANY" }));
        assert_eq!(named["response"], json!({ "status": 200 }));
        let proxied = json!({ "id": "7", "response": { "proxyBaseUrl": "http://a" } });
        let proxied = with_id(proxied, |mapping| lasting_id(mapping, 1));
        let id = proxied["id"].as_str().unwrap();
        assert!(is_uuid(id) && id.as_bytes()[14] == b'8', "{id}");
        assert_eq!(proxied["response"].get("status"), None);
        assert_ne!(lasting_id(&proxied, 1), lasting_id(&proxied, 2));
        assert_eq!(lasting_id(&proxied, 1), lasting_id(&proxied, 1));
        let random = random_id();
        assert!(is_uuid(&random) && random.as_bytes()[14] == b'4');
        for wrong in ["", "x", "76ada7b0-49ae-4229-91c4-396a36f18e0g"] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
        assert_eq!(with_id(json!(3), |_| random_id()), json!(3));
    }
}
