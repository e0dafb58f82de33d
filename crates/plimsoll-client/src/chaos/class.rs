//! The kinds of hostility: their names, what they do, how much of it by default.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Bounds;

/// A kind of hostility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`about` says what each does")]
pub enum Class {
    SlowHeaders,
    SlowBody,
    SlowRead,
    ConnectionFlood,
    RapidReset,
    MadeYouReset,
    ContinuationFlood,
    HpackBomb,
    SettingsFlood,
    PingFlood,
    EmptyDataFlood,
    WindowUpdateFlood,
    Smuggling,
    Http3ResetFlood,
}

impl Class {
    /// Each of them.
    pub const ALL: [Self; 14] = [
        Self::SlowHeaders,
        Self::SlowBody,
        Self::SlowRead,
        Self::ConnectionFlood,
        Self::RapidReset,
        Self::MadeYouReset,
        Self::ContinuationFlood,
        Self::HpackBomb,
        Self::SettingsFlood,
        Self::PingFlood,
        Self::EmptyDataFlood,
        Self::WindowUpdateFlood,
        Self::Smuggling,
        Self::Http3ResetFlood,
    ];

    /// Name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowHeaders => "slow-headers",
            Self::SlowBody => "slow-body",
            Self::SlowRead => "slow-read",
            Self::ConnectionFlood => "connection-flood",
            Self::RapidReset => "rapid-reset",
            Self::MadeYouReset => "made-you-reset",
            Self::ContinuationFlood => "continuation-flood",
            Self::HpackBomb => "hpack-bomb",
            Self::SettingsFlood => "settings-flood",
            Self::PingFlood => "ping-flood",
            Self::EmptyDataFlood => "empty-data-flood",
            Self::WindowUpdateFlood => "window-update-flood",
            Self::Smuggling => "smuggling",
            Self::Http3ResetFlood => "h3-reset-flood",
        }
    }

    /// The behaviour of its clients.
    pub const fn about(self) -> &'static str {
        match self {
            Self::SlowHeaders => "heads of requests that grow by a field a second and never end",
            Self::SlowBody => "content that comes by a byte a second",
            Self::SlowRead => "very many responses requested and read by a byte a second",
            Self::ConnectionFlood => "connections without a request",
            Self::RapidReset => "streams that are reset right after the request (CVE-2023-44487)",
            Self::MadeYouReset => "streams that the server is made to reset (CVE-2025-8671)",
            Self::ContinuationFlood => "a header block that goes on without end (CVE-2024-27316)",
            Self::HpackBomb => {
                "header blocks that grow a thousandfold when decoded, and a window of zero"
            }
            Self::SettingsFlood => "SETTINGS, each of which has to be acknowledged (CVE-2019-9515)",
            Self::PingFlood => "PINGs, each of which has to be answered (CVE-2019-9512)",
            Self::EmptyDataFlood => "DATA frames without data (CVE-2019-9518)",
            Self::WindowUpdateFlood => "windows that are enlarged by one byte at a time",
            Self::Smuggling => "requests that two readers could understand differently",
            Self::Http3ResetFlood => "streams of HTTP/3 that are reset right after the request",
        }
    }

    /// The unit of its counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::SlowHeaders => "header lines",
            Self::SlowBody => "bytes of content",
            Self::SlowRead | Self::Smuggling => "requests",
            Self::ConnectionFlood => "connections",
            Self::RapidReset | Self::MadeYouReset | Self::Http3ResetFlood => "streams",
            Self::ContinuationFlood => "CONTINUATION frames",
            Self::HpackBomb => "header blocks",
            Self::SettingsFlood => "SETTINGS frames",
            Self::PingFlood => "PING frames",
            Self::EmptyDataFlood => "DATA frames",
            Self::WindowUpdateFlood => "WINDOW_UPDATE frames",
        }
    }

    /// Its default bounds.
    pub const fn bounds(self) -> Bounds {
        let (connections, rate) = match self {
            Self::SlowHeaders | Self::SlowBody => (64, 1_000),
            Self::SlowRead => (32, 5_000),
            Self::ConnectionFlood => (512, 1_000),
            Self::HpackBomb => (4, 200),
            Self::Smuggling => (1, 1_000),
            Self::RapidReset
            | Self::MadeYouReset
            | Self::ContinuationFlood
            | Self::SettingsFlood
            | Self::PingFlood
            | Self::EmptyDataFlood
            | Self::WindowUpdateFlood
            | Self::Http3ResetFlood => (4, 5_000),
        };
        // The cases end by themselves.
        let seconds = if matches!(self, Self::Smuggling) {
            60
        } else {
            5
        };
        Bounds {
            connections,
            rate,
            count: 100_000,
            duration: Duration::from_secs(seconds),
        }
    }

    /// The version of HTTP that it is about, if not 1.1.
    pub(super) const fn protocol(self) -> Option<&'static str> {
        match self {
            Self::SlowHeaders
            | Self::SlowBody
            | Self::SlowRead
            | Self::ConnectionFlood
            | Self::Smuggling => None,
            Self::RapidReset
            | Self::MadeYouReset
            | Self::ContinuationFlood
            | Self::HpackBomb
            | Self::SettingsFlood
            | Self::PingFlood
            | Self::EmptyDataFlood
            | Self::WindowUpdateFlood => Some("HTTP/2"),
            Self::Http3ResetFlood => Some("HTTP/3"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no class has, with the one that may be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownClass {
    /// One is similar.
    #[error("there is no `{0}`; did you mean `{1}`?")]
    Similar(String, Class),
    /// None is.
    #[error("there is no `{0}`; `plimsoll chaos` lists the names")]
    Other(String),
}

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        let known = Self::ALL.into_iter().find(|class| class.name() == text);
        known.ok_or_else(|| {
            let similar = Self::ALL
                .into_iter()
                .map(|class| (strsim::jaro_winkler(text, class.name()), class))
                .filter(|(similarity, _)| *similarity > 0.8)
                .max_by(|one, other| one.0.total_cmp(&other.0));
            match similar {
                Some((_, class)) => UnknownClass::Similar(text.to_owned(), class),
                None => UnknownClass::Other(text.to_owned()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_by_its_name_and_within_what_can_be_requested() {
        for class in Class::ALL {
            assert_eq!(class.name().parse(), Ok(class));
            assert_eq!(class.bounds().problems(), [], "{class}");
        }
        let error = "rapid-rset".parse::<Class>().unwrap_err();
        assert!(error.to_string().contains("`rapid-reset`"), "{error}");
    }
}
