//! `respond.events`: a stream of server-sent events.

use std::time::Duration;

use plimsoll_model::document::{Table, Value, as_text};

use crate::streaming::events::{EventData, EventScript, ScriptedEvent};
use crate::template::TextTemplate;

/// The script of `events` and `repeat`.
///
/// - `written`: makes data with places; absent where there are none.
pub(super) fn compile(
    value: Value<'_>,
    table: &mut Table<'_>,
    written: &dyn Fn(&Value<'_>, &str) -> Option<Option<TextTemplate>>,
) -> Option<EventScript> {
    let rounds = match table.take_value("repeat") {
        None => Some(Some(1)),
        Some(value) if value.is_true() => Some(None),
        Some(value) if value.is_false() => Some(Some(1)),
        Some(value) => value.wrong("must be true or false"),
    };
    let events = value.elements().into_iter();
    let events: Vec<Option<ScriptedEvent>> =
        events.map(|value| event(value.table()?, written)).collect();
    let events: Vec<ScriptedEvent> = events.into_iter().collect::<Option<_>>()?;
    if events.is_empty() {
        table.wrong("there are no events", None);
        return None;
    }
    let lasts = events.iter().any(|event| !event.after.is_zero());
    if rounds == Some(None) && !lasts {
        let hint = "give one of them `after`, such as after = \"1s\"";
        table.wrong(
            "events that repeat would never pause",
            Some(hint.to_owned()),
        );
        return None;
    }
    Some(EventScript {
        events,
        rounds: rounds?,
    })
}

fn event(
    mut table: Table<'_>,
    written: &dyn Fn(&Value<'_>, &str) -> Option<Option<TextTemplate>>,
) -> Option<ScriptedEvent> {
    let after = table.duration("after");
    let has_after = table.was_given("after");
    let mut fields = String::new();
    let mut is_whole = true;
    for key in ["event", "id"] {
        let Some(value) = table.take_value(key) else {
            continue;
        };
        match as_text(&value) {
            Some(text) if text.contains(['\n', '\r', '\0']) => {
                value.wrong::<()>("must be of one line");
                is_whole = false;
            }
            Some(text) => {
                fields.push_str(key);
                fields.push_str(": ");
                fields.push_str(text);
                fields.push('\n');
            }
            None => is_whole = false,
        }
    }
    if let Some(retry) = table.duration("retry") {
        fields.push_str("retry: ");
        fields.push_str(&retry.as_millis().to_string());
        fields.push('\n');
    }
    let data = table.take_value("data");
    if data.is_none() {
        table.missing("data", "what the event says");
    }
    table.finish();
    let value = data?;
    let text = as_text(&value)?;
    let data = match written(&value, text)? {
        Some(written) => EventData::TextTemplate(written),
        None => EventData::Always(text.to_owned()),
    };
    is_whole.then_some(())?;
    Some(ScriptedEvent {
        after: if has_after { after? } else { Duration::ZERO },
        fields,
        data,
    })
}
