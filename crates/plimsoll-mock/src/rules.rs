//! Rules in sets, and which rule of a set answers a request. Between sets the first that has one decides: `MockPlan::find`.

pub mod condition;

pub mod path;

pub(crate) mod java_regex;

pub(crate) mod nearness;

pub mod explain;

mod affix;

mod index;

mod state;

mod strategy;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use plimsoll_formats::grpc::Descriptors;

use crate::callback::Callback;
use crate::reply::Reply;
use crate::request::RequestView;
use crate::rules::condition::Condition;
use crate::store::states::{Scenario, SessionsFull};
use crate::template::data::DataBuckets;

pub use self::index::{Lookup, RuleIndex};
pub use self::state::RuleState;
pub use self::strategy::{Strategy, Tiebreaker};

use self::strategy::{Rotations, random, weighted};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, if it has one.
    pub id: Option<String>,
    /// By what the admin API knows it: its `id`, or the numbers of its set and itself, such as `1.3`; empty until it is
    /// part of a mock that is served.
    pub key: String,
    /// As it was written, in JSON; null if it was not.
    pub source: serde_json::Value,
    /// The mapping of WireMock that it was made of, complete with its id; absent if it was not.
    pub mapping: Option<Arc<serde_json::Value>>,
    /// All of these must be met; the one of the path comes first.
    pub conditions: Vec<Condition>,
    /// The higher, the sooner, if the strategy looks at it.
    pub priority: i32,
    /// Weight, if the strategy is a random one.
    pub weight: u32,
    /// Its replies, one after the other; at least one.
    pub replies: Vec<Arc<Reply>>,
    /// Whether it begins anew after the last one, instead of staying there.
    pub repeats: bool,
    /// Requests that it sends once it has answered.
    pub callbacks: Vec<Callback>,
    /// The scenario that it asks for or changes, if there is one.
    pub scenario: Option<Scenario>,
    /// Whether it counts the requests that it answers in its scenario.
    pub counts: bool,
    /// The state that a scenario goes to when it answers, and the one that it must be in still.
    pub next: Option<(Scenario, Option<String>, String)>,
    /// Its counters.
    pub state: RuleState,
}

impl Rule {
    /// A rule with one answer.
    pub fn new(conditions: Vec<Condition>, reply: Reply) -> Self {
        Self {
            id: None,
            key: String::new(),
            source: serde_json::Value::Null,
            mapping: None,
            conditions,
            priority: 0,
            weight: 1,
            replies: vec![Arc::new(reply)],
            callbacks: Vec::new(),
            repeats: false,
            scenario: None,
            counts: false,
            next: None,
            state: RuleState::default(),
        }
    }

    /// Takes its turn: the number of the reply that it answers with now.
    #[inline]
    pub(crate) fn turn(&self) -> usize {
        let count = self.replies.len();
        if count == 1 {
            return 0;
        }
        let turn = self.state.take_turn();
        if self.repeats {
            turn % count
        } else {
            turn.min(count - 1)
        }
    }

    /// Whether it answers requests of the method OPTIONS, which others leave to cross-origin resource sharing.
    pub fn answers_options(&self) -> bool {
        self.conditions.iter().any(Condition::names_options)
    }

    /// Changes the state of its scenario for a request that it answers; fails if there is no room for that.
    pub(crate) fn advance(&self, request: &RequestView<'_>) -> Result<(), SessionsFull> {
        if let Some(scenario) = self.scenario.as_ref().filter(|_| self.counts) {
            scenario.count(request)?;
        }
        match &self.next {
            Some((scenario, from, next)) => scenario.go(from.as_deref(), next, request),
            None => Ok(()),
        }
    }

    /// Whether a request meets its conditions.
    pub fn is_met_by(&self, request: &RequestView<'_>) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.is_met_by(request))
    }
}

/// The surroundings that rules of a set were compiled with.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The folder of files in the rules, links resolved; absent if there is no such folder.
    pub root: Option<PathBuf>,
    /// The delay of rules without one.
    pub delay: Duration,
    /// The known gRPC services.
    pub grpc: Option<Arc<Descriptors>>,
    /// Data of templates.
    pub data: Arc<DataBuckets>,
}

/// The rules of one file.
#[derive(Debug)]
pub struct RuleSet {
    /// The file.
    pub file: PathBuf,
    /// The beginning of the paths that it answers, normalised; absent for all.
    pub prefix: Option<String>,
    strategy: Strategy,
    origin: Origin,
    rules: Vec<Arc<Rule>>,
    /// The numbers of the rules in the order in which they are tried.
    order: Vec<u32>,
    /// Of positions in `order`.
    index: RuleIndex,
    rotations: Rotations,
}

type Matching = SmallVec<[u32; 16]>;

impl RuleSet {
    /// Compiles rules, which are in the order of their file.
    pub fn new(
        file: PathBuf,
        prefix: Option<String>,
        strategy: Strategy,
        rules: Vec<Rule>,
    ) -> Self {
        let rules = rules.into_iter().map(Arc::new).collect();
        Self::compiled(file, prefix, strategy, rules)
    }

    /// The same set with other rules; rotations begin anew.
    pub(crate) fn with_rules(&self, rules: Vec<Arc<Rule>>) -> Self {
        Self {
            origin: self.origin.clone(),
            ..Self::compiled(self.file.clone(), self.prefix.clone(), self.strategy, rules)
        }
    }

    /// The same set, whose rules were compiled with this.
    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// The surroundings that its rules were compiled with.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Gives every rule without a key one; only before the rules are shared.
    ///
    /// - `number`: of the set, counted from 1.
    pub(crate) fn name_rules(&mut self, number: usize) {
        for (rule, at) in self.rules.iter_mut().zip(1_usize..) {
            if let Some(rule) = Arc::get_mut(rule).filter(|rule| rule.key.is_empty()) {
                rule.key = match &rule.id {
                    Some(id) => id.clone(),
                    None => format!("{number}.{at}"),
                };
            }
        }
    }

    /// Marks its rules, in their order, with the mappings they were made of; only before they are shared.
    pub(crate) fn mark_mappings(&mut self, mappings: impl Iterator<Item = serde_json::Value>) {
        for (rule, mapping) in self.rules.iter_mut().zip(mappings) {
            if let Some(rule) = Arc::get_mut(rule) {
                rule.mapping = Some(Arc::new(mapping));
            }
        }
    }

    fn compiled(
        file: PathBuf,
        prefix: Option<String>,
        strategy: Strategy,
        rules: Vec<Arc<Rule>>,
    ) -> Self {
        let mut order: Vec<u32> = (0..).take(rules.len()).collect();
        if matches!(strategy, Strategy::Priority(_)) {
            order.sort_by_key(|number| std::cmp::Reverse(rules[*number as usize].priority));
        }
        let path = |number: &u32| {
            let first = rules[*number as usize].conditions.first();
            first.map_or(Lookup::Other, Condition::lookup)
        };
        let index = RuleIndex::new(order.iter().map(path));
        Self {
            file,
            prefix: prefix.filter(|prefix| prefix != "/"),
            strategy,
            origin: Origin::default(),
            rules,
            order,
            index,
            rotations: Rotations::default(),
        }
    }

    /// Its rules, in the order of their file.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Its rules, to become part of another set.
    pub fn into_rules(self) -> Vec<Rule> {
        // The rules of a set that is not served yet are not shared.
        self.rules.into_iter().filter_map(Arc::into_inner).collect()
    }

    /// Strategy that chooses one of several matching rules.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Whether the set answers such paths at all: its prefix and what is below it.
    pub fn covers(&self, path: &str) -> bool {
        self.prefix.as_deref().is_none_or(|prefix| {
            let rest = path.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The number of the rule that answers, if one does.
    #[inline]
    pub fn find(&self, request: &RequestView<'_>) -> Option<usize> {
        if !self.covers(&request.path) {
            return None;
        }
        self.choose(request, |accept| self.index.visit(&request.path, accept))
    }

    /// The same by looking at each rule: what the index is held to.
    pub fn scan(&self, request: &RequestView<'_>) -> Option<usize> {
        if !self.covers(&request.path) {
            return None;
        }
        self.choose(request, |accept| {
            (0..).take(self.order.len()).any(accept);
        })
    }

    fn rule(&self, position: u32) -> &Rule {
        &self.rules[self.order[position as usize] as usize]
    }

    /// - `visit`: calls its argument with positions of rules, ascending, until that returns that it is enough.
    #[inline]
    fn choose(
        &self,
        request: &RequestView<'_>,
        visit: impl FnOnce(&mut dyn FnMut(u32) -> bool),
    ) -> Option<usize> {
        let is_options = request.method == "OPTIONS";
        let is_met = |position: u32| {
            let rule = self.rule(position);
            (!is_options || rule.answers_options()) && rule.is_met_by(request)
        };
        let mut matching = Matching::new();
        match self.strategy {
            Strategy::FirstMatch | Strategy::Priority(Tiebreaker::FirstMatch) => {
                visit(&mut |position| {
                    if is_met(position) {
                        matching.push(position);
                    }
                    !matching.is_empty()
                });
            }
            Strategy::Priority(Tiebreaker::UniformRandom) => visit(&mut |position| {
                let priority = self.rule(position).priority;
                let first = matching.first().map(|first| self.rule(*first).priority);
                if first.is_some_and(|highest| highest != priority) {
                    return true;
                }
                if is_met(position) {
                    matching.push(position);
                }
                false
            }),
            Strategy::UniformRandom(_) | Strategy::WeightedRandom(_) | Strategy::RoundRobin => {
                visit(&mut |position| {
                    if is_met(position) {
                        matching.push(position);
                    }
                    false
                });
            }
        }
        let at = self.one_of(&matching)?;
        let position = matching.get(at)?;
        Some(self.order[*position as usize] as usize)
    }

    fn one_of(&self, matching: &Matching) -> Option<usize> {
        if matching.is_empty() {
            return None;
        }
        let uniform = |seed| usize::try_from(random(seed) % matching.len() as u64).ok();
        match self.strategy {
            Strategy::FirstMatch | Strategy::Priority(Tiebreaker::FirstMatch) => Some(0),
            Strategy::Priority(Tiebreaker::UniformRandom) => uniform(None),
            Strategy::UniformRandom(seed) => uniform(seed),
            Strategy::WeightedRandom(seed) => {
                let weights = matching.iter().map(|position| self.rule(*position).weight);
                weighted(weights, random(seed))
            }
            Strategy::RoundRobin => Some(self.rotations.next(matching)),
        }
    }
}

#[cfg(test)]
mod tests;
