//! A UDP socket of one worker, its handler, and the sockets to upstreams.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Instant;

use plimsoll_model::Clock;
use plimsoll_wire::{DatagramPath, DatagramSocket};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, spawn_local, yield_now};

use crate::layer4::datagram::{Datagram, DatagramHandler};
use crate::layer4::effects::{Effect, Effects, SessionId};
use crate::observe::counters::Cut;
use crate::worker::Worker;

/// Reads before others have their turn.
const TURN: usize = 32;

/// How often in a row what a handler does about a failure may fail itself.
const MOST_FAILURES: usize = 4;

/// What a UDP listener consists of on one worker.
pub(crate) struct DatagramListener {
    worker: Rc<Worker>,
    socket: DatagramSocket,
    state: RefCell<State>,
    /// The next wake may be another one.
    rescheduled: Notify,
}

struct State {
    handler: Box<dyn DatagramHandler>,
    /// Empty between two events; kept for its memory.
    effects: Effects,
    sessions: HashMap<SessionId, Session>,
}

/// A socket to an upstream, and the task that reads it.
struct Session {
    socket: Rc<DatagramSocket>,
    upstream: SocketAddr,
    reading: AbortHandle,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reading.abort();
    }
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
            () = self.wake() => {}
        }
        let sessions = std::mem::take(&mut self.state.borrow_mut().sessions);
        drop(sessions);
    }

    async fn receive(self: &Rc<Self>) {
        loop {
            for _ in 0..TURN {
                // An error is about a datagram sent earlier, which is lost as any may be.
                self.next(&self.socket, |path, bytes| {
                    let datagram = Datagram {
                        local: path.local,
                        peer: path.peer,
                        ecn: path.ecn,
                        bytes,
                    };
                    self.event(|handler, now, effects| {
                        handler.on_datagram(now, &datagram, effects);
                    });
                })
                .await
                .ok();
            }
            yield_now().await;
        }
    }

    /// Calls the handler whenever it wants to be.
    async fn wake(self: &Rc<Self>) {
        loop {
            let next = self.state.borrow().handler.next_wake();
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = due => self.event(|handler, now, effects| handler.on_wake(now, effects)),
                () = self.rescheduled.notified() => {}
            }
        }
    }

    /// Reads the upstream of a session.
    async fn read(self: Rc<Self>, session: SessionId, socket: Rc<DatagramSocket>) {
        loop {
            for _ in 0..TURN {
                let read = self.next(&socket, |path, bytes| {
                    self.event(|handler, now, effects| {
                        handler.on_reply(now, session, path.ecn, bytes, effects);
                    });
                });
                if let Err(error) = read.await {
                    let error = error.kind();
                    self.event(|handler, now, effects| {
                        handler.on_failure(now, session, error, effects);
                    });
                }
            }
            yield_now().await;
        }
    }

    /// Waits for datagrams, which lie in the worker's memory meanwhile.
    async fn next(
        &self,
        socket: &DatagramSocket,
        mut receive: impl FnMut(DatagramPath, &[u8]),
    ) -> io::Result<()> {
        loop {
            socket.readable().await?;
            let memory = &mut *self.worker.memory.borrow_mut();
            match socket.try_receive(&mut memory.input, &mut receive) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }

    /// Calls the handler and carries out its effects.
    fn event(self: &Rc<Self>, call: impl FnOnce(&mut dyn DatagramHandler, Instant, &mut Effects)) {
        let now = self.worker.clock.now();
        let mut state = self.state.borrow_mut();
        let State {
            handler,
            effects,
            sessions,
        } = &mut *state;
        let before = handler.next_wake();
        call(&mut **handler, now, effects);
        for _ in 0..MOST_FAILURES {
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
        self: &Rc<Self>,
        effects: &Effects,
        sessions: &mut HashMap<SessionId, Session>,
    ) -> Vec<(SessionId, io::ErrorKind)> {
        let mut failures = Vec::new();
        for effect in effects.iter() {
            match effect {
                // What a socket does not take is lost.
                Effect::Reply {
                    from,
                    to,
                    ecn,
                    bytes,
                } => {
                    let from = self.socket.local().ip().is_unspecified().then(|| from.ip());
                    self.socket.try_send(to, from, ecn, bytes).ok();
                }
                Effect::Send {
                    session,
                    ecn,
                    bytes,
                } => {
                    if let Some(Session {
                        socket, upstream, ..
                    }) = sessions.get(&session)
                    {
                        socket.try_send(*upstream, None, ecn, bytes).ok();
                    }
                }
                Effect::Close { session } => {
                    sessions.remove(&session);
                }
                Effect::Open { session, upstream } => {
                    let most = self.worker.limits().connections;
                    let opened = if sessions.len() < most {
                        self.open(session, upstream)
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

    fn open(self: &Rc<Self>, session: SessionId, upstream: SocketAddr) -> io::Result<Session> {
        let any = match upstream {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        // Only the upstream can send to it then, and one that does not listen is reported.
        socket.connect(upstream)?;
        let socket = Rc::new(DatagramSocket::new(socket)?);
        let reading = spawn_local(Rc::clone(self).read(session, Rc::clone(&socket)));
        Ok(Session {
            socket,
            upstream,
            reading: reading.abort_handle(),
        })
    }
}
