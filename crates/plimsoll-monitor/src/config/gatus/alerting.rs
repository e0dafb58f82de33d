//! `alerting` and the `alerts` of endpoints: when an endpoint is down, and where that is reported.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::config::Source;
use crate::config::gatus::custom::{CustomProvider, EndpointFacts};
use crate::notify::{CHANNELS, Channel, Foreign, NoticeKind, Notifier, NotifyPlan, notifier_of};
use crate::yaml::block::Block;

/// After how many results in a row an alert triggers and resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    pub(super) failures: u32,
    pub(super) successes: u32,
}

const DEFAULT: Thresholds = Thresholds {
    failures: 3,
    successes: 2,
};

impl Default for Thresholds {
    /// As in Gatus.
    fn default() -> Self {
        DEFAULT
    }
}

/// The keys of an alert, or of its provider for all alerts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AlertKeys {
    failures: Option<u32>,
    successes: Option<u32>,
    sends_resolved: Option<bool>,
    reminder: Option<Duration>,
}

/// Alerts that are sent alike: the provider, whether the end is sent, and how often there is a reminder.
type Route = (String, bool, Option<Duration>);

/// Providers, and what their alerts are unless an endpoint says otherwise.
#[derive(Debug, Default)]
pub(super) struct Alerting {
    defaults: BTreeMap<String, AlertKeys>,
    notifiers: BTreeMap<String, Arc<dyn Notifier>>,
    custom: Option<CustomProvider>,
    /// Of alerts to `custom` without one of their own.
    description: String,
    /// Of the endpoints whose alerts go to `custom`, by their keys.
    facts: BTreeMap<String, EndpointFacts>,
    /// The keys of endpoints.
    routes: BTreeMap<Route, HashSet<String>>,
}

/// The provider whose requests the file describes.
const CUSTOM: &str = "custom";

/// Keys of any provider that are no settings of its channel.
const ELSEWHERE: [&str; 3] = ["default-alert", "overrides", "description"];

impl Alerting {
    pub(super) fn compile(block: Option<Block>) -> Self {
        let Some(block) = block else {
            return Self::default();
        };
        let mut alerting = Self::default();
        let names: Vec<_> = block
            .entries()
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        for (name, provider) in names.iter().zip(block.children()) {
            let Some(provider) = provider else {
                continue;
            };
            let default = provider.block("default-alert");
            if name == CUSTOM {
                let text = default.as_ref().and_then(|alert| alert.text("description"));
                alerting.description = text.unwrap_or_default();
            }
            let default = default.map(|alert| AlertKeys::from_block(&alert));
            alerting
                .defaults
                .insert(name.clone(), default.unwrap_or_default());
            if name == CUSTOM {
                match CustomProvider::compile(&provider) {
                    Ok(custom) => alerting.custom = Some(custom),
                    Err(problem) => {
                        provider.warn("", format!("nothing is sent to this provider: {problem}"));
                    }
                }
                for key in ["overrides", "client"] {
                    if provider.node(key).is_some() {
                        provider.warn(key, "have no effect");
                    }
                }
                continue;
            }
            let Some((channel, foreign)) = like(name) else {
                provider.warn(
                    "",
                    "nothing is sent to this provider: no channel is like it",
                );
                continue;
            };
            let settings = foreign.settings(channel, &|key| provider.text(key));
            // Gatus passes over a provider that is not valid, with a warning.
            match notifier_of(channel.key, &settings.table) {
                Ok(notifier) => {
                    for (key, _) in provider.entries() {
                        if !ELSEWHERE.contains(&key.as_str())
                            && !settings.read.contains(&key.as_str())
                        {
                            provider.warn(key, "is not carried over");
                        }
                    }
                    alerting.notifiers.insert(name.clone(), notifier);
                }
                Err(problem) => {
                    let problem = in_their_words(problem.to_string(), foreign.keys);
                    provider.warn("", format!("nothing is sent to this provider: {problem}"));
                }
            }
            if provider.node("overrides").is_some() {
                provider.warn("overrides", "have no effect");
            }
        }
        alerting
    }

    /// The thresholds of an endpoint: those of its alert that triggers first.
    pub(super) fn thresholds(&self, endpoint: &Block) -> Thresholds {
        let mut all = Vec::new();
        for alert in endpoint.blocks("alerts") {
            let enabled = alert.boolean("enabled").unwrap_or(true);
            let kind = alert.text("type");
            if kind.is_none() {
                alert.wrong(
                    "type",
                    "is missing",
                    Some("write the name of a provider under `alerting`"),
                );
            }
            let keys = AlertKeys::from_block(&alert).or(self.default_of(kind.as_deref()));
            if enabled {
                all.push(Thresholds {
                    failures: keys.failures.unwrap_or(DEFAULT.failures),
                    successes: keys.successes.unwrap_or(DEFAULT.successes),
                });
            }
        }
        let first = all.into_iter().min_by_key(|thresholds| thresholds.failures);
        first.unwrap_or(DEFAULT)
    }

    /// Notes where the alerts of an endpoint go.
    pub(super) fn route(&mut self, endpoint: &Block, key: &str) {
        for alert in endpoint.blocks("alerts") {
            let Some(kind) = alert.text("type") else {
                continue;
            };
            let is_sent = match kind.as_str() {
                CUSTOM => self.custom.is_some(),
                kind => self.notifiers.contains_key(kind),
            };
            if !alert.boolean("enabled").unwrap_or(true) || !is_sent {
                continue;
            }
            if kind == CUSTOM {
                let text = |block: &Block, key| block.text(key).unwrap_or_default();
                let facts = EndpointFacts {
                    name: text(endpoint, "name"),
                    group: text(endpoint, "group"),
                    url: text(endpoint, "url"),
                    description: alert
                        .text("description")
                        .unwrap_or_else(|| self.description.clone()),
                };
                self.facts.insert(key.to_owned(), facts);
            }
            let keys = AlertKeys::from_block(&alert).or(self.default_of(Some(&kind)));
            let route = (kind, keys.sends_resolved.unwrap_or(false), keys.reminder);
            self.routes.entry(route).or_default().insert(key.to_owned());
        }
    }

    /// The same of an endpoint of a suite, whose alerts are about the suite.
    pub(super) fn route_suite(&mut self, endpoint: &Block, key: &str, (name, group): (&str, &str)) {
        self.route(endpoint, key);
        if let Some(facts) = self.facts.get_mut(key) {
            name.clone_into(&mut facts.name);
            group.clone_into(&mut facts.group);
        }
    }

    /// The channels of all alerts.
    pub(super) fn channels(&self) -> Vec<Arc<NotifyPlan>> {
        let routes = self.routes.iter().filter_map(|(route, keys)| {
            let (kind, sends_resolved, remind) = route;
            let resolved = sends_resolved.then_some(NoticeKind::Resolved);
            let reminder = remind.map(|_| NoticeKind::Reminder);
            let kinds = [Some(NoticeKind::Opened), resolved, reminder];
            // The name is the same after a restart, so that notices that wait find their channel.
            let mut name = kind.clone();
            if !sends_resolved {
                name.push_str(" without resolved");
            }
            if let Some(remind) = remind {
                name = format!("{name} every {}s", remind.as_secs());
            }
            Some(Arc::new(NotifyPlan {
                source: Source::File,
                filter: None,
                name,
                channel: kind.clone(),
                notifier: match kind.as_str() {
                    CUSTOM => self.custom.as_ref()?.notifier(self.facts.clone()),
                    kind => Arc::clone(self.notifiers.get(kind)?),
                },
                rotations: Vec::new(),
                kinds: kinds.into_iter().flatten().collect(),
                monitors: Some(keys.clone()),
                after: Duration::ZERO,
                remind: *remind,
                title: None,
                text: None,
            }))
        });
        routes.collect()
    }

    fn default_of(&self, kind: Option<&str>) -> AlertKeys {
        kind.and_then(|kind| self.defaults.get(kind))
            .copied()
            .unwrap_or_default()
    }
}

impl AlertKeys {
    fn from_block(alert: &Block) -> Self {
        let count = |key| {
            let number = alert.number(key)?;
            u32::try_from(number).ok().filter(|number| *number > 0)
        };
        Self {
            failures: count("failure-threshold"),
            successes: count("success-threshold"),
            sends_resolved: alert.boolean("send-on-resolved"),
            reminder: alert.duration("minimum-reminder-interval"),
        }
    }

    fn or(self, default: Self) -> Self {
        Self {
            failures: self.failures.or(default.failures),
            successes: self.successes.or(default.successes),
            sends_resolved: self.sends_resolved.or(default.sends_resolved),
            reminder: self.reminder.or(default.reminder),
        }
    }
}

/// The channel that is like a provider.
fn like(provider: &str) -> Option<(&'static Channel, &'static Foreign)> {
    CHANNELS.iter().find_map(|channel| {
        let mut all = channel.gatus.iter();
        Some((*channel, all.find(|foreign| foreign.name == provider)?))
    })
}

/// A problem with one of our keys as one with theirs.
fn in_their_words(problem: String, keys: &[(&str, &str)]) -> String {
    for (theirs, ours) in keys {
        if let Some(rest) = problem.strip_prefix(&format!("{ours}: ")) {
            return format!("{theirs}: {rest}");
        }
        let missing = format!("`{ours}` is missing");
        if problem == missing {
            return format!("`{theirs}` is missing");
        }
    }
    problem
}
