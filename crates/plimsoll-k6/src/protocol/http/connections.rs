//! Where requests of a virtual user go: its connections, and the endpoints of its addresses.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Destination, Pool, Speaks};
use url::Url;

use super::error_code;
use super::request::Target;
use crate::user::UserState;

/// The connections of a virtual user.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: RefCell<Pool>,
    speaks: Speaks,
}

impl Connections {
    /// - `pool`: that of the worker, whose connector, buffer and clock it uses.
    /// - `speaks`: the version of HTTP on its connections.
    pub(crate) fn new(pool: &Pool, speaks: Speaks) -> Self {
        Self {
            pool: RefCell::new(pool.sibling()),
            speaks,
        }
    }

    /// The destination of requests to an endpoint; fails if the version of HTTP needs TLS and the endpoint has none.
    pub(crate) fn destination(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Rc<Destination>, (u16, String)> {
        if self.speaks == Speaks::Http3 && !endpoint.is_tls() {
            let message = format!("HTTP/3 (--http3) needs an https:// URL, not {endpoint}");
            return Err((1000, message));
        }
        Ok(self.pool.borrow().destination(endpoint))
    }

    /// Closes all of them.
    pub(crate) fn close(&self) {
        let fresh = self.pool.borrow().sibling();
        self.pool.replace(fresh);
    }
}

/// The endpoint of a target, with the address that the options give its host.
///
/// - `authority`: for the field `Host`; set where it is not the one of the endpoint.
pub(crate) fn endpoint_of(
    user: &UserState,
    target: &Target,
    authority: &mut Option<String>,
) -> Result<Endpoint, (u16, String)> {
    let endpoint = target.endpoint()?;
    if authority.is_none() {
        *authority = target
            .authority()
            .filter(|written| written != endpoint.authority());
    }
    placed(user, &target.url, endpoint.clone(), authority)
}

/// The endpoint with the address that the options give its host.
pub(crate) fn placed(
    user: &UserState,
    url: &Url,
    endpoint: Endpoint,
    authority: &mut Option<String>,
) -> Result<Endpoint, (u16, String)> {
    let network = &user.shared.options.network;
    let host = url.host_str().unwrap_or_default();
    if network.blocking(host).is_some() {
        return Err((1111, "hostname is blocked".to_owned()));
    }
    let port = url.port_or_known_default().unwrap_or_default();
    let Some(entry) = network.host(host, port) else {
        return Ok(endpoint);
    };
    let Some(to_port) = entry.to_port else {
        return Ok(endpoint.at(entry.address));
    };
    // The request names the port of its URL all the same.
    authority.get_or_insert_with(|| endpoint.authority().to_owned());
    let mut moved = url.clone();
    // A URL with a host can have a port.
    moved.set_port(Some(to_port)).ok();
    let moved = Endpoint::try_from(&moved)
        .map_err(|error| error_code::invalid_url(url.as_str(), &error))?;
    Ok(moved.at(entry.address))
}
