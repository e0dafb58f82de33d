//! The state of a virtual user beside its VM.

mod awaited;

pub(crate) mod drive;

pub(crate) mod secrets;

pub(crate) mod files;

mod request_rate;

mod run_state;

mod samples;

mod shared_arrays;

mod system_tags;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_client::forward::{Pool, Speaks};
use plimsoll_load::scenario::{ExchangeRecorder, Sinks, UserId};
use plimsoll_model::{Clock as _, masked_urls};
use plimsoll_script::{Host, Level};
use plimsoll_wire::SystemClock;

pub(crate) use self::awaited::AwaitedResponse;
pub(crate) use self::files::Files;
pub(crate) use self::request_rate::RequestRate;
pub(crate) use self::run_state::{RunState, Verdict};
pub(crate) use self::samples::Hop;
pub(crate) use self::shared_arrays::SharedArrays;
pub(crate) use self::system_tags::SystemTags;
use crate::line_source::LineSource;
use crate::metrics::checks::{KnownChecks, SEPARATOR};
use crate::options::duration::millis;
use crate::protocol::event_stream::{EventStreams, OpenedStream, StreamEvent};
use crate::protocol::grpc::{
    Grpc, GrpcClient, GrpcError, GrpcEvent, GrpcRequest, GrpcResponse, GrpcTarget,
};
use crate::protocol::http::{Connections, HttpRequest, HttpResponse, Jars, KnownTargets};
use crate::protocol::pools::SecuredCalls;
use crate::protocol::socket::{Opened, SharedDeflater, SocketEvent, SocketRequest, Sockets};

/// Receives lines of the script and messages.
pub(crate) type Log = Arc<dyn Fn(Level, &str, LineSource) + Send + Sync>;

/// A blocking call of a script.
pub(crate) enum Call {
    Sleep(Duration),
    Request(Box<HttpRequest>),
    Batch(Vec<HttpRequest>),
    OpenSocket(Box<SocketRequest>),
    /// The next event on a WebSocket, until then.
    NextEvent(u32, Option<Instant>),
    /// A stream of server-sent events.
    OpenStream(Box<HttpRequest>),
    /// The next event of a stream, or its end.
    NextStreamEvent(u32),
    GrpcConnect(Rc<GrpcClient>, Box<GrpcTarget>),
    GrpcInvoke(Rc<GrpcClient>, Box<GrpcRequest>),
    /// The next event on a stream of gRPC.
    GrpcNext(u32),
}

/// The reply to a [`Call`].
#[derive(Debug)]
pub(crate) enum Reply {
    Slept,
    Response(Box<HttpResponse>),
    Responses(Vec<HttpResponse>),
    SocketOpened(Opened),
    SocketEvent(SocketEvent),
    StreamOpened(OpenedStream),
    StreamEvent(StreamEvent),
    GrpcConnected(Result<(), GrpcError>),
    GrpcResponse(Result<Box<GrpcResponse>, GrpcError>),
    GrpcEvent(GrpcEvent),
}

impl Host for UserState {
    type Call = Call;
    type Reply = Reply;
}

/// State that the virtual users of a worker share.
#[derive(Debug, Clone)]
pub(crate) struct WorkerShare {
    pub(crate) sinks: Rc<RefCell<Sinks>>,
    /// The recorder of exchanges, if they are recorded.
    pub(crate) exchanges: Option<Rc<ExchangeRecorder>>,
    pub(crate) checks: Rc<RefCell<KnownChecks>>,
    pub(crate) pool: Pool,
    /// The version of HTTP of `pool`.
    pub(crate) speaks: Speaks,
    /// Over HTTP/1 only.
    pub(crate) sockets: Pool,
    /// Compresses messages of WebSockets.
    pub(crate) deflater: SharedDeflater,
    /// Over HTTP/2 only, for gRPC.
    pub(crate) calls: Pool,
    /// The same, with certificates of the script.
    pub(crate) secured: Arc<SecuredCalls>,
}

/// The stage of a virtual user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Init,
    Setup,
    Iteration,
    Teardown,
    Summary,
}

/// A virtual user.
pub(crate) struct UserState {
    pub(crate) shared: Arc<RunState>,
    pub(crate) worker: WorkerShare,
    pub(crate) stage: Cell<Stage>,
    /// Absent for those of setup, teardown and the summary.
    pub(crate) id: Option<UserId>,
    /// Within the run: 0 for those without an id.
    pub(crate) number: u64,
    /// Of the scenario's iterations, and of its own.
    pub(crate) iteration: Cell<(u64, u64)>,
    pub(crate) connections: Connections,
    pub(crate) targets: KnownTargets,
    pub(crate) jars: RefCell<Jars>,
    pub(crate) sockets: Sockets,
    pub(crate) event_streams: EventStreams,
    pub(crate) grpc: Grpc,
    pub(crate) random: RefCell<fastrand::Rng>,
    /// Those of the run, the scenario and the script.
    tags: RefCell<Vec<(String, String)>>,
    /// Those that the script has set.
    metadata: RefCell<Vec<(String, String)>>,
    group: RefCell<String>,
    /// When the groups that it is in began, the outermost first; `group` has their names.
    open_groups: RefCell<Vec<Instant>>,
    /// Between the intended and the actual start of the iteration.
    pub(crate) lateness: Cell<Duration>,
    sent: Cell<u64>,
    received: Cell<u64>,
    /// True if its script has ended the run, by which its iteration is complete.
    pub(crate) has_aborted: Cell<bool>,
}

impl UserState {
    pub(crate) fn new(
        shared: &Arc<RunState>,
        worker: &WorkerShare,
        id: Option<UserId>,
        stage: Stage,
    ) -> Rc<Self> {
        let mut tags = shared.options.tags.clone();
        if let Some(id) = id {
            let scenario = &shared.options.scenarios[id.scenario];
            if shared.system_tags.scenario {
                tags.push(("scenario".to_owned(), scenario.name.clone()));
            }
            tags.extend(scenario.tags.iter().cloned());
        }
        let group = match stage {
            Stage::Setup => "::setup",
            Stage::Teardown => "::teardown",
            _ => "",
        };
        Rc::new(Self {
            shared: Arc::clone(shared),
            worker: worker.clone(),
            stage: Cell::new(Stage::Init),
            id,
            number: id.map_or(0, |id| id.in_test),
            iteration: Cell::new((0, 0)),
            connections: Connections::new(&worker.pool, worker.speaks),
            targets: KnownTargets::default(),
            jars: RefCell::default(),
            sockets: Sockets::default(),
            event_streams: EventStreams::default(),
            grpc: Grpc::default(),
            random: RefCell::new(fastrand::Rng::new()),
            tags: RefCell::new(tags),
            metadata: RefCell::default(),
            group: RefCell::new(group.to_owned()),
            open_groups: RefCell::default(),
            lateness: Cell::default(),
            sent: Cell::new(0),
            received: Cell::new(0),
            has_aborted: Cell::new(false),
        })
    }

    /// The tags that every sample gets, with the group.
    pub(crate) fn tags(&self) -> Vec<(String, String)> {
        let mut tags = self.tags.borrow().clone();
        if self.shared.system_tags.group {
            tags.push(("group".to_owned(), self.group.borrow().clone()));
        }
        tags
    }

    pub(crate) fn tag(&self, name: &str) -> Option<String> {
        let tags = self.tags.borrow();
        let found = tags.iter().rev().find(|(other, _)| other == name);
        let of_group = || {
            let is_group = name == "group" && self.shared.system_tags.group;
            is_group.then(|| self.group.borrow().clone())
        };
        found.map(|(_, value)| value.clone()).or_else(of_group)
    }

    pub(crate) fn tag_names(&self) -> Vec<String> {
        let tags = self.tags.borrow();
        let mut names: Vec<_> = tags.iter().map(|(name, _)| name.clone()).collect();
        if self.shared.system_tags.group && !names.iter().any(|name| name == "group") {
            names.push("group".to_owned());
        }
        names
    }

    pub(crate) fn set_tag(&self, name: &str, value: Option<String>) {
        let mut tags = self.tags.borrow_mut();
        tags.retain(|(other, _)| other != name);
        if let Some(value) = value {
            tags.push((name.to_owned(), value));
        }
    }

    pub(crate) fn metadata(&self, name: &str) -> Option<String> {
        let metadata = self.metadata.borrow();
        let mut found = metadata.iter().filter(|(other, _)| other == name);
        found.next().map(|(_, value)| value.clone())
    }

    pub(crate) fn metadata_names(&self) -> Vec<String> {
        let metadata = self.metadata.borrow();
        metadata.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn set_metadata(&self, name: &str, value: Option<String>) {
        let mut metadata = self.metadata.borrow_mut();
        metadata.retain(|(other, _)| other != name);
        if let Some(value) = value {
            metadata.push((name.to_owned(), value));
        }
    }

    /// Since the start of the run.
    pub(crate) fn at(&self) -> Duration {
        self.shared.progress.elapsed(SystemClock.now())
    }

    pub(crate) fn enter_group(&self, name: &str) {
        let mut group = self.group.borrow_mut();
        group.push_str(SEPARATOR);
        group.push_str(name);
        self.open_groups.borrow_mut().push(SystemClock.now());
        self.worker.checks.borrow_mut().enter(&group);
    }

    /// Measures the innermost group and leaves it; returns false if there is none.
    pub(crate) fn leave_group(&self) -> bool {
        let Some(began) = self.open_groups.borrow_mut().pop() else {
            return false;
        };
        let took = SystemClock.now().saturating_duration_since(began);
        self.add(self.shared.built_in.group_duration, millis(took), &[]);
        let mut group = self.group.borrow_mut();
        let end = group.rfind(SEPARATOR).unwrap_or_default();
        group.truncate(end);
        true
    }

    /// Discards the state of the last iteration.
    pub(crate) fn begin_iteration(&self, in_scenario: u64, own: u64) {
        self.iteration.set((in_scenario, own));
        self.group.borrow_mut().clear();
        self.open_groups.borrow_mut().clear();
        self.sockets.clear();
        self.event_streams.clear();
        self.grpc.clear_streams();
        if self.shared.options.resets_cookies {
            self.jars.borrow_mut().reset();
        }
        if !self.shared.options.reuses_connections_of_user && own > 0 {
            self.connections.close();
        }
    }

    /// Reports a request that failed.
    pub(crate) fn request_failed(&self, response: &HttpResponse) {
        if response.request.throws {
            return;
        }
        let text = format!(
            "Request Failed: {} \"{}\": {}",
            response.request.method,
            response.address.masked(),
            response.error
        );
        self.warn(&masked_urls(&text));
    }

    pub(crate) fn warn(&self, text: &str) {
        (self.shared.log)(Level::Warning, text, LineSource::Run);
    }

    pub(crate) fn verdict(&self, change: impl FnOnce(&mut Verdict)) {
        let verdict = self.shared.verdict.lock();
        change(&mut verdict.unwrap_or_else(PoisonError::into_inner));
    }
}
