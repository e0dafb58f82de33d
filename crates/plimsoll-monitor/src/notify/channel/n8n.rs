//! n8n, by a webhook node: the message as JSON, whose members later nodes use.
//!
//! Source: docs.n8n.io, "Webhook node": basic authentication, or a header field.

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::{Channel, Compiled, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::{Field, Values};
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "n8n",
    name: "n8n",
    about: "The message as JSON to a webhook node; `kind` says what happened.",
    fields: &[
        Field::secret_url("address of the webhook node"),
        Field::text("username", "user, for a node with basic authentication"),
        Field::secret("password", "password of that user"),
        Field::secret(
            "token",
            "sent as `authorization: Bearer …`, for a node with header authentication",
        ),
    ],
    gatus: &[Foreign::new("n8n", &[("webhook-url", "url")])],
    kuma: &[],
    compile,
};

#[derive(Debug)]
struct N8n {
    url: Url,
    login: Option<(String, Secret)>,
    token: Option<Secret>,
}

fn compile(values: &Values) -> Compiled {
    let (user, password) = (
        values.maybe_text("username"),
        values.maybe_secret("password"),
    );
    if user.is_some() != password.is_some() {
        return Err(SettingsError::HalfLogin);
    }
    let (login, token) = (user.zip(password), values.maybe_secret("token"));
    if login.is_some() && token.is_some() {
        return Err(SettingsError::TwoLogins);
    }
    made(N8n {
        url: values.url(),
        login,
        token,
    })
}

impl Notifier for N8n {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let request = HttpRequest::json(self.url.clone(), &message.to_json());
        let request = match (&self.login, &self.token) {
            (Some((user, password)), _) => request.basic(user, password.expose()),
            (None, Some(token)) => request.bearer(token.expose()),
            (None, None) => request,
        };
        request.into()
    }
}

#[cfg(test)]
mod tests {
    use crate::notify::channel::snapshot::{check, message, refused};
    use crate::notify::message::NoticeKind;

    const URL: &str = "url = \"https://n8n.example.org/webhook/abc\"\n";

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            for (settings, field) in [
                ("token = \"t\"", Some("authorization: Bearer t")),
                (
                    "username = \"u\"\npassword = \"p\"",
                    Some("authorization: Basic dTpw"),
                ),
                ("", None),
            ] {
                let fields: Vec<_> = field.into_iter().collect();
                check(
                    "n8n",
                    &format!("{URL}{settings}"),
                    kind,
                    "POST https://n8n.example.org/webhook/abc",
                    &fields,
                    &message(kind).to_json(),
                );
            }
        }
        assert!(refused("n8n", &format!("{URL}username = \"u\"")).contains("together"));
    }
}
