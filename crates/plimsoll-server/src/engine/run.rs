//! One worker: a runtime, its listeners, and the commands that it gets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_model::Clock;
use plimsoll_wire::tls::{ACME_TLS, OnDemandCertificates};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio_rustls::TlsAcceptor;

use crate::counters::Counters;
use crate::engine::accept::{Connected, Proxies, accept_all};
use crate::engine::handshake::{handshake, take_http};
use crate::engine::listener::Transport;
use crate::engine::{EngineError, Key, Serves};
use crate::layer4::listener::DatagramListener;
use crate::layer4::{self, QuicHandler, StreamHandler};
use crate::limits::Limits;
use crate::message::connection::{Ends, TlsInfo};
use crate::protocol::http3::alternative::AltSvc;
use crate::protocol::http3::serve_http3;
use crate::protocol::service::Service;
use crate::quic::{QuicListener, port_of};
use crate::stream::Stream;
use crate::worker::admission::Admission;
use crate::worker::context::{Tasks, WorkerContext};
use crate::worker::{ConnectionGuard, Worker};

/// Commands of the engine to a worker.
#[expect(
    clippy::large_enum_variant,
    reason = "there are few of them, and none is kept"
)]
pub(crate) enum Command {
    /// These are the listeners from now on.
    Apply {
        updates: Vec<Update>,
        limits: Limits,
        done: oneshot::Sender<io::Result<()>>,
    },
    /// Sessions of datagrams go on with what another process sends by these links.
    Follow {
        links: Vec<(Key, Vec<OwnedFd>)>,
        done: oneshot::Sender<()>,
    },
    /// Take what waits to be accepted, then listen no more.
    Close { done: oneshot::Sender<()> },
    /// Let connections end; the reply is how many had not by the end of the time.
    Drain {
        timeout: Duration,
        done: oneshot::Sender<usize>,
    },
    /// End at once.
    Stop,
}

/// One listener as a worker is to have it.
pub(crate) struct Update {
    pub(crate) key: Key,
    pub(crate) is_last: bool,
    pub(crate) proxied_by: Vec<IpNet>,
    pub(crate) on_demand: Option<OnDemandCertificates>,
    pub(crate) serves: Serves,
    /// Transport settings of a QUIC socket.
    pub(crate) quic: Option<quinn::ServerConfig>,
    /// The number of the first worker's socket of QUIC among those of the port.
    pub(crate) first_number: usize,
    /// Links to the workers of another process, for datagrams of its sessions.
    pub(crate) before: Vec<OwnedFd>,
    /// How many workers there are.
    pub(crate) workers: usize,
    /// None if it listens already; several where another process had more workers.
    pub(crate) sockets: Vec<Socket>,
}

pub(crate) enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
    Udp(std::net::UdpSocket),
}

/// How long a worker that ends waits for its connections of QUIC to be closed; what closes them leaves at once unless the
/// machine is overloaded.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which a draining worker checks whether all connections have ended.
const DRAIN_STEP: Duration = Duration::from_millis(5);

/// Runs a worker on the calling thread until it gets the command to stop.
pub(crate) fn worker(
    number: usize,
    limits: Limits,
    counters: Arc<Counters>,
    admission: Arc<Admission>,
    commands: mpsc::Receiver<Command>,
    ready: &SyncSender<Result<(), EngineError>>,
) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            ready.send(Err(EngineError::Worker(error))).ok();
            return;
        }
    };
    let worker = Rc::new(Worker::new(number, limits, counters, admission));
    ready.send(Ok(())).ok();
    runtime.block_on(async {
        Listeners::new(Rc::clone(&worker)).run(commands).await;
        worker.drain.end();
        // The tasks of QUIC connections send what closes them.
        let closed = worker.drain.closed();
        tokio::time::timeout(CLOSING_TIMEOUT, closed).await.ok();
    });
    // Dropping the runtime drops what connections are left.
}

/// The listeners of a worker, by what their plan says.
struct Listeners {
    worker: Rc<Worker>,
    /// Of the configuration that is served.
    tasks: Rc<Tasks>,
    listening: HashMap<Key, Listening>,
}

struct Listening {
    served: ListenerService,
    proxied_by: Rc<Proxies>,
    is_last: bool,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// The service of a listener; shared with its connections where a reload reaches them.
enum ListenerService {
    Http(Rc<Service>),
    /// Beside a listener for HTTP, whose service it shares.
    Quic(Rc<QuicListener>),
    Stream(Rc<Streams>),
    /// Of another protocol than HTTP/3.
    RawQuic(Rc<QuicListener>, Rc<RefCell<Rc<dyn QuicHandler>>>),
    Datagram(Rc<DatagramListener>),
}

/// Service for whole connections; a reload replaces it.
struct Streams {
    handler: RefCell<Rc<dyn StreamHandler>>,
    tls: RefCell<Option<TlsAcceptor>>,
}

impl Streams {
    fn accept_stream(&self, stream: Connected, place: ConnectionGuard, ends: Ends) {
        let handler = Rc::clone(&self.handler.borrow());
        let acceptor = self.tls.borrow().clone();
        match (acceptor, stream) {
            (Some(acceptor), Connected::Tcp(stream)) => spawn_local(async move {
                let handshake = Box::pin(handshake(&acceptor, stream, &place));
                if let Some(stream) = handshake.await {
                    let tls = TlsInfo::from_connection(stream.get_ref().1);
                    // An authority has seen what it wanted to see (RFC 8737, section 3).
                    if tls.alpn.as_deref() != Some(ACME_TLS) {
                        let info = ends.info(place.id(), Some(tls));
                        layer4::serve_stream(handler, Stream::tls(stream), place, info).await;
                    }
                }
            }),
            // What does not leave the machine is not encrypted.
            (_, stream) => {
                let info = ends.info(place.id(), None);
                spawn_local(layer4::serve_stream(handler, stream.into(), place, info))
            }
        };
    }
}

impl Listeners {
    fn new(worker: Rc<Worker>) -> Self {
        Self {
            worker,
            tasks: Rc::default(),
            listening: HashMap::new(),
        }
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Apply {
                    updates,
                    limits,
                    done,
                } => {
                    done.send(self.apply(updates, limits).await).ok();
                }
                Command::Follow { links, done } => {
                    for (key, links) in links {
                        if let Some(Listening {
                            served: ListenerService::Datagram(listener),
                            ..
                        }) = self.listening.get(&key)
                        {
                            // Without a link the other process begins new sessions.
                            listener.follow(links).ok();
                        }
                    }
                    done.send(()).ok();
                }
                Command::Close { done } => {
                    self.keep_only(|_, listening| listening.is_last).await;
                    done.send(()).ok();
                }
                Command::Drain { timeout, done } => {
                    done.send(self.drain(timeout).await).ok();
                }
                Command::Stop => return,
            }
        }
    }

    async fn apply(&mut self, updates: Vec<Update>, limits: Limits) -> io::Result<()> {
        self.worker.limits.replace(Rc::new(limits));
        let tasks = Rc::<Tasks>::default();
        let context = WorkerContext::new(Rc::clone(&self.worker), Rc::clone(&tasks));
        if let Err(error) = self.update(updates, &context).await {
            tasks.end();
            return Err(error);
        }
        // The new actions have found what they share with the old ones by now.
        std::mem::replace(&mut self.tasks, tasks).end();
        Ok(())
    }

    async fn update(&mut self, updates: Vec<Update>, context: &WorkerContext) -> io::Result<()> {
        let wanted: Vec<_> = updates.iter().map(|update| update.key.clone()).collect();
        for mut update in updates {
            let key = update.key.clone();
            let sockets = std::mem::take(&mut update.sockets);
            if sockets.is_empty() {
                self.replace(update, context)?;
            } else {
                let listening = self.listen(sockets, update, context)?;
                self.listening.insert(key, listening);
            }
        }
        self.keep_only(|key, _| wanted.contains(key)).await;
        Ok(())
    }

    fn listen(
        &self,
        sockets: Vec<Socket>,
        update: Update,
        context: &WorkerContext,
    ) -> io::Result<Listening> {
        let proxied_by = Rc::new(RefCell::new(update.proxied_by));
        let proxies = Rc::clone(&proxied_by);
        let (stop, stopped) = watch::channel(false);
        let worker = Rc::clone(&self.worker);
        let (served, tasks) = match &update.serves {
            Serves::Http {
                action, tls, http2, ..
            } if update.quic.is_none() => {
                let service = Rc::new(Service {
                    action: action(context).into(),
                    tls: tls.clone().map(TlsAcceptor::from).into(),
                    http2: (*http2).into(),
                    http3: RefCell::default(),
                    on_demand: update.on_demand.clone().into(),
                });
                let served = ListenerService::Http(Rc::clone(&service));
                let taking = move |stream, place, ends| take_http(&service, stream, place, ends);
                (
                    served,
                    accept_all(sockets, &worker, &proxies, &stopped, taking)?,
                )
            }
            Serves::Stream { handler, tls } => {
                let streams = Rc::new(Streams {
                    handler: RefCell::new(handler(context)),
                    tls: tls.clone().map(TlsAcceptor::from).into(),
                });
                let serving = Rc::clone(&streams);
                let taking = move |stream, place, ends| serving.accept_stream(stream, place, ends);
                (
                    ListenerService::Stream(streams),
                    accept_all(sockets, &worker, &proxies, &stopped, taking)?,
                )
            }
            Serves::Http {
                http3: Some(http3), ..
            } => {
                let socket = only_udp(sockets)?;
                let no_http = || io::Error::other("there is no listener for HTTP beside it");
                let service = self.beside(&update.key).ok_or_else(no_http)?;
                let port = http3.advertised.map_or_else(|| port_of(&socket), Ok)?;
                service.http3.replace(Some(Rc::new(AltSvc::new(port))));
                let quic = update.quic.ok_or_else(no_http)?;
                let number = update.first_number + worker.number;
                let listener = Rc::new(QuicListener::new(quic, number));
                let serve = serve_http3(service);
                let running = Rc::clone(&listener).run(socket, worker, serve, stopped);
                (ListenerService::Quic(listener), vec![spawn_local(running)])
            }
            Serves::Quic(plan) => {
                let socket = only_udp(sockets)?;
                let no_config = || io::Error::other("there are no settings of QUIC");
                let quic = update.quic.ok_or_else(no_config)?;
                let handler = Rc::new(RefCell::new((plan.handler)(context)));
                let number = update.first_number + worker.number;
                let listener = Rc::new(QuicListener::new(quic, number));
                let serve = layer4::serve_quic(&handler);
                let running = Rc::clone(&listener).run(socket, worker, serve, stopped);
                (
                    ListenerService::RawQuic(listener, handler),
                    vec![spawn_local(running)],
                )
            }
            Serves::Datagram(handler) => {
                let (sockets, handler) = (all_udp(sockets)?, handler(context));
                let (workers, before) = (update.workers, update.before);
                let listener = DatagramListener::new(sockets, worker, workers, handler, before)?;
                let tasks = listener.start(&stopped);
                (ListenerService::Datagram(listener), tasks)
            }
            Serves::Http { http3: None, .. } => {
                return Err(io::Error::other("the socket is of another kind"));
            }
        };
        Ok(Listening {
            served,
            proxied_by,
            is_last: update.is_last,
            stop,
            tasks,
        })
    }

    /// The service of the listener for HTTP that one of QUIC belongs to.
    fn beside(&self, (_, address, nth): &Key) -> Option<Rc<Service>> {
        let key = (Transport::Tcp, address.clone(), *nth);
        let listening = self.listening.get(&key)?;
        match &listening.served {
            ListenerService::Http(service) => Some(Rc::clone(service)),
            ListenerService::Quic(_)
            | ListenerService::RawQuic(..)
            | ListenerService::Stream(_)
            | ListenerService::Datagram(_) => None,
        }
    }

    /// Serves something else on a socket that stays.
    fn replace(&mut self, update: Update, context: &WorkerContext) -> io::Result<()> {
        let beside = self.beside(&update.key);
        let Some(listening) = self.listening.get(&update.key) else {
            return Err(io::Error::other("the listener is not there"));
        };
        listening.proxied_by.replace(update.proxied_by);
        match (&listening.served, update.serves, update.quic) {
            (
                ListenerService::Http(service),
                Serves::Http {
                    action,
                    tls,
                    http2,
                    http3,
                },
                _,
            ) => {
                service.action.replace(action(context));
                service.tls.replace(tls.map(TlsAcceptor::from));
                service.http2.set(http2);
                service.on_demand.replace(update.on_demand);
                if http3.is_none() {
                    service.http3.replace(None);
                }
                Ok(())
            }
            (
                ListenerService::Quic(listener),
                Serves::Http {
                    http3: Some(http3), ..
                },
                Some(quic),
            ) => {
                listener.replace(quic);
                if let (Some(service), Some(port)) = (beside, http3.advertised) {
                    service.http3.replace(Some(Rc::new(AltSvc::new(port))));
                }
                Ok(())
            }
            (ListenerService::Stream(streams), Serves::Stream { handler, tls }, _) => {
                streams.handler.replace(handler(context));
                streams.tls.replace(tls.map(TlsAcceptor::from));
                Ok(())
            }
            (ListenerService::RawQuic(listener, serving), Serves::Quic(plan), Some(quic)) => {
                listener.replace(quic);
                serving.replace((plan.handler)(context));
                Ok(())
            }
            (ListenerService::Datagram(listener), Serves::Datagram(handler), _) => {
                listener.replace(handler(context));
                Ok(())
            }
            _ => Err(io::Error::other(
                "a listener cannot change between HTTP and raw streams while it runs",
            )),
        }
    }

    /// Lets the other listeners take what waits, and closes them.
    async fn keep_only(&mut self, is_kept: impl Fn(&Key, &Listening) -> bool) {
        let leaving: Vec<Key> = self
            .listening
            .iter()
            .filter(|(key, listening)| !is_kept(key, listening))
            .map(|(key, _)| key.clone())
            .collect();
        for key in leaving {
            if let Some(listening) = self.listening.remove(&key) {
                listening.stop.send_replace(true);
                for task in listening.tasks {
                    task.await.ok();
                }
            }
        }
    }

    async fn drain(&self, timeout: Duration) -> usize {
        let clock = self.worker.clock;
        let begun = clock.now();
        self.worker.drain(begun);
        while self.worker.open() > 0 && clock.now() < begun + timeout {
            tokio::time::sleep(DRAIN_STEP).await;
        }
        self.worker.open()
    }
}

/// The sockets of a worker for datagrams.
fn all_udp(sockets: Vec<Socket>) -> io::Result<Vec<std::net::UdpSocket>> {
    let sockets = sockets.into_iter().map(|socket| match socket {
        Socket::Udp(socket) => Ok(socket),
        Socket::Tcp(_) | Socket::Unix(_) => Err(io::Error::other("the socket is of another kind")),
    });
    sockets.collect()
}

/// The socket of a worker for QUIC; what others get that another process had, the system hands to the rest of them
/// once they are closed.
fn only_udp(sockets: Vec<Socket>) -> io::Result<std::net::UdpSocket> {
    match sockets.into_iter().next() {
        Some(Socket::Udp(socket)) => Ok(socket),
        _ => Err(io::Error::other("the socket is of another kind")),
    }
}
