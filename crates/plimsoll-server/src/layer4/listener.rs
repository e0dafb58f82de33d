//! A UDP socket of one worker, its handler, and the sockets to upstreams.
//!
//! All datagrams of one system call are handled before their effects are carried out: datagrams of one length to
//! one peer leave by one system call.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_model::Clock;
use plimsoll_wire::{DatagramSocket, UpstreamSocket, UpstreamSockets};
use tokio::sync::{Notify, watch};
use tokio::task::yield_now;

use crate::layer4::datagram::{Datagram, DatagramHandler};
use crate::layer4::effects::{Effect, Effects, SessionId};
use crate::observe::counters::Cut;
use crate::worker::Worker;

/// Reads before others have their turn.
const TURN: usize = 32;

/// How often in a row what a handler does about a failure may fail itself.
const MOST_FAILURES: usize = 4;

/// A UDP listener on one worker.
pub(crate) struct DatagramListener {
    worker: Rc<Worker>,
    socket: DatagramSocket,
    upstreams: UpstreamSockets,
    state: RefCell<State>,
    /// The next wake may be another one.
    rescheduled: Notify,
}

struct State {
    handler: Box<dyn DatagramHandler>,
    /// Empty between two events; kept for its memory.
    effects: Effects,
    sessions: HashMap<SessionId, UpstreamSocket>,
}

impl DatagramListener {
    pub(crate) fn new(
        socket: UdpSocket,
        worker: Rc<Worker>,
        handler: Box<dyn DatagramHandler>,
    ) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            worker,
            socket: DatagramSocket::new(socket)?,
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

    /// Takes datagrams until it is stopped, which closes every session.
    pub(crate) async fn run(self: Rc<Self>, mut stopped: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopped.changed() => {}
            () = self.receive() => {}
            () = self.receive_replies() => {}
            () = self.wake() => {}
        }
        let sessions = std::mem::take(&mut self.state.borrow_mut().sessions);
        drop(sessions);
    }

    async fn receive(&self) {
        loop {
            for _ in 0..TURN {
                // An error is about a datagram sent earlier, which is lost as any may be.
                self.socket.readable().await.ok();
                let buffer = &mut *self.worker.datagrams();
                self.event(|_, handler, now, effects| {
                    let received = self.socket.try_receive(buffer, |path, bytes| {
                        let datagram = Datagram {
                            local: path.local,
                            peer: path.peer,
                            ecn: path.ecn,
                            bytes,
                        };
                        handler.on_datagram(now, &datagram, effects);
                    });
                    received.ok();
                });
            }
            yield_now().await;
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
        for _ in 0..MOST_FAILURES {
            if effects.is_empty() {
                break;
            }
            let failures = self.carry_out(effects, sessions);
            effects.clear();
            for (session, error) in failures {
                handler.on_failure(now, session, error, effects);
            }
        }
        effects.clear();
        if handler.next_wake() != before {
            self.rescheduled.notify_one();
        }
    }

    /// Carries out every effect; returns the sessions that could not be opened.
    fn carry_out(
        &self,
        effects: &Effects,
        sessions: &mut HashMap<SessionId, UpstreamSocket>,
    ) -> Vec<(SessionId, io::ErrorKind)> {
        let mut failures = Vec::new();
        let most = self.socket.most_segments();
        for (effect, segment) in effects.joined(most) {
            match effect {
                Effect::Reply {
                    from,
                    to,
                    ecn,
                    bytes,
                } => {
                    let from = self.socket.local().ip().is_unspecified().then(|| from.ip());
                    in_segments(bytes, segment, |bytes, segment| {
                        self.socket.try_send(to, from, ecn, bytes, segment)
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
                Effect::Open { session, upstream } => {
                    let most = self.worker.limits().connections;
                    let opened = if sessions.len() < most {
                        self.upstreams.open(upstream, session.0)
                    } else {
                        self.worker.counters.cut(Cut::Connections);
                        Err(io::ErrorKind::QuotaExceeded.into())
                    };
                    match opened {
                        Ok(opened) => {
                            sessions.insert(session, opened);
                        }
                        Err(error) => failures.push((session, error.kind())),
                    }
                }
            }
        }
        failures
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
