//! `[admin]`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::Secret;

use crate::action::Action;
use crate::address::Address;
use crate::admin::{Admin, AdminApi, AdminPath};
use crate::config::document::{Table, as_text};
use crate::counters::Counters;
use crate::engine::{ListenerPlan, Serves};

/// Fewer characters can be tried out.
const SHORTEST_TOKEN: usize = 16;

/// The listener of the table; only on the loopback unless there is a token.
///
/// - `paths`: what other crates answer there.
/// - `apis`: what the actions of the file do.
pub(super) fn compile(
    mut table: Table<'_>,
    counters: &Arc<Counters>,
    paths: &[AdminPath],
    apis: Vec<AdminApi>,
    others: &[ListenerPlan],
) -> Option<ListenerPlan> {
    let token = table.take("token").and_then(|value| {
        let text = as_text(&value)?;
        if text.len() < SHORTEST_TOKEN {
            return value.wrong(format!("must have {SHORTEST_TOKEN} characters or more"));
        }
        Some(Secret::new(text.to_owned()))
    });
    let address = match table.take("address") {
        None => {
            table.missing("address", "such as address = \"127.0.0.1:9090\"");
            None
        }
        Some(value) => as_text(&value).and_then(|text| {
            let address: SocketAddr = value.check(
                text.parse()
                    .map_err(|_| format!("`{text}` is not an address with a port")),
            )?;
            if token.is_none() && !address.ip().is_loopback() {
                return value.wrong("is not on the loopback, so a `token` is needed");
            }
            if address.port() != 0
                && others
                    .iter()
                    .any(|other| other.address == Address::Port(address))
            {
                return value.wrong("is that of a [[listen]] already");
            }
            Some(address)
        }),
    };
    table.finish();
    let (counters, paths) = (Arc::clone(counters), paths.to_vec());
    let action = move || {
        let admin = Admin::new(Arc::clone(&counters), token.clone())
            .with_paths(&paths)
            .with_apis(&apis);
        Rc::new(admin) as Rc<dyn Action>
    };
    Some(ListenerPlan {
        is_last: true,
        ..ListenerPlan::new(address?, Serves::clear(Arc::new(action)))
    })
}
