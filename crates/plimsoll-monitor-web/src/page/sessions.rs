//! Sessions of readers, and how often they may leave addresses and follow links.

use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use plimsoll_monitor::time::Timestamp;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::limits;
use crate::page::PagePassword;
use crate::page::share::Share;
use crate::page::subscribe::{OF_SITE, OF_SOURCE};

/// Sessions of readers last so long.
pub(crate) const SESSION: Duration = Duration::from_hours(30 * 24);

/// Signs sessions, for as long as the program runs, and counts new subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    key: OnceLock<hmac::Key>,
    /// New subscriptions by source.
    subscriptions: Mutex<limits::Counts>,
    /// Links of subscribers that were not valid, by source.
    wrong_links: Mutex<limits::Counts>,
    /// The links that were last read, for the time in which the store is away.
    shares: Mutex<Vec<Share>>,
}

impl Sessions {
    fn key(&self) -> Option<&hmac::Key> {
        if let Some(key) = self.key.get() {
            return Some(key);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        Some(self.key.get_or_init(|| key))
    }

    pub(crate) fn signed(&self, slug: &str, password: &PagePassword, until: i64) -> Option<String> {
        let tag = hmac::sign(self.key()?, &content(slug, password, until));
        let tag = BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref());
        Some(format!("{until}.{tag}"))
    }

    pub(crate) fn is_valid(
        &self,
        slug: &str,
        password: &PagePassword,
        session: &str,
        now: Timestamp,
    ) -> bool {
        let Some((until, tag)) = session.split_once('.') else {
            return false;
        };
        let (Ok(end), Ok(tag)) = (until.parse::<i64>(), BASE64_URL_SAFE_NO_PAD.decode(tag)) else {
            return false;
        };
        let Some(key) = self.key() else {
            return false;
        };
        end > now.0 && hmac::verify(key, &content(slug, password, end), &tag).is_ok()
    }

    /// Whether a share link opens a page.
    ///
    /// - `listed`: all share links; absent while the store is away, when those that were last read count.
    pub(crate) fn opens_share(
        &self,
        listed: Option<Vec<Share>>,
        slug: &str,
        token: &str,
        now: Timestamp,
    ) -> bool {
        let mut known = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = listed {
            *known = listed;
        }
        known.iter().any(|share| share.opens(slug, token, now))
    }

    /// Whether a source may follow another link of a subscriber.
    pub(crate) fn may_follow_links(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.wrong_links.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        limits::wait(&counts, &limits::source(address), WRONG_LINKS, now).is_none()
    }

    /// Counts a link that is not valid.
    pub(crate) fn followed_wrong_link(&self, address: IpAddr, now: Timestamp) {
        let counts = self.wrong_links.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        limits::add(&mut counts, &limits::source(address), WRONG_LINKS, now);
    }

    /// Whether a source may leave another address today.
    pub(crate) fn may_subscribe(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.subscriptions.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        let mut add = |name: &str, limit| limits::add(&mut counts, name, limit, now).is_none();
        add(&limits::source(address), OF_SOURCE) && add(&limits::site(address), OF_SITE)
    }
}

/// Invalid subscriber links that one source may follow in a minute.
const WRONG_LINKS: (u32, Duration) = (10, Duration::from_mins(1));

/// Signed content of a session: another password of the page ends it.
fn content(slug: &str, password: &PagePassword, until: i64) -> Vec<u8> {
    [format!("{slug} {until} ").as_bytes(), &password.fingerprint].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use plimsoll_server::BasicAuth;

    use super::*;

    fn password(fingerprint: u8) -> PagePassword {
        PagePassword {
            auth: Arc::new(BasicAuth::new("page", HashMap::new()).unwrap()),
            fingerprint: [fingerprint; 32],
        }
    }

    #[test]
    fn sessions_are_of_one_page_with_one_password_and_end() {
        let sessions = Sessions::default();
        let [one, other] = [password(1), password(2)];
        let session = sessions.signed("a", &one, 1_000).unwrap();
        let later = session.replace("1000", "2000");
        assert!(sessions.is_valid("a", &one, &session, Timestamp(999)));
        assert!(!sessions.is_valid("a", &one, &session, Timestamp(1_000)));
        assert!(!sessions.is_valid("b", &one, &session, Timestamp(0)));
        assert!(!sessions.is_valid("a", &other, &session, Timestamp(0)));
        assert!(!sessions.is_valid("a", &one, &later, Timestamp(0)));
        assert!(!Sessions::default().is_valid("a", &one, &session, Timestamp(0)));
    }
}
