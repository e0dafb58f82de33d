//! The servers of a service by its SRV records (RFC 2782).

use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::{Connector, ServiceRecord};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::{LATEST, ListFuture, Listed, SOONEST, ServerScheme, ServerSource, SourceError};
use crate::upstream::ServerPlan;

/// `srv` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServicesPlan {
    /// Such as `_http._tcp.api.example.org`.
    pub(crate) name: String,
    pub(crate) scheme: ServerScheme,
}

/// The lists of a name server.
pub(super) struct Services {
    plan: ServicesPlan,
    connector: Rc<Connector>,
    next: Option<Instant>,
}

impl Services {
    pub(super) fn new(plan: &ServicesPlan, connector: &Rc<Connector>) -> Self {
        Self {
            plan: plan.clone(),
            connector: Rc::clone(connector),
            next: None,
        }
    }

    async fn list(&mut self) -> Result<Listed, SourceError> {
        if let Some(next) = self.next.take() {
            tokio::time::sleep_until(next.into()).await;
        }
        let found = self.connector.services(&self.plan.name).await;
        let found = found.map_err(SourceError::LookUp)?;
        let now = SystemClock.now();
        let (soonest, latest) = (now + SOONEST, now + LATEST);
        self.next = Some(found.valid_until.clamp(soonest, latest));
        Ok(servers(self.plan.scheme, found.records).into())
    }
}

impl ServerSource for Services {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

/// Those of the lowest priority, with all others as their backups.
fn servers(scheme: ServerScheme, mut records: Vec<ServiceRecord>) -> Vec<ServerPlan> {
    let first = records.iter().map(|record| record.priority).min();
    // Name servers rotate them, which is no change.
    records.sort_by(|one, other| {
        let key = |it: &ServiceRecord| (it.priority, it.host.clone(), it.port);
        key(one).cmp(&key(other))
    });
    records.dedup_by(|one, other| (&one.host, one.port) == (&other.host, other.port));
    let servers = records.iter().filter_map(|record| {
        Some(ServerPlan {
            // A weight of 0 is a very small share there, and none here.
            weight: u32::from(record.weight).max(1),
            is_backup: Some(record.priority) != first,
            ..scheme.server(&record.host, record.port)?
        })
    });
    servers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_backups_and_weights_are_shares() {
        let record = |host: &str, priority, weight| ServiceRecord {
            host: host.to_owned(),
            port: 8080,
            priority,
            weight,
        };
        let records = vec![
            record("spare.test", 20, 5),
            record("b.test", 10, 3),
            record("a.test", 10, 0),
        ];
        let listed = servers(ServerScheme::Http, records);
        let listed = listed
            .iter()
            .map(|it| (it.name(), it.weight, it.is_backup))
            .collect::<Vec<_>>();
        let expected = [
            ("http://a.test:8080", 1, false),
            ("http://b.test:8080", 3, false),
            ("http://spare.test:8080", 5, true),
        ];
        let expected =
            expected.map(|(name, weight, is_backup)| (name.to_owned(), weight, is_backup));
        assert_eq!(listed, expected);
    }
}
