//! Servers that come and go: the addresses of names, and files.

use std::rc::Weak;
use std::time::{Duration, Instant};

use plimsoll_client::Connector;
use plimsoll_model::Clock as _;
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::{SystemClock, WatchedFiles};

use super::{Discovery, ServerFile, ServerPlan, Upstream};

/// Between which times names are looked up again, whatever their TTL says.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_mins(5);

/// How soon a name that could not be looked up is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// How often a file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps the servers of an upstream current as long as it is in use.
pub(super) async fn follow(upstream: Weak<Upstream>, discovery: Discovery) {
    match discovery {
        Discovery::Fixed => {}
        Discovery::Dns => follow_names(upstream).await,
        Discovery::File(file) => follow_file(upstream, &file).await,
    }
}

async fn follow_names(upstream: Weak<Upstream>) {
    let Some(configured) = upstream.upgrade().map(|it| it.plan.servers.clone()) else {
        return;
    };
    let mut found: Vec<Option<Vec<ServerPlan>>> = vec![None; configured.len()];
    loop {
        let Some(current) = upstream.upgrade() else {
            return;
        };
        let mut next = SystemClock.now() + LATEST;
        for (server, found) in configured.iter().zip(&mut found) {
            let (servers, until) = look_up(&current.connector, server).await;
            next = next.min(until);
            // While names cannot be looked up, the addresses that were found last are as good as any.
            *found = servers.or(found.take());
        }
        let servers = configured
            .iter()
            .zip(&found)
            .flat_map(|(server, found)| found.clone().unwrap_or_else(|| vec![server.clone()]));
        let servers: Vec<_> = servers.collect();
        current.set_servers(&servers);
        drop(current);
        let soonest = SystemClock.now() + SOONEST;
        tokio::time::sleep_until(next.max(soonest).into()).await;
    }
}

/// One server for each address of a name, in their order; and when to look again.
async fn look_up(connector: &Connector, server: &ServerPlan) -> (Option<Vec<ServerPlan>>, Instant) {
    let now = SystemClock.now();
    if server.endpoint.pinned().is_some() {
        return (Some(vec![server.clone()]), now + LATEST);
    }
    match connector.look_up(&server.endpoint).await {
        Ok(resolved) => {
            let mut addresses = resolved.addresses;
            // Name servers rotate them, which is no change.
            addresses.sort_unstable();
            addresses.dedup();
            let servers = addresses.into_iter().map(|address| ServerPlan {
                endpoint: server.endpoint.clone().at(address),
                ..server.clone()
            });
            let until = resolved.valid_until.unwrap_or(now + LATEST);
            (Some(servers.collect()), until)
        }
        Err(_) => (None, now + AGAIN),
    }
}

async fn follow_file(upstream: Weak<Upstream>, file: &ServerFile) {
    let path = &file.path;
    let mut watched = WatchedFiles::new(vec![path.to_owned()]);
    // It may have changed since the configuration was compiled.
    let mut is_due = true;
    loop {
        let Some(current) = upstream.upgrade() else {
            return;
        };
        if is_due || watched.has_changed() {
            match (file.read)(path) {
                Ok(servers) => current.set_servers(&servers),
                Err(problems) => {
                    for problem in problems {
                        let place = format!("{}:{}", path.display(), problem.line);
                        let text = format!("{problem}; the servers stay as they were");
                        let notice = Notice::new(Severity::Error, text).about(place);
                        current.plan.options.notices.report(&notice);
                    }
                }
            }
        }
        is_due = false;
        drop(current);
        tokio::time::sleep(LOOK).await;
    }
}
