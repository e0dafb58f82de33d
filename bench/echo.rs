//! Echo over TCP, TLS, UDP and QUIC, and a generator that verifies each byte that comes back: for plans that measure how connections and
//! datagrams are forwarded.
//!
//! - `echo serve PROTOCOL PORT [CA-FILE]` sends back what it receives. The authority of its certificate is written to the file. Over UDP and
//!   QUIC, TCP connections at the same port are accepted too: a plan waits until one is.
//! - `echo load URL CONNECTIONS SECONDS [--bytes N] [--streams N] [--datagrams N] [--rounds N]` sends to `http://HOST:PORT/PROTOCOL` in a
//!   closed loop and prints the part of `plimsoll load --json` that `plimsoll lab` and `soak` read.
//!
//! One thread each. An exchange is a payload that returned whole. Over QUIC it has a stream of its own, up to the FIN.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock as _, Histogram};
use plimsoll_testkit::{Authority, Leaf};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{TlsSettings, Trust};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector};

type Problem = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: echo serve (tcp|tls|udp|quic) PORT [CA-FILE], or echo load URL CONNECTIONS SECONDS \
                     [--bytes N] [--streams N] [--datagrams N] [--rounds N]";

/// The name that clients request and that the certificate is for.
const NAME: &str = "one.example";

const ALPN: &[u8] = b"echo";

/// How long an echo may take: beyond, a datagram was lost and a connection is broken.
const PATIENCE: Duration = Duration::from_secs(2);

/// Pause behind a failure, so that a target that is gone is not run against in a tight loop.
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> Result<(), Problem> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    match arguments[..] {
        ["serve", protocol, port] => {
            let server = Server::new(protocol, port, None)?;
            runtime.block_on(server.run())
        }
        ["serve", protocol, port, ca] => {
            let server = Server::new(protocol, port, Some(ca))?;
            runtime.block_on(server.run())
        }
        ["load", url, connections, seconds, ref options @ ..] => {
            let load = Load::new(url, connections, seconds, options)?;
            let json = runtime.block_on(load.run());
            Ok(writeln!(io::stdout(), "{json}")?)
        }
        _ => Err(USAGE.into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Tls,
    Udp,
    Quic,
}

impl Protocol {
    fn named(name: &str) -> Result<Self, Problem> {
        match name {
            "tcp" => Ok(Self::Tcp),
            "tls" => Ok(Self::Tls),
            "udp" => Ok(Self::Udp),
            "quic" => Ok(Self::Quic),
            _ => Err(USAGE.into()),
        }
    }
}

struct Server {
    protocol: Protocol,
    address: SocketAddr,
    leaf: Leaf,
}

impl Server {
    fn new(protocol: &str, port: &str, ca: Option<&str>) -> Result<Self, Problem> {
        let authority = Authority::new();
        if let Some(ca) = ca {
            std::fs::write(ca, authority.pem())?;
        }
        Ok(Self {
            protocol: Protocol::named(protocol)?,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)),
            leaf: authority.issue(&[NAME]),
        })
    }

    async fn run(&self) -> Result<(), Problem> {
        match self.protocol {
            Protocol::Tcp => self.accept(None).await,
            Protocol::Tls => {
                let acceptor = TlsAcceptor::from(Arc::new(self.leaf.server_config()));
                self.accept(Some(acceptor)).await
            }
            Protocol::Udp => {
                let socket = UdpSocket::bind(self.address).await?;
                spawn_local(accept_and_close(TcpListener::bind(self.address).await?));
                let mut datagram = vec![0; 65_536];
                loop {
                    let (length, peer) = socket.recv_from(&mut datagram).await?;
                    socket.send_to(&datagram[..length], peer).await?;
                }
            }
            Protocol::Quic => self.accept_quic().await,
        }
    }

    async fn accept(&self, acceptor: Option<TlsAcceptor>) -> Result<(), Problem> {
        let listener = TcpListener::bind(self.address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let acceptor = acceptor.clone();
            // A client that leaves or says nonsense ends its own connection.
            spawn_local(async move {
                match acceptor {
                    None => return_bytes(stream).await,
                    Some(acceptor) => return_bytes(acceptor.accept(stream).await?).await,
                }
            });
        }
    }

    async fn accept_quic(&self) -> Result<(), Problem> {
        let mut tls = self.leaf.server_config();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = QuicServerConfig::try_from(tls)?;
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = quinn::Endpoint::server(config, self.address)?;
        spawn_local(accept_and_close(TcpListener::bind(self.address).await?));
        while let Some(incoming) = endpoint.accept().await {
            spawn_local(async move {
                if let Ok(connection) = incoming.await {
                    spawn_local(return_datagrams(connection.clone()));
                    while let Ok((send, receive)) = connection.accept_bi().await {
                        spawn_local(return_stream(send, receive));
                    }
                }
            });
        }
        Ok(())
    }
}

/// Shows that the program runs.
async fn accept_and_close(listener: TcpListener) {
    while listener.accept().await.is_ok() {}
}

async fn return_bytes(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        match stream.read(&mut piece).await? {
            0 => return stream.shutdown().await,
            length => {
                stream.write_all(&piece[..length]).await?;
                stream.flush().await?;
            }
        }
    }
}

async fn return_datagrams(connection: quinn::Connection) {
    while let Ok(datagram) = connection.read_datagram().await {
        if connection.send_datagram(datagram).is_err() {
            return;
        }
    }
}

async fn return_stream(
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
) -> Result<(), Problem> {
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        send.write_chunk(chunk.bytes).await?;
    }
    Ok(send.finish()?)
}

struct Load {
    protocol: Protocol,
    address: SocketAddr,
    connections: usize,
    length: Duration,
    /// Of a payload.
    bytes: usize,
    /// Of a QUIC connection, at a time.
    streams: usize,
    /// Of a QUIC connection, for each exchange of its first stream.
    datagrams: usize,
    /// Exchanges of each stream until the QUIC connection is closed and another one begins.
    rounds: u64,
}

#[derive(Default)]
struct Tally {
    ok: u64,
    failed: u64,
    datagrams: u64,
    lost: u64,
    first_failure: Option<String>,
    latency: Histogram,
}

impl Tally {
    fn fail(&mut self, problem: &dyn std::fmt::Display) {
        self.failed += 1;
        self.first_failure
            .get_or_insert_with(|| problem.to_string());
    }
}

/// What the workers of a load share.
struct Shared {
    load: Load,
    payload: Vec<u8>,
    end: Instant,
    tally: RefCell<Tally>,
}

impl Load {
    fn new(url: &str, connections: &str, seconds: &str, options: &[&str]) -> Result<Self, Problem> {
        let (_, rest) = url.split_once("://").ok_or(USAGE)?;
        let (address, protocol) = rest.split_once('/').ok_or(USAGE)?;
        let mut load = Self {
            protocol: Protocol::named(protocol)?,
            address: address.parse()?,
            connections: connections.parse()?,
            length: Duration::from_secs_f64(seconds.parse()?),
            bytes: 64,
            streams: 1,
            datagrams: 0,
            rounds: u64::MAX,
        };
        for option in options.chunks(2) {
            match *option {
                ["--bytes", value] => load.bytes = value.parse()?,
                ["--streams", value] => load.streams = value.parse()?,
                ["--datagrams", value] => load.datagrams = value.parse()?,
                ["--rounds", value] => load.rounds = value.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(load)
    }

    /// Runs to its end and returns the JSON document.
    async fn run(self) -> String {
        let begun = SystemClock.now();
        let shared = Rc::new(Shared {
            // A prime number of bytes over and over, so that a shift is noticed.
            payload: (0..=250).cycle().take(self.bytes).collect(),
            end: begun + self.length,
            tally: RefCell::default(),
            load: self,
        });
        let mut workers = JoinSet::new();
        for _ in 0..shared.load.connections {
            workers.spawn_local(Rc::clone(&shared).work());
        }
        while workers.join_next().await.is_some() {}
        let seconds = SystemClock.now().duration_since(begun).as_secs_f64();
        shared.json(seconds)
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        SystemClock.now() >= self.end
    }

    /// One connection after the other, until the end.
    async fn work(self: Rc<Self>) {
        while !self.is_over() {
            let connection = async {
                match self.load.protocol {
                    Protocol::Tcp => self.stream(self.connect().await?).await,
                    Protocol::Tls => {
                        let connector = TlsConnector::from(tls(&[])?);
                        let stream = self.connect().await?;
                        let name = ServerName::try_from(NAME)?;
                        let stream = within(connector.connect(name, stream)).await??;
                        self.stream(stream).await
                    }
                    Protocol::Udp => self.datagrams().await,
                    Protocol::Quic => self.quic().await,
                }
            };
            if let Err(problem) = connection.await {
                self.tally.borrow_mut().fail(&problem);
                sleep(PAUSE).await;
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, Problem> {
        let stream = within(TcpStream::connect(self.load.address)).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn stream(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), Problem> {
        let mut echoed = vec![0; self.payload.len()];
        while !self.is_over() {
            let begun = SystemClock.now();
            stream.write_all(&self.payload).await?;
            stream.flush().await?;
            within(stream.read_exact(&mut echoed)).await??;
            self.judge(begun, &echoed)?;
        }
        Ok(())
    }

    async fn datagrams(&self) -> Result<(), Problem> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect(self.load.address).await?;
        let mut echoed = vec![0; 65_536];
        while !self.is_over() {
            let begun = SystemClock.now();
            socket.send(&self.payload).await?;
            let length = within(socket.recv(&mut echoed)).await??;
            self.judge(begun, &echoed[..length])?;
        }
        Ok(())
    }

    async fn quic(self: &Rc<Self>) -> Result<(), Problem> {
        // A socket of its own, as of another client.
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let crypto = QuicClientConfig::try_from((*tls(&[ALPN])?).clone())?;
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
        let connecting = endpoint.connect(self.load.address, NAME)?;
        let connection = within(connecting).await??;
        let mut streams = JoinSet::new();
        for number in 0..self.load.streams {
            let (shared, connection) = (Rc::clone(self), connection.clone());
            let with_datagrams = number == 0 && self.load.datagrams > 0;
            streams.spawn_local(async move {
                let mut rounds = 0;
                while rounds < shared.load.rounds && !shared.is_over() {
                    rounds += 1;
                    shared.quic_stream(&connection).await?;
                    if with_datagrams {
                        shared.quic_datagrams(&connection).await?;
                    }
                }
                Ok(())
            });
        }
        let mut outcome = Ok(());
        while let Some(ended) = streams.join_next().await {
            outcome = outcome.and(ended?);
        }
        connection.close(0_u32.into(), b"");
        // The close is on its way, and the socket can go.
        within(endpoint.wait_idle()).await?;
        outcome
    }

    async fn quic_stream(&self, connection: &quinn::Connection) -> Result<(), Problem> {
        let begun = SystemClock.now();
        let (mut send, mut receive) = within(connection.open_bi()).await??;
        let sending = async {
            send.write_all(&self.payload).await?;
            Ok::<_, Problem>(send.finish()?)
        };
        let receiving = receive.read_to_end(self.payload.len() + 1);
        let (written, echoed) = within(async { tokio::join!(sending, receiving) }).await?;
        written?;
        self.judge(begun, &echoed?)
    }

    /// A batch of datagrams; those that do not return are lost, as they may be, and one that returns otherwise is a failure.
    async fn quic_datagrams(&self, connection: &quinn::Connection) -> Result<(), Problem> {
        let most = connection.max_datagram_size().unwrap_or(0);
        // Not as long as may be: the gateway may have a shorter way to the server.
        let datagram = &self.payload[..self.payload.len().min(most).min(1000)];
        for _ in 0..self.load.datagrams {
            connection.send_datagram(datagram.to_vec().into())?;
        }
        for returned in 0..self.load.datagrams {
            match within(connection.read_datagram()).await {
                Ok(echoed) if echoed.as_deref() == Ok(datagram) => {
                    self.tally.borrow_mut().datagrams += 1;
                }
                Ok(Ok(_)) => return Err("another datagram came back".into()),
                Ok(Err(problem)) => return Err(problem.into()),
                Err(_) => {
                    self.tally.borrow_mut().lost += (self.load.datagrams - returned) as u64;
                    break;
                }
            }
        }
        Ok(())
    }

    fn judge(&self, begun: Instant, echoed: &[u8]) -> Result<(), Problem> {
        if echoed != self.payload {
            return Err("something else came back".into());
        }
        let mut tally = self.tally.borrow_mut();
        tally.ok += 1;
        tally
            .latency
            .record(SystemClock.now().duration_since(begun));
        Ok(())
    }

    fn json(&self, seconds: f64) -> String {
        let tally = self.tally.borrow();
        let latency = |fraction| {
            let value = tally.latency.quantile(fraction);
            value.map_or_else(|| "null".to_owned(), micros)
        };
        let mean = tally.latency.mean();
        format!(
            "{{\"schema\": \"plimsoll.load.summary/1\", \"counts\": {{\"ok\": {ok}, \"failed\": {failed}, \"errors\": {failed}}}, \
             \"datagrams\": {{\"returned\": {datagrams}, \"lost\": {lost}}}, \"first_failure\": \"{first}\", \
             \"requests_per_second\": {rate:.1}, \"latency\": {{\"from_started\": {{\"mean_us\": {mean}, \"p50_us\": {p50}, \
             \"p90_us\": {p90}, \"p95_us\": {p95}, \"p99_us\": {p99}, \"p99_9_us\": {p99_9}}}}}}}",
            ok = tally.ok,
            failed = tally.failed,
            datagrams = tally.datagrams,
            lost = tally.lost,
            first = tally
                .first_failure
                .as_deref()
                .unwrap_or_default()
                .escape_default(),
            rate = tally.ok as f64 / seconds,
            mean = mean.map_or_else(|| "null".to_owned(), micros),
            p50 = latency(0.5),
            p90 = latency(0.9),
            p95 = latency(0.95),
            p99 = latency(0.99),
            p99_9 = latency(0.999),
        )
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// Any certificate will do: what is measured are the bytes.
fn tls(alpn: &[&[u8]]) -> Result<Arc<rustls::ClientConfig>, Problem> {
    let settings = TlsSettings {
        trust: Trust::Anyone,
        alpn: alpn.iter().map(|name| name.to_vec()).collect(),
        ..TlsSettings::default()
    };
    Ok(settings.compile()?)
}

async fn within<T>(future: impl Future<Output = T>) -> Result<T, Problem> {
    timeout(PATIENCE, future)
        .await
        .map_err(|_| Problem::from("no echo within two seconds"))
}
