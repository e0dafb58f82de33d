//! How many results make an outage, and how it ends.

use std::time::Duration;

/// How many results make an outage, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectPolicy {
    /// Failures in a row that confirm an outage in a region; at least 1.
    pub confirm: u32,
    /// Successes in a row that confirm its end; at least 1.
    pub recover: u32,
    /// How many regions make an outage.
    pub regions: RegionRule,
    /// How long a monitor must stay up before its incident is resolved; a failure inside it reopens the incident.
    pub hold: Duration,
    /// Holds notices back while incidents open too often; absent to send all.
    pub flap: Option<FlapRule>,
    /// After this long without a result, a region no longer takes part.
    pub silent_after: Duration,
    /// Whether a monitor without any reporting region becomes `no_data`; otherwise it keeps its health.
    pub reports_no_data: bool,
}

impl Default for DetectPolicy {
    fn default() -> Self {
        Self {
            confirm: 2,
            recover: 2,
            regions: RegionRule::Majority,
            hold: Duration::from_mins(3),
            flap: Some(FlapRule::default()),
            silent_after: Duration::from_mins(5),
            reports_no_data: true,
        }
    }
}

/// How many of the regions that report must see an outage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RegionRule {
    /// One.
    Any,
    /// More than half.
    #[default]
    Majority,
    /// All.
    All,
    /// So many, or all if fewer report.
    Count(u32),
}

impl RegionRule {
    /// How many of `reporting` regions make an outage; at least 1.
    pub fn needed(self, reporting: usize) -> usize {
        let needed = match self {
            Self::Any => 1,
            Self::Majority => reporting / 2 + 1,
            Self::All => reporting,
            Self::Count(count) => reporting.min(usize::try_from(count).unwrap_or(usize::MAX)),
        };
        needed.max(1)
    }
}

/// When incidents open so often that their notices are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlapRule {
    /// Incidents within the window that are reported; those beyond it are held.
    pub opens: u32,
    /// The window.
    pub within: Duration,
    /// A held incident that is still open after this long is reported nevertheless.
    pub quiet: Duration,
}

impl Default for FlapRule {
    fn default() -> Self {
        Self {
            opens: 5,
            within: Duration::from_hours(1),
            quiet: Duration::from_mins(10),
        }
    }
}
