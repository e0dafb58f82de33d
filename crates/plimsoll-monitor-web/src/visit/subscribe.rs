//! `/subscribe`: forms, and the links of messages.

use axum::response::Response;
use http::StatusCode;
use http::header::RETRY_AFTER;

use crate::language::Texts as _;
use crate::page::cache::Rendered;
use crate::page::snapshot::State;
use crate::page::subscribe::{self, Means, SubscribeError};
use crate::page::{PageComponent, html};
use crate::request::{client_of, parameter};
use crate::visit::reply::{Caching, reply};
use crate::visit::{HTML, RETRY_SOON, Visit};

/// Characters of a link.
const MOST_LINK: usize = 120;

impl Visit<'_> {
    /// Whether readers of the page may subscribe: messages need its address.
    pub(super) fn may_subscribe(&self) -> bool {
        let plan = self.api.handle.board.subscriptions();
        self.plan.url.is_some() && plan.is_some_and(|plan| !plan.means().is_empty())
    }

    /// The page at the path; `None` if there is no such path.
    pub(super) async fn subscription(&self) -> Option<Response> {
        if !self.may_subscribe() {
            return None;
        }
        match self.path {
            "/subscribe" => Some(self.forms(StatusCode::OK, None)),
            "/subscribe/confirm" => {
                let question = self.t.with("subscribe_confirm", "title", &self.plan.title);
                Some(self.question(&question, "confirm", "subscribe"))
            }
            "/subscribe/stop" => Some(self.end().await),
            _ => None,
        }
    }

    /// Does what a form or a mail program sends; `None` if there is no such path.
    pub(super) async fn change_subscription(
        &self,
        extensions: &http::Extensions,
        form: &str,
    ) -> Option<Response> {
        let plan = self.api.handle.board.subscriptions()?;
        if !self.may_subscribe() {
            return None;
        }
        let (handle, now) = (&self.api.handle, self.now());
        let link = || self.link().unwrap_or_default();
        let busy = || self.outcome(StatusCode::TOO_MANY_REQUESTS, "subscribe_busy", true);
        let source = client_of(extensions);
        let sessions = &self.api.sessions;
        // Mail programs follow the links of all their users from a few addresses: only wrong links count.
        let has_link = matches!(
            self.path,
            "/subscribe/confirm" | "/subscribe/stop" | "/subscribe/change"
        );
        if has_link && !sessions.may_follow_links(source, now) {
            return Some(busy());
        }
        let (outcome, done) = match self.path {
            "/subscribe" => {
                let means = parameter(Some(form), "means").unwrap_or_default();
                let address = parameter(Some(form), "address").unwrap_or_default();
                let is_one_too_many = self.api.attempts.count_source(source, now).is_err();
                if is_one_too_many || !sessions.may_subscribe(source, now) {
                    return Some(busy());
                }
                let outcome = match Means::named(&means) {
                    None => Err(SubscribeError::Address),
                    Some(means) => {
                        let components = components(form);
                        let address = (means, address.as_str(), components.as_slice());
                        subscribe::subscribe(handle, &plan, self.plan, address, self.t, now).await
                    }
                };
                (outcome, "subscribe_sent")
            }
            "/subscribe/confirm" => (
                subscribe::confirm(handle, self.plan, &link(), now).await,
                "subscribe_confirmed",
            ),
            "/subscribe/change" => {
                let components = components(form);
                let link = link();
                let changed = subscribe::change(handle, self.plan, &link, &components, now);
                (changed.await, "subscribe_changed")
            }
            "/subscribe/stop" => (
                subscribe::stop(handle, self.plan, &link(), now).await,
                "subscribe_stopped",
            ),
            _ => return None,
        };
        Some(match outcome {
            Ok(()) => self.outcome(StatusCode::OK, done, false),
            Err(SubscribeError::Address) => {
                let message = self.t.text("subscribe_wrong");
                self.forms(StatusCode::BAD_REQUEST, Some(message))
            }
            Err(SubscribeError::Link) => {
                sessions.followed_wrong_link(source, now);
                self.outcome(StatusCode::NOT_FOUND, "subscribe_expired", true)
            }
            Err(SubscribeError::Full) => {
                self.outcome(StatusCode::SERVICE_UNAVAILABLE, "subscribe_busy", true)
            }
            Err(SubscribeError::Store(_)) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                let mut response = self.outcome(status, "subscribe_away", true);
                response.headers_mut().insert(RETRY_AFTER, RETRY_SOON);
                response
            }
        })
    }

    /// The link of the query, if it can be one.
    fn link(&self) -> Option<String> {
        let link = parameter(self.query, "link")?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
        (link.len() <= MOST_LINK && link.bytes().all(is_plain)).then_some(link)
    }

    fn forms(&self, status: StatusCode, message: Option<&str>) -> Response {
        let plan = self.api.handle.board.subscriptions();
        let means = plan.map(|plan| plan.means()).unwrap_or_default();
        let (style, _) = html::style(self.plan);
        let frame = self.still(&style);
        let choices = self.choices(&[]);
        self.answered(
            status,
            html::subscribe_page(frame, &means, &choices, message),
        )
    }

    /// The components of the page, and whether each is among those.
    fn choices(&self, chosen: &[String]) -> Vec<(String, String, bool)> {
        let choice = |one: &PageComponent| {
            let is_chosen = chosen.contains(&one.key);
            (one.key.clone(), one.name.clone(), is_chosen)
        };
        let choices: Vec<_> = self.plan.components().map(choice).collect();
        // There is nothing to choose on a page of one.
        if choices.len() > 1 {
            choices
        } else {
            Vec::new()
        }
    }

    /// Ends a subscription, or changes what it is about.
    async fn end(&self) -> Response {
        let question = self.t.with("subscribe_stop", "title", &self.plan.title);
        let Some(link) = self.link() else {
            return self.outcome(StatusCode::NOT_FOUND, "subscribe_expired", true);
        };
        let chosen = subscribe::components(&self.api.handle, self.plan, &link).await;
        let choices = chosen.map(|chosen| self.choices(&chosen));
        let choices = choices.unwrap_or_default();
        let (style, _) = html::style(self.plan);
        let button = self.t.text("subscribe_end");
        let asked = (question.as_str(), "stop", button);
        let page = html::decide_page(self.still(&style), asked, &link, &choices);
        self.answered(StatusCode::OK, page)
    }

    fn question(&self, question: &str, action: &str, button: &'static str) -> Response {
        let Some(link) = self.link() else {
            return self.outcome(StatusCode::NOT_FOUND, "subscribe_expired", true);
        };
        let (style, _) = html::style(self.plan);
        let button = self.t.text(button);
        let asked = (question, action, button);
        let page = html::decide_page(self.still(&style), asked, &link, &[]);
        self.answered(StatusCode::OK, page)
    }

    fn outcome(&self, status: StatusCode, message: &'static str, is_bad: bool) -> Response {
        let (style, _) = html::style(self.plan);
        let message = self.t.text(message);
        let page = html::message_page(self.still(&style), message, is_bad, false);
        self.answered(status, page)
    }

    fn still<'f>(&'f self, style: &'f str) -> html::Frame<'f> {
        html::Frame::new(self.plan, self.t, &self.base, style, State::Unknown)
    }

    fn answered(&self, status: StatusCode, page: String) -> Response {
        let mut response = reply(&Rendered::new(HTML, page), self.fields, Caching::Private);
        if response.status() == StatusCode::OK {
            *response.status_mut() = status;
        }
        response
    }
}

/// The components that a form has chosen.
fn components(form: &str) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(form.as_bytes());
    let chosen = pairs.filter(|(name, _)| name == "component");
    chosen.map(|(_, key)| key.into_owned()).collect()
}
