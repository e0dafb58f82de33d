//! A webhook of one's own: the message as JSON, signed if there is a secret.
//!
//! `plimsoll-signature: t=SECONDS,v1=HEX` has the HMAC-SHA-256 of `SECONDS.BODY`, as Stripe's webhooks do: the receiver
//! computes it again, and refuses old times.

use std::sync::Arc;

use plimsoll_model::Secret;
use ring::hmac;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;
use crate::token::ApiToken;

#[derive(Debug)]
struct Webhook {
    url: Url,
    secret: Option<Secret>,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let secret = settings.optional_secret("secret");
    let url = settings.secret_url("url")?;
    Some(Arc::new(Webhook { url, secret }))
}

impl Notifier for Webhook {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let request = HttpRequest::json(self.url.clone(), &message.to_json());
        let Some(secret) = &self.secret else {
            return request;
        };
        let seconds = now.0.div_euclid(1_000);
        let content = message.to_json().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let mut tag = [0; 32];
        tag.copy_from_slice(hmac::sign(&key, format!("{seconds}.{content}").as_bytes()).as_ref());
        let signature = format!("t={seconds},v1={}", ApiToken::written(&tag));
        request.with("plimsoll-signature", signature)
    }
}
