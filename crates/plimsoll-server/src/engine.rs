//! The engine: workers, their listeners, and what is done to all of them together.

mod plan;

pub(crate) mod run;

mod accept;

mod handshake;

pub(crate) mod listener;

mod binding;

pub(crate) mod address;

pub(crate) mod unix_socket;

pub(crate) mod inherited;

pub(crate) mod handover;

pub(crate) mod proxied;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_wire::cores::{self, PinError};
use tokio::sync::{mpsc, oneshot};

pub use self::plan::{EnginePlan, Http3Plan, ListenerPlan, Serves};

pub(crate) use self::plan::Key;

use self::binding::{Binding, InheritedSockets, PerWorker};
use crate::counters::Counters;
use crate::engine::address::Address;
use crate::engine::handover::{HandedOver, OfferedSockets, RelayLinks};
use crate::engine::listener::Transport;
use crate::engine::run::{Command, Update};
use crate::engine::unix_socket::UnixFile;
use crate::limits::Limits;
use crate::worker::admission::Admission;

/// Why an engine cannot do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The port cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address to listen on.
        address: Address,
        /// The error of the system.
        source: io::Error,
    },
    /// A worker cannot be bound to a core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A thread or its runtime cannot be had.
    #[error("cannot start a worker")]
    Worker(#[source] io::Error),
    /// Its TLS has not what HTTP/3 needs.
    #[error("cannot speak HTTP/3 at {0}: TLS 1.3 with TLS13_AES_128_GCM_SHA256 is needed")]
    Quic(Address),
    /// A part of the configuration that cannot be changed while it runs.
    #[error("{0} cannot be changed while it runs; restart it")]
    Fixed(&'static str),
}

/// Workers that serve until they are drained, or until the value is dropped.
///
/// Its methods wait for the workers, so they must be called outside of any runtime.
#[derive(Debug)]
pub struct Engine {
    workers: Vec<Worker>,
    counters: Arc<Counters>,
    admission: Arc<Admission>,
    /// Bound address of each listener.
    bound: HashMap<Key, Address>,
    /// The files of sockets, removed with their values.
    files: HashMap<Key, UnixFile>,
    /// Every listening socket once more, for the process that takes over.
    held: HashMap<Key, OfferedSockets>,
    /// The ends of links for the process that was taken over from.
    links: Vec<RelayLinks>,
    threads: usize,
    pin: bool,
}

/// An engine whose listeners are bound and wait.
pub struct BoundEngine<'p> {
    engine: Engine,
    updates: Vec<Vec<Update>>,
    plan: &'p EnginePlan,
}

impl BoundEngine<'_> {
    /// Starts the workers; requests are served when this returns.
    pub fn start(self) -> Result<Engine, EngineError> {
        let Self {
            mut engine,
            updates,
            plan,
        } = self;
        let cores = cores::available();
        for number in 0..plan.threads.max(1) {
            let core = plan
                .pin
                .then(|| cores.get(number).copied().unwrap_or(number));
            engine.workers.push(Worker::start(
                number,
                core,
                plan.limits,
                Arc::clone(&engine.counters),
                Arc::clone(&engine.admission),
            )?);
        }
        engine.apply(updates, plan.limits)?;
        Ok(engine)
    }
}

impl fmt::Debug for BoundEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundEngine")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Worker {
    commands: mpsc::Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// Outcome of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still open when its time was over.
    pub cut_off: usize,
}

impl Engine {
    /// Binds every listener and starts the workers; requests are served when this returns.
    ///
    /// - `counters`: what it counts in; may be shared with actions that show it.
    pub fn start(plan: &EnginePlan, counters: Arc<Counters>) -> Result<Self, EngineError> {
        Self::bind(plan, counters, Vec::new())?.start()
    }

    /// Binds every listener, without serving yet: a process may then give up what only binding needs.
    ///
    /// - `taken`: sockets of another process, for listeners that have the same address.
    pub fn bind(
        plan: &EnginePlan,
        counters: Arc<Counters>,
        mut taken: Vec<HandedOver>,
    ) -> Result<BoundEngine<'_>, EngineError> {
        let threads = plan.threads.max(1);
        let mut engine = Self {
            workers: Vec::with_capacity(threads),
            counters,
            admission: Arc::default(),
            bound: HashMap::new(),
            files: HashMap::new(),
            held: HashMap::new(),
            links: Vec::new(),
            threads: plan.threads,
            pin: plan.pin,
        };
        let updates = engine.bind_listeners(plan, threads, &mut taken)?;
        Ok(BoundEngine {
            engine,
            updates,
            plan,
        })
    }

    /// The ports that it listens on, in no particular order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own = |(key, address): (&Key, &Address)| {
            // The port of HTTP/3 is that of the listener for TCP beside it.
            let beside = (Transport::Tcp, key.1.clone(), key.2);
            let is_own = key.0 != Transport::Quic || !self.bound.contains_key(&beside);
            address.port().filter(|_| is_own)
        };
        self.bound.iter().filter_map(own).collect()
    }

    /// Bound addresses of the listeners of `plan`, in their order.
    pub fn bound(&self, plan: &EnginePlan) -> Vec<Address> {
        let bound = |key: Key| self.bound.get(&key).cloned().unwrap_or(key.1);
        plan.keys().map(bound).collect()
    }

    /// The counters of the engine.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Serves by `plan` from now on; on error nothing has changed.
    ///
    /// Listeners that stay keep their sockets and connections, whose next requests are answered by the
    /// new actions. Limits hold for new connections. Connections of listeners that go are served to
    /// their end.
    pub fn reload(&mut self, plan: &EnginePlan) -> Result<(), EngineError> {
        if plan.threads != self.threads {
            return Err(EngineError::Fixed("the number of threads"));
        }
        if plan.pin != self.pin {
            return Err(EngineError::Fixed("binding to cores"));
        }
        let before = self.bound.clone();
        let result = match self.bind_listeners(plan, self.workers.len(), &mut Vec::new()) {
            Ok(updates) => self.apply(updates, plan.limits),
            Err(error) => {
                self.bound = before;
                Err(error)
            }
        };
        // Those of listeners that go, or that could not come.
        self.files.retain(|key, _| self.bound.contains_key(key));
        self.held.retain(|key, _| self.bound.contains_key(key));
        result
    }

    /// The sockets of every listener, for a process that takes over; this one listens as before until it drains.
    pub fn hand_over(&self) -> io::Result<Vec<HandedOver>> {
        let held = self.held.iter();
        held.map(|(key, held)| {
            let bound = self.bound.get(key).unwrap_or(&key.1);
            held.handed_over(key, bound, self.workers.len())
        })
        .collect()
    }

    /// Links for the process that this one has taken over from, by which it gets the datagrams of its sessions. It
    /// has them once.
    pub fn take_links(&mut self) -> Vec<RelayLinks> {
        std::mem::take(&mut self.links)
    }

    /// Sessions of datagrams go on with what the process that takes over sends by `links`, also when this one drains.
    pub fn follow(&self, links: Vec<RelayLinks>) {
        let count = self.workers.len();
        let mut of_workers: Vec<Vec<(Key, Vec<OwnedFd>)>> = vec![];
        of_workers.resize_with(count, Vec::new);
        for links in links {
            let key = (Transport::Udp, links.address, links.nth);
            let mut of_listener: Vec<Vec<OwnedFd>> = vec![];
            of_listener.resize_with(count, Vec::new);
            for (number, link) in links.links.into_iter().enumerate() {
                of_listener[number % count].push(link);
            }
            for (of_worker, links) in of_workers.iter_mut().zip(of_listener) {
                of_worker.push((key.clone(), links));
            }
        }
        let of_workers = std::cell::RefCell::new(of_workers.into_iter());
        self.report_all(|done| Command::Follow {
            links: of_workers.borrow_mut().next().unwrap_or_default(),
            done,
        });
    }

    /// Leaves the files of sockets in the file system to a process that has taken over.
    pub fn leave_files(&mut self) {
        for (_, file) in self.files.drain() {
            file.leave();
        }
    }

    /// Stops listening, answers what comes on open connections with the hint that it is the last, and
    /// waits until they have ended, but no longer than `timeout`.
    pub fn drain(mut self, timeout: Duration) -> Drained {
        self.counters.drain();
        self.held.clear();
        // No client may be sent away while one of the workers would still take it.
        self.report_all(|done| Command::Close { done });
        self.files.clear();
        let waiting: Vec<_> = self
            .workers
            .iter()
            .filter_map(|worker| {
                let (done, waiting) = oneshot::channel();
                let command = Command::Drain { timeout, done };
                worker.commands.blocking_send(command).ok()?;
                Some(waiting)
            })
            .collect();
        let cut_off = waiting
            .into_iter()
            .map(|waiting| waiting.blocking_recv().unwrap_or(0))
            .sum();
        self.stop();
        Drained { cut_off }
    }

    /// Sockets for every listener of `plan` that is not there yet.
    ///
    /// - `taken`: those of another process.
    fn bind_listeners(
        &mut self,
        plan: &EnginePlan,
        count: usize,
        taken: &mut Vec<HandedOver>,
    ) -> Result<Vec<Vec<Update>>, EngineError> {
        let mut updates: Vec<Vec<Update>> = (0..count).map(|_| Vec::new()).collect();
        let mut bound = HashMap::new();
        for (listener, key) in plan.listeners.iter().zip(plan.keys()) {
            let quic = listener.serves.quic(&plan.limits);
            let quic = quic.map_err(|_| EngineError::Quic(listener.address.clone()))?;
            let quic_key = (Transport::Quic, key.1.clone(), key.2);
            let known = self.bound.get(&key);
            // Its own socket may be one of QUIC.
            let is_quic = key == quic_key;
            let adds_quic = !is_quic && quic.is_some() && !self.bound.contains_key(&quic_key);
            let mut take = |key: &Key| {
                let found = taken.iter().position(|it| it.is_for(key));
                found.map(|at| taken.swap_remove(at))
            };
            let own = take(&key).filter(|_| known.is_none());
            let workers_before = own.as_ref().map_or(0, |own| own.workers);
            let taken = InheritedSockets {
                own,
                quic: take(&quic_key).filter(|_| adds_quic),
            };
            let binding = Binding::new(listener, known, adds_quic, count, &plan.inherited, taken);
            let binding = binding.map_err(|source| EngineError::Listen {
                address: listener.address.clone(),
                source,
            })?;
            let mut links = Vec::new();
            if matches!(listener.serves, Serves::Datagram(_)) && workers_before > 0 {
                let made = handover::links(count, workers_before);
                let (ours, theirs) = made.map_err(EngineError::Worker)?;
                links = ours;
                self.links.push(RelayLinks {
                    address: key.1.clone(),
                    nth: key.2,
                    links: theirs,
                });
            }
            let mut links = links.into_iter();
            let mut add = |key, sockets: PerWorker, quic: Option<(&quinn::ServerConfig, usize)>| {
                for (updates, sockets) in updates.iter_mut().zip(sockets) {
                    updates.push(Update {
                        key: Key::clone(key),
                        is_last: listener.is_last,
                        proxied_by: listener.proxied_by.clone(),
                        on_demand: listener.on_demand.clone(),
                        serves: listener.serves.clone(),
                        quic: quic.map(|(config, _)| config.clone()),
                        first_number: quic.map_or(0, |(_, first)| first),
                        before: links.next().unwrap_or_default(),
                        workers: count,
                        sockets,
                    });
                }
            };
            let first = binding.held.as_ref().map_or(0, |held| held.first);
            let own_quic = quic.as_ref().filter(|_| is_quic);
            add(&key, binding.sockets, own_quic.map(|quic| (quic, first)));
            if let Some(held) = binding.held {
                self.held.insert(key.clone(), held);
            }
            if let Some(quic) = quic.as_ref().filter(|_| !is_quic) {
                let first = binding.quic_held.as_ref().map_or(0, |held| held.first);
                add(&quic_key, binding.quic, Some((quic, first)));
                if let Some(held) = binding.quic_held {
                    self.held.insert(quic_key.clone(), held);
                }
                bound.insert(quic_key, binding.address.clone());
            }
            if let Some(file) = binding.file {
                self.files.insert(key.clone(), file);
            }
            bound.insert(key, binding.address);
        }
        self.bound = bound;
        Ok(updates)
    }

    fn apply(&self, updates: Vec<Vec<Update>>, limits: Limits) -> Result<(), EngineError> {
        let mut waiting = Vec::new();
        for (worker, updates) in self.workers.iter().zip(updates) {
            let (done, applied) = oneshot::channel();
            let command = Command::Apply {
                updates,
                limits,
                done,
            };
            if worker.commands.blocking_send(command).is_ok() {
                waiting.push(applied);
            }
        }
        for applied in waiting {
            applied
                .blocking_recv()
                .unwrap_or_else(|_| Err(io::Error::other("the worker has ended")))
                .map_err(EngineError::Worker)?;
        }
        Ok(())
    }

    fn report_all(&self, command: impl Fn(oneshot::Sender<()>) -> Command) {
        let waiting: Vec<_> = self
            .workers
            .iter()
            .filter_map(|worker| {
                let (done, waiting) = oneshot::channel();
                worker.commands.blocking_send(command(done)).ok()?;
                Some(waiting)
            })
            .collect();
        for waiting in waiting {
            waiting.blocking_recv().ok();
        }
    }

    fn stop(&mut self) {
        for worker in &mut self.workers {
            worker.commands.blocking_send(Command::Stop).ok();
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                thread.join().ok();
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Worker {
    fn start(
        number: usize,
        core: Option<usize>,
        limits: Limits,
        counters: Arc<Counters>,
        admission: Arc<Admission>,
    ) -> Result<Self, EngineError> {
        let (commands, receiver) = mpsc::channel(4);
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                if let Some(core) = core
                    && let Err(error) = cores::pin_thread(core)
                {
                    ready.send(Err(EngineError::Pin(error))).ok();
                    return;
                }
                run::worker(number, limits, counters, admission, receiver, &ready);
            })
            .map_err(EngineError::Worker)?;
        let worker = Self {
            commands,
            thread: Some(thread),
        };
        match started.recv() {
            Ok(Ok(())) => Ok(worker),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(EngineError::Worker(io::Error::other("its thread ended"))),
        }
    }
}
