//! Keys of a `[[listen]]` or a `[[route]]` that keep clients out who do not show a certificate, a password or what guards of
//! other crates want.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;

use crate::config::Context;
use crate::config::action::GuardContext;
use crate::config::document::{Table, Value, as_text};
use crate::config::middleware::{Placement, refusal};
use crate::middleware::{BasicAuth, CertificateRule, PasswordFile, PasswordHash, RequestGuard};

/// The guards of other crates.
pub(super) fn guards(
    table: &mut Table<'_>,
    context: &Context<'_>,
    placement: &Placement<'_>,
) -> Vec<Arc<dyn RequestGuard>> {
    let mounted = GuardContext {
        paths: context.paths,
        prefix: placement.prefix,
        name: placement.called,
        identity: placement.identity,
        states: &context.compiler.states,
        maps: &context.maps,
        counters: &context.compiler.counters,
        notices: &context.compiler.notices,
        sections: &context.sections,
    };
    let kinds = context.compiler.guards.iter();
    let guards = kinds.filter_map(|kind| {
        let value = table.take_value(kind.key)?;
        (kind.compile)(value, &mounted)
    });
    guards.collect()
}

/// `true` for any certificate, or which ones.
pub(super) fn certificate_rule(value: Value<'_>, context: &Context<'_>) -> Option<CertificateRule> {
    context.wants_certificates.set(true);
    let mut table = value.table_or_true()?;
    let mut list = |key, mistake: fn(&str) -> Option<String>| match table.take_value(key) {
        None => Some(Vec::new()),
        Some(value) if value.to_toml().as_array().is_some_and(Vec::is_empty) => {
            value.wrong("is an empty list")
        }
        Some(value) => value.texts_with(mistake),
    };
    let subjects = list("subject", |text| {
        let is_name = text.contains('=');
        (!is_name).then(|| format!("`{text}` is not a name such as CN=ann,O=Example"))
    });
    let names = list("san", |text| {
        let is_known = ["DNS:", "URI:", "IP:", "email:"]
            .iter()
            .any(|kind| text.starts_with(kind));
        let message = || format!("`{text}` does not begin with DNS:, URI:, IP: or email:");
        (!is_known).then(message)
    });
    let digests = list("sha256", |text| {
        let digits = text.bytes().filter(|it| *it != b':');
        let is_digest =
            digits.clone().count() == 64 && digits.clone().all(|it| it.is_ascii_hexdigit());
        (!is_digest).then(|| format!("`{text}` is not a SHA-256 in hexadecimal digits"))
    });
    let status = refusal(&mut table, StatusCode::FORBIDDEN);
    table.finish();
    let digests = digests?.into_iter();
    Some(CertificateRule {
        subjects: subjects?,
        names: names?,
        sha256: digests
            .map(|it| it.replace(':', "").to_ascii_lowercase())
            .collect(),
        status,
    })
}

pub(super) fn basic_auth(value: Value<'_>, context: &Context<'_>) -> Option<BasicAuth> {
    let mut table = value.table()?;
    let realm = table.text("realm").unwrap_or_else(|| "plimsoll".to_owned());
    let mut users = HashMap::new();
    if let Some(mut table) = table.table("users") {
        for (name, value) in table.rest() {
            if name.contains(':') {
                value.wrong::<()>("a name has no colon");
            }
            let hash = as_text(&value).and_then(|text| value.check(PasswordHash::parse(text)));
            users.extend(hash.map(|hash| (name, hash)));
        }
    }
    let mut file = None;
    if let Some(value) = table.take_value("file")
        && let Some(path) = context.paths.read(&value)
    {
        let passwords = PasswordFile {
            path,
            users: users.clone(),
            notices: context.compiler.notices.clone(),
        };
        match passwords.read() {
            Ok(read) => {
                passwords.report_left_out(&read.left_out);
                users = read.users;
            }
            Err(problems) => {
                for problem in problems {
                    value.wrong::<()>(problem);
                }
            }
        }
        file = Some(passwords);
    } else if users.is_empty() && !table.was_given("users") {
        table.missing(
            "users",
            "such as users = { alice = \"$2y$10$…\" }, or `file` as htpasswd -B writes it",
        );
    }
    table.finish();
    BasicAuth::of_file(&realm, users, file).ok()
}
