//! `connect = …` in a `[[route]]`: tunnels that clients open by CONNECT.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{ConnectOptions, ConnectPlan};
use plimsoll_server::config::{Mounted, Value};
use plimsoll_server::{Action, MakeAction, WorkerContext};

use crate::layer4::{Layer4Figures, TunnelTarget, Tunnels, TunnelsPlan};

/// As with `tcp`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Targets, or a table with `to` and timeouts.
pub(super) fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    if mounted.methods != ["CONNECT"] {
        // Such requests have no path: without the method the route would take others.
        let hint = "write method = \"CONNECT\" beside it";
        return value.wrong_with("is for the method CONNECT alone", Some(hint.to_owned()));
    }
    let (mut connect_timeout, mut idle_timeout) = (CONNECT_TIMEOUT, IDLE_TIMEOUT);
    let targets = if value.is_table() {
        let mut table = value.table()?;
        let to = table.take_value("to");
        if to.is_none() {
            table.missing("to", "targets such as to = [\"db.internal:5432\"]");
        }
        for (key, timeout) in [
            ("connect_timeout", &mut connect_timeout),
            ("idle_timeout", &mut idle_timeout),
        ] {
            if let Some(given) = table.duration(key) {
                *timeout = given.max(Duration::from_millis(1));
            }
        }
        let targets = to.and_then(targets);
        table.finish();
        targets?
    } else {
        targets(value)?
    };
    let connect = ConnectPlan::new(ConnectOptions {
        timeout: Some(connect_timeout),
        ..ConnectOptions::default()
    });
    let figures = mounted.counters.figures::<Layer4Figures>();
    let plan = Arc::new(TunnelsPlan {
        targets,
        connect: Arc::new(connect.ok()?),
        idle_timeout,
        figures: figures.listener("connect", mounted.name),
    });
    Some(Arc::new(move |context: &WorkerContext| {
        Rc::new(Tunnels::new(&plan, context)) as Rc<dyn Action>
    }))
}

fn targets(value: Value<'_>) -> Option<Vec<TunnelTarget>> {
    let targets = value.texts_with(|text| {
        let invalid = text.parse::<TunnelTarget>().err();
        invalid.map(|error| format!("`{text}` {error}"))
    })?;
    Some(targets.iter().filter_map(|it| it.parse().ok()).collect())
}
