//! The confinement of a process: which addresses any connection of it may lead to, whatever opens it.
//!
//! Options of single plans can be forgotten where a plan is made. A process that acts for a caller that is not trusted, such as a
//! tool of a model, is therefore confined once, before it does anything else, and every [`ConnectPlan`](super::plan::ConnectPlan)
//! is made within that. It cannot be taken back.

use std::sync::OnceLock;

use super::address_filter::AddressFilter;
use super::plan::{ConnectOptions, ConnectPlanError};

static CONFINEMENT: OnceLock<AddressFilter> = OnceLock::new();

/// Confines all connections of this process to what `filter` allows, from now on. A proxy or a Unix socket, behind which no filter
/// sees, is an error of each plan then.
///
/// Connections that other plans opened before are not affected. Returns false if the process is confined already; it then stays
/// so by the earlier filter.
#[must_use]
pub fn confine_process(filter: AddressFilter) -> bool {
    CONFINEMENT.set(filter).is_ok()
}

/// The options within the confinement of this process.
pub(super) fn within(options: ConnectOptions) -> Result<ConnectOptions, ConnectPlanError> {
    match CONFINEMENT.get() {
        None => Ok(options),
        Some(filter) => confined(options, filter),
    }
}

fn confined(
    options: ConnectOptions,
    filter: &AddressFilter,
) -> Result<ConnectOptions, ConnectPlanError> {
    let way_around = if options.unix_socket.is_some() {
        Some("a Unix socket")
    } else {
        let has_proxy = options.proxies.proxies().next().is_some();
        has_proxy.then_some("a proxy")
    };
    if let Some(way) = way_around {
        return Err(ConnectPlanError::Confined { way });
    }
    let filter = match options.address_filter {
        Some(own) => own.and(filter.clone()),
        None => filter.clone(),
    };
    Ok(ConnectOptions {
        address_filter: Some(filter),
        ..options
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Proxy, ProxyRules};

    #[test]
    fn every_plan_of_a_confined_process_has_its_filter_and_no_way_around_it() {
        let loopback = AddressFilter::new(|address| address.ip().is_loopback());
        let own = ConnectOptions {
            address_filter: Some(AddressFilter::new(|address| address.port() == 80)),
            ..ConnectOptions::default()
        };
        for (options, allowed) in [
            (
                ConnectOptions::default(),
                ["127.0.0.1:80", "127.0.0.1:81"].as_slice(),
            ),
            (own, &["127.0.0.1:80"]),
        ] {
            let filter = confined(options, &loopback)
                .unwrap()
                .address_filter
                .unwrap();
            for address in ["127.0.0.1:80", "127.0.0.1:81", "10.0.0.1:80"] {
                let is_allowed = filter.allows(address.parse().unwrap());
                assert_eq!(is_allowed, allowed.contains(&address), "{address}");
            }
        }
        let proxy: Proxy = "http://127.0.0.1:3128".parse().unwrap();
        for (options, way) in [
            (
                ConnectOptions {
                    proxies: ProxyRules::always(proxy),
                    ..ConnectOptions::default()
                },
                "a proxy",
            ),
            (
                ConnectOptions {
                    unix_socket: Some("/run/socket".into()),
                    ..ConnectOptions::default()
                },
                "a Unix socket",
            ),
        ] {
            let error = confined(options, &loopback).unwrap_err();
            assert_eq!(error, ConnectPlanError::Confined { way });
        }
    }
}
