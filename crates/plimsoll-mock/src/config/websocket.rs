//! `respond.websocket`: the messages of a WebSocket.

use std::time::Duration;

use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_wire::ws::MOST_CONTROL_BYTES;

use super::respond::{self, Making};
use super::when;
use crate::fault::patience::PATIENCE;
use crate::streaming::websocket::{
    Answered, Conversation, MESSAGE_BYTES, MessageContent, ScriptedMessage,
};

/// The longest message that a rule may allow.
const MOST_MESSAGE_BYTES: u64 = 256 << 20;

/// `{ open, messages, ping, message_bytes, write_timeout, protocols }`
pub(super) fn compile(value: Value<'_>, making: &Making<'_>) -> Option<Conversation> {
    let mut table = value.table()?;
    let protocols = table.take_value("protocols").map(|value| {
        value.texts_with(|name| {
            let is_token = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte));
            (!is_token).then(|| format!("`{name}` is no name of a protocol"))
        })
    });
    let open = table
        .take_value("open")
        .map(|value| says(value, making, false));
    let answers = table.take_value("messages").map(|value| {
        let answers = value.elements().into_iter();
        let answers: Vec<_> = answers
            .map(|value| answered(value.table()?, making))
            .collect();
        answers.into_iter().collect::<Option<Vec<_>>>()
    });
    let ping = table.duration("ping");
    if ping == Some(Duration::ZERO) {
        table.wrong("a `ping` every 0 s would never pause", None);
    }
    let write_timeout = table.duration("write_timeout");
    if write_timeout == Some(Duration::ZERO) {
        table.wrong("a `write_timeout` of 0 s would end every WebSocket", None);
    }
    let message_bytes = table.bytes("message_bytes");
    if message_bytes.is_some_and(|bytes| bytes > MOST_MESSAGE_BYTES) {
        let message = format!(
            "`message_bytes` may be {} MiB at most",
            MOST_MESSAGE_BYTES >> 20
        );
        table.wrong(message, None);
    }
    table.finish();
    Some(Conversation {
        protocols: protocols.unwrap_or_else(|| Some(Vec::new()))?,
        open: open.unwrap_or_else(|| Some(Vec::new()))?,
        answers: answers.unwrap_or_else(|| Some(Vec::new()))?,
        ping: ping.filter(|ping| !ping.is_zero()),
        message_bytes: message_bytes.unwrap_or(MESSAGE_BYTES),
        write_timeout: write_timeout.unwrap_or(PATIENCE),
    })
}

/// `{ when, say }`
fn answered(mut table: Table<'_>, making: &Making<'_>) -> Option<Answered> {
    let conditions = match table.table("when") {
        None => Some(Vec::new()),
        Some(body) => when::body(body, making.context),
    };
    let say = table.take_value("say");
    if say.is_none() {
        table.missing("say", "such as say = [{ text = \"hello\" }]");
    }
    let says = say.and_then(|value| says(value, making, true));
    table.finish();
    Some(Answered {
        conditions: conditions?,
        says: says?,
    })
}

/// - `is_answer`: whether there is a message to give back.
fn says(value: Value<'_>, making: &Making<'_>, is_answer: bool) -> Option<Vec<ScriptedMessage>> {
    let says = value.elements().into_iter();
    let says: Vec<_> = says
        .map(|value| saying(value.table()?, making, is_answer))
        .collect();
    says.into_iter().collect()
}

fn saying(mut table: Table<'_>, making: &Making<'_>, is_answer: bool) -> Option<ScriptedMessage> {
    let after = table.duration("after");
    let has_after = table.was_given("after");
    let mut given = Vec::new();
    if let Some(value) = table.take_value("text") {
        given.push(respond::text(&value, making).map(MessageContent::Text));
    }
    if let Some(value) = table.take_value("json") {
        given.push(respond::json(&value, making).map(MessageContent::Text));
    }
    if let Some(value) = table.take_value("base64") {
        given.push(respond::base64(&value).map(MessageContent::Binary));
    }
    if let Some(value) = table.take_value("echo") {
        given.push(match (value.is_true(), is_answer) {
            (true, true) => Some(MessageContent::Echo),
            (true, false) => value.wrong("there is no message to give back on opening"),
            (false, _) => value.wrong("must be true"),
        });
    }
    if let Some(value) = table.take_value("ping") {
        given.push(short(&value, MOST_CONTROL_BYTES).map(MessageContent::Ping));
    }
    let reason = table
        .take_value("reason")
        .map(|value| short(&value, MOST_CONTROL_BYTES - 2));
    if table.was_given("reason") && !table.has("close") {
        table.wrong("a `reason` is of `close`", None);
    }
    if table.has("close") {
        let code = table.count("close", 1000..=4999).and_then(|code| {
            let code = u16::try_from(code).ok()?;
            // RFC 6455, section 7.4: the others are never sent, or by clients only.
            if !matches!(code, 1000..=1003 | 1007..=1009 | 1011..=1014 | 3000..=4999) {
                table.wrong(format!("the code {code} must not be sent"), None);
                return None;
            }
            Some(code)
        });
        let reason = reason.unwrap_or_else(|| Some(String::new()));
        given.push(
            code.zip(reason)
                .map(|(code, reason)| MessageContent::Close(code, reason)),
        );
    }
    if given.len() != 1 {
        let hint = "one of text, json, base64, echo, ping and close".to_owned();
        table.wrong("must say one thing", Some(hint));
        given.clear();
    }
    table.finish();
    Some(ScriptedMessage {
        after: if has_after { after? } else { Duration::ZERO },
        what: given.pop()??,
    })
}

fn short(value: &Value<'_>, most: usize) -> Option<String> {
    let text = as_text(value)?;
    if text.len() > most {
        return value.wrong(format!("may have {most} bytes at most"));
    }
    Some(text.to_owned())
}
