//! `[acknowledge]`: links in notices, by which their receivers acknowledge an incident without signing in.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::oidc::is_protected;
use plimsoll_model::document::{Table, as_text};
use url::Url;

use crate::notify::AcknowledgePlan;

/// A shorter time would end while people look for their phone.
const SHORTEST: Duration = Duration::from_mins(5);

/// A link in an old mail should lead to nothing.
const LONGEST: Duration = Duration::from_hours(30 * 24);

pub(super) fn compile(mut table: Table<'_>) -> Option<Arc<AcknowledgePlan>> {
    let url = table.take_value("url");
    if url.is_none() {
        table.missing("url", "where browsers reach this monitor");
    }
    let url = url.and_then(|value| {
        let text = as_text(&value)?;
        match Url::parse(text) {
            Ok(url) if url.query().is_none() && url.fragment().is_none() && is_protected(&url) => {
                Some(text.trim_end_matches('/').to_owned())
            }
            _ => value
                .wrong("must be a URL that begins with `https://`; `http://` only on localhost"),
        }
    });
    let lasts = match table.take_value("lasts") {
        None => Some(Duration::from_hours(24)),
        Some(value) => {
            let parsed = plimsoll_model::parse_duration(as_text(&value)?);
            match value.check(parsed) {
                Some(lasts) if !(SHORTEST..=LONGEST).contains(&lasts) => {
                    value.wrong("must be from 5 minutes to 30 days")
                }
                lasts => lasts,
            }
        }
    };
    table.finish();
    Some(Arc::new(AcknowledgePlan {
        url: url?,
        lasts: lasts?,
    }))
}
