//! Parameters of queries: known ones only, each checked.

use std::time::Duration;

use plimsoll_model::parse_duration;

use crate::answer::ApiError;

/// The parameters of one request, which are taken.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// - `query`: what stands behind the question mark.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    pub(super) fn take_text(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.swap_remove(position).1)
    }

    /// A whole number within `1..=most`.
    pub(super) fn count(
        &mut self,
        name: &'static str,
        default: usize,
        most: usize,
    ) -> Result<usize, ApiError> {
        let Some(text) = self.take_text(name) else {
            return Ok(default);
        };
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            ApiError::invalid(name, format!("must be a whole number from 1 to {most}"))
        })
    }

    /// A duration such as `24h` or `30d`.
    pub(super) fn duration(
        &mut self,
        name: &'static str,
        default: Duration,
    ) -> Result<Duration, ApiError> {
        const LONGEST: Duration = Duration::from_hours(24 * 400);

        let Some(text) = self.take_text(name) else {
            return Ok(default);
        };
        match parse_duration(&text) {
            Ok(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
            _ => Err(ApiError::invalid(
                name,
                "must be a duration of at most 400 days, such as 24h or 30d",
            )),
        }
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<(), ApiError> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::invalid(
                "query",
                format!("unknown parameter `{name}`"),
            )),
        }
    }
}
