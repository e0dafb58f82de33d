//! A UDP socket of one worker, its handler, and the sockets to upstreams.
//!
//! All datagrams of one system call are handled before their effects are carried out: datagrams of one length to
//! one peer leave by one system call.
//!
//! Once another process has taken over, a listener reads its socket no more. Its sessions go on with the datagrams that
//! the other process passes to it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_model::Clock;
use plimsoll_wire::{
    DatagramPath, DatagramSocket, RelayBuffer, RelayEnd, UpstreamSocket, UpstreamSockets,
};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, spawn_local, yield_now};

use crate::counters::Cut;
use crate::layer4::datagram::{Datagram, DatagramHandler, SessionMatch};
use crate::layer4::effects::{Effect, Effects, SessionId};
use crate::layer4::relay::{RelayOutcome, Relays};
use crate::worker::Worker;

/// Reads before others have their turn.
const TURN: usize = 32;

/// Sessions whose places are kept when they are gone.
const FEW_SESSIONS: usize = 1024;

/// Limit on rounds of effects and their outcomes within one event.
const MOST_OUTCOMES: usize = 4;

/// The outcome of opening a session: the address of its socket, or why it could not be opened.
type Outcome = (SessionId, Result<SocketAddr, io::ErrorKind>);

/// A UDP listener on one worker.
pub(crate) struct DatagramListener {
    worker: Rc<Worker>,
    /// At least one; several where another process had more workers.
    sockets: Vec<DatagramSocket>,
    upstreams: UpstreamSockets,
    state: RefCell<State>,
    /// The next wake may be another one.
    rescheduled: Notify,
    relays: Relays,
    /// How many workers the engine has.
    workers: usize,
    /// The sessions that a drain was told of, once the listener lingers.
    lingering: Cell<Option<usize>>,
    /// No session is left.
    emptied: Notify,
    /// Ends the tasks that read links.
    closed: watch::Sender<bool>,
}

struct State {
    handler: Box<dyn DatagramHandler>,
    /// Empty between two events; kept for its memory.
    effects: Effects,
    sessions: HashMap<SessionId, UpstreamSocket>,
}

impl DatagramListener {
    /// - `sockets`: at least one.
    /// - `workers`: how many the engine has.
    /// - `before`: links to the workers of the process before this one.
    pub(crate) fn new(
        sockets: Vec<UdpSocket>,
        worker: Rc<Worker>,
        workers: usize,
        handler: Box<dyn DatagramHandler>,
        before: Vec<OwnedFd>,
    ) -> io::Result<Rc<Self>> {
        let sockets = sockets.into_iter().map(DatagramSocket::new);
        let before = before.into_iter().map(RelayEnd::new);
        Ok(Rc::new(Self {
            worker,
            sockets: sockets.collect::<io::Result<_>>()?,
            relays: Relays::new(before.collect::<io::Result<_>>()?),
            workers: workers.max(1),
            lingering: Cell::new(None),
            emptied: Notify::new(),
            closed: watch::Sender::new(false),
            upstreams: UpstreamSockets::new()?,
            state: RefCell::new(State {
                handler,
                effects: Effects::new(),
                sessions: HashMap::new(),
            }),
            rescheduled: Notify::new(),
        }))
    }

    /// Has `handler` take everything from now on; sessions that it does not keep are closed.
    pub(crate) fn replace(&self, handler: Box<dyn DatagramHandler>) {
        let mut state = self.state.borrow_mut();
        state.sessions.retain(|session, _| handler.keeps(*session));
        let old = std::mem::replace(&mut state.handler, handler);
        drop(state);
        drop(old);
        self.rescheduled.notify_one();
    }

    /// Takes datagrams until it is stopped, which closes every session unless another process has taken over.
    pub(crate) fn start(self: &Rc<Self>, stopped: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        for (number, end) in self.relays.before() {
            spawn_local(Rc::clone(self).follow_before(number, end));
        }
        let numbers = 0..self.sockets.len();
        let tasks = numbers.map(|number| {
            let (listener, mut stopped) = (Rc::clone(self), stopped.clone());
            spawn_local(async move {
                tokio::select! {
                    _ = stopped.changed() => {}
                    () = listener.receive(number) => {}
                }
            })
        });
        let mut tasks: Vec<_> = tasks.collect();
        tasks.push(spawn_local(Rc::clone(self).run(stopped.clone())));
        tasks
    }

    /// Sessions go on with what another process sends by these links, also when the listener is stopped.
    pub(crate) fn follow(self: &Rc<Self>, links: Vec<OwnedFd>) -> io::Result<()> {
        for link in links {
            let end = Rc::new(RelayEnd::new(link)?);
            let number = self.relays.add_after(&end);
            spawn_local(Rc::clone(self).follow_after(number, end));
        }
        Ok(())
    }

    async fn run(self: Rc<Self>, mut stopped: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopped.changed() => {}
            () = self.receive_replies() => {}
            () = self.wake() => {}
        }
        let remaining = self.remaining(self.state.borrow().sessions.len());
        if self.relays.has_after() && remaining > 0 {
            spawn_local(self.linger());
        } else {
            self.close();
        }
    }

    /// Goes on with its sessions until there are none, or the worker ends.
    async fn linger(self: Rc<Self>) {
        self.lingering.set(Some(0));
        self.count_sessions(self.remaining(self.state.borrow().sessions.len()));
        tokio::select! {
            () = self.emptied.notified() => {}
            _closing = self.worker.drain.over() => {}
            () = self.receive_replies() => {}
            () = self.wake() => {}
        }
        self.count_sessions(0);
        self.lingering.set(None);
        self.close();
    }

    fn close(&self) {
        self.closed.send_replace(true);
        let sessions = std::mem::take(&mut self.state.borrow_mut().sessions);
        drop(sessions);
    }

    /// What keeps a listener that lingers: its sessions, and a process before it, which is reached through this one.
    fn remaining(&self, sessions: usize) -> usize {
        sessions + usize::from(self.relays.has_before())
    }

    /// Has a drain wait for the sessions, if the listener lingers.
    fn count_sessions(&self, now: usize) {
        if let Some(before) = self.lingering.get() {
            self.worker.linger(before, now);
            self.lingering.set(Some(now));
            if now == 0 {
                self.emptied.notify_one();
            }
        }
    }

    /// - `number`: that of the socket.
    async fn receive(&self, number: usize) {
        let socket = &self.sockets[number];
        // The kernel chose the worker of the process before in the same way, unless that had fewer of them.
        let likely = self.worker.number + number * self.workers;
        loop {
            for _ in 0..TURN {
                // An error is about a datagram sent earlier, which is lost as any may be.
                socket.readable().await.ok();
                let buffer = &mut *self.worker.datagrams();
                let may_be_elsewhere = self.relays.has_before();
                self.event(|_, handler, now, effects| {
                    let received = socket.try_receive(buffer, |path, bytes| {
                        let datagram = datagram(path, bytes);
                        let is_passed = may_be_elsewhere
                            && handler
                                .session_of(&datagram)
                                .is_none_or(|found| found > SessionMatch::Id)
                            && self.relays.ask(likely, path, bytes);
                        if !is_passed {
                            handler.on_datagram(now, &datagram, effects);
                        }
                    });
                    received.ok();
                });
            }
            yield_now().await;
        }
    }

    /// Takes datagrams that the process before sends back.
    async fn follow_before(self: Rc<Self>, number: usize, end: Rc<RelayEnd>) {
        let (mut buffer, mut closed) = (RelayBuffer::default(), self.closed.subscribe());
        loop {
            let received = tokio::select! {
                _ = closed.wait_for(|is_closed| *is_closed) => return,
                received = end.receive(&mut buffer) => received,
            };
            let Ok(Some(message)) = received else {
                self.relays.end_before(number);
                let sessions = self.state.borrow().sessions.len();
                return self.count_sessions(self.remaining(sessions));
            };
            if self.relays.returned(&message) == RelayOutcome::Handle {
                self.event(|_, handler, now, effects| {
                    let datagram = datagram(message.path, message.bytes);
                    handler.on_datagram(now, &datagram, effects);
                });
            }
        }
    }

    /// Takes datagrams that the process after receives.
    async fn follow_after(self: Rc<Self>, number: usize, end: Rc<RelayEnd>) {
        let (mut buffer, mut closed) = (RelayBuffer::default(), self.closed.subscribe());
        let mut is_closed = false;
        loop {
            let received = tokio::select! {
                _ = closed.wait_for(|is_closed| *is_closed), if !is_closed => {
                    // Those that wait go back: the other process begins sessions for them.
                    is_closed = true;
                    end.stop_receiving();
                    continue;
                }
                received = end.receive(&mut buffer) => received,
            };
            match received {
                Ok(Some(message)) => self.event(|_, handler, now, effects| {
                    let datagram = datagram(message.path, message.bytes);
                    let found = handler.session_of(&datagram).filter(|_| !is_closed);
                    if self.relays.asked(number, found, &message) == RelayOutcome::Handle {
                        handler.on_datagram(now, &datagram, effects);
                    }
                }),
                Ok(None) | Err(_) => return self.relays.end_after(number),
            }
        }
    }

    /// Reads the upstreams of all sessions.
    async fn receive_replies(&self) {
        let mut ready = Vec::new();
        loop {
            if self.upstreams.ready(&mut ready).await.is_err() {
                return pending().await;
            }
            for token in ready.drain(..) {
                self.receive_of(SessionId(token));
            }
            yield_now().await;
        }
    }

    /// Reads once what the upstream of a session has sent; what is left makes it ready again.
    fn receive_of(&self, session: SessionId) {
        let buffer = &mut *self.worker.datagrams();
        self.event(|sessions, handler, now, effects| {
            let Some(socket) = sessions.get(&session) else {
                return;
            };
            let received = self.upstreams.try_receive(socket, buffer, |ecn, bytes| {
                handler.on_reply(now, session, ecn, bytes, effects);
            });
            match received {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    handler.on_failure(now, session, error.kind(), effects);
                }
                _ => {}
            }
        });
    }

    /// Calls the handler whenever it wants to be.
    async fn wake(&self) {
        loop {
            let next = self.state.borrow().handler.next_wake();
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = due => self.event(|_, handler, now, effects| handler.on_wake(now, effects)),
                () = self.rescheduled.notified() => {}
            }
        }
    }

    /// Calls the handler and carries out its effects.
    fn event(
        &self,
        call: impl FnOnce(
            &HashMap<SessionId, UpstreamSocket>,
            &mut dyn DatagramHandler,
            Instant,
            &mut Effects,
        ),
    ) {
        let now = self.worker.clock.now();
        let mut state = self.state.borrow_mut();
        let State {
            handler,
            effects,
            sessions,
        } = &mut *state;
        let before = handler.next_wake();
        call(sessions, &mut **handler, now, effects);
        for _ in 0..MOST_OUTCOMES {
            if effects.is_empty() {
                break;
            }
            let outcomes = self.carry_out(effects, sessions);
            effects.clear();
            for (session, outcome) in outcomes {
                match outcome {
                    Ok(local) => handler.on_open(now, session, local, effects),
                    Err(error) => handler.on_failure(now, session, error, effects),
                }
            }
        }
        effects.clear();
        if handler.next_wake() != before {
            self.rescheduled.notify_one();
        }
        // A flood leaves nothing behind.
        if sessions.capacity() > FEW_SESSIONS && sessions.len() < sessions.capacity() / 4 {
            sessions.shrink_to(sessions.len() * 2);
        }
        self.count_sessions(self.remaining(sessions.len()));
    }

    /// Carries out every effect; returns the sessions that could not be opened, and the addresses that the handler requested.
    fn carry_out(
        &self,
        effects: &Effects,
        sessions: &mut HashMap<SessionId, UpstreamSocket>,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        // Sockets of one port are the same to those who get what they send.
        let socket = &self.sockets[0];
        let most = socket.most_segments();
        for (effect, segment) in effects.joined(most) {
            match effect {
                Effect::Reply {
                    from,
                    to,
                    ecn,
                    bytes,
                } => {
                    let from = socket.local().ip().is_unspecified().then(|| from.ip());
                    in_segments(bytes, segment, |bytes, segment| {
                        socket.try_send(to, from, ecn, bytes, segment)
                    });
                }
                Effect::Send {
                    session,
                    ecn,
                    bytes,
                } => {
                    if let Some(socket) = sessions.get(&session) {
                        in_segments(bytes, segment, |bytes, segment| {
                            self.upstreams.try_send(socket, ecn, bytes, segment)
                        });
                    }
                }
                Effect::Close { session } => {
                    sessions.remove(&session);
                }
                Effect::Open {
                    session,
                    upstream,
                    reports_address,
                } => {
                    let most = self.worker.limits().connections;
                    let opened = if sessions.len() < most {
                        self.upstreams.open(upstream, session.0)
                    } else {
                        self.worker.counters.cut(Cut::Connections);
                        Err(io::ErrorKind::QuotaExceeded.into())
                    };
                    match opened {
                        Ok(opened) => {
                            if reports_address && let Ok(local) = opened.local() {
                                outcomes.push((session, Ok(local)));
                            }
                            sessions.insert(session, opened);
                        }
                        // There is no descriptor or no port left, or no way to the upstream.
                        Err(_) => outcomes.push((session, Err(io::ErrorKind::QuotaExceeded))),
                    }
                }
            }
        }
        outcomes
    }
}

fn datagram(path: DatagramPath, bytes: &[u8]) -> Datagram<'_> {
    Datagram {
        local: path.local,
        peer: path.peer,
        ecn: path.ecn,
        bytes,
    }
}

/// Sends several datagrams at once, or one by one if the system refuses that, as for some routes. What a socket does not
/// take is lost.
fn in_segments(
    bytes: &[u8],
    segment: Option<usize>,
    mut send: impl FnMut(&[u8], Option<usize>) -> io::Result<()>,
) {
    match (send(bytes, segment), segment) {
        (Err(error), Some(segment)) if error.kind() != io::ErrorKind::WouldBlock => {
            for datagram in bytes.chunks(segment) {
                send(datagram, None).ok();
            }
        }
        _ => {}
    }
}
