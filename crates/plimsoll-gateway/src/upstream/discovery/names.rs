//! The addresses of the names in the configuration.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::Connector;
use plimsoll_model::{Clock as _, Failure};
use plimsoll_wire::SystemClock;

use super::{LATEST, ListFuture, Listed, SOONEST, ServerSource, SourceError};
use crate::upstream::ServerPlan;

/// One server for each address of a name.
pub(super) struct Names {
    configured: Vec<ServerPlan>,
    /// While a name cannot be looked up, the addresses that were found last are as good as any.
    found: Vec<Option<Vec<ServerPlan>>>,
    connector: Rc<Connector>,
    next: Option<Instant>,
}

impl Names {
    pub(super) fn new(configured: &[ServerPlan], connector: &Rc<Connector>) -> Self {
        Self {
            configured: configured.to_vec(),
            found: vec![None; configured.len()],
            connector: Rc::clone(connector),
            next: None,
        }
    }

    /// Those of all names, if any could be looked up.
    async fn list(&mut self) -> Result<Listed, SourceError> {
        if let Some(next) = self.next {
            tokio::time::sleep_until(next.into()).await;
        }
        let mut failure = None;
        let mut has_found = false;
        let mut until = SystemClock.now() + LATEST;
        for (server, found) in self.configured.iter().zip(&mut self.found) {
            match look_up(&self.connector, server).await {
                Ok((servers, holds_until)) => {
                    until = until.min(holds_until);
                    has_found = true;
                    *found = Some(servers);
                }
                Err(error) => failure = Some(error),
            }
        }
        let soonest = SystemClock.now() + SOONEST;
        match failure {
            // It is called again after a pause.
            Some(failure) if !has_found => {
                self.next = None;
                Err(SourceError::LookUp(failure))
            }
            failure => {
                let until = failure.map_or(until, |_| soonest);
                self.next = Some(until.max(soonest));
                let all = self.configured.iter().zip(&self.found);
                let all = all.flat_map(|(server, found)| {
                    found.clone().unwrap_or_else(|| vec![server.clone()])
                });
                Ok(all.collect::<Vec<_>>().into())
            }
        }
    }
}

impl ServerSource for Names {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

/// One server for each address of a name, in their order; and until when they hold.
async fn look_up(
    connector: &Connector,
    server: &ServerPlan,
) -> Result<(Vec<ServerPlan>, Instant), Failure> {
    let latest = SystemClock.now() + LATEST;
    if server.endpoint.pinned().is_some() {
        return Ok((vec![server.clone()], latest));
    }
    let resolved = connector.look_up(&server.endpoint).await?;
    let mut addresses = resolved.addresses;
    // Name servers rotate them, which is no change.
    addresses.sort_unstable();
    addresses.dedup();
    let servers = addresses.into_iter().map(|address| ServerPlan {
        endpoint: server.endpoint.clone().at(address),
        ..server.clone()
    });
    Ok((servers.collect(), resolved.valid_until.unwrap_or(latest)))
}
