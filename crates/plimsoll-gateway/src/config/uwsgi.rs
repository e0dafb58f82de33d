//! `uwsgi` in a route's `proxy`.

use plimsoll_server::config::{Mounted, Table, Value};

use super::fastcgi::parameters;
use crate::forward::UwsgiPlan;

/// A table with what differs from the usual.
pub(super) fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<UwsgiPlan> {
    let mut plan = UwsgiPlan::default();
    let mut table = value.table()?;
    let is_whole = parameters(&mut table, mounted, &mut plan.parameters);
    let mut modifier = |key| modifier(&mut table, key);
    let modifiers = [modifier("modifier1"), modifier("modifier2")];
    table.finish();
    let [Some(first), Some(second)] = modifiers else {
        return None;
    };
    plan.modifiers = [first, second];
    is_whole.then_some(plan)
}

/// A byte of a packet's header; `None` if the value is none.
fn modifier(table: &mut Table<'_>, key: &'static str) -> Option<u8> {
    if !table.has(key) {
        return Some(0);
    }
    let number = table.count(key, 0..=255)?;
    u8::try_from(number).ok()
}
