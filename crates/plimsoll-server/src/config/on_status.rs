//! `on_status` of a route: the routes that take over where it responds with an error or a redirect.

use std::sync::Arc;

use http::StatusCode;

use crate::config::document::{Table, Value, as_text, nearest};
use crate::route::{OnStatus, StatusPattern, Successor, SuccessorStatus, SuccessorTarget};

/// Pairs of a status and a successor: `{ 404 = "/404.html", 5xx = { to = "sorry", status = 503 } }`.
///
/// - `names`: of all routes of the file.
pub(super) fn compile(mut table: Table<'_>, names: &[Option<String>]) -> OnStatus {
    let mut successors = Vec::new();
    for (status, value) in table.rest() {
        let Some(pattern) = StatusPattern::parse(&status) else {
            value.wrong::<()>(format!(
                "`{status}` is not a status from 300 to 599, \"3xx\", \"4xx\" or \"5xx\""
            ));
            continue;
        };
        let successor = successor(value, names);
        successors.extend(successor.map(|successor| (pattern, successor)));
    }
    OnStatus { successors }
}

fn successor(value: Value<'_>, names: &[Option<String>]) -> Option<Successor> {
    if !value.is_table() {
        return Some(Successor {
            target: target(&value, names)?,
            status: SuccessorStatus::First,
        });
    }
    let mut table = value.table()?;
    let to = table.take_value("to");
    if to.is_none() {
        table.missing(
            "to",
            "the name of a route, or a path such as to = \"/404.html\"",
        );
    }
    let status = match table.take_value("status") {
        None => Some(SuccessorStatus::First),
        Some(value) if value.as_str() == Some("own") => Some(SuccessorStatus::Own),
        Some(value) => {
            let number = value.whole(200..=599).and_then(|it| u16::try_from(it).ok());
            let status = number.and_then(|it| StatusCode::from_u16(it).ok());
            let mistake = "is not a status from 200 to 599, or \"own\" for that of the other route";
            value.check(status.map(SuccessorStatus::Is).ok_or(mistake))
        }
    };
    table.finish();
    Some(Successor {
        target: target(&to?, names)?,
        status: status?,
    })
}

/// A path, or the name of a route.
fn target(value: &Value<'_>, names: &[Option<String>]) -> Option<SuccessorTarget> {
    let text = as_text(value)?;
    if text.starts_with('/') {
        return Some(SuccessorTarget::Path(Arc::from(text)));
    }
    let otherwise =
        "give the route that takes over a `name`, or write a path such as \"/404.html\"";
    route(value, names, otherwise).map(SuccessorTarget::Route)
}

/// The name of a route.
///
/// - `otherwise`: what to do if no name is like it.
pub(super) fn route(
    value: &Value<'_>,
    names: &[Option<String>],
    otherwise: &str,
) -> Option<Arc<str>> {
    let text = as_text(value)?;
    let known: Vec<_> = names.iter().flatten().map(String::as_str).collect();
    if known.contains(&text) {
        return Some(Arc::from(text));
    }
    let hint = match nearest(text, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    };
    value.wrong_with(format!("there is no route `{text}`"), Some(hint))
}
