//! Passwords that readers give: of a page, in its form or by Basic, and of `security.basic` of a Gatus file.
//!
//! All of them pass here, so that each attempt counts for its source before the password is looked at.

use std::net::IpAddr;
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_monitor::time::Timestamp;
use plimsoll_server::BasicAuth;

use crate::state::Api;

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The password is right.
    Admitted,
    /// It is wrong, or there is none.
    Wrong,
    /// The source has tried too many, or too many wait; how long to wait.
    TooMany(Duration),
}

/// Tries the name and the password in a value of `authorization`.
///
/// One that was right lately is remembered, and costs no attempt: programs send it with every request. A source whose attempts
/// are used up may not try that either, since it may be a guess.
pub(crate) async fn attempt(
    api: &Api,
    auth: &BasicAuth,
    authorization: Option<&[u8]>,
    client: IpAddr,
) -> Attempt {
    let Some(authorization) = authorization else {
        return Attempt::Wrong;
    };
    let now = Timestamp::from_system(api.clock.wall());
    if let Some(wait) = api.attempts.wait(client, now) {
        return Attempt::TooMany(wait);
    }
    if auth.remembers(authorization) {
        return Attempt::Admitted;
    }
    if let Err(wait) = api.attempts.count_source(client, now) {
        return Attempt::TooMany(wait);
    }
    match auth.admits(authorization).await {
        Some(true) => Attempt::Admitted,
        Some(false) => Attempt::Wrong,
        None => Attempt::TooMany(Duration::from_secs(1)),
    }
}
