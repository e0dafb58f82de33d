//! Subscription and unsubscription of readers.

use std::time::Duration;

use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::Handle;
use plimsoll_monitor::store::{
    About, Definition, DefinitionChanges, DefinitionKind, NewAudit, NewNotice, PutDefinition,
    StoreError,
};
use plimsoll_monitor::time::Timestamp;
use serde_json::json;

use crate::page::subscribe::record::Subscriber;
use crate::page::subscribe::{CHANNEL, Means, SubscriptionPlan};
use crate::page::{Language, PagePlan};
use crate::random;

/// Subscribers of an organisation, those who have not followed their link included.
const MOST: usize = 20_000;

/// Links of the first message are valid for so long.
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_hours(24);

const KIND: DefinitionKind = DefinitionKind::Subscriber;

/// Another process on the store may change the same subscriber at the same time; each attempt reads it again.
const ATTEMPTS: usize = 3;

/// Addresses that wait for their links to be followed; others have to come later.
const MOST_WAITING: usize = 5_000;

/// New addresses from one source in a day.
pub(crate) const OF_SOURCE: (u32, Duration) = (20, Duration::from_hours(24));

/// New addresses from one network of a site in a day: one line has many sources in IPv6.
pub(crate) const OF_SITE: (u32, Duration) = (100, Duration::from_hours(24));

/// Links that wait in one mailbox, whatever its address is written as.
const MOST_OF_MAILBOX: usize = 3;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubscribeError {
    /// The address is not understood.
    #[error("the address is not understood")]
    Address,
    /// There are too many.
    #[error("there are too many subscribers")]
    Full,
    /// The link is not valid, or not any more.
    #[error("the link is not valid")]
    Link,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All subscribers with their keys.
pub(crate) async fn list(handle: &Handle) -> Result<Vec<(String, Subscriber)>, StoreError> {
    let all = Subscriber::all(&*handle.store, handle.org).await?;
    Ok(all.into_iter().map(|(one, it)| (one.key, it)).collect())
}

/// The components of a page that a form has chosen; empty if these are all, or none.
fn chosen(page: &PagePlan, given: &[String]) -> Vec<String> {
    let all = page.components().count();
    let known = page.components().map(|one| &one.key);
    let chosen: Vec<_> = known.filter(|key| given.contains(key)).cloned().collect();
    if chosen.len() == all {
        Vec::new()
    } else {
        chosen
    }
}

/// Notes an address and sends it a link. An address that is there already gets no second message within a day, and the
/// answer is the same, so that it does not show who has subscribed.
pub(crate) async fn subscribe(
    handle: &Handle,
    plan: &SubscriptionPlan,
    page: &PagePlan,
    (means, given, components): (Means, &str, &[String]),
    language: Language,
    now: Timestamp,
) -> Result<(), SubscribeError> {
    let is_offered = plan.means().contains(&means);
    let address = means.address(given, plan.allows_private);
    let address = address
        .filter(|_| is_offered)
        .ok_or(SubscribeError::Address)?;
    let _changing = handle.changing.lock().await;
    let all = list(handle).await?;
    let id = Subscriber::id(&page.slug, means, &address);
    let known = all.iter().find(|(key, _)| *key == id);
    if let Some((_, known)) = known {
        let is_fresh = now.since(Timestamp(known.asked)) < CONFIRM_WITHIN;
        if known.confirmed.is_some() || is_fresh {
            return Ok(());
        }
    } else if all.len() >= MOST || waiting(&all) >= MOST_WAITING {
        return Err(SubscribeError::Full);
    }
    // A mailbox is not filled by means of `+` and capitals; the answer is the same.
    if means == Means::Email && waiting_in(&all, &address, now) >= MOST_OF_MAILBOX {
        return Ok(());
    }
    let bits = random::bits().ok_or(StoreError::Busy)?;
    let subscriber = Subscriber {
        page: page.slug.clone(),
        means,
        address,
        language: language.code().to_owned(),
        token: ApiToken::written(&bits),
        components: chosen(page, components),
        asked: now.0,
        confirmed: None,
    };
    let was = match known {
        None => None,
        Some(_) => handle.store.definition(handle.org, KIND, &id).await?,
    };
    match write(handle, &id, was.as_ref(), &subscriber, now).await {
        // Another process has just noted the same address.
        Err(StoreError::Conflict | StoreError::NotFound(_)) => return Ok(()),
        written => written?,
    }
    let first = NewNotice {
        channel: CHANNEL.to_owned(),
        about: About::Other,
        dedup: format!("{id}/confirm/{}", now.0),
        message: json!({ "kind": "confirm", "subscriber": id }).to_string(),
        due: now,
    };
    handle
        .store
        .settle_notices(handle.org, Vec::new(), vec![first], now)
        .await?;
    handle.board.touch();
    Ok(())
}

fn waiting(all: &[(String, Subscriber)]) -> usize {
    let is_waiting = |(_, one): &&(String, Subscriber)| one.confirmed.is_none();
    all.iter().filter(is_waiting).count()
}

/// Addresses of the same mailbox whose links were sent within the time in which these are valid.
fn waiting_in(all: &[(String, Subscriber)], address: &str, now: Timestamp) -> usize {
    let mailbox = mailbox(address);
    let is_waiting = |(_, one): &&(String, Subscriber)| {
        one.means == Means::Email
            && one.confirmed.is_none()
            && now.since(Timestamp(one.asked)) < CONFIRM_WITHIN
            && self::mailbox(&one.address) == mailbox
    };
    all.iter().filter(is_waiting).count()
}

/// The mailbox of an address: without what follows `+`, in small letters (RFC 5233, section 1).
fn mailbox(address: &str) -> String {
    let address = address.to_lowercase();
    let (user, domain) = address.rsplit_once('@').unwrap_or((&address, ""));
    let user = user.split('+').next().unwrap_or_default();
    format!("{user}@{domain}")
}

/// Begins a subscription. A link that is followed twice changes nothing more.
pub(crate) async fn confirm(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
    now: Timestamp,
) -> Result<(), SubscribeError> {
    edit(handle, page, link, now, |subscriber| {
        if subscriber.confirmed.is_none() {
            if now.since(Timestamp(subscriber.asked)) >= CONFIRM_WITHIN {
                return Err(SubscribeError::Link);
            }
            subscriber.confirmed = Some(now.0);
        }
        Ok(())
    })
    .await
}

/// Changes which components a subscription is about.
pub(crate) async fn change(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
    components: &[String],
    now: Timestamp,
) -> Result<(), SubscribeError> {
    edit(handle, page, link, now, |subscriber| {
        subscriber.components = chosen(page, components);
        Ok(())
    })
    .await
}

/// Changes the subscriber of a link as it is now. An edit that changes nothing writes nothing.
async fn edit(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
    now: Timestamp,
    change: impl Fn(&mut Subscriber) -> Result<(), SubscribeError>,
) -> Result<(), SubscribeError> {
    let _changing = handle.changing.lock().await;
    for _ in 0..ATTEMPTS {
        let (stored, subscriber) = subscriber_of_link(handle, page, link).await?;
        let mut changed = subscriber.clone();
        change(&mut changed)?;
        if changed == subscriber {
            return Ok(());
        }
        match write(handle, &stored.key, Some(&stored), &changed, now).await {
            Err(StoreError::Conflict) => {}
            Err(StoreError::NotFound(_)) => return Err(SubscribeError::Link),
            written => return Ok(written?),
        }
    }
    Err(StoreError::Conflict.into())
}

/// The components that the subscription of a link is about; empty for all.
pub(crate) async fn components(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
) -> Result<Vec<String>, SubscribeError> {
    let (_, subscriber) = subscriber_of_link(handle, page, link).await?;
    Ok(subscriber.components)
}

/// Ends a subscription.
pub(crate) async fn stop(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
    now: Timestamp,
) -> Result<(), SubscribeError> {
    let _changing = handle.changing.lock().await;
    let (stored, _) = subscriber_of_link(handle, page, link).await?;
    match remove(handle, &stored.key, None, now).await {
        // Another process has just ended it.
        Err(StoreError::NotFound(_)) => Err(SubscribeError::Link),
        removed => Ok(removed?),
    }
}

/// Removes a subscriber; fails with [`StoreError::NotFound`] if there is none.
pub(crate) async fn remove(
    handle: &Handle,
    id: &str,
    audit: Option<NewAudit>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let changes = DefinitionChanges {
        removals: vec![(id.to_owned(), None)],
        audit: audit.into_iter().collect(),
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}

/// The subscriber of a link, with its definition. The link is the key and the token, joined by a dot.
async fn subscriber_of_link(
    handle: &Handle,
    page: &PagePlan,
    link: &str,
) -> Result<(Definition, Subscriber), SubscribeError> {
    let (id, token) = link.split_once('.').ok_or(SubscribeError::Link)?;
    let stored = handle.store.definition(handle.org, KIND, id).await?;
    let stored = stored.ok_or(SubscribeError::Link)?;
    let found = Subscriber::of_text(&stored.text);
    let found = found.filter(|it| it.page == page.slug && it.has_token(token));
    Ok((stored, found.ok_or(SubscribeError::Link)?))
}

/// - `was`: the definition that it replaces, which must not have changed since.
async fn write(
    handle: &Handle,
    id: &str,
    was: Option<&Definition>,
    subscriber: &Subscriber,
    now: Timestamp,
) -> Result<(), StoreError> {
    let changes = DefinitionChanges {
        puts: vec![PutDefinition {
            id: None,
            key: id.to_owned(),
            was: was.map(|was| was.key.clone()),
            version: was.map(|was| was.version),
            text: subscriber.to_text(),
            monitor: None,
        }],
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}
