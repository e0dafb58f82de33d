//! Requests to an agent, one after the other over one connection, on a thread of their own: connections stay on the thread
//! that they were opened on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_client::fetch::{FetchError, FetchLimits, Fetched, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::TlsSettings;
use serde_json::Value;
use url::Url;

use crate::document::{AgentDocument, FiguresDocument, SampleDocument};
use crate::remote::{RemoteError, RemotePlan};
use crate::target_name::TargetName;

/// An agent on a network answers within milliseconds; one that does not for that long leaves a gap.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(1),
    bytes: 1 << 20,
    redirects: 0,
};

/// What an agent answered, and when.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) sent: Instant,
    pub(super) received: Instant,
    /// The time of day here at `received`.
    pub(super) wall: SystemTime,
    pub(super) agent: AgentDocument,
    pub(super) figures: Option<FiguresDocument>,
    /// Why there are no figures.
    pub(super) problem: Option<String>,
}

type Reply = SyncSender<Result<Answered, RemoteError>>;

/// The thread of a connection, which ends with this.
#[derive(Debug)]
pub(super) struct Connection {
    requests: SyncSender<Reply>,
    agent: String,
}

impl Connection {
    pub(super) fn open(plan: &RemotePlan) -> Result<Self, RemoteError> {
        let agent = plan.agent().to_owned();
        let unprepared = |reason: String| RemoteError::Unprepared {
            agent: agent.clone(),
            reason,
        };
        let tls = TlsSettings {
            trust: plan.trust.clone(),
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let is_tls = plan.url.sample().scheme() == "https";
        let tls = is_tls.then(|| tls.compile()).transpose();
        let connect = ConnectPlan::new(ConnectOptions {
            tls: tls.map_err(|error| unprepared(error.to_string()))?,
            timeout: Some(LIMITS.timeout),
            ..ConnectOptions::default()
        });
        let connect = connect.map_err(|error| unprepared(error.to_string()))?;
        let mut fields = vec![("accept".to_owned(), "application/json".to_owned())];
        fields.extend(plan.token.as_ref().map(|token| {
            let value = format!("Bearer {}", token.expose());
            ("authorization".to_owned(), value)
        }));
        let requester = Requester {
            url: plan.url.sample().clone(),
            agent: agent.clone(),
            target: plan.target().clone(),
            fields,
        };
        let (requests, inbox) = sync_channel(1);
        thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || requester.serve(&connect.into(), &inbox))
            .map_err(|error| unprepared(error.to_string()))?;
        Ok(Self { requests, agent })
    }

    /// One sample; waits for it.
    pub(super) fn sample(&self) -> Result<Answered, RemoteError> {
        let (reply, answer) = sync_channel(1);
        let ended = || RemoteError::Unprepared {
            agent: self.agent.clone(),
            reason: "the thread of its connection has ended".to_owned(),
        };
        self.requests.send(reply).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())?
    }
}

/// What each request is made of.
#[derive(Debug)]
struct Requester {
    url: Url,
    agent: String,
    target: TargetName,
    fields: Vec<(String, String)>,
}

impl Requester {
    fn serve(&self, plan: &Arc<ConnectPlan>, inbox: &Receiver<Reply>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime the channel closes, which is reported there.
        let Ok(runtime) = runtime else { return };
        let client = Fetcher::over(Connector::new(Arc::clone(plan)), LIMITS);
        while let Ok(reply) = inbox.recv() {
            let answered = runtime.block_on(self.sample(&client));
            // The requester may have gone away.
            reply.send(answered).ok();
        }
    }

    async fn sample(&self, client: &Fetcher) -> Result<Answered, RemoteError> {
        let sent = SystemClock.now();
        let fetched = client
            .send("GET", &self.url, self.fields.clone(), None)
            .await;
        let received = SystemClock.now();
        let wall = SystemClock.wall();
        let agent = self.agent.clone();
        let fetched = fetched.map_err(|error| match error {
            FetchError::TooLong(_) | FetchError::Decode(_) => RemoteError::NoAgent {
                agent: agent.clone(),
                reason: error.to_string(),
            },
            error => RemoteError::Unreachable {
                agent: agent.clone(),
                reason: error.to_string(),
            },
        })?;
        match fetched.status {
            200 => {}
            401 => return Err(RemoteError::Token { agent }),
            403 => {
                let target = self.target.clone();
                return Err(RemoteError::NotAllowed { agent, target });
            }
            404 => return Err(missing(agent, &fetched)),
            429 => return Err(RemoteError::TooMany { agent }),
            status => {
                let reason = format!("it answers with status {status}");
                return Err(RemoteError::NoAgent { agent, reason });
            }
        }
        let document: SampleDocument =
            serde_json::from_slice(&fetched.content).map_err(|error| RemoteError::NoAgent {
                agent: agent.clone(),
                reason: error.to_string(),
            })?;
        let [target] = document.targets.as_slice() else {
            let reason = "it answers with another number of targets".to_owned();
            return Err(RemoteError::NoAgent { agent, reason });
        };
        Ok(Answered {
            sent,
            received,
            wall,
            figures: target.figures,
            problem: target.problem.clone(),
            agent: document.agent,
        })
    }
}

/// A target that is not there, or a path that no agent has.
fn missing(agent: String, fetched: &Fetched) -> RemoteError {
    let content: Option<Value> = serde_json::from_slice(&fetched.content).ok();
    let detail = content.as_ref().and_then(|it| it["detail"].as_str());
    match detail {
        Some(detail) => RemoteError::Missing {
            agent,
            reason: detail.to_owned(),
        },
        None => RemoteError::NoAgent {
            agent,
            reason: "it answers with status 404".to_owned(),
        },
    }
}
