//! A webhook of one's own: the message as JSON, or what its template makes of it, signed if there is a secret.
//!
//! `plimsoll-signature: t=SECONDS,v1=HEX` has the HMAC-SHA-256 of `SECONDS.BODY`, as Stripe's webhooks do: the receiver
//! computes it again, and refuses old times.

use std::fmt;

use plimsoll_model::Secret;
use ring::hmac;
use url::Url;

use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::template::{Syntax, Template};
use crate::notify::channel::{
    Channel, Compiled, Foreign, HttpRequest, Notifier, Outgoing, Theirs, made,
};
use crate::notify::field::{Field, Values};
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;
use crate::token::ApiToken;

pub(super) const CHANNEL: Channel = Channel {
    key: "webhook",
    name: "Webhook",
    about: "The message as JSON, or what `body` makes of it.",
    fields: &[
        Field::secret_template("url", "address, with placeholders behind the host").required(),
        Field::choice(
            "method",
            &["POST", "PUT", "PATCH", "GET", "DELETE"],
            "method of the request",
        ),
        Field::secret_pairs("headers", "header fields, with placeholders"),
        Field::lines("body", "content, with placeholders such as `{{ title }}`"),
        Field::secret("secret", "key by which requests are signed"),
    ],
    gatus: &[Foreign::new("gitlab", &[("webhook-url", "url")]).and(of_gitlab)],
    kuma: &[Foreign::new("webhook", &[("webhookURL", "url")]).and(of_kuma)],
    compile,
};

/// Fields that say where a message ends.
const FRAMING: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

struct Webhook {
    url: Template,
    /// The URL before its first placeholder.
    base: Url,
    method: &'static str,
    fields: Vec<(String, Template)>,
    body: Option<Template>,
    secret: Option<Secret>,
}

fn compile(values: &Values) -> Compiled {
    let (url, base) = target(values.secret("url").expose())?;
    let method = values.text("method");
    let methods = ["POST", "PUT", "PATCH", "GET", "DELETE"];
    let method = methods.into_iter().find(|known| *known == method);
    let mut fields = Vec::new();
    for (name, value) in values.pairs("headers") {
        let is_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        let is_value = http::HeaderValue::from_bytes(value.expose().as_bytes()).is_ok();
        if !is_name || !is_value {
            return Err(SettingsError::NoField(name));
        }
        if FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Err(SettingsError::OwnField(name));
        }
        let value = Template::parse(value.expose(), Syntax::Line).map_err(|error| {
            SettingsError::FieldTemplate {
                name: name.clone(),
                error,
            }
        })?;
        fields.push((name.to_ascii_lowercase(), value));
    }
    let media_type = values
        .pairs("headers")
        .into_iter()
        .find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-type")
                .then(|| value.expose().to_ascii_lowercase())
        });
    let body = values.maybe_text("body");
    let syntax = syntax(media_type.as_deref(), body.as_deref());
    if media_type.is_none() && (body.is_some() || method != Some("GET")) {
        let media_type = match syntax {
            Syntax::Json => "application/json",
            _ => "text/plain; charset=utf-8",
        };
        let value =
            Template::parse(media_type, Syntax::Line).map_err(SettingsError::BodyTemplate)?;
        fields.insert(0, ("content-type".to_owned(), value));
    }
    let body = body.map(|body| Template::parse(&body, syntax)).transpose();
    let body = body.map_err(SettingsError::BodyTemplate)?;
    if let (Syntax::Json, Some(body)) = (syntax, &body) {
        let filled = body.filled(&Message::sample(NoticeKind::Opened));
        if let Err(error) = serde_json::from_str::<serde_json::Value>(&filled) {
            return Err(SettingsError::BodyJson(error));
        }
    }
    made(Webhook {
        url,
        base,
        method: method.unwrap_or("POST"),
        fields,
        body,
        secret: values.maybe_secret("secret"),
    })
}

/// The URL, and what it begins with. A value in its host could lead elsewhere.
fn target(text: &str) -> Result<(Template, Url), SettingsError> {
    let prefix = text.split("{{").next().unwrap_or_default();
    let base = Url::parse(prefix).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_web && (prefix.len() == text.len() || prefix.matches('/').count() >= 3)
    });
    let Some(base) = base else {
        return Err(SettingsError::Url);
    };
    let url = Template::parse(text, Syntax::Encoded);
    Ok((url.map_err(SettingsError::UrlTemplate)?, base))
}

fn syntax(media_type: Option<&str>, body: Option<&str>) -> Syntax {
    let begins = |text: &str| text.starts_with(['{', '[']) && !text.starts_with("{{");
    match (media_type, body.map(str::trim_start)) {
        (Some(media_type), _) if media_type.contains("json") => Syntax::Json,
        (Some(media_type), _) if media_type.contains("x-www-form-urlencoded") => Syntax::Encoded,
        (None, None) => Syntax::Json,
        (None, Some(body)) if begins(body) => Syntax::Json,
        _ => Syntax::Plain,
    }
}

impl fmt::Debug for Webhook {
    /// Without what holds credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Notifier for Webhook {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let url = Url::parse(&self.url.filled(message));
        let mut request = HttpRequest::new(self.method, url.unwrap_or_else(|_| self.base.clone()));
        for (name, value) in &self.fields {
            request = request.with(name, value.filled(message));
        }
        request.content = match &self.body {
            Some(body) => body.filled(message),
            None if self.method == "GET" => String::new(),
            None => message.to_json().to_string(),
        };
        let Some(secret) = &self.secret else {
            return request.into();
        };
        let seconds = now.0.div_euclid(1_000);
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let mut tag = [0; 32];
        let signed = format!("{seconds}.{}", request.content);
        tag.copy_from_slice(hmac::sign(&key, signed.as_bytes()).as_ref());
        let signature = format!("t={seconds},v1={}", ApiToken::written(&tag));
        request.with("plimsoll-signature", signature).into()
    }

    fn groups(&self) -> bool {
        let mut templates = self.fields.iter().map(|(_, value)| value).chain(&self.body);
        !self.url.is_of_one() && !templates.any(Template::is_of_one)
    }
}

/// The alert that Gatus sends to GitLab, which is resolved by its end.
///
/// Source: Gatus, `alerting/provider/gitlab`; docs.gitlab.com, "Customize the alert payload outside of GitLab".
fn of_gitlab(theirs: &Theirs<'_>, table: &mut toml::Table) {
    let quoted = |key, default: &str| {
        let text = theirs(key).unwrap_or_else(|| default.to_owned());
        serde_json::Value::from(text.replace("{{", "")).to_string()
    };
    let body = format!(
        r#"{{"title": "{{{{ title }}}}", "description": "{{{{ text }}}}", "start_time": "{{{{ since }}}}", "end_time": {{{{ ended }}}}, "hosts": "{{{{ name }}}}", "fingerprint": "{{{{ incident }}}}", "severity": {}, "monitoring_tool": {}, "service": {}, "gitlab_environment_name": {}}}"#,
        quoted("severity", "critical"),
        quoted("monitoring-tool", "gatus"),
        quoted("service", ""),
        quoted("environment-name", ""),
    );
    table.insert("body".to_owned(), body.into());
    let mut fields = toml::Table::new();
    if let Some(key) = theirs("authorization-key") {
        fields.insert("Authorization".to_owned(), format!("Bearer {key}").into());
    }
    table.insert("headers".to_owned(), fields.into());
}

/// The request that Uptime Kuma sends: its own JSON, or the template of its user.
///
/// Source: its `server/notification-providers/webhook.js`.
fn of_kuma(theirs: &Theirs<'_>, table: &mut toml::Table) {
    const BODY: &str = r#"{"heartbeat": {"status": {{ up }}, "time": "{{ at }}", "msg": "{{ text }}", "important": true}, "monitor": {"name": "{{ name }}"}, "msg": "[{{ name }}] [{{ emoji }} {{ state }}] {{ text }}"}"#;

    let is_get = theirs("httpMethod").is_some_and(|method| method.eq_ignore_ascii_case("get"));
    if is_get {
        table.insert("method".to_owned(), "GET".into());
        if let Some(toml::Value::String(url)) = table.get_mut("url") {
            let sign = if url.contains('?') { '&' } else { '?' };
            url.push(sign);
            url.push_str("msg={{ title }}");
        }
    } else {
        let body = match theirs("webhookContentType").as_deref() {
            Some("custom") => liquid(&theirs("webhookCustomBody").unwrap_or_default()),
            _ => BODY.to_owned(),
        };
        table.insert("body".to_owned(), body.into());
    }
    let fields = theirs("webhookAdditionalHeaders").unwrap_or_default();
    let fields: serde_json::Value = serde_json::from_str(&fields).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let fields: toml::Table = fields
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())))
        .collect();
    if !fields.is_empty() {
        table.insert("headers".to_owned(), fields.into());
    }
}

/// A template of Liquid with our placeholders; what is not known stays, and is refused.
fn liquid(text: &str) -> String {
    let mut ours = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        ours.push_str(before);
        let (inside, after) = behind.split_once("}}").unwrap_or((behind, ""));
        let expression = inside.split('|').next().unwrap_or_default();
        let plain = |it: char| it.is_whitespace() || matches!(it, '\'' | '"' | ']');
        let key: String = expression
            .replace('[', ".")
            .chars()
            .filter(|it| !plain(*it))
            .collect();
        let known = match key.as_str() {
            "msg" => "[{{ name }}] [{{ emoji }} {{ state }}] {{ text }}",
            "status" | "STATUS" => "{{ emoji }} {{ state }}",
            "name" | "NAME" | "monitorJSON.name" => "{{ name }}",
            "hostnameOrURL" | "HOSTNAME_OR_URL" | "monitorJSON.url" | "monitorJSON.hostname" => {
                "{{ monitor }}"
            }
            "heartbeatJSON.msg" => "{{ text }}",
            "heartbeatJSON.status" => "{{ up }}",
            "heartbeatJSON.time" | "heartbeatJSON.localDateTime" => "{{ at }}",
            _ => "",
        };
        if known.is_empty() {
            ours.push_str("{{");
            ours.push_str(inside);
            ours.push_str("}}");
        }
        ours.push_str(known);
        rest = after;
    }
    ours.push_str(rest);
    ours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check, message, outgoing, refused, request};

    const URL: &str = "url = \"https://example.org/hook\"\n";

    #[test]
    fn the_message_is_json_by_itself() {
        check(
            "webhook",
            URL,
            NoticeKind::Opened,
            "POST https://example.org/hook",
            &[],
            &serde_json::json!({
                "kind": "opened",
                "title": "core/web is down",
                "text": "status 500 <b> & \"more\"",
                "monitor": "core_web",
                "name": "web",
                "group": "core",
                "incident": "core_web/1",
                "at": "2026-03-01T12:01:00Z",
                "since": "2026-03-01T12:00:00Z",
                "link": "https://status.example.org",
            }),
        );
    }

    #[test]
    fn a_template_makes_the_request() {
        let settings = r#"
            url = "https://example.org/{{ name }}?state={{ state }}"
            method = "PUT"
            headers = { Authorization = { env = "TOKEN" }, X-Title = "{{ title }}" }
            body = '{"alert": "{{ text }}", "ok": {{ up }}, "link": {{ link }}}'
        "#;
        for (kind, state, up) in [
            (NoticeKind::Opened, "down", 0),
            (NoticeKind::Resolved, "up%20again", 1),
        ] {
            check(
                "webhook",
                settings,
                kind,
                &format!("PUT https://example.org/web?state={state}"),
                &["authorization: from-env", "x-title: core/web is down"],
                &serde_json::json!({
                    "alert": "status 500 <b> & \"more\"", "ok": up, "link": "https://status.example.org",
                }),
            );
        }
        let form = request(
            "webhook",
            &format!(
                "{URL}headers = {{ content-type = \"application/x-www-form-urlencoded\" }}\nbody = \"a={{{{ text }}}}\""
            ),
            NoticeKind::Opened,
        );
        assert_eq!(form.content, "a=status%20500%20%3Cb%3E%20%26%20%22more%22");
        let get = request(
            "webhook",
            &format!("{URL}method = \"GET\""),
            NoticeKind::Opened,
        );
        assert_eq!(
            (get.method, get.content.as_str(), get.fields.len()),
            ("GET", "", 0)
        );
    }

    #[test]
    fn mistakes_are_found_before_anything_is_sent() {
        for (settings, why) in [
            (
                "url = \"https://{{ name }}.example.org/\"",
                "without placeholders in its host",
            ),
            (
                "url = \"https://a{{ name }}/\"",
                "without placeholders in its host",
            ),
            ("url = \"ftp://a/\"", "https://"),
            (
                "url = \"https://a/\"\nbody = \"{{ nme }}\"",
                "`{{ nme }}` is not one of",
            ),
            ("url = \"https://a/\"\nbody = '{\"a\": }'", "no JSON"),
            (
                "url = \"https://a/\"\nheaders = { \"a b\" = \"c\" }",
                "no header field",
            ),
            (
                "url = \"https://a/\"\nheaders = { a = \"b\\r\\nc: d\" }",
                "no header field",
            ),
            (
                "url = \"https://a/\"\nheaders = { Content-Length = \"5\" }",
                "set by this program",
            ),
            (
                "url = \"https://a/\"\nmethod = \"BREW\"",
                "is not one of POST",
            ),
        ] {
            let found = refused("webhook", settings);
            assert!(found.contains(why), "{settings}: {found}");
        }
    }

    #[test]
    fn what_is_about_one_monitor_is_sent_by_itself() {
        for (body, groups) in [
            ("{{ title }}", true),
            ("{{ name }}", false),
            ("{{ incident }}", false),
        ] {
            let settings = format!("{URL}body = \"{body}\"");
            assert_eq!(
                outgoing("webhook", &settings, &message(NoticeKind::Opened)).1,
                groups
            );
        }
    }

    #[test]
    fn a_webhook_is_signed() {
        let settings = format!("{URL}secret = \"s3cret\"");
        let request = request("webhook", &settings, NoticeKind::Opened);
        let (name, signature) = &request.fields[1];
        assert_eq!(name, "plimsoll-signature");
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret");
        let signed = format!("1772366470.{}", request.content);
        let hex = signature.strip_prefix("t=1772366470,v1=").unwrap();
        let pairs = hex.as_bytes().chunks(2);
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        hmac::verify(&key, signed.as_bytes(), &bytes).unwrap();
    }

    #[test]
    fn templates_of_liquid_become_ours() {
        assert_eq!(
            liquid(
                "{\"t\": \"{{ monitorJSON['name'] }}: {{ msg | strip }}\", \"s\": {{heartbeatJSON[\"status\"]}} } {{ x.y }}"
            ),
            "{\"t\": \"{{ name }}: [{{ name }}] [{{ emoji }} {{ state }}] {{ text }}\", \"s\": {{ up }} } {{ x.y }}"
        );
    }
}
