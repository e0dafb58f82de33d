//! Tunnels that clients open by CONNECT (RFC 9110, section 9.3.6), to targets that are named in the configuration.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ALLOW;
use http::header::HeaderValue;
use plimsoll_client::{ConnectPlan, Connector, Endpoint, Stream as ServerStream};
use plimsoll_model::FailureKind;
use plimsoll_server::{Action, Answer, Outcome, Request, Response, TakeOver, WorkerContext};
use plimsoll_wire::SystemClock;
use tokio::net::TcpStream;

use super::figures::{End, ListenerFigures, WorkerFigures};
use super::relay::{Relay, RelayMemory, Side};

/// The tunnels of a route, as configured.
#[derive(Debug)]
pub(crate) struct TunnelsPlan {
    /// Permitted targets of tunnels.
    pub(crate) targets: Vec<TunnelTarget>,
    pub(crate) connect: Arc<ConnectPlan>,
    /// How long nothing may pass.
    pub(crate) idle_timeout: Duration,
    pub(crate) figures: Arc<ListenerFigures>,
}

/// `HOST:PORT` of one server, or `*.HOST:PORT` of all below a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TunnelTarget {
    /// In lower case; with the dot in front if it is the end of names.
    host: String,
    port: u16,
}

/// Not `HOST:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not HOST:PORT, such as db.internal:5432 or *.example.com:443")]
pub(crate) struct InvalidTarget;

impl FromStr for TunnelTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidTarget)?;
        let name = host.strip_prefix("*.").unwrap_or(host);
        // To a URL an asterisk is a character like others.
        if name.contains('*') || url::Host::parse(name).is_err() {
            return Err(InvalidTarget);
        }
        Ok(Self {
            host: host.strip_prefix('*').unwrap_or(host).to_ascii_lowercase(),
            port: port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or(InvalidTarget)?,
        })
    }
}

impl TunnelTarget {
    fn permits(&self, host: &str, port: u16) -> bool {
        if port != self.port {
            return false;
        }
        let host = host.to_ascii_lowercase();
        if self.host.starts_with('.') {
            host.len() > self.host.len() && host.ends_with(&self.host)
        } else {
            host == self.host
        }
    }
}

/// Opens the tunnels of a route on one worker.
pub(crate) struct Tunnels(Rc<Shared>);

struct Shared {
    plan: Arc<TunnelsPlan>,
    connector: Connector,
    figures: Arc<WorkerFigures>,
    memory: Rc<RefCell<RelayMemory>>,
}

impl Tunnels {
    pub(crate) fn new(plan: &Arc<TunnelsPlan>, context: &WorkerContext) -> Self {
        Self(Rc::new(Shared {
            connector: Connector::new(Arc::clone(&plan.connect)),
            figures: plan.figures.worker(),
            memory: context.state("layer4", RelayMemory::new),
            plan: Arc::clone(plan),
        }))
    }
}

impl fmt::Debug for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnels").finish_non_exhaustive()
    }
}

impl Action for Tunnels {
    fn handle(&self, request: &Request<'_>) -> Answer {
        // An extended CONNECT opens another protocol (RFC 8441).
        if request.method != "CONNECT" || request.upgrade.is_some() {
            let text = "this route opens tunnels by CONNECT\n";
            let response = Response::text(StatusCode::METHOD_NOT_ALLOWED, text);
            return Answer::now(response.with_field(ALLOW, HeaderValue::from_static("CONNECT")));
        }
        let target = request.authority.rsplit_once(':');
        let target = target.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let endpoint = target.and_then(|(host, port)| {
            let mut targets = self.0.plan.targets.iter();
            targets.find(|it| it.permits(host, port))?;
            Endpoint::parse(&format!("http://{host}:{port}")).ok()
        });
        let Some(endpoint) = endpoint else {
            let text = "no tunnel may lead there\n";
            return Answer::now(Response::text(StatusCode::FORBIDDEN, text));
        };
        let shared = Rc::clone(&self.0);
        Answer::Later(Box::pin(async move { open(shared, endpoint).await }))
    }
}

/// Connects, and has the tunnel begin.
async fn open(shared: Rc<Shared>, endpoint: Endpoint) -> Outcome {
    let tunnel = Counted::begin(&shared.figures);
    let failed = |mut tunnel: Counted, status, text| {
        tunnel.end = End::ConnectFailed;
        Outcome::Respond(Response::text(status, text))
    };
    match shared.connector.connect(&endpoint, &SystemClock).await {
        Ok(connection) => match connection.stream {
            ServerStream::Tcp(stream) => {
                stream.set_nodelay(true).ok();
                let response = Response::new(StatusCode::OK);
                Outcome::Upgrade(response, take_over(shared, stream, tunnel))
            }
            _ => failed(
                tunnel,
                StatusCode::BAD_GATEWAY,
                "the target cannot be reached\n",
            ),
        },
        Err(error) if error.failure.kind == FailureKind::Timeout => failed(
            tunnel,
            StatusCode::GATEWAY_TIMEOUT,
            "the target did not accept a connection in time\n",
        ),
        Err(_) => failed(
            tunnel,
            StatusCode::BAD_GATEWAY,
            "the target cannot be reached\n",
        ),
    }
}

fn take_over(shared: Rc<Shared>, server: TcpStream, tunnel: Counted) -> TakeOver {
    Box::new(move |client, _drain| {
        Box::pin(async move {
            // All of it, so that the tunnel is not counted as ended before this task is.
            let mut tunnel = tunnel;
            let (client, first) = match client.into_tcp() {
                Ok((stream, first)) => (Side::Tcp(stream), first),
                Err(stream) => (Side::Client(Box::new(stream)), Vec::new()),
            };
            shared.figures.count_bytes(first.len() as u64, 0);
            let memory = Rc::clone(&shared.memory);
            let mut relay = Relay::new(client, Side::Tcp(server), first, memory);
            let end = relay.run(shared.plan.idle_timeout, &shared.figures).await;
            tunnel.end = end.into();
        })
    })
}

/// A tunnel from its request to its end, which is counted when this is dropped.
struct Counted {
    figures: Arc<WorkerFigures>,
    end: End,
}

impl Counted {
    fn begin(figures: &Arc<WorkerFigures>) -> Self {
        figures.count_opened();
        Self {
            figures: Arc::clone(figures),
            end: End::Cut,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.figures.count_end(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_ports() {
        let target = |text: &str| text.parse::<TunnelTarget>().unwrap();
        assert!(target("DB.internal:5432").permits("db.INTERNAL", 5432));
        assert!(!target("db.internal:5432").permits("db.internal", 5433));
        assert!(!target("db.internal:5432").permits("a.db.internal", 5432));
        assert!(target("*.example.com:443").permits("a.b.example.com", 443));
        assert!(!target("*.example.com:443").permits("example.com", 443));
        assert!(!target("*.example.com:443").permits("badexample.com", 443));
        assert!(target("[::1]:443").permits("[::1]", 443));
        for wrong in [
            "db.internal",
            "db.internal:0",
            "*:443",
            ":443",
            "a b:443",
            "a:99999",
            "*.*.a:1",
        ] {
            assert_eq!(wrong.parse::<TunnelTarget>(), Err(InvalidTarget), "{wrong}");
        }
    }
}
