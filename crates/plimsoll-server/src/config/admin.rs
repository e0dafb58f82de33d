//! `[admin]`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::Secret;

use crate::action::Action;
use crate::config::document::{Table, Value, as_text};
use crate::counters::Counters;
use crate::engine::address::Address;
use crate::engine::listener::Transport;
use crate::engine::{ListenerPlan, Serves};
use crate::observe::admin::{Admin, AdminApi, AdminPath};
use crate::observe::audit::AuditLog;
use crate::worker::context::WorkerContext;

/// Fewer characters can be tried out.
const SHORTEST_TOKEN: usize = 16;

/// The listener of the table; only on the loopback unless there is a token.
///
/// - `paths`: what other crates answer there.
/// - `apis`: what the actions of the file do.
/// - `audit`: takes a line for each change.
pub(super) fn compile(
    mut table: Table<'_>,
    counters: &Arc<Counters>,
    paths: &[AdminPath],
    apis: Vec<AdminApi>,
    audit: &AuditLog,
    others: &[ListenerPlan],
) -> Option<ListenerPlan> {
    let token = token(&mut table);
    let address = match table.take_value("address") {
        None => {
            table.missing("address", "such as address = \"127.0.0.1:9090\"");
            None
        }
        Some(value) => as_text(&value).and_then(|text| {
            let address = value.check(port_of(text))?;
            if token.is_none() && !address.ip().is_loopback() {
                return value.wrong("is not on the loopback, so a `token` is needed");
            }
            free(&value, address, others)
        }),
    };
    table.finish();
    let (counters, paths, audit) = (Arc::clone(counters), paths.to_vec(), audit.clone());
    let admin = move || {
        Admin::new(Arc::clone(&counters), token.clone())
            .with_paths(&paths)
            .with_apis(&apis)
            .with_audit(audit.clone())
    };
    Some(listener(address?, admin))
}

/// A text that is no address of a port.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an address with a port")]
pub(super) struct NoPort(String);

/// The address of a text in any form that listeners take.
pub(super) fn port_of(text: &str) -> Result<SocketAddr, NoPort> {
    let address = text.parse::<Address>().ok();
    let port = address.and_then(|address| address.port());
    port.ok_or_else(|| NoPort(text.to_owned()))
}

/// The token that clients have to present, if there is one.
pub(super) fn token(table: &mut Table<'_>) -> Option<Secret> {
    let value = table.take_value("token")?;
    let text = as_text(&value)?;
    if text.len() < SHORTEST_TOKEN {
        return value.wrong(format!("must have {SHORTEST_TOKEN} characters or more"));
    }
    Some(Secret::new(text.to_owned()))
}

/// The address, unless another listener has it.
pub(super) fn free(
    value: &Value<'_>,
    address: SocketAddr,
    others: &[ListenerPlan],
) -> Option<SocketAddr> {
    let mut others = others.iter();
    // Datagrams may come to the same number.
    let is_taken = |other: &ListenerPlan| {
        other.serves.transport() == Transport::Tcp && other.address == Address::Port(address)
    };
    if address.port() != 0 && others.any(is_taken) {
        return value.wrong("is that of another listener already");
    }
    Some(address)
}

/// One that stays until the very end, so that a drain can be watched.
pub(super) fn listener(
    address: SocketAddr,
    admin: impl Fn() -> Admin + Send + Sync + 'static,
) -> ListenerPlan {
    let action = move |_: &WorkerContext| Rc::new(admin()) as Rc<dyn Action>;
    ListenerPlan {
        is_last: true,
        ..ListenerPlan::new(address, Serves::clear(Arc::new(action)))
    }
}
