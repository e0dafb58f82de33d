//! The servers of flows, by small numbers.

use std::net::SocketAddr;
use std::rc::Rc;

use plimsoll_client::Pin;

use crate::upstream::Server;

/// Servers that have flows.
#[derive(Default)]
pub(super) struct FlowServers(Vec<Entry>);

struct Entry {
    server: Rc<Server>,
    flows: u32,
}

impl FlowServers {
    /// One more flow leads to a server; returns its number.
    pub(super) fn enter(&mut self, server: &Rc<Server>) -> u32 {
        let known = self.0.iter().position(|it| it.server.id() == server.id());
        let unused = || self.0.iter().position(|it| it.flows == 0);
        let number = known.or_else(unused).unwrap_or_else(|| {
            self.0.push(Entry {
                server: Rc::clone(server),
                flows: 0,
            });
            self.0.len() - 1
        });
        let entry = &mut self.0[number];
        if entry.server.id() != server.id() {
            entry.server = Rc::clone(server);
        }
        entry.flows += 1;
        server.enter();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// One of its flows has ended.
    pub(super) fn leave(&mut self, number: u32) {
        if let Some(entry) = self.0.get_mut(number as usize) {
            entry.flows -= 1;
            entry.server.leave();
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Rc<Server>> {
        self.0.get(number as usize).map(|it| &it.server)
    }
}

/// Address for datagrams to a server; `None` until its name has been resolved.
pub(super) fn address_of(server: &Server) -> Option<SocketAddr> {
    let endpoint = server.destination().endpoint();
    let address = endpoint.pinned().and_then(Pin::address);
    let address = address.or(endpoint.address())?;
    Some(SocketAddr::new(address, endpoint.port()))
}
