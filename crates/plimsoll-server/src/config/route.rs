//! `[[route]]`: conditions and one action each.

mod actions;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};

use self::actions::{ActionPlan, action};
use crate::action::Action;
use crate::config::action::Wants;
use crate::config::document::{Table, Value, as_text};
use crate::config::log::LogPlan;
use crate::config::map::checked;
use crate::config::{Context, middleware, on_status};
use crate::message::request::without_root;
use crate::middleware::{FieldValue, Middleware, OwnFields};
use crate::place::{Maps, Moment, Template};
use crate::route::{
    FieldCondition, Leading, OnStatus, PathCondition, PlaceCondition, RouteConditions, RouteLink,
};
use crate::worker::context::WorkerContext;

/// One route, of which each worker makes its own.
#[derive(Debug, Clone)]
pub(super) struct RoutePlan {
    pub(super) name: String,
    /// The names of its logs; absent if it has the default ones.
    pub(super) logs: Option<Arc<[String]>>,
    /// The listeners that serve it; empty for all.
    pub(super) listeners: Vec<String>,
    pub(super) conditions: RouteConditions,
    pub(super) middleware: Middleware,
    /// The routes that take over, if any may.
    pub(super) on_status: Option<Arc<OnStatus>>,
    /// Clients do not reach it: other routes lead there.
    pub(super) is_internal: bool,
    /// It has a condition on the path; an internal route without one is found by its name alone.
    pub(super) has_path: bool,
    pub(super) action: ActionPlan,
    /// Fields of requests that the layers or the action set, remove or trust.
    pub(super) own_fields: OwnFields,
}

impl RoutePlan {
    /// Its action with its layers.
    ///
    /// - `link`: to all routes of the listener.
    pub(super) fn make(&self, worker: &WorkerContext, link: &RouteLink) -> Rc<dyn Action> {
        let action = self.action.make(worker, link);
        self.middleware
            .over_with(worker, action, |inner| match &self.on_status {
                Some(rules) => Rc::new(Leading::new(Arc::clone(rules), link.clone(), inner)),
                None => inner,
            })
    }

    /// - `listener`: the name of a listener, if it has one.
    pub(super) fn is_served_by(&self, listener: Option<&str>) -> bool {
        let mut listeners = self.listeners.iter();
        self.listeners.is_empty() || listeners.any(|it| Some(it.as_str()) == listener)
    }
}

/// The names that routes may refer to.
pub(super) struct KnownNames<'n> {
    pub(super) listeners: &'n [Option<String>],
    pub(super) routes: &'n [Option<String>],
    pub(super) logs: &'n [LogPlan],
}

/// The names of routes, which must differ, since counters are labelled by them; each is taken once.
pub(super) fn names(tables: &mut [Table<'_>]) -> Vec<Option<String>> {
    let mut taken = HashSet::new();
    let names = tables.iter_mut().map(|table| {
        let value = table.take_value("name")?;
        let name = as_text(&value)?.to_owned();
        if taken.insert(name.clone()) {
            return Some(name);
        }
        value.wrong(format!("another route is called `{name}`"))
    });
    names.collect()
}

impl KnownNames<'_> {
    /// The listeners of a route, one or several.
    fn listeners(&self, value: Value<'_>) -> Option<Vec<String>> {
        value.texts_with(|name| {
            let known = self.listeners.iter().flatten().map(String::as_str);
            unknown(("listener", "listen"), name, known)
        })
    }

    /// The logs of a route, one or several; none if it is `false`.
    fn logs(&self, value: Value<'_>) -> Option<Vec<String>> {
        if value.is_false() {
            return Some(Vec::new());
        }
        value.texts_with(|name| {
            let known = self.logs.iter().filter_map(|plan| plan.log.name());
            unknown(("log", "log"), name, known)
        })
    }
}

/// The error message for a name that does not exist; `None` if it does.
///
/// - `what`: in words, and the table whose name it would be.
fn unknown<'n>(
    (what, table): (&str, &str),
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Option<String> {
    let known: Vec<_> = known.collect();
    if known.contains(&name) {
        return None;
    }
    Some(if known.is_empty() {
        format!("there is no {what} `{name}`; give a [[{table}]] `name = \"{name}\"`")
    } else {
        let known = known.join(", ");
        format!("there is no {what} `{name}`; there are {known}")
    })
}

/// One route; `None` if something of it is wrong.
pub(super) fn compile(
    mut table: Table<'_>,
    name: Option<String>,
    context: &Context<'_>,
    names: &KnownNames<'_>,
) -> Option<RoutePlan> {
    let is_internal = table.boolean("internal").unwrap_or(false);
    let on_status = table.table("on_status");
    let on_status = on_status.map(|table| on_status::compile(table, names.routes));
    let listeners = match table.take_value("listen") {
        None => Some(Vec::new()),
        Some(value) => names.listeners(value),
    };
    let logs = table.take_value("log").map(|value| names.logs(value));
    let host = table.take_value("host").and_then(|value| host(&value));
    let methods = match table.take_value("method") {
        None => Some(Vec::new()),
        Some(value) => methods(value),
    };
    let has_path = ["path", "prefix", "pattern", "regex"]
        .iter()
        .any(|key| table.has(key));
    let path = path(&mut table);
    let query = table.table("query").map(|mut table| table.rest());
    let headers = table.table("header");
    let headers = headers.map(|mut table| table.rest_of_fields());
    let (query, headers) = (conditions(query), conditions(headers));
    let places = table.table("places").map(|mut table| table.rest());
    let places = place_conditions(places, &context.maps);
    let delay = table.duration("delay");
    let shown_path = || path.as_ref().map(shown).unwrap_or_default();
    let called = name.clone().unwrap_or_else(shown_path);
    let identity = context.identity(&format!("route {called}"));
    let of_route = middleware::Placement {
        name: "route",
        called: &called,
        identity: &identity,
        prefix: prefix_of(path.as_ref()),
    };
    let middleware = middleware::compile(&mut table, context, &of_route);
    let of_route = (path.as_ref(), methods.as_deref().unwrap_or_default());
    let wants = Wants {
        own_fields: RefCell::new(middleware.own_fields()),
        hands_over: Cell::new(false),
        leads_on: on_status.is_some(),
    };
    let called = (called.as_str(), identity.as_str());
    let action = action(&mut table, context, of_route, called, names, &wants);
    table.finish();
    let conditions = RouteConditions {
        host,
        methods: methods?,
        path: path?,
        query,
        headers,
        places: places?,
    };
    let action = match delay {
        None => action?,
        Some(delay) => ActionPlan::Delay(delay, Box::new(action?)),
    };
    let logs = match logs {
        Some(names) => Some(names?.into()),
        None => None,
    };
    let on_status = on_status.or_else(|| wants.hands_over.get().then(OnStatus::default));
    Some(RoutePlan {
        on_status: on_status.map(Arc::new),
        is_internal,
        has_path,
        name: name.unwrap_or_else(|| shown(&conditions.path)),
        logs,
        listeners: listeners?,
        conditions,
        middleware,
        action,
        own_fields: wants.own_fields.into_inner(),
    })
}

/// The prefix of a route's paths; `/` if it has none.
fn prefix_of(path: Option<&PathCondition>) -> &str {
    match path {
        Some(PathCondition::Prefix(prefix)) => prefix,
        _ => "/",
    }
}

fn shown(path: &PathCondition) -> String {
    match path {
        PathCondition::Exact(path) | PathCondition::Prefix(path) => path.clone(),
        PathCondition::Pattern(pattern) => pattern.to_string(),
        PathCondition::Regex(expression) => expression.as_str().to_owned(),
    }
}

fn host(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_host = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte))
        && (!name.contains(':') || name.starts_with('['));
    if !is_host {
        return value.wrong(format!(
            "`{text}` is not a host without port, such as example.org or *.example.org"
        ));
    }
    Some(without_root(text).to_owned())
}

fn methods(value: Value<'_>) -> Option<Vec<String>> {
    let wrong = |method: &str| {
        method.is_empty()
            || !method
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    };
    let texts = value
        .texts_with(|text| wrong(text).then(|| format!("`{text}` is not a method, such as GET")))?;
    Some(texts)
}

fn path(table: &mut Table<'_>) -> Option<PathCondition> {
    type Parse = fn(&str) -> Result<PathCondition, crate::route::PathError>;
    let kinds: [(&'static str, Parse); 4] = [
        ("path", PathCondition::exact),
        ("prefix", PathCondition::prefix),
        ("pattern", PathCondition::pattern),
        ("regex", PathCondition::regex),
    ];
    let mut given = Vec::new();
    for (key, parse) in kinds {
        if let Some(value) = table.take_value(key) {
            let parsed = as_text(&value).and_then(|text| value.check(parse(text)));
            given.push((key, parsed));
        }
    }
    if given.len() > 1 {
        let keys: Vec<_> = given.iter().map(|(key, _)| format!("`{key}`")).collect();
        table.wrong(
            format!("{} are given, but a route has one path", keys.join(" and ")),
            None,
        );
        return None;
    }
    match given.pop() {
        None => PathCondition::prefix("/").ok(),
        Some((_, path)) => path,
    }
}

/// Pairs of a name and a value, or `true` for any value.
fn conditions(pairs: Option<Vec<(String, Value<'_>)>>) -> Vec<FieldCondition> {
    pairs
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let value = if value.is_true() {
                None
            } else {
                Some(value.text()?)
            };
            Some(FieldCondition { name, value })
        })
        .collect()
}

/// Places by their names without braces, each with `true` for any value, one value, or several.
fn place_conditions(
    pairs: Option<Vec<(String, Value<'_>)>>,
    maps: &Maps,
) -> Option<Vec<PlaceCondition>> {
    let pairs = pairs.into_iter().flatten();
    let conditions = pairs.map(|(name, value)| {
        let text = Template::parse(&format!("{{{name}}}"), maps, Moment::Request);
        let Some(text) = checked(&value, text)? else {
            return value.wrong(format!("`{name}` is no place, such as scheme or map:NAME"));
        };
        let values = if value.is_true() {
            Vec::new()
        } else {
            value.texts_with(|_| None)?
        };
        Some(PlaceCondition { text, values })
    });
    conditions.collect::<Vec<_>>().into_iter().collect()
}

/// A field whose value may have places.
///
/// - `moment`: when it is filled.
pub(super) fn placed_field(
    name: &str,
    value: &Value<'_>,
    maps: &Maps,
    moment: Moment,
) -> Option<(HeaderName, FieldValue)> {
    let (name, fixed) = field(name, value)?;
    let filled = checked(value, Template::parse(as_text(value)?, maps, moment))?;
    let value = filled.map_or(FieldValue::Fixed(fixed), FieldValue::Filled);
    Some((name, value))
}

pub(super) fn field(name: &str, value: &Value<'_>) -> Option<(HeaderName, HeaderValue)> {
    let name = value
        .check(HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            format!("`{name}` contains a character that header names may not have")
        }))?;
    let name = not_of_server(name, value)?;
    let text = as_text(value)?;
    let text =
        value.check(HeaderValue::from_str(text).map_err(|_| "contains a control character"))?;
    Some((name, text))
}

/// A field that the server does not set itself.
pub(super) fn not_of_server(name: HeaderName, value: &Value<'_>) -> Option<HeaderName> {
    let of_server = ["content-length", "transfer-encoding", "connection", "date"];
    if of_server.contains(&name.as_str()) {
        return value.wrong("is set by the server and cannot be given");
    }
    Some(name)
}
