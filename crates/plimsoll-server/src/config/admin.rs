//! `[admin]`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::Secret;

use crate::action::Action;
use crate::config::document::{Table, Value, as_text};
use crate::config::paths::{NamedPaths, PathUse};
use crate::content::ConfigContent;
use crate::content::changes::ChangesPlan;
use crate::counters::Counters;
use crate::engine::address::Address;
use crate::engine::listener::Transport;
use crate::engine::{ListenerPlan, Serves};
use crate::observe::admin::{Admin, AdminApi, AdminPath, ChangeQueue, ServedConfig};
use crate::observe::audit::AuditLog;
use crate::worker::context::WorkerContext;

/// Fewer characters can be tried out.
const SHORTEST_TOKEN: usize = 16;

/// The admin port of a file.
pub(super) struct AdminPlan {
    pub(super) listener: ListenerPlan,
    pub(super) changes: Option<ChangesPlan>,
}

/// What the admin port answers with.
pub(super) struct AdminParts<'a> {
    pub(super) paths: &'a NamedPaths<'a>,
    pub(super) counters: &'a Arc<Counters>,
    /// What other crates answer there.
    pub(super) admin_paths: &'a [AdminPath],
    /// What the actions of the file do.
    pub(super) apis: Vec<AdminApi>,
    /// Takes a line for each change.
    pub(super) audit: &'a AuditLog,
    /// Takes changes, if the code that runs the plan makes any.
    pub(super) queue: Option<&'a ChangeQueue>,
    /// The listeners of the file.
    pub(super) others: &'a [ListenerPlan],
}

/// The listener of the table; only on the loopback unless there is a token.
///
/// - `content`: all of the file.
pub(super) fn compile(
    mut table: Table<'_>,
    content: ConfigContent,
    parts: AdminParts<'_>,
) -> Option<AdminPlan> {
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
            free(&value, address, parts.others)
        }),
    };
    let value = table.take_value("changes");
    let is_known = token.is_some() || table.was_given("token");
    let changes = value.map(|value| changes(&value, is_known, parts.paths));
    table.finish();
    let changes = match changes {
        None => None,
        Some(changes) => Some(changes?),
    };
    let queue = parts.queue.cloned();
    let audit = parts.audit.clone();
    let has_token = token.is_some();
    let served = ServedConfig::new(content, queue, changes.is_some(), has_token, audit.clone());
    let mut apis = parts.apis;
    apis.push(AdminApi::new("/config", served.into_answer()));
    let counters = Arc::clone(parts.counters);
    let paths = parts.admin_paths.to_vec();
    let admin = move || {
        Admin::new(Arc::clone(&counters), token.clone())
            .with_paths(&paths)
            .with_apis(&apis)
            .with_audit(audit.clone())
    };
    Some(AdminPlan {
        listener: listener(address?, admin),
        changes,
    })
}

/// `"memory"`, or the file that changes are kept in.
///
/// - `has_token`: clients need a token. A client that changes the configuration can have the server send any file that it can read.
fn changes(value: &Value<'_>, has_token: bool, paths: &NamedPaths<'_>) -> Option<ChangesPlan> {
    let text = as_text(value)?;
    if !has_token {
        return value.wrong_with(
            "needs a `token`: without one every program of this machine could change what is served",
            Some("token = \"…\" of 16 characters or more, beside it".to_owned()),
        );
    }
    match text {
        "" => value.wrong("is \"memory\" or the name of a file"),
        "memory" => Some(ChangesPlan::Memory),
        _ => {
            paths.read(value)?;
            let path = paths.path(value, PathUse::WriteFile)?;
            let folder = path.parent();
            let is_there = folder.is_none_or(|it| it.as_os_str().is_empty() || it.is_dir());
            if !is_there || path.is_dir() {
                return value.wrong(format!("no file can be at {}", path.display()));
            }
            Some(ChangesPlan::File(path))
        }
    }
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
