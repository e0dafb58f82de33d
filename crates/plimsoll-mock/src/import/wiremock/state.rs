//! What WireMock's state extension keeps, as helpers of templates: `state`, `hasState`, `recordState` and `deleteState`.
//!
//! A response that changes states is a template that makes its own content first, so that changes may look into it.

use plimsoll_formats::wiremock::{StateAction, StateChange, StateMatch};
use plimsoll_formats::{Place, Remark};

use crate::import::entry::{Entry, Table};
use crate::import::when::When;

/// The name that a template gives its own content.
const CONTENT: &str = "responseBody";

/// The condition on what was kept before.
pub(super) fn condition(matcher: &StateMatch) -> When {
    let mut text = assigned("context", &matcher.context);
    let mut tests = vec!["(hasState context)".to_owned()];
    if matcher.is_absent {
        tests = vec!["(not (hasState context))".to_owned()];
    }
    for (number, count) in matcher.counts.iter().enumerate() {
        let (name, property, order) = (format!("count{number}"), count.property, count.order);
        text.push_str(&assigned(&name, &count.number));
        tests.push(format!(
            "({order} (state context=context property='{property}' default='0') {name})"
        ));
    }
    text.extend(["{{and ", &tests.join(" "), "}}"]);
    let condition = Entry::braces([
        ("text", text.into()),
        ("dialect", "wiremock".into()),
        ("op", "equal".into()),
        ("value", "true".into()),
    ]);
    When::at_path(&["template"], condition)
}

/// Has a response change what is kept.
///
/// - `is_template`: whether its own content is a template.
pub(super) fn change(
    respond: &mut Table,
    changes: &[StateChange],
    is_template: bool,
) -> Result<(), Remark> {
    if changes.is_empty() {
        return Ok(());
    }
    let wrong = |message: &str| {
        let place = Place::Key("serveEventListeners".to_owned());
        Err(Remark::new(place, message))
    };
    let unfit = ["proxy", "fault", "base64", "file_path", "dribble"];
    if unfit.iter().any(|key| respond.has(&[key])) {
        return wrong("states change with responses of text alone, so the mapping is left out");
    }
    let content = match (respond.text("text"), respond.text("json")) {
        (Some(text), _) => text,
        (None, Some(json)) => {
            // The mapping may have a type of its own.
            let kind = "application/json".into();
            respond.place(&["headers", "content-type"], kind).ok();
            json
        }
        (None, None) => String::new(),
    };
    if !is_template && content.contains("{{") {
        return wrong("a content with `{{` that is no template cannot change states here");
    }
    let mut text = assigned(CONTENT, &content);
    for (number, change) in changes.iter().enumerate() {
        let Some(change) = call(change, number) else {
            return wrong("`response` has only `body` here, so the mapping is left out");
        };
        text.push_str(&change);
    }
    text.extend(["{{", CONTENT, "}}"]);
    respond.remove("json");
    respond.remove("text");
    respond.push("text", text);
    respond.remove("template");
    respond.push("template", "wiremock");
    Ok(())
}

/// The call of a helper that makes a change; nothing if a template looks at something that there is not.
fn call(change: &StateChange, number: usize) -> Option<String> {
    let mut text = String::new();
    let mut names = 0;
    let mut name = |value: &str| {
        let name = format!("v{number}x{names}");
        names += 1;
        let value = value.replace("response.body", CONTENT);
        let is_known = !value.contains("response.");
        text.push_str(&assigned(&name, &value));
        is_known.then_some(name)
    };
    let context = name(&change.context)?;
    let record = |place: &str,
                  properties: &[(String, String)],
                  name: &mut dyn FnMut(&str) -> Option<String>| {
        let mut call = format!("recordState {context} '{place}'");
        for (property, value) in properties {
            let property = name(property)?;
            let value = name(value)?;
            call.extend([" ", &property, " ", &value]);
        }
        Some(call)
    };
    let call = match &change.action {
        StateAction::Record(properties) => record("state", properties, &mut name)?,
        StateAction::AddFirst(properties) => record("addFirst", properties, &mut name)?,
        StateAction::AddLast(properties) => record("addLast", properties, &mut name)?,
        StateAction::Delete => format!("deleteState {context}"),
        StateAction::DeleteFirst => format!("deleteState {context} 'deleteFirst'"),
        StateAction::DeleteLast => format!("deleteState {context} 'deleteLast'"),
        StateAction::DeleteIndex(index) => {
            let index = name(index)?;
            format!("deleteState {context} 'deleteIndex' {index}")
        }
        StateAction::DeleteWhere(property, value) => {
            let (property, value) = (name(property)?, name(value)?);
            format!("deleteState {context} 'deleteWhere' {property} {value}")
        }
    };
    Some(format!("{text}{{{{{call}}}}}"))
}

/// Gives a name what a template comes to.
fn assigned(name: &str, template: &str) -> String {
    format!("{{{{#assign '{name}'}}}}{template}{{{{/assign}}}}")
}
