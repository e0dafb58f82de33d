//! The action of a route.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use regex::Regex;

use super::{KnownNames, placed_field, prefix_of};
use crate::action::Action;
use crate::actions::{
    Delay, Echo, Fill, FillContent, Filled, Redirect, RedirectError, Respond, Target,
};
use crate::config::action::{MadeAction, Mounted, Wants};
use crate::config::document::{Table, Value, as_text};
use crate::config::{Context, map, on_status};
use crate::message::response::{Response, ResponseBody};
use crate::middleware::FieldValue;
use crate::observe::notice::{Notice, Severity};
use crate::place::location::LocationError;
use crate::place::{Maps, Moment};
use crate::route::{PathCondition, Rewrite, Rewriting, RouteLink};
use crate::worker::context::WorkerContext;

/// An action that any worker can make.
#[derive(Debug, Clone)]
pub(in crate::config) enum ActionPlan {
    Respond {
        status: StatusCode,
        fields: HeaderMap,
        content: Bytes,
    },
    Fill(Arc<Fill>),
    Redirect(Redirect),
    Rewrite(Rewrite),
    Echo,
    Delay(Duration, Box<ActionPlan>),
    Other(MadeAction),
}

impl ActionPlan {
    /// - `link`: to all routes of the listener.
    pub(in crate::config) fn make(
        &self,
        worker: &WorkerContext,
        link: &RouteLink,
    ) -> Rc<dyn Action> {
        match self {
            Self::Respond {
                status,
                fields,
                content,
            } => {
                let mut response = Response::new(*status);
                for (name, value) in fields {
                    response = response.with_field(name.clone(), value.clone());
                }
                let content = ResponseBody::Bytes(content.clone());
                Rc::new(Respond::new(response.with_body(content)))
            }
            Self::Fill(fill) => Rc::new(Filled(Arc::clone(fill))),
            Self::Redirect(redirect) => Rc::new(redirect.clone()),
            Self::Rewrite(rewrite) => Rc::new(Rewriting::new(rewrite.clone(), link.clone())),
            Self::Echo => Rc::new(Echo),
            Self::Delay(time, inner) => {
                let inner = inner.make(worker, link);
                Rc::new(Delay::new(*time, inner).with_alarms(worker.alarms().clone()))
            }
            Self::Other(MadeAction(make)) => make(worker),
        }
    }
}

/// Compiles the one action of a route, noting what is wrong.
///
/// - `path`, `methods`: its conditions on these.
/// - `name`, `identity`: as in [`Mounted`].
pub(super) fn action(
    table: &mut Table<'_>,
    context: &Context<'_>,
    (path, methods): (Option<&PathCondition>, &[String]),
    (name, identity): (&str, &str),
    names: &KnownNames<'_>,
    wants: &Wants,
) -> Option<ActionPlan> {
    let mut keys = vec!["respond", "redirect", "rewrite", "echo"];
    let mut given = Vec::new();
    if let Some(value) = table.take_value("respond") {
        given.push(value.table().and_then(|table| respond(table, context)));
    }
    if let Some(value) = table.take_value("redirect") {
        let redirect = |table| redirect(table, path, &context.maps);
        given.push(value.table().and_then(redirect));
    }
    if let Some(value) = table.take_value("rewrite") {
        let rewrite = |table| rewrite(table, path, &context.maps, names.routes);
        given.push(value.table().and_then(rewrite));
    }
    if let Some(value) = table.take_value("echo") {
        given.push(value.table().map(|table| {
            table.finish();
            ActionPlan::Echo
        }));
    }
    let mounted = Mounted {
        paths: context.paths,
        prefix: prefix_of(path),
        methods,
        name,
        identity,
        states: &context.compiler.states,
        maps: &context.maps,
        counters: &context.compiler.counters,
        apis: context.apis.as_ref(),
        is_measured: context.is_measured,
        notices: &context.compiler.notices,
        on_demand: &context.compiler.challenges.on_demand,
        sections: &context.sections,
        leads_on: wants.leads_on,
        wants,
    };
    for kind in &context.compiler.actions {
        keys.push(kind.key);
        if let Some(value) = table.take_value(kind.key) {
            let made = (kind.compile)(value, &mounted);
            given.push(made.map(|make| ActionPlan::Other(MadeAction(make))));
        }
    }
    match given.len() {
        0 => {
            table.wrong("no action", Some(format!("give it {}", any_of(&keys))));
            None
        }
        1 => given.pop().flatten(),
        _ => {
            table.wrong(
                "more than one action",
                Some(format!("a route has one of {}", any_of(&keys))),
            );
            None
        }
    }
}

fn any_of(keys: &[&str]) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

fn respond(mut table: Table<'_>, context: &Context<'_>) -> Option<ActionPlan> {
    let status = table.count("status", 200..=599);
    let kind = table.take_value("type").and_then(|value| {
        let text = as_text(&value)?;
        value.check(HeaderValue::from_str(text).map_err(|_| "contains a control character"))
    });
    let body = table.text("body");
    let file = table.take_value("file");
    let may_be_missing = table.boolean("optional").unwrap_or(false);
    let template = table.take_value("template");
    let given = [body.is_some(), file.is_some(), template.is_some()];
    let has_both = given.into_iter().filter(|it| *it).count() > 1;
    let is_filled = template.is_some();
    let template = template.and_then(|value| {
        let maps = &context.maps;
        map::template(&value, maps, Moment::Request)
    });
    let bytes = match (body, file) {
        (Some(body), _) => Some(Bytes::from(body)),
        (None, Some(file)) => match content(&file, may_be_missing, context) {
            Some(Content::There(bytes)) => Some(bytes),
            Some(Content::Missing) => return Some(missing(table)),
            None => None,
        },
        (None, None) => Some(Bytes::new()),
    };
    if has_both {
        table.wrong(
            "the content is given more than once",
            Some("keep one of `body`, `file` and `template`".to_owned()),
        );
    }
    let mut fields = HeaderMap::new();
    let mut filled = Vec::new();
    if let Some(mut headers) = table.table("headers") {
        for (name, value) in headers.rest_of_fields() {
            match placed_field(&name, &value, &context.maps, Moment::Request) {
                Some((name, FieldValue::Fixed(value))) => _ = fields.append(name, value),
                Some((name, FieldValue::Filled(value))) => filled.push((name, value)),
                None => {}
            }
        }
    }
    let bytes = bytes?;
    match kind {
        Some(kind) => {
            fields.insert(CONTENT_TYPE, kind);
        }
        None if (is_filled || !bytes.is_empty()) && !fields.contains_key(CONTENT_TYPE) => {
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            fields.insert(CONTENT_TYPE, text);
        }
        None => {}
    }
    table.finish();
    let status = status
        .and_then(|status| u16::try_from(status).ok())
        .and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::OK);
    if is_filled || !filled.is_empty() {
        return Some(ActionPlan::Fill(Arc::new(Fill {
            status,
            fields,
            filled,
            content: match template {
                Some(template) => FillContent::Template(template),
                None if is_filled => return None,
                None => FillContent::Bytes(bytes),
            },
        })));
    }
    Some(ActionPlan::Respond {
        status,
        fields,
        content: bytes,
    })
}

/// The content of a file.
enum Content {
    There(Bytes),
    /// It is not there, as it may.
    Missing,
}

fn content(file: &Value<'_>, may_be_missing: bool, context: &Context<'_>) -> Option<Content> {
    let path = context.paths.read(file)?;
    match std::fs::read(&path) {
        Ok(bytes) => Some(Content::There(bytes.into())),
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => {
            let message = "it is not there, so that its route responds with 404";
            let notice = Notice::new(Severity::Warning, message).about(path.display().to_string());
            context.compiler.notices.report(&notice);
            Some(Content::Missing)
        }
        Err(error) => file.wrong(format!("cannot read {}: {error}", path.display())),
    }
}

/// The response in place of a file that is not there.
fn missing(mut table: Table<'_>) -> ActionPlan {
    // Its other keys are of no use then.
    table.rest();
    table.finish();
    ActionPlan::Respond {
        status: StatusCode::NOT_FOUND,
        fields: HeaderMap::new(),
        content: Bytes::from_static(b"not found\n"),
    }
}

/// Notes what is wrong with a target, with the place that was probably meant.
fn redirect_checked(
    value: &Value<'_>,
    redirect: Result<Redirect, RedirectError>,
) -> Option<Redirect> {
    match redirect {
        Err(RedirectError::Location(error)) => wrong_target(value, &error),
        redirect => value.check(redirect),
    }
}

fn wrong_target<T>(value: &Value<'_>, error: &LocationError) -> Option<T> {
    let hint = error.suggestion();
    let hint = hint.map(|it| format!("did you mean `{{{it}}}`?"));
    value.wrong_with(error, hint)
}

/// - `path`: of the route, whose groups may stand in the target.
fn redirect(mut table: Table<'_>, path: Option<&PathCondition>, maps: &Maps) -> Option<ActionPlan> {
    let status = table.count("status", 300..=399).unwrap_or(308);
    let to = table.take_value("to");
    if to.is_none() {
        table.missing("to", "such as to = \"https://{host}{path}{query}\"");
    }
    let redirect = to.and_then(|value| {
        let to = as_text(&value)?;
        let status = u16::try_from(status).unwrap_or_default();
        let redirect = Redirect::by_groups(status, to, groups_of(path), maps);
        redirect_checked(&value, redirect)
    });
    table.finish();
    redirect.map(ActionPlan::Redirect)
}

/// The expression of a path, whose groups may stand in targets.
fn groups_of(path: Option<&PathCondition>) -> Option<Regex> {
    match path {
        Some(PathCondition::Regex(expression)) => Some(expression.clone()),
        _ => None,
    }
}

/// - `path`: of the route, whose groups may stand in the target.
fn rewrite(
    mut table: Table<'_>,
    path: Option<&PathCondition>,
    maps: &Maps,
    routes: &[Option<String>],
) -> Option<ActionPlan> {
    let to = table.take_value("to");
    if to.is_none() {
        table.missing("to", "such as to = \"/index.html\", or \"/{1}{query}\"");
    }
    let to = to.and_then(|value| {
        let text = as_text(&value)?;
        // A place may have the slash.
        if !text.starts_with(['/', '{']) {
            return value.wrong(format!(
                "`{text}` is no path: it does not begin with a slash"
            ));
        }
        match Target::parse(text, groups_of(path), maps) {
            Ok(target) => Some(target),
            Err(error) => wrong_target(&value, &error),
        }
    });
    let route = table.take_value("route");
    let route = route.map(|it| on_status::route(&it, routes, "give the route a `name`"));
    table.finish();
    let route = match route {
        Some(route) => Some(route?),
        None => None,
    };
    Some(ActionPlan::Rewrite(Rewrite { to: to?, route }))
}
