//! Escalations: the receivers of an incident's opening, one step after the other, until it is acknowledged.
//!
//! Pure: what is notified when follows from the time of the opening.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::notify::oncall::OnCallPlan;
use crate::store::Source;
use crate::time::Timestamp;

/// The steps that incidents of some monitors take.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationPlan {
    /// Its name.
    pub name: String,
    /// Source of the definition.
    pub source: Source,
    /// The keys of its monitors; all if it is absent.
    pub monitors: Option<HashSet<String>>,
    /// In the order of their times; at least one.
    pub steps: Vec<EscalationStep>,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationStep {
    /// How long the incident has been open then.
    pub after: Duration,
    /// Who is notified.
    pub targets: Vec<EscalationTarget>,
}

/// Who is notified by a step.
#[derive(Debug, Clone, PartialEq)]
pub enum EscalationTarget {
    /// A channel, by its name.
    Channel(String),
    /// The members who are on call.
    Rotation(Arc<OnCallPlan>),
}

impl EscalationTarget {
    /// The name of the channel or the rotation.
    pub fn name(&self) -> &str {
        match self {
            Self::Channel(name) => name,
            Self::Rotation(rotation) => &rotation.name,
        }
    }

    fn may_be(&self, channel: &str) -> bool {
        match self {
            Self::Channel(name) => name == channel,
            Self::Rotation(rotation) => rotation.names(channel),
        }
    }
}

impl EscalationPlan {
    /// Whether the incidents of a monitor take its steps.
    pub(crate) fn covers(&self, key: &str) -> bool {
        let monitors = self.monitors.as_ref();
        monitors.is_none_or(|monitors| monitors.contains(key))
    }

    /// Whether one of its steps may notify a channel.
    pub(crate) fn may_notify(&self, channel: &str) -> bool {
        let mut targets = self.steps.iter().flat_map(|step| &step.targets);
        targets.any(|target| target.may_be(channel))
    }

    /// Whether one of its steps names a channel or a rotation.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut targets = self.steps.iter().flat_map(|step| &step.targets);
        targets.any(|target| target.name() == name)
    }

    /// When a channel is notified of an incident that opened, if at all: at its first step, by who is on call then.
    pub(crate) fn notifies(&self, channel: &str, opened: Timestamp) -> Option<Duration> {
        let is_it = |step: &&EscalationStep| {
            let mut targets = step.targets.iter();
            targets.any(|target| match target {
                EscalationTarget::Channel(name) => name == channel,
                EscalationTarget::Rotation(rotation) => {
                    rotation.who(opened.plus(step.after)) == channel
                }
            })
        };
        self.steps.iter().find(is_it).map(|step| step.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::overlay;

    #[test]
    fn each_step_has_its_time_and_a_rotation_is_who_is_on_call_then() {
        let rotation = "name = \"team\"\nmembers = [\"ann\", \"bob\"]\nrotate = \"1h\"\nstart = \"2026-03-01T12:00\"";
        let channels = HashSet::from(["ann", "bob"]);
        let rotation = overlay::rotation(rotation, &[], &channels).unwrap();
        let target = |name: &str| EscalationTarget::Channel(name.to_owned());
        let plan = EscalationPlan {
            name: "shop".to_owned(),
            source: Source::File,
            monitors: Some(HashSet::from(["shop_api".to_owned()])),
            steps: vec![
                EscalationStep {
                    after: Duration::ZERO,
                    targets: vec![target("ops")],
                },
                EscalationStep {
                    after: Duration::from_mins(30),
                    targets: vec![
                        EscalationTarget::Rotation(rotation),
                        target("ops"),
                        target("boss"),
                    ],
                },
            ],
        };
        assert!(plan.covers("shop_api") && !plan.covers("core_api"));
        // Half past one is 20 minutes after the turn of the second member began.
        let opened = Timestamp::parse("2026-03-01T12:50:00Z").unwrap();
        let minutes = |channel: &str| {
            let after = plan.notifies(channel, opened);
            after.map(|after| after.as_secs() / 60)
        };
        assert_eq!(minutes("ops"), Some(0), "once, at the first of its steps");
        assert_eq!((minutes("bob"), minutes("boss")), (Some(30), Some(30)));
        assert_eq!((minutes("ann"), minutes("others")), (None, None));
        assert!(plan.may_notify("ann") && plan.names("team") && !plan.names("ann"));
    }
}
