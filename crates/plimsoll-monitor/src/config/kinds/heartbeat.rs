//! Heartbeats: what is monitored sends a request when it has run.

use std::time::Duration;

use jiff::tz::TimeZone;
use plimsoll_model::document::{Value, as_text};
use plimsoll_model::parse_duration;

use crate::config::kinds::Kind;
use crate::config::maintenance::zone;
use crate::config::plan::{EveryOrCron, HeartbeatPlan, What};
use crate::token::of_url;

pub(super) fn heartbeat(value: Value<'_>) -> Option<Kind> {
    let mut table = value.table()?;
    let token = if let Some(value) = table.take_value("token") {
        Some(of_url(&value)?)
    } else {
        table.missing(
            "token",
            "what makes the URL of the heartbeat secret, such as a UUID",
        );
        None
    };
    let slug = match table.take_value("slug") {
        None => Some(None),
        Some(value) => slug(&value).map(Some),
    };
    let grace = table.duration("grace").unwrap_or(Duration::from_mins(1));
    let most_runtime = table.duration("max_runtime");
    let resumes = table.boolean("resume_on_ping").unwrap_or(false);
    let about = table.text("about").filter(|about| !about.is_empty());
    let zone = table
        .take_value("zone")
        .map_or(Some(TimeZone::UTC), |value| zone(&value));
    let due = match (table.take_value("every"), table.take_value("cron")) {
        (Some(value), None) => {
            let period = value.check(parse_duration(as_text(&value)?))?;
            if period < Duration::from_secs(1) {
                return value.wrong("must be at least 1s");
            }
            Some(EveryOrCron::Every(period))
        }
        (None, Some(value)) => {
            let cron = value.check(as_text(&value)?.parse())?;
            Some(EveryOrCron::Cron(cron, zone?))
        }
        _ => {
            table.wrong(
                "either `every` or `cron` says when a heartbeat is due",
                None,
            );
            None
        }
    };
    table.finish();
    Some(Kind {
        name: "heartbeat",
        what: What::Heartbeat(HeartbeatPlan {
            token: token?,
            slug: slug?,
            due: due?,
            grace,
            most_runtime,
            resumes,
            about,
        }),
        expect: Vec::new(),
    })
}

/// A name in the URL of a heartbeat.
fn slug(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if text.is_empty() || !text.chars().all(is_plain) {
        return value.wrong("must be made of lower-case letters, digits, hyphens and underscores");
    }
    Some(text.to_owned())
}
