//! Credentials in definitions: they are never shown, and a mask that comes back stands for what is there.
//!
//! A credential may stand by itself, such as a bearer token, or within a text: in the user information or the query of a URL,
//! in a body. A mask is only given its credential back if the definition leads where it led: who may not see a credential
//! may not have it sent elsewhere either. Every way of changing a definition goes through [`unmask`].

use plimsoll_client::Endpoint;
use plimsoll_model::{is_secret_field, masked_with, unmasked};
use toml::{Table, Value};

/// Shown in place of a credential.
pub(crate) const MASK: &str = "********";

/// Keys of kinds that hold a credential as a whole.
const CREDENTIALS: [&str; 2] = ["bearer", "basic"];

/// Keys besides the target that decide who receives what is sent.
const ROUTES: [&str; 2] = ["insecure", "name_server"];

/// Keys of a definition that hold no texts for targets.
const PLAIN: [&str; 2] = ["labels", "tags"];

/// Replaces credentials of a definition by the mask.
pub(crate) fn mask(definition: &mut Table) {
    each(definition, &mut |place, text| {
        *text = if place.is_whole {
            MASK.to_owned()
        } else {
            masked_with(text, MASK).into_owned()
        };
    });
}

/// Whether a definition holds a credential.
pub(crate) fn has_credentials(definition: &Table) -> bool {
    let mut shown = definition.clone();
    mask(&mut shown);
    shown != *definition
}

/// Whether there is a mask in a definition.
pub(crate) fn is_masked(definition: &Table) -> bool {
    let mut found = false;
    each(&mut definition.clone(), &mut |_, text| {
        found |= text.contains(MASK);
    });
    found
}

/// Puts the credentials of `present` in the places of masks.
///
/// Fails with the place of a mask that has none, and if the definition leads elsewhere than `present`: to another scheme, host
/// or port, without checking certificates, or by another name server.
pub(crate) fn unmask(definition: &mut Table, present: &Table) -> Result<(), String> {
    let mut known = std::collections::HashMap::new();
    each(&mut present.clone(), &mut |place, text| {
        known.insert(place.name.clone(), text.clone());
    });
    let whole = definition.clone();
    let mut wrong = None;
    each(definition, &mut |place, text| {
        if !text.contains(MASK) {
            return;
        }
        if !leads_the_same_way(whole.get(&place.kind), present.get(&place.kind)) {
            let kind = &place.kind;
            wrong.get_or_insert(format!(
                "`{kind}` leads elsewhere now, so its credentials must be given again"
            ));
            return;
        }
        let name = &place.name;
        let missing = || format!("`{name}` is a mask, and there is no value in its place");
        let restored = match known.get(name) {
            None => Err(missing()),
            Some(present) if place.is_whole && text == MASK => Ok(present.clone()),
            Some(present) if masked_with(present, MASK) == *text => Ok(present.clone()),
            Some(present) => unmasked(text, MASK, present)
                .map(std::borrow::Cow::into_owned)
                .map_err(|_| missing()),
        };
        match restored {
            Ok(restored) => *text = restored,
            Err(error) => {
                wrong.get_or_insert(error);
            }
        }
    });
    wrong.map_or(Ok(()), Err)
}

/// Whether what is sent to two targets of a kind reaches the same server in the same way.
fn leads_the_same_way(new: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(new), Some(old)) = (new, old) else {
        return false;
    };
    let is_same = |key: &str| new.get(key) == old.get(key);
    origin(new) == origin(old) && ROUTES.into_iter().all(is_same)
}

/// Scheme, host and port of a target; what is no URL is its own origin.
fn origin(kind: &Value) -> String {
    let keys = ["url", "to", "name", "server", "rdap", "whois"];
    let named: Vec<_> = match kind {
        Value::Table(table) => keys
            .iter()
            .filter_map(|key| table.get(*key)?.as_str())
            .collect(),
        other => other.as_str().into_iter().collect(),
    };
    let parsed = named.iter().map(|text| {
        let (scheme, rest) = match text.split_once("://") {
            Some(("ws" | "grpc", rest)) => ("http", rest),
            Some(("wss" | "grpcs", rest)) => ("https", rest),
            Some((scheme, rest)) => (scheme, rest),
            None => ("", *text),
        };
        let url = if scheme.is_empty() {
            rest.to_owned()
        } else {
            format!("{scheme}://{rest}")
        };
        match Endpoint::parse(&url) {
            Ok(endpoint) => format!("{}://{}", endpoint.scheme(), endpoint.authority_with_port()),
            Err(_) => masked_with(text, MASK).into_owned(),
        }
    });
    parsed.collect::<Vec<_>>().join(" ")
}

/// The place of a text that may hold a credential.
struct Place {
    /// The kind, such as `http`.
    kind: String,
    /// Such as `http.headers.authorization`.
    name: String,
    /// Whether the text is a credential as a whole.
    is_whole: bool,
}

/// Visits every text of the kinds.
fn each(definition: &mut Table, visit: &mut dyn FnMut(&Place, &mut String)) {
    for (kind, value) in definition.iter_mut() {
        if PLAIN.contains(&kind.as_str()) {
            continue;
        }
        let mut visit = |name: String, is_whole, value: &mut Value| {
            if let Value::String(text) = value {
                let kind = kind.clone();
                let place = Place {
                    kind,
                    name,
                    is_whole,
                };
                visit(&place, text);
            }
        };
        let Value::Table(inner) = value else {
            // A target without a table; texts such as the name are no URLs.
            if value.as_str().is_some_and(|text| text.contains("://")) {
                visit(kind.clone(), false, value);
            }
            continue;
        };
        for (key, value) in inner.iter_mut() {
            let name = format!("{kind}.{key}");
            match value {
                Value::Table(fields) if key == "headers" => {
                    for (field, value) in fields.iter_mut() {
                        let name = format!("{name}.{}", field.to_ascii_lowercase());
                        visit(name, is_secret_field(field), value);
                    }
                }
                value => visit(name, CREDENTIALS.contains(&key.as_str()), value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "a"
        [http]
        url = "https://u:three@a.example/x?api_key=four&y=1"
        bearer = "one"
        body = '{"password": "five"}'
        [http.headers]
        X-Api-Key = "two"
        accept = "text/html"
    "#;

    fn whole() -> Table {
        TEXT.parse().unwrap()
    }

    fn shown() -> Table {
        let mut shown = whole();
        mask(&mut shown);
        shown
    }

    fn set(definition: &mut Table, key: &str, value: impl Into<Value>) {
        if let Some(Value::Table(http)) = definition.get_mut("http") {
            http.insert(key.to_owned(), value.into());
        }
    }

    #[test]
    fn credentials_are_masked_and_masks_that_come_back_change_nothing() {
        let text = shown().to_string();
        for secret in ["one", "two", "three", "four", "five"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(
            text.contains("text/html") && text.contains("&y=1"),
            "{text}"
        );
        assert!(is_masked(&shown()) && !is_masked(&whole()));
        assert!(has_credentials(&whole()) && !has_credentials(&shown()));
        let mut back = shown();
        unmask(&mut back, &whole()).unwrap();
        assert_eq!(back, whole());
        let mut back = shown();
        set(&mut back, "bearer", "six");
        set(
            &mut back,
            "url",
            "https://********@a.example:443/other?api_key=********",
        );
        unmask(&mut back, &whole()).unwrap();
        assert_eq!(back["http"]["bearer"].as_str(), Some("six"));
        assert_eq!(
            back["http"]["url"].as_str(),
            Some("https://u:three@a.example:443/other?api_key=four")
        );
        assert_eq!(back["http"]["headers"], whole()["http"]["headers"]);
    }

    #[test]
    fn a_mask_without_a_value_in_its_place_is_refused() {
        let error = unmask(&mut shown(), &Table::new()).unwrap_err();
        assert!(error.contains("leads elsewhere"), "{error}");
        for (key, value) in [
            ("url", "https://********@a.example/?other_token=********"),
            ("url", "https://a.example/********"),
            ("method", "********"),
            ("body", "********"),
            ("body", "{\"secret\": \"********\"}"),
        ] {
            let mut moved = shown();
            set(&mut moved, key, value);
            let error = unmask(&mut moved, &whole()).unwrap_err();
            assert!(error.contains("is a mask"), "{key} {value}: {error}");
        }
        let mut moved = shown();
        let headers = Table::from_iter([("x-other-key".to_owned(), MASK.into())]);
        set(&mut moved, "headers", headers);
        let error = unmask(&mut moved, &whole()).unwrap_err();
        assert!(error.contains("headers.x-other-key"), "{error}");
    }

    #[test]
    fn credentials_stay_with_their_target() {
        let urls = [
            "https://evil.example/",
            "http://a.example/",
            "https://a.example:8443/",
            "https://a.example.evil.example/",
            "https://a.example@evil.example/",
            "a.example",
        ];
        let urls = urls.map(|url| ("url", Value::from(url)));
        let routes = [
            ("insecure", Value::Boolean(true)),
            ("name_server", "192.0.2.1".into()),
        ];
        for (key, value) in urls.into_iter().chain(routes) {
            let mut elsewhere = shown();
            set(&mut elsewhere, key, value.clone());
            let error = unmask(&mut elsewhere, &whole()).unwrap_err();
            assert!(error.contains("leads elsewhere"), "{value}: {error}");
        }
    }

    #[test]
    fn a_target_without_a_table_has_credentials_too() {
        let whole: Table = "name = 'token: x'\nhttp = 'http://u:pw@h/?token=t'"
            .parse()
            .unwrap();
        let mut shown = whole.clone();
        mask(&mut shown);
        assert_eq!(
            shown["http"].as_str(),
            Some("http://********@h/?token=********")
        );
        assert_eq!(shown["name"], whole["name"]);
        let mut moved = shown.clone();
        moved["http"] = "http://********@other/".into();
        assert!(unmask(&mut moved, &whole).is_err());
        unmask(&mut shown, &whole).unwrap();
        assert_eq!(shown, whole);
    }
}
