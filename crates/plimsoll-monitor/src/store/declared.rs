//! Incidents that operators declare, with their public phases and updates.

use crate::detect::uptime::Span;
use crate::store::types::MonitorId;
use crate::time::Timestamp;

/// The number of a declared incident, unique in a store; later ones have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeclaredId(pub i64);

/// How far the work on an incident has come, as the public sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublicPhase {
    /// Its cause is not known yet.
    Investigating,
    /// Its cause is known.
    Identified,
    /// It is mended, and watched.
    Monitoring,
    /// It is over.
    Resolved,
    /// It is over and explained.
    Postmortem,
}

impl PublicPhase {
    /// Every phase, in the usual order.
    pub const ALL: [Self; 5] = [
        Self::Investigating,
        Self::Identified,
        Self::Monitoring,
        Self::Resolved,
        Self::Postmortem,
    ];

    /// The name in stores and JSON; that of Statuspage.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Investigating => "investigating",
            Self::Identified => "identified",
            Self::Monitoring => "monitoring",
            Self::Resolved => "resolved",
            Self::Postmortem => "postmortem",
        }
    }

    /// The phase of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// Whether the incident is over.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Resolved | Self::Postmortem)
    }
}

/// How much an incident affects users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Impact {
    /// Not at all.
    None,
    /// Components are slow or partly wrong.
    Minor,
    /// Components fail for some.
    Major,
    /// Components fail.
    Critical,
}

impl Impact {
    /// Every impact, the least first.
    pub const ALL: [Self; 4] = [Self::None, Self::Minor, Self::Major, Self::Critical];

    /// The name in stores and JSON; that of Statuspage.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        }
    }

    /// The impact of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|impact| impact.name() == name)
    }
}

/// An incident to be declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeclared {
    /// One line.
    pub title: String,
    /// The first phase.
    pub phase: PublicPhase,
    /// How much it affects users.
    pub impact: Impact,
    /// Whether its time is downtime of the monitors.
    pub counts_as_downtime: bool,
    /// When it began.
    pub started: Timestamp,
    /// The affected monitors.
    pub monitors: Vec<MonitorId>,
    /// The first update; plain text.
    pub body: String,
    /// Who declares it.
    pub actor: Option<String>,
    /// A key by which the client may repeat its request, with the hash of the request.
    pub idempotency: Option<(String, [u8; 32])>,
}

/// Changes to a declared incident; absent parts stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredEdit {
    /// Its title.
    pub title: Option<String>,
    /// Its phase.
    pub phase: Option<PublicPhase>,
    /// Its impact.
    pub impact: Option<Impact>,
    /// Whether its time is downtime.
    pub counts_as_downtime: Option<bool>,
    /// The affected monitors.
    pub monitors: Option<Vec<MonitorId>>,
    /// An update; plain text.
    pub body: Option<String>,
    /// Who changes it.
    pub actor: Option<String>,
    /// The version that the client has seen; another one is an error.
    pub version: Option<i64>,
}

/// A declared incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its number.
    pub id: DeclaredId,
    /// One more with every change, from 1 on.
    pub version: i64,
    /// One line.
    pub title: String,
    /// How far the work on it has come.
    pub phase: PublicPhase,
    /// How much it affects users.
    pub impact: Impact,
    /// Whether its time is downtime of the monitors.
    pub counts_as_downtime: bool,
    /// When it began.
    pub started: Timestamp,
    /// When it was over.
    pub resolved: Option<Timestamp>,
    /// When it last changed.
    pub changed: Timestamp,
    /// The affected monitors, by number.
    pub monitors: Vec<MonitorId>,
    /// Its updates, the newest first.
    pub updates: Vec<DeclaredUpdate>,
}

impl Declared {
    /// From when until when it lasted, until `now` if it is not over.
    pub fn span(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        (self.started, self.resolved.unwrap_or(now))
    }
}

/// An update of a declared incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredUpdate {
    /// When.
    pub at: Timestamp,
    /// The phase that it set.
    pub phase: PublicPhase,
    /// Plain text.
    pub body: String,
    /// Who wrote it.
    pub actor: Option<String>,
}

/// The spans of declared incidents that count as downtime of a monitor.
pub fn declared_downtime(declared: &[Declared], monitor: MonitorId, now: Timestamp) -> Vec<Span> {
    let counted = declared
        .iter()
        .filter(|one| one.counts_as_downtime && one.monitors.contains(&monitor));
    counted.map(|one| one.span(now)).collect()
}
