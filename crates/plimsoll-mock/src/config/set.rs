//! A file of rules.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_formats::grpc::Descriptors;
use plimsoll_model::document::{Document, Table, Value, as_text};

use super::{FileProblem, callback, collection, grpc, openapi, respond, source, when};
use crate::openapi::OpenApi;
use crate::reply::{Reply, ReplyKind};
use crate::rules::condition::Condition;
use crate::rules::path::normalized;
use crate::rules::{Origin, Rule, RuleSet, Strategy, Tiebreaker};
use crate::store::collection::Collection;
use crate::store::states::{STARTED, Scenario, Session, States};
use crate::template::data::DataBuckets;

/// State that all files of one mock share while they are compiled.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Of rules.
    pub(super) ids: HashSet<String>,
    /// Of scenarios.
    pub(super) states: States,
    pub(super) collections: Vec<Arc<Collection>>,
    pub(super) openapi: Vec<Arc<OpenApi>>,
    /// Files of scripts and descriptor sets.
    pub(super) files: BTreeSet<PathBuf>,
    /// Files that are not followed: schemas, authorities.
    pub(super) others: BTreeSet<PathBuf>,
}

impl Gathered {
    /// A file, and what it names: documents, scripts and descriptor sets.
    pub(super) fn files_with(&self, file: &Path) -> Vec<PathBuf> {
        std::iter::once(file.to_owned())
            .chain(self.named())
            .collect()
    }

    /// Documents, scripts and descriptor sets that files name.
    pub(super) fn named(&self) -> impl Iterator<Item = PathBuf> {
        let documents = self.openapi.iter().flat_map(|it| it.files());
        documents.chain(self.files.iter().cloned())
    }
}

/// The surroundings of compiling a rule.
pub(super) struct Context {
    /// Prepended to paths; absent for nothing.
    pub(super) prefix: Option<String>,
    /// The folder of the rule files, links resolved; absent if there is no such folder.
    pub(super) root: Option<PathBuf>,
    /// The delay of rules without one.
    pub(super) delay: Duration,
    /// Where states of scenarios lie.
    pub(super) states: States,
    /// The known gRPC services.
    pub(super) grpc: Option<Arc<Descriptors>>,
    /// Data of templates.
    pub(super) data: Arc<DataBuckets>,
    /// Files of scripts and descriptor sets that were read.
    pub(super) files: RefCell<BTreeSet<PathBuf>>,
    /// Files that are not followed: schemas, authorities.
    pub(super) others: RefCell<BTreeSet<PathBuf>>,
}

impl Context {
    /// A path as rules of this file see it.
    pub(super) fn behind_prefix(&self, path: &str) -> String {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        normalized(&format!("{prefix}{}", normalized(path)))
    }
}

/// A set, as far as it has no mistakes, and the mistakes.
///
/// - `directory`: what `respond_dir` is relative to.
/// - `strategy`: unless the file says otherwise.
/// - `gathered`: of the sets before it, too.
pub(super) fn compile(
    file: &Path,
    text: &str,
    directory: &Path,
    strategy_before: Option<Strategy>,
    gathered: &mut Gathered,
) -> (Option<RuleSet>, Vec<FileProblem>) {
    let mut document = Document::parse(text);
    let mut root = document.root();
    let own_strategy = root.take_value("strategy").and_then(strategy);
    let (mut prefix, mut folder) = (None, directory.to_owned());
    if let Some(mut table) = root.table("prefix") {
        prefix = table.text("url_path").map(|path| normalized(&path));
        if let Some(value) = table.take_value("respond_dir")
            && let Some(path) = as_text(&value)
        {
            folder = directory.join(path);
            if !folder.is_dir() {
                value.wrong::<()>(format!("there is no folder {}", folder.display()));
            }
        }
        table.finish();
    }
    let mut delay = Duration::ZERO;
    if let Some(mut table) = root.table("default") {
        delay = respond::milliseconds(&mut table).unwrap_or_default();
        table.finish();
    }
    if let Some(mut table) = root.table("limits") {
        if let Some(most) = table.bytes("sessions") {
            gathered.states.limit(most);
        }
        if let Some(most) = table.bytes("store") {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            gathered.states.store.limit(most);
        }
        table.finish();
    }
    if let Some(guard) = root.table("guard") {
        // It must be empty, and does nothing.
        guard.finish();
    }
    let mut context = Context {
        prefix: prefix.clone().filter(|prefix| prefix != "/"),
        root: folder.canonicalize().ok(),
        delay,
        states: gathered.states.clone(),
        grpc: None,
        data: Arc::new(data(root.tables("data")).with_store(gathered.states.store.clone())),
        files: RefCell::default(),
        others: RefCell::default(),
    };
    if let Some(table) = root.table("grpc") {
        context.grpc = grpc::descriptors(table, &context);
    }
    let rules = match root.take_value("rules") {
        // A key with nearly such a name is reported as an unknown key.
        None if ["collections", "collection", "openapi", "rule"]
            .iter()
            .any(|it| root.has(it)) =>
        {
            Vec::new()
        }
        None => {
            root.missing("rules", "at least rules = []");
            Vec::new()
        }
        Some(value) => value.elements(),
    };
    let count = rules.len();
    let rules: Vec<Rule> = rules
        .into_iter()
        .filter_map(|value| rule(value, &context, &mut gathered.ids))
        .collect();
    for table in root.tables("collections") {
        let collection = collection::compile(table, &context);
        let collections = collection.into_iter().flatten();
        gathered.collections.extend(collections.map(Arc::new));
    }
    for table in root.tables("openapi") {
        let openapi = openapi::compile(table, &context);
        gathered.openapi.extend(openapi.map(Arc::new));
    }
    gathered.files.append(&mut context.files.borrow_mut());
    gathered.others.append(&mut context.others.borrow_mut());
    root.finish();
    let problems: Vec<_> = FileProblem::all(file, document.into_problems()).collect();
    if rules.len() < count || !problems.is_empty() {
        return (None, problems);
    }
    let strategy = own_strategy.or(strategy_before).unwrap_or_default();
    let origin = Origin {
        root: context.root,
        delay,
        grpc: context.grpc,
        data: context.data,
    };
    let set = RuleSet::new(file.to_owned(), prefix, strategy, rules).with_origin(origin);
    (Some(set), problems)
}

/// `[[data]]`: what templates of Mockoon look up.
fn data(tables: Vec<Table<'_>>) -> DataBuckets {
    let mut buckets = DataBuckets::default();
    for mut table in tables {
        let id = table.text("id");
        if id.is_none() && !table.was_given("id") {
            table.missing("id", "what templates call it");
        }
        let name = table.text("name").unwrap_or_default();
        let value = table.text("value");
        if value.is_none() && !table.was_given("value") {
            table.missing("value", "JSON, or any text");
        }
        table.finish();
        if let (Some(id), Some(value)) = (id, value) {
            buckets.push(id, name, value);
        }
    }
    buckets
}

/// One rule.
///
/// - `ids`: of the others.
pub(super) fn rule(value: Value<'_>, context: &Context, ids: &mut HashSet<String>) -> Option<Rule> {
    let source = source::json_of(&value);
    let mut table = value.table()?;
    let id = table.take_value("id").and_then(|value| {
        let id = as_text(&value)?.to_owned();
        if !ids.insert(id.clone()) {
            return value.wrong(format!("another rule is called `{id}`"));
        }
        Some(id)
    });
    let conditions = match table.table("when") {
        None => {
            table.missing("when", "such as when.request.url_path = \"/\"");
            None
        }
        Some(when) => when::compile(when, context),
    };
    let names = conditions
        .iter()
        .flatten()
        .find_map(|condition| match condition {
            Condition::Pattern(pattern) => Some(pattern.names().to_vec()),
            _ => None,
        });
    let callbacks = match table.take_value("callbacks") {
        None => Some(Vec::new()),
        Some(value) => callback::compile(value, context, names.as_deref().unwrap_or_default()),
    };
    let replies = match table.table("respond") {
        None => {
            table.missing("respond", "such as respond.text = \"hello\"");
            None
        }
        Some(respond) => {
            let calls = conditions.iter().flatten();
            let mut calls = calls.filter_map(|condition| match condition {
                Condition::Call(test) => Some(Arc::clone(&test.method)),
                _ => None,
            });
            let called = calls.next();
            respond::compile(respond, context, &names.unwrap_or_default(), called)
        }
    };
    let scenario = match table.table("scenario") {
        None => Some(None),
        Some(table) => {
            let replies = replies.iter().flat_map(|(replies, _)| replies);
            let is_scripted = replies
                .map(|reply| &reply.kind)
                .any(|kind| matches!(kind, ReplyKind::Script(_)));
            scenario(table, context, is_scripted).map(Some)
        }
    };
    let priority = table.integer("priority", i64::from(i32::MIN)..=i64::from(i32::MAX));
    let weight = table.integer("weight", 0..=i64::from(u32::MAX));
    table.finish();
    let (replies, repeats) = replies?;
    let callbacks = callbacks?;
    let mut conditions = conditions?;
    let (mut next, mut its_own) = (None, None);
    let mut counts = false;
    if let Some(step) = scenario? {
        let Step {
            scenario, state, ..
        } = step;
        its_own = Some(scenario.clone());
        counts = step.counts;
        if let Some(state) = &state {
            conditions.push(Condition::State(scenario.clone(), state.clone()));
        }
        next = step.next.map(|to| (scenario, state, to));
    }
    let mut rule = Rule::new(conditions, Reply::default());
    rule.id = id;
    rule.source = source;
    Some(Rule {
        priority: priority
            .and_then(|it| i32::try_from(it).ok())
            .unwrap_or_default(),
        weight: weight.and_then(|it| u32::try_from(it).ok()).unwrap_or(1),
        replies: replies.into_iter().map(Arc::new).collect(),
        repeats,
        callbacks,
        next,
        counts,
        scenario: its_own,
        ..rule
    })
}

/// The part of a rule in a scenario.
struct Step {
    scenario: Scenario,
    /// It must be in this state.
    state: Option<String>,
    /// It goes to this one.
    next: Option<String>,
    /// It counts the requests that the rule answers.
    counts: bool,
}

/// - `is_scripted`: whether a script may change it.
fn scenario(mut table: Table<'_>, context: &Context, is_scripted: bool) -> Option<Step> {
    let name = table.text("name");
    if name.is_none() && !table.was_given("name") {
        table.missing("name", "what the scenario is called");
    }
    let state = table.text("state");
    let next = table.text("next");
    let counts = table.boolean("count").unwrap_or(false);
    let keys = ["state", "next", "count"];
    let has_any = keys.iter().any(|key| table.was_given(key));
    if counts && (state.is_some() || next.is_some()) {
        table.wrong("`count` cannot be given beside `state` and `next`", None);
    }
    let session = match table.take_value("session") {
        None => Some(Session::All),
        Some(value) => session(&value),
    };
    if !has_any && !is_scripted {
        let hint = format!(
            "the state that it must be in (`state`, at first {STARTED}), or goes to (`next`)"
        );
        table.wrong("neither `state` nor `next`", Some(hint));
    }
    table.finish();
    let scenario = Scenario {
        states: context.states.clone(),
        name: name?,
        session: session?,
    };
    Some(Step {
        scenario,
        state,
        next,
        counts,
    })
}

/// `request.number`: a test of the number of the request in a scenario that counts.
pub(super) fn number(value: Value<'_>, context: &Context) -> Option<Condition> {
    let mut table = value.table()?;
    let name = table.text("scenario");
    if name.is_none() && !table.was_given("scenario") {
        table.missing("scenario", "what the scenario that counts is called");
    }
    let session = match table.take_value("session") {
        None => Some(Session::All),
        Some(value) => session(&value),
    };
    let test = when::field_of(table);
    let scenario = Scenario {
        states: context.states.clone(),
        name: name?,
        session: session?,
    };
    test.map(|test| Condition::Number(scenario, test))
}

fn session(value: &Value<'_>) -> Option<Session> {
    let text = as_text(value)?;
    match text.split_once(':') {
        None if text == "address" => Some(Session::Address),
        Some(("cookie", name)) if !name.is_empty() => Some(Session::Cookie(name.to_owned())),
        Some(("header", name)) if !name.is_empty() => Some(Session::Header(name.to_owned())),
        _ => value.wrong(format!(
            "`{text}` is none of address, cookie:NAME and header:NAME"
        )),
    }
}

const STRATEGIES: [&str; 5] = [
    "first_match",
    "priority",
    "uniform_random",
    "weighted_random",
    "round_robin",
];

/// A name, or a table of one name with its options.
pub(super) fn strategy(value: Value<'_>) -> Option<Strategy> {
    if !value.is_table() {
        let name = as_text(&value)?;
        return match named(name, None, Tiebreaker::FirstMatch) {
            Some(strategy) => Some(strategy),
            None => value.wrong_with(
                format!("`{name}` is no strategy"),
                Some(format!("known are {}", STRATEGIES.join(", "))),
            ),
        };
    }
    let mut table = value.table()?;
    let mut strategies = Vec::new();
    for name in STRATEGIES {
        let Some(mut options) = table.table(name) else {
            continue;
        };
        let seed = match name {
            "uniform_random" | "weighted_random" => options.integer("seed", 0..=i64::MAX),
            _ => None,
        };
        let tiebreaker = match name {
            "priority" => options
                .take_value("tiebreaker")
                .and_then(|value| tiebreaker(&value)),
            _ => None,
        };
        options.finish();
        let seed = seed.map(i64::cast_unsigned);
        strategies.extend(named(name, seed, tiebreaker.unwrap_or_default()));
    }
    if strategies.len() > 1 || strategies.is_empty() && table.is_empty() {
        table.wrong(
            "must name one strategy",
            Some(format!("known are {}", STRATEGIES.join(", "))),
        );
    }
    table.finish();
    strategies.pop()
}

fn named(name: &str, seed: Option<u64>, tiebreaker: Tiebreaker) -> Option<Strategy> {
    Some(match name {
        "first_match" => Strategy::FirstMatch,
        "priority" => Strategy::Priority(tiebreaker),
        "uniform_random" => Strategy::UniformRandom(seed),
        "weighted_random" => Strategy::WeightedRandom(seed),
        "round_robin" => Strategy::RoundRobin,
        _ => return None,
    })
}

fn tiebreaker(value: &Value<'_>) -> Option<Tiebreaker> {
    match as_text(value)? {
        "first_match" => Some(Tiebreaker::FirstMatch),
        "uniform_random" => Some(Tiebreaker::UniformRandom),
        other => value.wrong(format!(
            "`{other}` is neither first_match nor uniform_random"
        )),
    }
}
