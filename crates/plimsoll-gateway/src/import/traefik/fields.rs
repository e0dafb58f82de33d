//! The middleware `headers`: fields of requests and responses, security and CORS.

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::rows::actions::{Fields, Response};
use super::super::toml::Keys;
use super::middlewares::{Chain, Surroundings};
use super::model::Untranslated;
use super::values::list;

/// Options whose text is the value of a field of responses.
const VALUES: [(&str, &str); 8] = [
    ("customframeoptionsvalue", "X-Frame-Options"),
    ("custombrowserxssvalue", "X-XSS-Protection"),
    ("contentsecuritypolicy", "Content-Security-Policy"),
    (
        "contentsecuritypolicyreportonly",
        "Content-Security-Policy-Report-Only",
    ),
    ("referrerpolicy", "Referrer-Policy"),
    ("permissionspolicy", "Permissions-Policy"),
    ("featurepolicy", "Feature-Policy"),
    ("publickey", "Public-Key-Pins"),
];

/// Options that set a field of responses if they are true.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("framedeny", "X-Frame-Options", "DENY"),
    ("contenttypenosniff", "X-Content-Type-Options", "nosniff"),
    ("browserxssfilter", "X-XSS-Protection", "1; mode=block"),
];

/// Adds what a middleware does to fields. Fails if it keeps requests out in a way that routes do not have.
pub(super) fn headers(
    options: &Node,
    place: &Directive,
    chain: &mut Chain,
    around: &mut Surroundings<'_>,
) -> Result<(), Untranslated> {
    let mut cors = Keys::default();
    for (key, option) in options.entries() {
        let name = key.to_ascii_lowercase();
        let is_true = option.text() == Some("true");
        if let Some((_, field)) = VALUES.iter().find(|(known, _)| *known == name) {
            if let Some(value) = option.text().filter(|it| !it.is_empty()) {
                chain.passed.response.set_text(field, value);
            }
            continue;
        }
        if let Some((_, field, value)) = SWITCHES.iter().find(|(known, ..)| *known == name) {
            let is_set = chain.passed.response.set.get(field).is_some();
            if is_true && !is_set {
                chain.passed.response.set_text(field, value);
            }
            continue;
        }
        match name.as_str() {
            "customrequestheaders" => {
                for (field, value) in option.entries() {
                    let value = value.text().unwrap_or_default();
                    if field.eq_ignore_ascii_case("host") && !value.is_empty() {
                        chain.proxy.text("host", value);
                    } else {
                        change(&mut chain.passed.request, field, value);
                    }
                }
            }
            "customresponseheaders" => {
                for (field, value) in option.entries() {
                    let value = value.text().unwrap_or_default();
                    change(&mut chain.passed.response, field, value);
                }
            }
            "sslredirect" | "sslforcehost" if is_true && !around.is_tls => {
                let mut keys = Keys::default();
                let temporary = options.is_true("sslTemporaryRedirect");
                let status = if temporary { 307 } else { 308 };
                let host = options.text_at("sslHost").filter(|it| !it.is_empty());
                let host = host.unwrap_or("{host}");
                let to = toml_string(&format!("https://{host}{{target}}"));
                keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
                chain.response = Some(Response::Other(keys));
            }
            "stsseconds"
            | "stsincludesubdomains"
            | "stspreload"
            | "forcestsheader"
            | "sslredirect"
            | "sslforcehost"
            | "sslhost"
            | "ssltemporaryredirect"
            | "sslproxyheaders"
            | "addvaryheader"
            | "hostsproxyheaders" => {}
            "accesscontrolalloworiginlist" => {
                let origins = list(option);
                if origins.iter().any(|it| it == "*") {
                    cors.set("origins", "\"*\"");
                } else {
                    cors.set("origins", texts(&origins));
                }
            }
            "accesscontrolallowmethods" => cors.set("methods", texts(&list(option))),
            "accesscontrolallowheaders" => {
                let names = list(option);
                // All that are asked for, as without the key.
                if !names.iter().any(|it| it == "*") {
                    cors.set("headers", texts(&names));
                }
            }
            "accesscontrolexposeheaders" => cors.set("expose", texts(&list(option))),
            "accesscontrolallowcredentials" if is_true => cors.set("credentials", "true"),
            "accesscontrolmaxage" => {
                if let Some(seconds) = option.text().and_then(|it| it.parse::<u32>().ok()) {
                    cors.text("max_age", &format!("{seconds}s"));
                }
            }
            "allowedhosts" if !list(option).is_empty() => {
                return Err(Untranslated::Option(key.clone()));
            }
            _ if option.text() == Some("false") || !option.is_there() => {}
            _ => around.notes.add(place, format!("`{key}` is left out")),
        }
    }
    strict_transport(options, chain, around.is_tls);
    if cors.get("origins").is_some() {
        chain.passed.keys.set("cors", cors.inline());
    } else if !cors.is_empty() {
        let message = "CORS is left out: it has no `accessControlAllowOriginList`";
        around.notes.add(place, message);
    }
    Ok(())
}

/// `Strict-Transport-Security`, which responses over TLS have.
fn strict_transport(options: &Node, chain: &mut Chain, is_tls: bool) {
    let seconds = options.number_at("stsSeconds").unwrap_or(0);
    if seconds <= 0 || !is_tls && !options.is_true("forceSTSHeader") {
        return;
    }
    let mut value = format!("max-age={seconds}");
    if options.is_true("stsIncludeSubdomains") {
        value.push_str("; includeSubDomains");
    }
    if options.is_true("stsPreload") {
        value.push_str("; preload");
    }
    chain
        .passed
        .response
        .set_text("Strict-Transport-Security", &value);
}

/// Sets a field, or removes it if the value is empty.
fn change(fields: &mut Fields, name: &str, value: &str) {
    if value.is_empty() {
        fields.removed.push(name.to_owned());
    } else {
        fields.set_text(name, value);
    }
}

fn texts(values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|it| toml_string(it)).collect();
    format!("[{}]", values.join(", "))
}
