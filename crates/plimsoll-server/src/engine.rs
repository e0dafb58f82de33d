//! The engine: workers, their listeners, and what is done to all of them together.

pub(crate) mod run;

pub(crate) mod listener;

pub(crate) mod address;

pub(crate) mod unix_socket;

pub(crate) mod inherited;

pub(crate) mod handover;

pub(crate) mod proxied;

pub(crate) mod admission;

pub(crate) mod limits;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_wire::cores::{self, PinError};
use plimsoll_wire::steer_by_connection_id;
use tokio::sync::{mpsc, oneshot};

use crate::action::MakeAction;
use crate::engine::address::Address;
use crate::engine::admission::Admission;
use crate::engine::handover::{HandedOver, Held};
use crate::engine::inherited::Inherited;
use crate::engine::limits::Limits;
use crate::engine::listener::{Sockets, Transport};
use crate::engine::run::{Command, Socket, Update};
use crate::engine::unix_socket::UnixFile;
use crate::layer4::{MakeDatagramHandler, MakeStreamHandler};
use crate::observe::counters::Counters;
use crate::protocol::http3::listener::{NoTls13, server_config};

/// What an engine is to serve.
#[derive(Debug, Clone)]
pub struct EnginePlan {
    /// Workers, each a thread with its own runtime; at least one.
    pub threads: usize,
    /// Binds each worker to one core.
    pub pin: bool,
    /// Where it listens, and what for.
    pub listeners: Vec<ListenerPlan>,
    /// What clients may take.
    pub limits: Limits,
    /// Sockets that the program was started with.
    pub inherited: Arc<Inherited>,
}

impl EnginePlan {
    /// One worker that is bound to no core, with the limits that hold by default.
    pub fn new(listeners: Vec<ListenerPlan>) -> Self {
        Self {
            threads: 1,
            pin: false,
            listeners,
            limits: Limits::default(),
            inherited: Arc::default(),
        }
    }
}

/// One listener.
#[derive(Clone)]
pub struct ListenerPlan {
    /// Where.
    pub address: Address,
    /// Permissions of a socket in the file system, such as `0o660`.
    pub mode: Option<u32>,
    /// Another process may listen there too and share the connections, as during a restart. A socket in the file
    /// system takes the place of that of the other process.
    pub shares_port: bool,
    /// Networks of proxies whose connections begin with a PROXY header; others are served as themselves.
    pub proxied_by: Vec<IpNet>,
    /// It stays open during a drain, so that the state of the drain can be read.
    pub is_last: bool,
    /// What is served there.
    pub serves: Serves,
}

impl ListenerPlan {
    /// A listener that clients reach directly at its port.
    pub fn new(address: impl Into<Address>, serves: Serves) -> Self {
        Self {
            address: address.into(),
            mode: None,
            shares_port: false,
            proxied_by: Vec::new(),
            is_last: false,
            serves,
        }
    }
}

/// What a listener serves.
#[derive(Clone)]
pub enum Serves {
    /// HTTP/1 and, if wanted, HTTP/2: over TLS by ALPN, in the clear by prior knowledge.
    Http {
        /// Answers the requests.
        action: Arc<MakeAction>,
        /// Encrypts, if present; its ALPN protocols are set by the listener.
        tls: Option<Arc<rustls::ServerConfig>>,
        /// Speaks HTTP/2 too.
        http2: bool,
        /// Speaks HTTP/3 too, at the UDP port of the same number; only with `tls`.
        http3: Option<Http3Plan>,
    },
    /// Whole connections.
    Stream(Arc<MakeStreamHandler>),
    /// Datagrams.
    Datagram(Arc<MakeDatagramHandler>),
}

/// How HTTP/3 is spoken beside HTTP/1 and HTTP/2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Http3Plan {
    /// The UDP port that is advertised to clients, where it is not that of the socket.
    pub advertised: Option<u16>,
}

impl Serves {
    /// HTTP/1 and HTTP/2 in the clear.
    pub fn clear(action: Arc<MakeAction>) -> Self {
        Self::Http {
            action,
            tls: None,
            http2: true,
            http3: None,
        }
    }

    /// How HTTP/3 is spoken by `limits`, if it is.
    fn quic(&self, limits: &Limits) -> Result<Option<quinn::ServerConfig>, NoTls13> {
        let Self::Http {
            tls: Some(tls),
            http3: Some(_),
            ..
        } = self
        else {
            return Ok(None);
        };
        server_config(tls, limits).map(Some)
    }

    /// What a client begins the address with: `http`, `https`, `tcp` or `udp`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Http { tls: None, .. } => "http",
            Self::Http { tls: Some(_), .. } => "https",
            Self::Stream(_) => "tcp",
            Self::Datagram(_) => "udp",
        }
    }

    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Http { .. } | Self::Stream(_) => Transport::Tcp,
            Self::Datagram(_) => Transport::Udp,
        }
    }
}

impl fmt::Debug for ListenerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.serves, self.address)
    }
}

impl fmt::Debug for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl EnginePlan {
    fn keys(&self) -> impl Iterator<Item = Key> {
        fn place(listener: &ListenerPlan) -> (Transport, &Address) {
            (listener.serves.transport(), &listener.address)
        }
        self.listeners
            .iter()
            .enumerate()
            .map(move |(at, listener)| {
                let earlier = self.listeners.iter().take(at);
                let nth = earlier.filter(|it| place(it) == place(listener)).count();
                let (transport, address) = place(listener);
                (transport, address.clone(), nth)
            })
    }
}

/// Why an engine cannot do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The port cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// What was to be listened on.
        address: Address,
        /// What the system says.
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
    /// What cannot be changed while it runs.
    #[error("{0} cannot be changed while it runs; restart it")]
    Fixed(&'static str),
}

/// Where a plan says to listen, and the how manieth there (each port 0 is another one): what a reload
/// recognises a listener by.
pub(crate) type Key = (Transport, Address, usize);

/// Workers that serve until they are drained, or until the value is dropped.
///
/// Its methods wait for the workers, so they must be called outside of any runtime.
#[derive(Debug)]
pub struct Engine {
    workers: Vec<Worker>,
    counters: Arc<Counters>,
    admission: Arc<Admission>,
    /// Where each listener really listens.
    bound: HashMap<Key, Address>,
    /// The files of sockets, removed with their values.
    files: HashMap<Key, UnixFile>,
    /// Every listening socket once more, for the process that takes over.
    held: HashMap<Key, Held>,
    threads: usize,
    pin: bool,
}

#[derive(Debug)]
struct Worker {
    commands: mpsc::Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// How a drain ended.
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
        Self::take_over(plan, counters, Vec::new())
    }

    /// The same with the sockets of another process, for listeners that have the same address.
    pub fn take_over(
        plan: &EnginePlan,
        counters: Arc<Counters>,
        mut taken: Vec<HandedOver>,
    ) -> Result<Self, EngineError> {
        let threads = plan.threads.max(1);
        let mut engine = Self {
            workers: Vec::with_capacity(threads),
            counters,
            admission: Arc::default(),
            bound: HashMap::new(),
            files: HashMap::new(),
            held: HashMap::new(),
            threads: plan.threads,
            pin: plan.pin,
        };
        let updates = engine.bind(plan, threads, &mut taken)?;
        let cores = cores::available();
        for number in 0..threads {
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

    /// The ports that it listens on, in no particular order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own = |(key, address): (&Key, &Address)| {
            let is_own = key.0 != Transport::Quic;
            address.port().filter(|_| is_own)
        };
        self.bound.iter().filter_map(own).collect()
    }

    /// Where the listeners of `plan`, which it serves by, really listen, in their order.
    pub fn bound(&self, plan: &EnginePlan) -> Vec<Address> {
        let bound = |key: Key| self.bound.get(&key).cloned().unwrap_or(key.1);
        plan.keys().map(bound).collect()
    }

    /// What it counts.
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
        let result = match self.bind(plan, self.workers.len(), &mut Vec::new()) {
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
            held.handed_over(key, bound)
        })
        .collect()
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
    fn bind(
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
            let adds_quic = quic.is_some() && !self.bound.contains_key(&quic_key);
            let mut take = |key: &Key| {
                let found = taken.iter().position(|it| it.is_for(key));
                found.map(|at| taken.swap_remove(at))
            };
            let taken = Taken {
                own: take(&key).filter(|_| known.is_none()),
                quic: take(&quic_key).filter(|_| adds_quic),
            };
            let binding = Binding::new(listener, known, adds_quic, count, &plan.inherited, taken);
            let binding = binding.map_err(|source| EngineError::Listen {
                address: listener.address.clone(),
                source,
            })?;
            let mut add = |key, sockets: PerWorker, quic: Option<(&quinn::ServerConfig, usize)>| {
                for (updates, sockets) in updates.iter_mut().zip(sockets) {
                    updates.push(Update {
                        key: Key::clone(key),
                        is_last: listener.is_last,
                        proxied_by: listener.proxied_by.clone(),
                        serves: listener.serves.clone(),
                        quic: quic.map(|(config, _)| config.clone()),
                        first_number: quic.map_or(0, |(_, first)| first),
                        sockets,
                    });
                }
            };
            add(&key, binding.sockets, None);
            if let Some(held) = binding.held {
                self.held.insert(key.clone(), held);
            }
            if let Some(quic) = &quic {
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

/// The sockets of each worker; none where there are some already.
type PerWorker = Vec<Vec<Socket>>;

/// What another process has handed over for one listener.
struct Taken {
    own: Option<HandedOver>,
    quic: Option<HandedOver>,
}

/// The sockets of one listener.
struct Binding {
    address: Address,
    sockets: PerWorker,
    held: Option<Held>,
    quic: PerWorker,
    quic_held: Option<Held>,
    file: Option<UnixFile>,
}

/// Ports that are tried where one must be free for both TCP and UDP.
const PORTS_TRIED: usize = 16;

impl Binding {
    /// - `known`: where it listens already.
    /// - `adds_quic`: HTTP/3 is to be spoken there, and is not yet.
    fn new(
        listener: &ListenerPlan,
        known: Option<&Address>,
        adds_quic: bool,
        count: usize,
        inherited: &Inherited,
        taken: Taken,
    ) -> io::Result<Self> {
        let nothing = || (0..count).map(|_| Vec::new()).collect::<PerWorker>();
        let mut binding = Self {
            address: listener.address.clone(),
            sockets: nothing(),
            held: None,
            quic: nothing(),
            quic_held: None,
            file: None,
        };
        let shares = listener.shares_port;
        match (known, taken.own, &listener.address) {
            (Some(known), _, _) => binding.address = known.clone(),
            (None, Some(own), address) => {
                if let Address::Unix(path) = address {
                    binding.file = Some(UnixFile::at(path)?);
                }
                binding.address = own.bound;
                binding.hold(own.sockets, count)?;
            }
            (None, None, Address::Unix(path)) => {
                let (sockets, file) = Sockets::bind_unix(path, listener.mode, count, shares)?;
                binding.hold(sockets.into_descriptors(), count)?;
                binding.file = Some(file);
            }
            (None, None, Address::Inherited(name)) => {
                let sockets = inherited.take(name, count)?;
                if let Some(port) = sockets.port() {
                    binding.address = Address::Port(port);
                }
                binding.hold(sockets.into_descriptors(), count)?;
            }
            (None, None, Address::Port(address)) => {
                let mut tried = 0;
                loop {
                    tried += 1;
                    let transport = listener.serves.transport();
                    let (sockets, port) = Sockets::bind(transport, *address, count, shares)?;
                    if adds_quic {
                        match Sockets::bind(Transport::Quic, port, count, shares) {
                            Ok((quic, _)) => {
                                binding.hold_quic(quic.into_descriptors(), 0, count)?;
                            }
                            // Another program has the port of UDP that belongs to the one of TCP.
                            Err(_) if address.port() == 0 && tried < PORTS_TRIED => continue,
                            Err(error) => return Err(error),
                        }
                    }
                    binding.address = Address::Port(port);
                    binding.hold(sockets.into_descriptors(), count)?;
                    return Ok(binding);
                }
            }
        }
        if adds_quic {
            let no_port = || io::Error::other("HTTP/3 needs a port");
            let port = binding.address.port().ok_or_else(no_port)?;
            match taken.quic {
                None => {
                    let (quic, _) = Sockets::bind(Transport::Quic, port, count, shares)?;
                    binding.hold_quic(quic.into_descriptors(), 0, count)?;
                }
                Some(taken) => {
                    // Connections of the other process go on at its sockets, whose numbers must stay.
                    let mut sockets = taken.sockets;
                    let first = sockets.len();
                    let (more, _) = Sockets::bind(Transport::Quic, port, count, true)?;
                    sockets.extend(more.into_descriptors());
                    binding.hold_quic(sockets, first, count)?;
                }
            }
        }
        Ok(binding)
    }

    /// Has the workers read these sockets.
    fn hold(&mut self, sockets: Vec<OwnedFd>, count: usize) -> io::Result<()> {
        self.sockets = handover::spread(&sockets, count)?;
        self.held = Some(Held {
            first: 0,
            active: sockets.len(),
            sockets,
        });
        Ok(())
    }

    /// Has the workers read `count` of these sockets from `first` on, and the kernel hand them what is theirs.
    fn hold_quic(&mut self, sockets: Vec<OwnedFd>, first: usize, count: usize) -> io::Result<()> {
        let own = sockets.get(first..first + count).unwrap_or_default();
        self.quic = handover::spread(own, count)?;
        if let Some(socket) = own.first() {
            steer_by_connection_id(socket, first, count)?;
        }
        self.quic_held = Some(Held {
            sockets,
            first,
            active: count,
        });
        Ok(())
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
