//! Messages and forms: passwords and subscriptions.

use askama::Template;

use crate::language::Texts as _;
use crate::page::html::{Frame, rendered};
use crate::page::subscribe::Means;

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    f: Frame<'a>,
    message: &'a str,
    is_bad: bool,
    asks_password: bool,
}

/// A message, perhaps with a form for the password.
pub(crate) fn message_page(
    f: Frame<'_>,
    message: &str,
    is_bad: bool,
    asks_password: bool,
) -> String {
    rendered(&MessagePage {
        f,
        message,
        is_bad,
        asks_password,
    })
}

/// A means by which readers subscribe.
struct Offer {
    name: &'static str,
    text: &'static str,
    hint: &'static str,
    /// The type of its field.
    field: &'static str,
    autocomplete: &'static str,
}

#[derive(Template)]
#[template(path = "subscribe.html")]
struct SubscribePage<'a> {
    f: Frame<'a>,
    offers: Vec<Offer>,
    choices: &'a [(String, String, bool)],
    message: Option<&'a str>,
}

/// The forms by which readers subscribe.
///
/// - `choices`: key and name of each component, and whether it is chosen.
/// - `message`: what was wrong with the last one.
pub(crate) fn subscribe_page(
    f: Frame<'_>,
    means: &[Means],
    choices: &[(String, String, bool)],
    message: Option<&str>,
) -> String {
    let offers = means.iter().map(|means| Offer {
        name: means.name(),
        text: f.t.text(match means {
            Means::Email => "subscribe_email",
            Means::Webhook => "subscribe_webhook",
            Means::Slack => "subscribe_slack",
        }),
        hint: f.t.text(match means {
            Means::Email => "subscribe_hint_email",
            Means::Webhook => "subscribe_hint_webhook",
            Means::Slack => "subscribe_hint_slack",
        }),
        field: match means {
            Means::Email => "email",
            Means::Webhook | Means::Slack => "url",
        },
        autocomplete: match means {
            Means::Email => "email",
            Means::Webhook | Means::Slack => "off",
        },
    });
    rendered(&SubscribePage {
        offers: offers.collect(),
        choices,
        f,
        message,
    })
}

#[derive(Template)]
#[template(path = "decide.html")]
struct DecidePage<'a> {
    f: Frame<'a>,
    question: &'a str,
    action: &'a str,
    link: &'a str,
    button: &'a str,
    choices: &'a [(String, String, bool)],
}

/// A question with a button, behind a link of a message.
///
/// - the second of `(question, action, button)`: the last part of the path.
/// - `choices`: components among which it may be chosen instead.
pub(crate) fn decide_page(
    f: Frame<'_>,
    (question, action, button): (&str, &str, &str),
    link: &str,
    choices: &[(String, String, bool)],
) -> String {
    rendered(&DecidePage {
        f,
        question,
        action,
        link,
        button,
        choices,
    })
}
