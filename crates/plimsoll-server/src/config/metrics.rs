//! `[metrics]`.

use std::sync::Arc;

use crate::config::admin;
use crate::config::document::{Table, as_text};
use crate::counters::Counters;
use crate::engine::ListenerPlan;
use crate::observe::admin::Admin;

/// The listener of the table. It shows figures and nothing else, so it may be on any address.
pub(super) fn compile(
    mut table: Table<'_>,
    counters: &Arc<Counters>,
    others: &[ListenerPlan],
) -> Option<ListenerPlan> {
    let token = admin::token(&mut table);
    let is_open = token.is_none() && table.was_given("token");
    let prefix = match table.take_value("prefix") {
        None => Some(None),
        Some(value) => as_text(&value).and_then(|text| {
            if is_prefix(text) {
                return Some(Some(text.to_owned()));
            }
            value.wrong(format!(
                "`{text}` cannot begin a metric's name: that is letters, digits and underscores, and no digit first"
            ))
        }),
    };
    let address = match table.take_value("address") {
        None => {
            table.missing("address", "such as address = \"0.0.0.0:9100\"");
            None
        }
        Some(value) => as_text(&value)
            .and_then(|text| admin::free(&value, value.check(admin::port_of(text))?, others)),
    };
    table.finish();
    let prefix = prefix?;
    if is_open {
        return None;
    }
    let (counters, address) = (Arc::clone(counters), address?);
    let is_local = address.ip().is_loopback();
    let shown = move || {
        Admin::metrics(
            Arc::clone(&counters),
            token.clone(),
            prefix.clone(),
            is_local,
        )
    };
    Some(admin::listener(address, shown))
}

fn is_prefix(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    text.bytes().next().is_some_and(is_letter)
        && text
            .bytes()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
