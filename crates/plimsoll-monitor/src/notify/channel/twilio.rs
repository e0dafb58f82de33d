//! SMS by Twilio.
//!
//! Source: twilio.com/docs/messaging/api/message-resource#create-a-message-resource.

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "twilio",
    name: "Twilio SMS",
    about: "An SMS of at most 480 characters.",
    fields: &[
        Field::text("account", "SID of the account").required(),
        Field::secret("token", "auth token of the account").required(),
        Field::text("from", "number that sends").required(),
        Field::text("to", "number that receives").required(),
        Field::vendor("https://api.twilio.com"),
    ],
    gatus: &[Foreign::new(
        "twilio",
        &[
            ("sid", "account"),
            ("token", "token"),
            ("from", "from"),
            ("to", "to"),
        ],
    )],
    kuma: &[Foreign::new(
        "twilio",
        &[
            ("twilioAccountSID", "account"),
            ("twilioAuthToken", "token"),
            ("twilioFromNumber", "from"),
            ("twilioToNumber", "to"),
        ],
    )],
    compile: |values| {
        made(Twilio {
            url: values.url(),
            account: values.text("account"),
            token: values.secret("token"),
            from: values.text("from"),
            to: values.text("to"),
        })
    },
};

#[derive(Debug)]
struct Twilio {
    url: Url,
    account: String,
    token: Secret,
    from: String,
    to: String,
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
            .basic(&self.account, self.token.expose())
            .into()
    }
}
