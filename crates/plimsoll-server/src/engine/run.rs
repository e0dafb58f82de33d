//! One worker: a runtime, its listeners, and the commands that it gets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_model::{Clock, FailureKind};
use plimsoll_wire::tls::{ACME_TLS, OnDemandCertificates};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use crate::counters::{Counters, Cut};
use crate::engine::listener::Transport;
use crate::engine::proxied;
use crate::engine::{EngineError, Key, Serves};
use crate::layer4::listener::DatagramListener;
use crate::layer4::{self, QuicHandler, StreamHandler};
use crate::limits::Limits;
use crate::message::connection::{Ends, NOWHERE, TlsInfo};
use crate::protocol::http1;
use crate::protocol::http2;
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

/// Pause after the process ran out of descriptors or memory, so that accepting does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

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

/// Networks of the proxies of a listener; a reload replaces them.
type Proxies = RefCell<Vec<IpNet>>;

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

/// The sources of connections.
enum Acceptor {
    Tcp {
        listener: TcpListener,
        /// The address of every connection, if it is the same.
        local: Option<SocketAddr>,
    },
    Unix(UnixListener),
}

/// A connection as it was accepted.
enum Connected {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Acceptor {
    fn new(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(socket) => {
                let listener = TcpListener::from_std(socket)?;
                let local = listener.local_addr()?;
                let local = Some(local).filter(|local| !local.ip().is_unspecified());
                Ok(Self::Tcp { listener, local })
            }
            Socket::Unix(socket) => UnixListener::from_std(socket).map(Self::Unix),
            Socket::Udp(_) => Err(io::Error::other("the socket takes no connections")),
        }
    }

    async fn accept(&self) -> io::Result<(Connected, Ends)> {
        match self {
            Self::Tcp { listener, local } => {
                let (stream, peer) = listener.accept().await?;
                // A client that is gone already will be noticed when it is read from.
                stream.set_nodelay(true).ok();
                let local = match local {
                    Some(local) => *local,
                    None => stream.local_addr().unwrap_or(NOWHERE),
                };
                Ok((Connected::Tcp(stream), Ends { peer, local }))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let ends = Ends {
                    peer: NOWHERE,
                    local: NOWHERE,
                };
                Ok((Connected::Unix(stream), ends))
            }
        }
    }
}

impl From<Connected> for Stream {
    fn from(connected: Connected) -> Self {
        match connected {
            Connected::Tcp(stream) => Self::tcp(stream),
            Connected::Unix(stream) => Self::unix(stream),
        }
    }
}

/// Accepts connections from each socket.
fn accept_all(
    sockets: Vec<Socket>,
    worker: &Rc<Worker>,
    proxies: &Rc<Proxies>,
    stopped: &watch::Receiver<bool>,
    take: impl Fn(Connected, ConnectionGuard, Ends) + 'static,
) -> io::Result<Vec<JoinHandle<()>>> {
    let take = Rc::new(take);
    let listeners = sockets.into_iter().map(Acceptor::new);
    let listeners: Vec<_> = listeners.collect::<io::Result<_>>()?;
    let tasks = listeners.into_iter().map(|listener| {
        let (worker, proxies) = (Rc::clone(worker), Rc::clone(proxies));
        let (stopped, take) = (stopped.clone(), Rc::clone(&take));
        spawn_local(accept(listener, worker, proxies, stopped, take))
    });
    Ok(tasks.collect())
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

/// Accepts connections and gives each to `take`, until it is stopped.
async fn accept(
    listener: Acceptor,
    worker: Rc<Worker>,
    proxies: Rc<Proxies>,
    mut stopped: watch::Receiver<bool>,
    take: Rc<impl Fn(Connected, ConnectionGuard, Ends) + 'static>,
) {
    loop {
        // Connections that wait to be accepted come before the end.
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => Some(accepted),
            _ = stopped.changed() => None,
        };
        match accepted {
            None => return,
            Some(Ok((stream, ends))) => {
                let peer = ends.peer;
                let limits = worker.limits();
                let is_proxied = is_within(&proxies.borrow(), peer);
                // Those of a proxy are counted by the client it names; those on this machine have no address.
                let is_local = matches!(stream, Connected::Unix(_));
                let most_of_address = if is_proxied || is_local {
                    usize::MAX
                } else {
                    limits.connections_per_address
                };
                let admitted =
                    worker
                        .admission
                        .admit(peer.ip(), limits.connections, most_of_address);
                match admitted {
                    Ok(()) => {
                        let place = ConnectionGuard::new(Rc::clone(&worker), peer.ip());
                        match stream {
                            Connected::Tcp(stream) if is_proxied => {
                                spawn_local(take_proxied(stream, place, ends, Rc::clone(&take)));
                            }
                            stream => take(stream, place, ends),
                        }
                    }
                    Err(cut) => worker.counters.cut(cut),
                }
            }
            Some(Err(error)) if is_shortage(&error) => {
                worker.counters.cut(Cut::Shortage);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            // The client was gone before it was accepted.
            Some(Err(_)) => {}
        }
    }
}

fn is_within(networks: &[IpNet], peer: SocketAddr) -> bool {
    let address = peer.ip().to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// Hands a connection on as that of the client its proxy names.
async fn take_proxied(
    mut stream: TcpStream,
    mut place: ConnectionGuard,
    ends: Ends,
    take: Rc<impl Fn(Connected, ConnectionGuard, Ends)>,
) {
    let named = proxied::ends(&mut stream, &place).await;
    let moved = named.and_then(|named| {
        let named = named.map_or(ends, Ends::from);
        if named.peer != ends.peer {
            place.moved(named.peer.ip())?;
        }
        Ok(named)
    });
    match moved {
        Ok(ends) => take(Connected::Tcp(stream), place, ends),
        Err(cut) => place.worker.counters.cut(cut),
    }
}

/// Whether the system will have what it lacks now at another time.
fn is_shortage(error: &io::Error) -> bool {
    FailureKind::from_io(error) == FailureKind::ResourceLimit
}

fn take_http(service: &Rc<Service>, stream: Connected, place: ConnectionGuard, ends: Ends) {
    let service = Rc::clone(service);
    let acceptor = service.tls.borrow().clone();
    match (acceptor, stream) {
        (Some(acceptor), Connected::Tcp(stream)) => {
            spawn_local(take_https(acceptor, service, stream, place, ends))
        }
        // Connections within the machine are not encrypted.
        (_, stream) => {
            let info = ends.info(place.id(), None);
            spawn_local(http1::serve(stream.into(), service, place, info))
        }
    };
}

/// Whether a client at a port for TLS begins with text, as HTTP in the clear does, rather than with a handshake.
async fn speaks_in_the_clear(stream: &TcpStream) -> bool {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await;
    peeked.is_ok_and(|length| length == 1) && first[0].is_ascii_alphabetic()
}

/// Answers a client that speaks HTTP in the clear to a port for TLS.
async fn reject_clear(mut stream: TcpStream) {
    // The client's bytes are read, or a reset could overtake the response.
    let mut buffer = [0; 4096];
    stream.try_read(&mut buffer).ok();
    let text = "this port speaks HTTPS, not HTTP\n";
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}

async fn take_https(
    acceptor: TlsAcceptor,
    service: Rc<Service>,
    stream: TcpStream,
    place: ConnectionGuard,
    ends: Ends,
) {
    let timeout = place.worker.limits().handshake_timeout;
    match tokio::time::timeout(timeout, speaks_in_the_clear(&stream)).await {
        Err(_) => return place.worker.counters.cut(Cut::HandshakeTimeout),
        Ok(true) => {
            place.worker.counters.cut(Cut::Handshake);
            return reject_clear(stream).await;
        }
        Ok(false) => {}
    }
    // Boxed: its room is wanted only until the handshake is done.
    let on_demand = service.on_demand.borrow().clone();
    let handshake = async {
        match on_demand {
            None => handshake(&acceptor, stream, &place).await,
            Some(on_demand) => {
                let prepared = accept_prepared(&acceptor, stream, &on_demand);
                within_limit(prepared, &place).await
            }
        }
    };
    let Some(stream) = Box::pin(handshake).await else {
        return;
    };
    let tls = TlsInfo::from_connection(stream.get_ref().1);
    let protocol = tls.alpn.as_deref();
    // An authority has seen what it wanted to see (RFC 8737, section 3).
    if protocol == Some(ACME_TLS) {
        return;
    }
    let is_http2 = protocol == Some(b"h2");
    let info = ends.info(place.id(), Some(tls));
    let stream = Stream::tls(stream);
    if is_http2 {
        Box::pin(http2::serve(stream, service, place, info)).await;
    } else {
        http1::serve(stream, service, place, info).await;
    }
}

/// The stream behind a handshake of TLS; what went wrong is counted.
async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    place: &ConnectionGuard,
) -> Option<TlsStream<TcpStream>> {
    within_limit(acceptor.accept(stream), place).await
}

/// Has the certificate that the client requests ordered before the handshake goes on.
async fn accept_prepared(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    on_demand: &OnDemandCertificates,
) -> io::Result<TlsStream<TcpStream>> {
    let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let name = {
        let hello = hello.client_hello();
        let mut protocols = hello.alpn().into_iter().flatten();
        // An authority proves the name now, so the certificate cannot be there yet.
        let is_challenge = protocols.any(|protocol| protocol == ACME_TLS);
        let name = hello.server_name().filter(|_| !is_challenge);
        name.map(str::to_owned)
    };
    if let Some(name) = name {
        on_demand.prepared(&name).await;
    }
    hello.into_stream(Arc::clone(acceptor.config())).await
}

async fn within_limit(
    accepted: impl Future<Output = io::Result<TlsStream<TcpStream>>>,
    place: &ConnectionGuard,
) -> Option<TlsStream<TcpStream>> {
    let timeout = place.worker.limits().handshake_timeout;
    let cut = match tokio::time::timeout(timeout, accepted).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(_)) => Cut::Handshake,
        Err(_) => Cut::HandshakeTimeout,
    };
    place.worker.counters.cut(cut);
    None
}
