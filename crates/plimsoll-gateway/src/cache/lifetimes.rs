//! Lifetimes by status for responses that give none themselves.

use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use super::freshness::is_guessable;

/// Freshness lifetimes that the configuration gives; a response that has its own keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lifetimes(pub(crate) Vec<(LifetimeStatus, Duration)>);

/// Which responses a lifetime is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifetimeStatus {
    /// This status.
    Is(StatusCode),
    /// 200 to 299, and so on, by the first digit.
    Class(u16),
    /// Those whose lifetime may be guessed (RFC 9110, section 15.1).
    Guessable,
}

impl FromStr for LifetimeStatus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "2xx" => Ok(Self::Class(2)),
            "3xx" => Ok(Self::Class(3)),
            "4xx" => Ok(Self::Class(4)),
            "5xx" => Ok(Self::Class(5)),
            _ => StatusCode::from_bytes(text.as_bytes())
                .ok()
                .filter(|status| (200..600).contains(&status.as_u16()))
                .map(Self::Is)
                .ok_or("is not a status from 200 to 599, \"2xx\", \"3xx\", \"4xx\" or \"5xx\""),
        }
    }
}

impl Lifetimes {
    /// The lifetime for a status; one for that status alone comes before that of its class.
    pub(super) fn for_status(&self, status: StatusCode) -> Option<Duration> {
        let find = |wanted: LifetimeStatus| {
            let mut known = self.0.iter();
            known.find(|(known, _)| *known == wanted)
        };
        let guessed = || {
            is_guessable(status)
                .then(|| find(LifetimeStatus::Guessable))
                .flatten()
        };
        let found = find(LifetimeStatus::Is(status))
            .or_else(|| find(LifetimeStatus::Class(status.as_u16() / 100)))
            .or_else(guessed);
        found.map(|(_, lifetime)| *lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_lifetime_counts() {
        let second = Duration::from_secs;
        let parsed = |text: &str| text.parse::<LifetimeStatus>().unwrap();
        let lifetimes = Lifetimes(vec![
            (parsed("4xx"), second(4)),
            (parsed("404"), second(404)),
            (parsed("502"), second(502)),
        ]);
        let of = |lifetimes: &Lifetimes, status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            lifetimes.for_status(status).map(|it| it.as_secs())
        };
        for (status, expected) in [
            (404, Some(404)),
            (403, Some(4)),
            (502, Some(502)),
            (503, None),
            (200, None),
        ] {
            assert_eq!(of(&lifetimes, status), expected, "{status}");
        }
        let plain = Lifetimes(vec![(LifetimeStatus::Guessable, second(1))]);
        for (status, expected) in [(200, Some(1)), (404, Some(1)), (302, None), (500, None)] {
            assert_eq!(of(&plain, status), expected, "{status}");
        }
        for wrong in ["", "1xx", "199", "600", "any", "20"] {
            assert!(wrong.parse::<LifetimeStatus>().is_err(), "{wrong}");
        }
    }
}
