//! Sends what waits in the outbox: one task for each channel, so that a slow receiver holds up no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher, FetcherError};
use plimsoll_model::{Clock, Secret, is_secret_field};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::Trust;
use serde_json::Value;
use tokio::sync::watch;

use crate::notify::channel::{HttpRequest, Outgoing};
use crate::notify::link::{AcknowledgePlan, LinkKey};
use crate::notify::message::{Message, NoticeKind, backoff};
use crate::notify::plan::NotifyPlan;
use crate::probe::KnownSecrets;
use crate::probe::known_secrets::MASK;
use crate::stop::Stop;
use crate::store::{
    About, NewNotice, NoticeOutcome, NoticeState, OrgId, Store, StoreError, StoredNotice,
};
use crate::time::Timestamp;

/// For one request or mail.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of an answer, such as a list of issues.
const MOST_ANSWER: u64 = 1024 * 1024;

/// Between two looks at the outbox while nothing changes.
const LOOK: Duration = Duration::from_secs(1);

/// Between two looks at least: while much changes, each would read the same.
const REST: Duration = Duration::from_millis(100);

/// Notices of one look.
const MOST_AT_ONCE: usize = 20_000;

/// Attempts before a notice is given up: after three and a half hours.
const MOST_ATTEMPTS: u32 = 12;

/// Notices of one kind that are sent one by one; more of them become one.
const FEW: usize = 3;

/// A mass failure is reported once no other notice of its kind has come for so long, and after so long at the latest.
const QUIET: Duration = Duration::from_secs(1);
const MOST_QUIET: Duration = Duration::from_secs(10);

/// Delivers the notices of one channel.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) org: OrgId,
    pub(crate) store: Arc<dyn Store>,
    /// Something happened that may have made notices.
    pub(crate) changes: watch::Receiver<u64>,
    /// Links by which receivers acknowledge an incident.
    pub(crate) links: Option<Arc<AcknowledgePlan>>,
    pub(crate) report: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Delivers the notices of one channel until it should end.
pub(crate) async fn run(mut delivery: Delivery, plan: Arc<NotifyPlan>, mut stop: Stop) {
    let fetcher = match fetcher(&plan) {
        Ok(fetcher) => fetcher,
        Err(error) => {
            (delivery.report)(&format!("notices to {} are not sent: {error}", plan.name));
            return;
        }
    };
    loop {
        if let Err(error) = delivery.deliver(&plan, &fetcher, &stop).await {
            (delivery.report)(&format!("cannot read notices to {}: {error}", plan.name));
            if stop.comes_within(LOOK * 10).await {
                return;
            }
        }
        if stop
            .comes_before_a_change(&mut delivery.changes, LOOK)
            .await
            || stop.comes_within(REST).await
        {
            return;
        }
    }
}

/// Of one request. Redirects lead nowhere.
pub const LIMITS: FetchLimits = FetchLimits {
    timeout: TIMEOUT,
    bytes: MOST_ANSWER,
    redirects: 0,
};

fn fetcher(plan: &NotifyPlan) -> Result<Fetcher, FetcherError> {
    Fetcher::reaching(Trust::PublicRoots, LIMITS, plan.filter.clone())
}

/// Sends a test message to a channel; the error is what its receiver answered.
pub async fn send_test(plan: &NotifyPlan) -> Result<(), SendFailure> {
    let now = Timestamp::from_system(SystemClock.wall());
    let message = Message {
        kind: NoticeKind::Test,
        title: "Test of plimsoll monitor".to_owned(),
        text: format!("The channel {} receives notices.", plan.name),
        monitor: "test".to_owned(),
        name: "test".to_owned(),
        group: String::new(),
        incident: format!("test/{}", now.0),
        at: now,
        since: now,
        link: None,
        acknowledge: None,
        is_escalated: false,
    };
    let fetcher = fetcher(plan).map_err(|error| SendFailure {
        reason: error.to_string(),
        is_final: true,
    })?;
    let notifier = &plan.notifier;
    send(
        &notifier.outgoing(&message, now),
        &fetcher,
        notifier.secrets(),
    )
    .await
}

/// Why a notice was not received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SendFailure {
    /// For people.
    pub reason: String,
    /// Whether another attempt is of no use.
    pub is_final: bool,
}

/// Sends a request or a mail once, and what follows from its answer.
///
/// - `secrets`: what is hidden in the reason of a failure.
pub async fn send(
    outgoing: &Outgoing,
    fetcher: &Fetcher,
    secrets: &[Secret],
) -> Result<(), SendFailure> {
    match outgoing {
        Outgoing::Http(request) => exchange(request, fetcher, secrets).await.map(|_| ()),
        Outgoing::Question(question) => {
            let answer = exchange(&question.request, fetcher, secrets).await?;
            match question.next(&answer)? {
                Some(next) => Box::pin(send(&next, fetcher, secrets)).await,
                None => Ok(()),
            }
        }
        Outgoing::Mail(mail) => match tokio::time::timeout(TIMEOUT, mail.send(fetcher)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err((is_final, reason))) => Err(SendFailure { reason, is_final }),
            Err(_) => Err(SendFailure {
                reason: format!("it takes longer than {TIMEOUT:?}"),
                is_final: false,
            }),
        },
    }
}

/// Sends a request; the JSON of the answer, if it means that the request was received.
async fn exchange(
    request: &HttpRequest,
    fetcher: &Fetcher,
    secrets: &[Secret],
) -> Result<Value, SendFailure> {
    let content = request.content.as_bytes();
    let fields = request.fields.clone();
    let sent = fetcher
        .send(request.method, &request.url, fields, Some(content))
        .await;
    let answer = sent.map_err(|error| SendFailure {
        reason: known_secrets(request, secrets)
            .hide(&error.to_string())
            .into_owned(),
        is_final: false,
    })?;
    judge(request, secrets, answer.status, &answer.content)
}

/// What an answer means; its JSON, or null, if the request was received.
pub(super) fn judge(
    request: &HttpRequest,
    secrets: &[Secret],
    status: u16,
    content: &[u8],
) -> Result<Value, SendFailure> {
    /// Characters of an answer that are shown.
    const MOST_SHOWN: usize = 200;

    let answers = request.answers;
    let json: Value = serde_json::from_slice(content).unwrap_or_default();
    let text = String::from_utf8_lossy(content);
    let is_received = (200..300).contains(&status) || answers.received.contains(&status);
    let code = answers
        .expected
        .and_then(|(member, _)| match json.get(member)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        });
    let expected = answers.expected.map(|(_, expected)| expected);
    if is_received && (code.is_none() || code.as_deref() == expected) {
        return Ok(json);
    }
    // Of the client's errors, 408 and 429 pass by themselves; redirects lead nowhere.
    let is_refused = is_received || ((300..500).contains(&status) && ![408, 429].contains(&status));
    let is_busy = code.is_some_and(|code| answers.busy.contains(&code.as_str()))
        || answers.busy_texts.iter().any(|part| text.contains(part));
    let is_final = is_refused && !is_busy;
    // Receivers may echo a request. Before it is cut: the rest of a credential would not be recognised.
    let text = known_secrets(request, secrets).hide(&text).into_owned();
    let text: String = text.trim().chars().take(MOST_SHOWN).collect();
    Err(SendFailure {
        reason: format!("status {status} {text}").trim().to_owned(),
        is_final,
    })
}

/// The credentials of a request: those of the settings, and what looks like one, since many receivers have theirs in the path.
pub(super) fn known_secrets(request: &HttpRequest, given: &[Secret]) -> KnownSecrets {
    /// Shorter parts of paths and queries are ordinary words.
    const SHORTEST: usize = 12;

    let mut secrets = KnownSecrets::default();
    for secret in given {
        secrets.add_field(secret.expose());
    }
    let url = &request.url;
    secrets.add_text(url.as_str());
    secrets.add_text(&request.content);
    let segments = url.path_segments().into_iter().flatten().map(str::to_owned);
    let values = url.query_pairs().map(|(_, value)| value.into_owned());
    for part in segments.chain(values).filter(|part| part.len() >= SHORTEST) {
        secrets.add(&part);
    }
    for (name, value) in &request.fields {
        if is_secret_field(name) {
            secrets.add_field(value);
        }
    }
    secrets
}

/// The fate of a notice that is due.
enum Verdict {
    Send(Message),
    /// It is no longer true.
    Drop(&'static str),
    /// An earlier one of the incident must go first.
    Wait,
}

impl Delivery {
    async fn deliver(
        &self,
        plan: &NotifyPlan,
        fetcher: &Fetcher,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        let now = Timestamp::from_system(SystemClock.wall());
        let due = self
            .store
            .due_notices(self.org, &plan.name, now, MOST_AT_ONCE)
            .await?;
        let key = match &self.links {
            Some(_) if !due.is_empty() => {
                Some(LinkKey::of_store(&*self.store, self.org, now).await?)
            }
            _ => None,
        };
        let mut by_kind: BTreeMap<NoticeKind, Vec<(StoredNotice, Message)>> = BTreeMap::new();
        let mut outcomes = Vec::new();
        for notice in due {
            match self.judge(plan, &notice).await? {
                Verdict::Send(mut message) => {
                    let key = key.as_ref();
                    message.acknowledge =
                        key.and_then(|key| self.link(key, &notice, message.kind, now));
                    let of_kind = by_kind.entry(message.kind).or_default();
                    of_kind.push((notice, message));
                }
                Verdict::Drop(why) => outcomes.push(ended(&notice, NoticeState::Dropped, why)),
                Verdict::Wait => {}
            }
        }
        self.settle(outcomes, Vec::new(), now).await?;
        for (_, notices) in by_kind {
            if notices.len() > FEW && plan.notifier.groups() {
                if is_growing(&notices, now) {
                    continue;
                }
                let messages: Vec<_> = notices.iter().map(|(_, it)| it.clone()).collect();
                if stop.is_set() {
                    return Ok(());
                }
                if let Some(message) = Message::grouped(&messages) {
                    self.send(plan, fetcher, &message, &notices).await?;
                }
                continue;
            }
            for notice in notices {
                if stop.is_set() {
                    return Ok(());
                }
                let message = notice.1.clone();
                self.send(plan, fetcher, &message, &[notice]).await?;
            }
        }
        Ok(())
    }

    /// The link by which the receiver of a notice acknowledges its incident.
    fn link(
        &self,
        key: &LinkKey,
        notice: &StoredNotice,
        kind: NoticeKind,
        now: Timestamp,
    ) -> Option<String> {
        let links = self.links.as_ref()?;
        let incident = notice.incident.as_ref()?;
        let waits = !incident.is_resolved && !incident.is_acknowledged;
        if !waits || !matches!(kind, NoticeKind::Opened | NoticeKind::Reminder) {
            return None;
        }
        let token = key.sign(incident.id, &notice.channel, now.plus(links.lasts));
        Some(format!("{}/acknowledge/{token}", links.url))
    }

    async fn judge(&self, plan: &NotifyPlan, notice: &StoredNotice) -> Result<Verdict, StoreError> {
        let Some(message) = Message::of_notice(notice) else {
            return Ok(Verdict::Drop("it cannot be read"));
        };
        let incident = notice.incident.as_ref();
        let is_open = incident.is_some_and(|incident| !incident.is_resolved);
        let is_acknowledged = incident.is_some_and(|incident| incident.is_acknowledged);
        match message.kind {
            NoticeKind::Opened if !message.is_escalated => Ok(Verdict::Send(message)),
            NoticeKind::Opened | NoticeKind::Reminder if !is_open => {
                Ok(Verdict::Drop("the incident is over"))
            }
            NoticeKind::Opened | NoticeKind::Reminder if is_acknowledged => {
                Ok(Verdict::Drop("the incident is acknowledged"))
            }
            NoticeKind::Resolved => {
                let opened = format!("{}/{}", message.incident, NoticeKind::Opened.name());
                let opened = self.store.notice(self.org, &plan.name, &opened).await?;
                Ok(match opened.map(|opened| opened.state) {
                    // Without the one that it opened there is nothing to resolve.
                    Some(NoticeState::Dropped) => Verdict::Drop("its incident was not reported"),
                    Some(NoticeState::Waiting) => Verdict::Wait,
                    None if plan.kinds.contains(&NoticeKind::Opened) => {
                        Verdict::Drop("its incident was not reported here")
                    }
                    _ => Verdict::Send(message),
                })
            }
            _ => Ok(Verdict::Send(message)),
        }
    }

    async fn send(
        &self,
        plan: &NotifyPlan,
        fetcher: &Fetcher,
        message: &Message,
        notices: &[(StoredNotice, Message)],
    ) -> Result<(), StoreError> {
        let now = Timestamp::from_system(SystemClock.wall());
        let notifier = &plan.notifier;
        let outgoing = notifier.outgoing(message, now);
        let mut sent = send(&outgoing, fetcher, notifier.secrets()).await;
        // A receiver may echo its request, and readers of the outbox may not acknowledge.
        if let (Err(failure), Some(link)) = (&mut sent, &message.acknowledge) {
            failure.reason = failure.reason.replace(link, MASK);
        }
        let mut more = Vec::new();
        let outcomes = notices.iter().map(|(notice, message)| match &sent {
            Ok(()) => {
                more.extend(reminder(plan, notice, message, now));
                ended(notice, NoticeState::Sent, "")
            }
            Err(failure) if failure.is_final || notice.attempts + 1 >= MOST_ATTEMPTS => {
                ended(notice, NoticeState::GivenUp, &failure.reason)
            }
            Err(failure) => NoticeOutcome {
                id: notice.id,
                state: NoticeState::Waiting,
                due: now.plus(backoff(notice.attempts)),
                error: Some(failure.reason.clone()),
            },
        });
        let outcomes: Vec<_> = outcomes.collect();
        if let Err(failure) = &sent {
            let is_over = outcomes
                .iter()
                .any(|outcome| outcome.state == NoticeState::GivenUp);
            let what = if is_over {
                "is given up"
            } else {
                "is tried again"
            };
            let (title, name) = (&message.title, &plan.name);
            (self.report)(&format!(
                "the notice \"{title}\" to {name} {what}: {}",
                failure.reason
            ));
        }
        self.settle(outcomes, more, now).await
    }

    async fn settle(
        &self,
        outcomes: Vec<NoticeOutcome>,
        more: Vec<NewNotice>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if outcomes.is_empty() && more.is_empty() {
            return Ok(());
        }
        self.store
            .settle_notices(self.org, outcomes, more, now)
            .await
    }
}

/// Whether more notices of a mass failure may be on their way.
fn is_growing(notices: &[(StoredNotice, Message)], now: Timestamp) -> bool {
    let due = || notices.iter().map(|(notice, _)| notice.due);
    let (Some(first), Some(last)) = (due().min(), due().max()) else {
        return false;
    };
    // After a step of the clock backwards nothing waits.
    last <= now && now.since(last) < QUIET && now.since(first) < MOST_QUIET
}

fn ended(notice: &StoredNotice, state: NoticeState, why: &str) -> NoticeOutcome {
    NoticeOutcome {
        id: notice.id,
        state,
        due: notice.due,
        error: (!why.is_empty()).then(|| why.to_owned()),
    }
}

/// The reminder that follows a notice of trouble.
fn reminder(
    plan: &NotifyPlan,
    notice: &StoredNotice,
    message: &Message,
    now: Timestamp,
) -> Option<NewNotice> {
    if !matches!(message.kind, NoticeKind::Opened | NoticeKind::Reminder)
        || !plan.kinds.contains(&NoticeKind::Reminder)
    {
        return None;
    }
    let title = match message.kind {
        NoticeKind::Opened => format!("Still: {}", message.title),
        _ => message.title.clone(),
    };
    let message = Message {
        kind: NoticeKind::Reminder,
        title,
        ..message.clone()
    };
    Some(NewNotice {
        channel: plan.name.clone(),
        about: About::Incident(notice.incident.as_ref()?.id),
        dedup: format!("reminder/{}", notice.id.0),
        message: message.to_json().to_string(),
        due: now.plus(plan.remind?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::Answers;

    #[test]
    fn answers_of_receivers_show_no_credentials_of_requests() {
        let request = HttpRequest {
            method: "POST",
            url: "https://hooks.example/services/T0001/B0001/abcdefghijklmnop?key=qrstuvwxyz123"
                .parse()
                .unwrap(),
            fields: vec![
                (
                    "authorization".to_owned(),
                    "Bearer of-the-bearer".to_owned(),
                ),
                ("title".to_owned(), "web is down".to_owned()),
            ],
            content: "{\"token\": \"of-the-content\", \"text\": \"web is down\"}".to_owned(),
            answers: &Answers::PLAIN,
        };
        let secrets = known_secrets(&request, &[]);
        for secret in [
            "abcdefghijklmnop",
            "qrstuvwxyz123",
            "of-the-bearer",
            "of-the-content",
        ] {
            let shown = secrets.hide(&format!("cannot use {secret}!")).into_owned();
            assert_eq!(shown, "cannot use ********!");
        }
        assert_eq!(
            secrets.hide("web is down, services T0001"),
            "web is down, services T0001"
        );
    }

    #[test]
    fn answers_mean_what_their_vendors_document() {
        const CODES: Answers = Answers {
            expected: Some(("errcode", "0")),
            busy: &["-1"],
            busy_texts: &["rate limit"],
            received: &[409],
        };
        let url = "https://a.example/".parse().unwrap();
        let mut request = HttpRequest::new("POST", url);
        let is_final = |request: &HttpRequest, status, text: &str| {
            judge(request, &[], status, text.as_bytes())
                .err()
                .map(|it| it.is_final)
        };
        for (status, expected) in [
            (200, None),
            (204, None),
            (302, Some(true)),
            (400, Some(true)),
            (403, Some(true)),
            (408, Some(false)),
            (409, Some(true)),
            (429, Some(false)),
            (500, Some(false)),
            (503, Some(false)),
        ] {
            assert_eq!(
                is_final(&request, status, "{\"errcode\": 1}"),
                expected,
                "{status}"
            );
        }
        request.answers = &CODES;
        for (status, text, expected) in [
            (200, "{\"errcode\": 0}", None),
            (200, "{\"errcode\": \"0\"}", None),
            (200, "{\"other\": 1}", None),
            (200, "no JSON", None),
            (
                200,
                "{\"errcode\": 310000, \"errmsg\": \"sign not match\"}",
                Some(true),
            ),
            (200, "{\"errcode\": -1}", Some(false)),
            (400, "{\"errcode\": -1}", Some(false)),
            (400, "{\"errcode\": 310000}", Some(true)),
            (409, "", None),
            (403, "API rate limit exceeded", Some(false)),
            (403, "Forbidden", Some(true)),
        ] {
            assert_eq!(
                is_final(&request, status, text),
                expected,
                "{status} {text}"
            );
        }
    }
}
