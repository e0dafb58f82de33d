//! Datagrams: each client has a flow, which leads to one server by its own socket.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_server::{Datagram, DatagramHandler, Effects, SessionId, SessionMatch, WorkerContext};
use plimsoll_wire::EcnCodepoint;

use super::attempts::source_key;
use super::figures::Dropped;
use super::flows::Index;
use super::forwarding::{DatagramPlan, Forwarding};

/// Forwards the datagrams of one worker; flows outlive a reload that changes nothing of them.
pub(crate) struct UdpHandler(Rc<RefCell<Forwarding<()>>>);

impl UdpHandler {
    pub(crate) fn new(plan: &Arc<DatagramPlan>, context: &WorkerContext) -> Self {
        let make = || RefCell::new(Forwarding::new(plan, context));
        Self(context.state(&plan.identity, make))
    }
}

/// The flow of a client that has none yet.
fn open(
    flows: &mut Forwarding<()>,
    now: Instant,
    datagram: &Datagram<'_>,
    effects: &mut Effects,
) -> Result<Index, Dropped> {
    let server = flows.choose(source_key(datagram.peer), now)?;
    let ends = (datagram.peer, datagram.local);
    flows.open(now, ends, &server, (), effects)
}

impl DatagramHandler for UdpHandler {
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>, effects: &mut Effects) {
        let flows = &mut *self.0.borrow_mut();
        let known = flows.table.of_path(datagram.peer, datagram.local);
        match known.map_or_else(|| open(flows, now, datagram, effects), Ok) {
            Ok(index) => flows.forward(index, now, datagram, effects),
            Err(dropped) => flows.figures.count_dropped(dropped),
        }
    }

    fn on_reply(
        &mut self,
        now: Instant,
        session: SessionId,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
        effects: &mut Effects,
    ) {
        let flows = &mut *self.0.borrow_mut();
        let most = flows.plan.amplification;
        if let Some(index) = flows.table.of_session(session) {
            flows.reply(index, now, (ecn, bytes), most, effects);
        }
    }

    fn on_failure(
        &mut self,
        now: Instant,
        session: SessionId,
        error: io::ErrorKind,
        effects: &mut Effects,
    ) {
        self.0.borrow_mut().fail(now, session, error, effects);
    }

    fn on_wake(&mut self, now: Instant, effects: &mut Effects) {
        let flows = &mut *self.0.borrow_mut();
        flows.sweep(now, effects, |_, _| {});
        flows.return_memory();
    }

    fn next_wake(&self) -> Option<Instant> {
        self.0.borrow().table.next_sweep()
    }

    fn session_of(&self, datagram: &Datagram<'_>) -> Option<SessionMatch> {
        let flows = self.0.borrow();
        let known = flows.table.of_path(datagram.peer, datagram.local);
        known.map(|_| SessionMatch::Path)
    }

    fn keeps(&self, session: SessionId) -> bool {
        self.0.borrow().table.of_session(session).is_some()
    }
}
