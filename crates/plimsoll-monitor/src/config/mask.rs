//! Credentials in definitions: they are never shown, and a mask that comes back stands for what is there.

use toml::{Table, Value};

/// Shown in place of a credential.
pub(crate) const MASK: &str = "********";

/// Keys of kinds that hold a credential by themselves.
const CREDENTIALS: [&str; 2] = ["bearer", "basic"];

/// Header fields whose names have one of these in them hold a credential.
const PARTS: [&str; 7] = [
    "auth", "cookie", "token", "key", "secret", "password", "session",
];

/// Replaces credentials of a definition by the mask.
pub(crate) fn mask(definition: &mut Table) {
    each(definition, &mut |_, value| {
        *value = Value::String(MASK.to_owned());
    });
}

/// Whether a credential is only a mask.
pub(crate) fn is_masked(definition: &Table) -> bool {
    let mut copy = definition.clone();
    let mut found = false;
    each(&mut copy, &mut |_, value| {
        found |= value.as_str() == Some(MASK);
    });
    found
}

/// Puts the credentials of `present` in the places of masks; fails with the place of one that has none.
pub(crate) fn unmask(definition: &mut Table, present: &Table) -> Result<(), String> {
    // Who may not see a credential may not have it sent elsewhere.
    for (kind, value) in definition.iter() {
        let (Value::Table(new), Some(Value::Table(old))) = (value, present.get(kind)) else {
            continue;
        };
        let moved = ["insecure", "name_server"]
            .iter()
            .any(|key| new.get(*key) != old.get(*key));
        if moved || origin(new) != origin(old) {
            let mut has_mask = false;
            let mut one = Table::from_iter([(kind.clone(), Value::Table(new.clone()))]);
            each(&mut one, &mut |_, value| {
                has_mask |= value.as_str() == Some(MASK);
            });
            if has_mask {
                return Err(format!(
                    "`{kind}` leads elsewhere now, so its credentials must be given again"
                ));
            }
        }
    }
    let mut known = std::collections::HashMap::new();
    each(&mut present.clone(), &mut |place, value| {
        known.insert(place.to_owned(), value.clone());
    });
    let mut missing = None;
    each(definition, &mut |place, value| {
        if value.as_str() != Some(MASK) {
            return;
        }
        match known.get(place) {
            Some(present) => *value = present.clone(),
            None => missing = Some(place.to_owned()),
        }
    });
    match missing {
        None => Ok(()),
        Some(place) => Err(format!(
            "`{place}` is a mask, and there is no value in its place"
        )),
    }
}

/// Target of a request.
fn origin(kind: &Table) -> Option<String> {
    let url = url::Url::parse(kind.get("url")?.as_str()?).ok()?;
    let (scheme, host) = (url.scheme(), url.host_str()?);
    Some(format!(
        "{scheme}://{host}:{:?}",
        url.port_or_known_default()
    ))
}

/// Visits every credential with its place, such as `http.bearer`.
fn each(definition: &mut Table, visit: &mut dyn FnMut(&str, &mut Value)) {
    for (kind, value) in definition.iter_mut() {
        let Value::Table(inner) = value else {
            continue;
        };
        if kind == "labels" {
            continue;
        }
        for (key, value) in inner.iter_mut() {
            let place = format!("{kind}.{key}");
            if CREDENTIALS.contains(&key.as_str()) {
                visit(&place, value);
            }
            if let ("headers", Value::Table(headers)) = (key.as_str(), value) {
                for (name, value) in headers.iter_mut() {
                    let lower = name.to_ascii_lowercase();
                    if PARTS.iter().any(|part| lower.contains(part)) {
                        visit(&format!("{place}.{lower}"), value);
                    }
                }
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
        url = "https://a.example/"
        bearer = "one"
        [http.headers]
        X-Api-Key = "two"
        accept = "text/html"
    "#;

    #[test]
    fn credentials_are_masked_and_masks_that_come_back_change_nothing() {
        let whole: Table = TEXT.parse().unwrap();
        let mut shown = whole.clone();
        mask(&mut shown);
        let text = shown.to_string();
        assert!(!text.contains("one") && !text.contains("two"), "{text}");
        assert!(text.contains("text/html"), "{text}");
        assert!(is_masked(&shown) && !is_masked(&whole));
        let mut back = shown.clone();
        back["http"]["bearer"] = Value::String("three".to_owned());
        unmask(&mut back, &whole).unwrap();
        assert_eq!(back["http"]["bearer"].as_str(), Some("three"));
        assert_eq!(back["http"]["headers"], whole["http"]["headers"]);
        let error = unmask(&mut shown.clone(), &Table::new()).unwrap_err();
        assert!(error.contains("is a mask"), "{error}");
        for (key, value) in [
            ("url", Value::String("https://evil.example/".to_owned())),
            ("url", Value::String("http://a.example/".to_owned())),
            ("insecure", Value::Boolean(true)),
        ] {
            let mut elsewhere = shown.clone();
            if let Some(Value::Table(http)) = elsewhere.get_mut("http") {
                http.insert(key.to_owned(), value);
            }
            let error = unmask(&mut elsewhere, &whole).unwrap_err();
            assert!(error.contains("leads elsewhere"), "{error}");
        }
    }
}
