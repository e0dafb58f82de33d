//! Credentials in definitions: they are never shown, and a mask that comes back stands for what is there.
//!
//! A credential may stand by itself, such as a bearer token, or within a text: in the user information or the query of a URL,
//! in a body. A mask is only given its credential back if the definition leads where it led: who may not see a credential
//! may not have it sent elsewhere either. Every way of changing a definition goes through `unmask`.

mod login_lines;

mod by_kind;

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_client::Endpoint;
use plimsoll_model::{is_secret_field, masked_with, unmasked};
use toml::{Table, Value};

use crate::config::kinds::KINDS;
use crate::config::mask::login_lines::LoginLines;
use crate::probe::KnownSecrets;

pub use crate::config::mask::by_kind::mask_definition;
pub(crate) use crate::config::mask::by_kind::unmask_definition;
pub(crate) use crate::probe::known_secrets::MASK;

/// Keys of kinds that hold a credential as a whole.
const CREDENTIALS: [&str; 5] = ["bearer", "basic", "community", "password", "auth_token"];

/// Keys that name the target, of which only the origin decides who receives what is sent.
const TARGETS: [&str; 6] = ["url", "to", "name", "server", "rdap", "whois"];

/// Keys that decide what is sent and how often, but not the receiver. Every other key may lead elsewhere, a future one too.
const HARMLESS: [&str; 15] = [
    "bearer",
    "basic",
    "body",
    "critical_within",
    "dnssec",
    "family",
    "headers",
    "http2",
    "method",
    "protocol",
    "redirects",
    "send",
    "service",
    "type",
    "warn_within",
];

/// Header fields by which the server behind an address chooses who receives a request.
const NAMING_FIELDS: [&str; 9] = [
    "host",
    ":authority",
    ":scheme",
    ":path",
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-server",
    "x-original-host",
    "x-host",
];

/// Keys of a definition that hold no texts for targets.
const PLAIN: [&str; 2] = ["labels", "tags"];

/// Replaces credentials of a definition by the mask.
pub fn mask(definition: &mut Table) {
    each(definition, &mut |place, text| {
        *text = place.masked(text);
    });
}

/// The credentials of a definition, which no text about it may show.
pub(crate) fn known_secrets(definition: &Table) -> KnownSecrets {
    let mut secrets = KnownSecrets::default();
    for (user, password) in logins(definition) {
        // As AUTH PLAIN and AUTH LOGIN send it.
        secrets.add(&BASE64_STANDARD.encode(format!("\0{user}\0{password}")));
        secrets.add(&BASE64_STANDARD.encode(password));
    }
    each(&mut definition.clone(), &mut |place, text| {
        if let Some(mut lines) = place.lines {
            for secret in lines.secrets(text) {
                secrets.add(&secret);
            }
        }
        match place.name.rsplit('.').next() {
            Some("basic") if place.is_whole => secrets.add_login(text),
            _ if place.is_whole => secrets.add_field(text),
            // In the URL of a heartbeat, which is shown to those who set the job up.
            Some("token") => secrets.add(text),
            _ => secrets.add_text(&place.with_scheme(text)),
        }
    });
    secrets
}

/// Users with their passwords.
fn logins(definition: &Table) -> impl Iterator<Item = (&str, &str)> {
    let kinds = definition.values().filter_map(Value::as_table);
    kinds.filter_map(|kind| {
        let text = |key| kind.get(key).and_then(Value::as_str);
        Some((text("user")?, text("password")?))
    })
}

/// Whether a definition holds a credential.
pub fn has_credentials(definition: &Table) -> bool {
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

/// Why masks cannot be replaced by credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MaskError {
    /// The table of this kind leads to another target.
    #[error("`{0}` leads elsewhere now, so its credentials must be given again")]
    LeadsElsewhere(String),
    /// The mask of this name is where no credential was.
    #[error("`{0}` is a mask, and there is no value in its place")]
    NoValue(String),
}

/// Puts the credentials of `present` in the places of masks.
///
/// Fails with the place of a mask that has none, and if the definition leads elsewhere than `present`: to another scheme, host
/// or port, under another `Host`, without checking certificates, or by another name server.
pub(crate) fn unmask(definition: &mut Table, present: &Table) -> Result<(), MaskError> {
    let mut known = std::collections::HashMap::new();
    each(&mut present.clone(), &mut |place, text| {
        known.insert(place.name.clone(), text.clone());
    });
    // Without credentials, so that those that are left out do not count as a change.
    let (mut whole, mut shown) = (definition.clone(), present.clone());
    mask(&mut whole);
    mask(&mut shown);
    let mut wrong = None;
    each(definition, &mut |place, text| {
        if !text.contains(MASK) {
            return;
        }
        if !leads_the_same_way(whole.get(&place.kind), shown.get(&place.kind)) {
            wrong.get_or_insert(MaskError::LeadsElsewhere(place.kind.clone()));
            return;
        }
        let name = &place.name;
        let missing = || MaskError::NoValue(name.clone());
        let restored = match known.get(name) {
            None => Err(missing()),
            Some(present) if place.is_whole && text == MASK => Ok(present.clone()),
            Some(present) if place.masked(present) == *text => Ok(present.clone()),
            Some(present) => place.unmasked(text, present).ok_or_else(missing),
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

/// Whether what is sent to two targets of a kind, both of them masked, reaches the same server in the same way.
///
/// All of a conversation decides: a password that is sent one step later may be the text of a mail.
fn leads_the_same_way(new: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(new), Some(old)) = (new, old) else {
        return false;
    };
    origin(new) == origin(old)
        && others(new) == others(old)
        && naming_fields(new) == naming_fields(old)
}

/// What else decides who receives what is sent.
fn others(kind: &Value) -> Table {
    let mut table = kind.as_table().cloned().unwrap_or_default();
    table.retain(|key, value| {
        let is_off = value.as_bool() == Some(false);
        !TARGETS.contains(&key) && !HARMLESS.contains(&key) && !is_off
    });
    table
}

/// The header fields that name the receiver, in lower case.
fn naming_fields(kind: &Value) -> Vec<(String, &Value)> {
    let headers = kind.get("headers").and_then(Value::as_table);
    let fields = headers
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_ascii_lowercase(), value));
    let mut named: Vec<_> = fields
        .filter(|(name, _)| NAMING_FIELDS.contains(&name.as_str()))
        .collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    named
}

/// Scheme, host and port of a target; what is no URL is its own origin.
fn origin(kind: &Value) -> String {
    let named: Vec<_> = match kind {
        Value::Table(table) => TARGETS
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
            // Neither is it a target that could be checked.
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
    /// Whether it names a target, whose scheme may be left out.
    is_target: bool,
    /// Of lines that are sent: where in a login they begin.
    lines: Option<LoginLines>,
}

impl Place {
    /// The text here with masks in place of credentials.
    fn masked(&self, text: &str) -> String {
        if self.is_whole {
            return MASK.to_owned();
        }
        if let Some(mut lines) = self.lines {
            return masked_with(&lines.masked(text), MASK).into_owned();
        }
        let whole = self.with_scheme(text);
        self.without_scheme(text, masked_with(&whole, MASK).into_owned())
    }

    /// The text here with the credentials of `present` in place of masks; `None` if one has none.
    fn unmasked(&self, text: &str, present: &str) -> Option<String> {
        if self.is_whole {
            return None;
        }
        let whole = self.with_scheme(text);
        let unmasked = unmasked(&whole, MASK, &self.with_scheme(present)).ok()?;
        Some(self.without_scheme(text, unmasked.into_owned()))
    }

    /// User information is recognised by the scheme before it.
    fn with_scheme<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_target && !text.contains("://") {
            Cow::Owned(format!("{SCHEME}{text}"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// What [`with_scheme`](Self::with_scheme) made of `text` became `whole`.
    fn without_scheme(&self, text: &str, whole: String) -> String {
        match whole.strip_prefix(SCHEME) {
            Some(rest) if self.is_target && !text.contains("://") => rest.to_owned(),
            _ => whole,
        }
    }
}

/// Of a target without one.
const SCHEME: &str = "http://";

/// Visits every text of the kinds.
fn each(definition: &mut Table, visit: &mut dyn FnMut(&Place, &mut String)) {
    for (kind, value) in definition.iter_mut() {
        if PLAIN.contains(&kind.as_str()) {
            continue;
        }
        // Of one conversation, step by step.
        let mut lines = LoginLines::default();
        let mut visit = |name: String, is_whole, is_target, value: &mut Value| {
            if let Value::String(text) = value {
                let kind = kind.clone();
                let is_sent = name.rsplit('.').next() == Some("send");
                let place = Place {
                    kind,
                    name,
                    is_whole,
                    is_target,
                    lines: is_sent.then_some(lines),
                };
                if is_sent {
                    lines.credentials(text);
                }
                visit(&place, text);
            }
        };
        let Value::Table(inner) = value else {
            // A target without a table; texts such as the name are no URLs.
            let is_target = KINDS.contains(&kind.as_str());
            if is_target || value.as_str().is_some_and(|text| text.contains("://")) {
                visit(kind.clone(), false, is_target, value);
            }
            continue;
        };
        for (key, value) in inner.iter_mut() {
            let name = format!("{kind}.{key}");
            match value {
                Value::Table(fields) if key == "headers" => {
                    for (field, value) in fields.iter_mut() {
                        let name = format!("{name}.{}", field.to_ascii_lowercase());
                        let is_name = NAMING_FIELDS.contains(&field.to_ascii_lowercase().as_str());
                        visit(name, is_secret_field(field) && !is_name, false, value);
                    }
                }
                // Such as the steps of a conversation.
                Value::Array(items) => {
                    for (index, item) in items.iter_mut().enumerate() {
                        let name = format!("{name}[{index}]");
                        match item {
                            Value::Table(fields) => {
                                for (field, value) in fields.iter_mut() {
                                    visit(format!("{name}.{field}"), false, false, value);
                                }
                            }
                            value => visit(name, false, false, value),
                        }
                    }
                }
                value => {
                    let key = key.as_str();
                    visit(
                        name,
                        CREDENTIALS.contains(&key),
                        TARGETS.contains(&key),
                        value,
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
