//! SMS by Twilio.
//!
//! Source: twilio.com/docs/messaging/api/message-resource#create-a-message-resource.

use std::sync::Arc;

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, basic, below, segment, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Twilio {
    url: Url,
    account: String,
    token: Secret,
    from: String,
    to: String,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://api.twilio.com");
    let (account, token) = (settings.text("account"), settings.secret("token"));
    let (from, to) = (settings.text("from"), settings.text("to"));
    Some(Arc::new(Twilio {
        url: url?,
        account: account?,
        token: token?,
        from: from?,
        to: to?,
    }))
}

impl Notifier for Twilio {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let path = format!(
            "2010-04-01/Accounts/{}/Messages.json",
            segment(&self.account)
        );
        let text = shortened(&message.plain(), 480);
        let pairs = [
            ("From", self.from.as_str()),
            ("To", &self.to),
            ("Body", &text),
        ];
        HttpRequest::form(below(&self.url, &path), &pairs)
            .with("authorization", basic(&self.account, self.token.expose()))
            .into()
    }
}
