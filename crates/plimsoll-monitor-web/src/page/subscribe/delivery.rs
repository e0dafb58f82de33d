//! Sends what waits for subscribers, several at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use plimsoll_client::AddressFilter;
use plimsoll_client::fetch::Fetcher;
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::{Board, Parts};
use plimsoll_monitor::notify::{HttpRequest, LIMITS, Mail, Outgoing, SendFailure, backoff, send};
use plimsoll_monitor::stop::Stop;
use plimsoll_monitor::store::{
    DeclaredId, IncidentId, NoticeOutcome, NoticeState, OrgId, Store, StoreError, StoredNotice,
};
use plimsoll_monitor::time::Timestamp;
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::Trust;
use ring::hmac;
use serde_json::{Value, json};
use url::Url;

use crate::language::Texts as _;
use crate::page::subscribe::record::Subscriber;
use crate::page::subscribe::{CHANNEL, Means, SubscriptionPlan};
use crate::page::{Language, PagePlan, PublicIncident, Rows, Words, incidents_of};

/// Between two looks at the outbox while nothing changes.
const LOOK: Duration = Duration::from_secs(1);

/// Messages of one look, and of these at a time.
const MOST_AT_ONCE: usize = 500;
const AT_A_TIME: usize = 8;

/// Attempts before a message is given up: about two hours.
const MOST_ATTEMPTS: u32 = 10;

/// Delivers until it should end.
pub(crate) async fn run(parts: Parts) {
    let Parts {
        mut stop,
        org,
        store,
        board,
        report,
    } = parts;
    let mut changes = board.subscribe();
    loop {
        if let Some(plan) = board.subscriptions() {
            let delivery = UpdateDelivery {
                org,
                store: &*store,
                board: &board,
                plan: &plan,
            };
            if let Err(error) = delivery.deliver(stop.clone()).await {
                report(&format!("cannot send messages to subscribers: {error}"));
                if stop.comes_within(LOOK * 10).await {
                    return;
                }
            }
        }
        if stop.comes_before_a_change(&mut changes, LOOK).await {
            return;
        }
    }
}

struct UpdateDelivery<'a> {
    org: OrgId,
    store: &'a dyn Store,
    board: &'a Board,
    plan: &'a SubscriptionPlan,
}

/// The fate of a message.
enum Prepared {
    Send(Box<Outgoing>),
    Drop(&'static str),
}

impl UpdateDelivery<'_> {
    async fn deliver(&self, mut stop: Stop) -> Result<(), StoreError> {
        let now = Timestamp::from_system(SystemClock.wall());
        let due = self
            .store
            .due_notices(self.org, CHANNEL, now, MOST_AT_ONCE)
            .await?;
        if due.is_empty() {
            return Ok(());
        }
        let filter = (!self.plan.allows_private).then(AddressFilter::public);
        let fetcher = Fetcher::reaching(Trust::PublicRoots, LIMITS, filter);
        let fetcher = fetcher.map_err(|error| StoreError::Database(error.to_string()))?;
        let stored = Subscriber::all(self.store, self.org).await?;
        let stored = stored.into_iter();
        let subscribers: HashMap<_, _> = stored.map(|(one, it)| (one.key, it)).collect();
        let mut prepared = Vec::with_capacity(due.len());
        for notice in due {
            let what = self.prepare(&notice, &subscribers, now).await?;
            prepared.push((notice, what));
        }
        let sending = prepared.into_iter().map(async |(notice, what)| match what {
            Prepared::Drop(why) => ended(&notice, NoticeState::Dropped, Some(why)),
            Prepared::Send(outgoing) => outcome(&notice, send(&outgoing, &fetcher, &[]).await, now),
        });
        // Settled as they come: a process that ends repeats only what was on its way.
        let sending = stream::iter(sending).take_until(stop.wait());
        let sending = sending.buffer_unordered(AT_A_TIME);
        let mut ended = std::pin::pin!(sending.ready_chunks(AT_A_TIME));
        while let Some(outcomes) = ended.next().await {
            self.store
                .settle_notices(self.org, outcomes, Vec::new(), now)
                .await?;
        }
        Ok(())
    }

    async fn prepare(
        &self,
        notice: &StoredNotice,
        subscribers: &HashMap<String, Subscriber>,
        now: Timestamp,
    ) -> Result<Prepared, StoreError> {
        let message: Value = serde_json::from_str(&notice.message).unwrap_or_default();
        let id = message["subscriber"].as_str().unwrap_or_default();
        let Some(subscriber) = subscribers.get(id) else {
            return Ok(Prepared::Drop("the subscription has ended"));
        };
        let pages = self.board.pages();
        let page = pages.iter().find(|page| page.slug == subscriber.page);
        let Some((page, url)) = page.and_then(|page| Some((page, page.url.as_deref()?))) else {
            return Ok(Prepared::Drop("the page is gone, or has no `url`"));
        };
        let outgoing = SubscriberMessage {
            subscriber,
            page,
            url,
            link: format!("{id}.{}", subscriber.token),
            language: Language::with_tag(&subscriber.language).unwrap_or(page.language),
            now,
        };
        if message["kind"] == "confirm" {
            if subscriber.confirmed.is_some() {
                return Ok(Prepared::Drop("the subscription has begun"));
            }
            return Ok(outgoing.confirm(self.plan));
        }
        let Some(incident) = self.incident(page, &message, now).await? else {
            return Ok(Prepared::Drop("the incident is gone"));
        };
        let at = message["at"].as_i64().unwrap_or_default();
        Ok(outgoing.update(self.plan, &incident, Timestamp(at)))
    }

    async fn incident(
        &self,
        page: &Arc<PagePlan>,
        message: &Value,
        now: Timestamp,
    ) -> Result<Option<PublicIncident>, StoreError> {
        let id = message["incident"].as_str().unwrap_or_default();
        let mut rows = Rows::default();
        let number = |prefix| id.strip_prefix(prefix)?.parse::<i64>().ok();
        if let Some(number) = number('m') {
            let found = self.store.incident(self.org, IncidentId(number)).await?;
            rows.incidents = found.into_iter().collect();
        } else if let Some(number) = number('d') {
            let found = self
                .store
                .declared_one(self.org, DeclaredId(number))
                .await?;
            rows.declared.extend(found);
        }
        let views = self.board.views_of(page);
        Ok(incidents_of(page, &views, &rows, now).into_iter().next())
    }
}

/// A message to one subscriber.
struct SubscriberMessage<'a> {
    subscriber: &'a Subscriber,
    page: &'a PagePlan,
    url: &'a str,
    /// The token in the links.
    link: String,
    language: Language,
    now: Timestamp,
}

impl SubscriberMessage<'_> {
    fn below(&self, action: &str) -> String {
        format!("{}/subscribe/{action}?link={}", self.url, self.link)
    }

    fn confirm(&self, plan: &SubscriptionPlan) -> Prepared {
        let (t, title) = (self.language, &self.page.title);
        let link = self.below("confirm");
        let subject = t.with("mail_confirm_subject", "title", title);
        let text = t
            .with("mail_confirm", "title", title)
            .replace("{link}", &link);
        match self.subscriber.means {
            Means::Email => self.mail(plan, &subject, text, |mail| mail),
            Means::Slack => self.post(&json!({ "text": format!("{subject}\n{text}") })),
            Means::Webhook => self.post(&json!({
                "meta": { "confirm": link, "unsubscribe": self.below("stop") },
                "page": { "name": title, "url": self.url },
            })),
        }
    }

    fn update(
        &self,
        plan: &SubscriptionPlan,
        incident: &PublicIncident,
        at: Timestamp,
    ) -> Prepared {
        let t = self.language;
        let words = Words::new(self.page, t);
        let Some(update) = incident.updates.iter().find(|update| update.at == at) else {
            return Prepared::Drop("the update is gone");
        };
        let title = words.title(incident);
        let phase = words.phase(update.phase);
        let body = words.body(incident, update);
        let link = format!("{}/incidents/{}", self.url, incident.id);
        let stop = self.below("stop");
        match self.subscriber.means {
            Means::Email => {
                let subject = format!("[{}] {phase}: {title}", self.page.title);
                let end = t.with("mail_stop", "link", &stop);
                let when = words.time(at);
                let text = format!("{title}\n{phase} · {when}\n\n{body}\n\n{link}\n\n--\n{end}\n");
                let begins = incident.updates.last().is_some_and(|first| first.at == at);
                let date = at.to_string();
                let later = (!begins).then_some(["update", date.as_str()]);
                let thread = [self.url, &self.subscriber.address, &incident.id];
                self.mail(plan, &subject, text, |mail| mail.in_thread(&thread, later))
            }
            Means::Slack => {
                let color = if incident.is_over() {
                    "#2da44e"
                } else {
                    "#d9413d"
                };
                self.post(&json!({ "attachments": [{
                    "color": color,
                    "fallback": format!("{phase}: {title}"),
                    "author_name": self.page.title,
                    "author_link": self.url,
                    "title": format!("{phase}: {title}"),
                    "title_link": link,
                    "text": body,
                    "footer": t.with("mail_stop", "link", &stop),
                    "ts": at.0.div_euclid(1000),
                }] }))
            }
            Means::Webhook => {
                let incident = words.json(incident, self.url);
                self.post(&json!({
                    "meta": { "unsubscribe": stop, "documentation": null },
                    "page": words.page(self.url),
                    "incident": incident,
                }))
            }
        }
    }

    fn mail(
        &self,
        plan: &SubscriptionPlan,
        subject: &str,
        text: String,
        placed: impl FnOnce(Mail) -> Mail,
    ) -> Prepared {
        let Some(mailer) = &plan.mailer else {
            return Prepared::Drop("there are no subscriptions by mail");
        };
        let stop = self.below("stop");
        match mailer.mail(&self.subscriber.address, subject, text, Some(stop)) {
            Some(mail) => Prepared::Send(Box::new(Outgoing::Mail(Box::new(placed(mail))))),
            None => Prepared::Drop("the address is not understood"),
        }
    }

    fn post(&self, body: &Value) -> Prepared {
        let Ok(url) = Url::parse(&self.subscriber.address) else {
            return Prepared::Drop("the address is not understood");
        };
        let content = body.to_string();
        let seconds = self.now.0.div_euclid(1_000);
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.subscriber.token.as_bytes());
        let mut tag = [0; 32];
        tag.copy_from_slice(hmac::sign(&key, format!("{seconds}.{content}").as_bytes()).as_ref());
        let signature = format!("t={seconds},v1={}", ApiToken::written(&tag));
        let fields = [
            ("content-type", "application/json".to_owned()),
            ("plimsoll-signature", signature),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Prepared::Send(Box::new(Outgoing::Http(HttpRequest {
            fields: fields.into(),
            content,
            ..HttpRequest::new("POST", url)
        })))
    }
}

fn outcome(notice: &StoredNotice, sent: Result<(), SendFailure>, now: Timestamp) -> NoticeOutcome {
    match sent {
        Ok(()) => ended(notice, NoticeState::Sent, None),
        Err(failure) if failure.is_final || notice.attempts + 1 >= MOST_ATTEMPTS => {
            ended(notice, NoticeState::GivenUp, Some(&failure.reason))
        }
        Err(failure) => NoticeOutcome {
            id: notice.id,
            state: NoticeState::Waiting,
            due: now.plus(backoff(notice.attempts)),
            error: Some(failure.reason),
        },
    }
}

fn ended(notice: &StoredNotice, state: NoticeState, why: Option<&str>) -> NoticeOutcome {
    NoticeOutcome {
        id: notice.id,
        state,
        due: notice.due,
        error: why.map(str::to_owned),
    }
}
