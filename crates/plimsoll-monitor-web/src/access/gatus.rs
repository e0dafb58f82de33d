//! Users of a Gatus file: `security.basic`.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use plimsoll_monitor::config::{Dialect, GatusSettings};

use crate::access::passwords::{Attempt, attempt};
use crate::answer::ApiError;
use crate::state::Api;

/// Those of the file, if it is Gatus's.
pub(crate) fn settings(api: &Api) -> Option<GatusSettings> {
    match api.handle.board.dialect() {
        Some(Dialect::Gatus(settings)) => Some(settings),
        _ => None,
    }
}

/// Whether a request has the user of Gatus's `security.basic`, if that is set.
pub(super) async fn check_user(
    api: &Api,
    settings: &GatusSettings,
    fields: &HeaderMap,
    client: IpAddr,
) -> Result<(), ApiError> {
    let Some(login) = &settings.basic else {
        return Ok(());
    };
    let given = fields.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    match attempt(api, &login.auth, given, client).await {
        Attempt::Admitted => Ok(()),
        Attempt::Wrong => Err(ApiError::unauthorized()),
        Attempt::TooMany(wait) => Err(ApiError::busy(wait)),
    }
}
