//! Whether what lists the servers of an upstream answers, and since when it does not.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::discovery::Discovery;

/// Of one source.
#[derive(Debug)]
pub(super) struct SourceState {
    kind: &'static str,
    name: String,
    is_listed: bool,
    /// Since when it gives no list, and why.
    away: Option<(Instant, String)>,
}

/// A source, for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SourceStatus {
    /// `file`, `srv`, `kubernetes`, `docker` or `consul`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// `starting` before the first list, then `current` or `away`.
    pub(crate) state: &'static str,
    /// How old the list is: 0 while the source answers.
    pub(crate) away_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

impl SourceState {
    /// `None` for servers that are in the configuration.
    pub(super) fn new(discovery: &Discovery) -> Option<Self> {
        let (kind, name) = discovery.shown()?;
        Some(Self {
            kind,
            name,
            is_listed: false,
            away: None,
        })
    }

    /// It has given a list. Returns how long it gave none before.
    pub(super) fn listed(&mut self, now: Instant) -> Option<Duration> {
        self.is_listed = true;
        let (since, _) = self.away.take()?;
        Some(now.saturating_duration_since(since))
    }

    /// It has given none. Returns whether that is news.
    pub(super) fn failed(&mut self, problem: &str, now: Instant) -> bool {
        match &mut self.away {
            Some((_, known)) if known == problem => false,
            Some((_, known)) => {
                problem.clone_into(known);
                true
            }
            None => {
                self.away = Some((now, problem.to_owned()));
                true
            }
        }
    }

    pub(super) fn status(&self, now: Instant) -> SourceStatus {
        let away = self.away.as_ref();
        let since = away.map(|(since, _)| now.saturating_duration_since(*since));
        SourceStatus {
            kind: self.kind,
            name: self.name.clone(),
            state: match (away, self.is_listed) {
                (Some(_), _) => "away",
                (None, true) => "current",
                (None, false) => "starting",
            },
            away_seconds: since.unwrap_or_default().as_secs_f64(),
            problem: away.map(|(_, problem)| problem.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use plimsoll_model::Clock as _;
    use plimsoll_testkit::VirtualClock;

    use super::*;
    use crate::upstream::ServerFile;

    #[test]
    fn the_age_of_a_list_counts_from_the_first_failure() {
        let file = ServerFile {
            path: PathBuf::from("servers.toml"),
            read: |_| Ok(Vec::new()),
        };
        let mut state = SourceState::new(&Discovery::File(file)).unwrap();
        let start = VirtualClock::new().now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(state.status(at(0)).state, "starting");
        assert_eq!(state.listed(at(1)), None);
        assert!(state.failed("refused", at(2)));
        assert!(!state.failed("refused", at(3)));
        assert!(state.failed("reset", at(4)));
        let status = state.status(at(7));
        assert_eq!((status.state, status.away_seconds), ("away", 5.0));
        assert_eq!(status.problem.as_deref(), Some("reset"));
        assert_eq!(state.listed(at(9)), Some(Duration::from_secs(7)));
        assert_eq!(state.status(at(9)).state, "current");
        assert_eq!(SourceState::new(&Discovery::Dns).map(drop), None);
    }
}
