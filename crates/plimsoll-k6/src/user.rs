//! The state of a virtual user beside its VM.

pub(crate) mod drive;

pub(crate) mod secrets;

use std::borrow::Cow;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_client::forward::{Pool, Speaks};
use plimsoll_formats::grpc::Descriptors;
use plimsoll_load::scenario::{
    Abort, Claims, ExchangeRecorder, MetricId, Registry, Sinks, Tag, TestProgress, UserId,
};
use plimsoll_model::{Clock as _, masked_urls};
use plimsoll_script::{Host, Level};
use plimsoll_wire::SystemClock;

use crate::metrics::BuiltIn;
use crate::metrics::checks::{Checks, KnownChecks, SEPARATOR};
use crate::options::Options;
use crate::options::duration::millis;
use crate::protocol::event_stream::{EventStreams, OpenedStream, StreamEvent};
use crate::protocol::grpc::{Grpc, GrpcClient, GrpcEvent, GrpcRequest, GrpcResponse, GrpcTarget};
use crate::protocol::http::{Connections, HttpRequest, HttpResponse, Jars, Timings};
use crate::protocol::socket::{Opened, SharedDeflater, SocketEvent, SocketRequest, Sockets};
use crate::run::SecuredCalls;
use crate::source::archive::relative;
use crate::source::required::RequiredModules;
use crate::source::root::FileRoot;
use crate::user::secrets::Secrets;

/// Receives lines of the script and messages.
pub(crate) type Log = Arc<dyn Fn(Level, &str, &str) + Send + Sync>;

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
    GrpcConnected(Result<(), String>),
    GrpcResponse(Result<Box<GrpcResponse>, String>),
    GrpcEvent(GrpcEvent),
}

impl Host for UserState {
    type Call = Call;
    type Reply = Reply;
}

/// State that all virtual users of a run share.
pub(crate) struct RunState {
    pub(crate) options: Options,
    pub(crate) registry: Registry,
    pub(crate) built_in: BuiltIn,
    pub(crate) system_tags: SystemTags,
    pub(crate) checks: Checks,
    pub(crate) shared_arrays: Arc<SharedArrays>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) files: Arc<Files>,
    /// The name of the first module.
    pub(crate) script: String,
    pub(crate) required: Arc<RequiredModules>,
    pub(crate) log: Log,
    pub(crate) secrets: Secrets,
    pub(crate) abort: Arc<Abort>,
    pub(crate) progress: Arc<TestProgress>,
    /// In the order of the options.
    pub(crate) claims: Vec<Arc<Claims>>,
    /// Why the script ended the run, or marked it as failed.
    pub(crate) verdict: Mutex<Verdict>,
    pub(crate) start: Instant,
    pub(crate) request_rate: RequestRate,
}

/// Lets requests of all virtual users start at most so often.
#[derive(Debug)]
pub(crate) struct RequestRate {
    /// Between two requests; zero for no limit.
    interval: Duration,
    since: Instant,
    /// When the next request may start: nanoseconds behind `since`.
    next: AtomicU64,
}

impl RequestRate {
    /// - `per_second`: 0 for no limit.
    pub(crate) fn new(per_second: u32, since: Instant) -> Self {
        let interval = match per_second {
            0 => Duration::ZERO,
            rate => Duration::from_secs(1) / rate,
        };
        Self {
            interval,
            since,
            next: AtomicU64::new(0),
        }
    }

    /// When a request that wants to start now may; `None` for at once. Its turn is taken.
    pub(crate) fn turn(&self, now: Instant) -> Option<Instant> {
        if self.interval.is_zero() {
            return None;
        }
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let passed = nanos(now.saturating_duration_since(self.since));
        let interval = nanos(self.interval);
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(next.max(passed).saturating_add(interval))
            });
        let turn = taken.unwrap_or(passed).max(passed);
        (turn > passed).then(|| self.since + Duration::from_nanos(turn))
    }
}

/// A script's verdict on its run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    pub(crate) aborted: Option<String>,
    pub(crate) failed: Option<String>,
    /// A promise was rejected while a virtual user was initialised.
    pub(crate) is_rejected: bool,
    /// The system has no memory for another stack.
    pub(crate) exhausted: Option<String>,
}

/// Arrays that all virtual users share, each element as JSON.
#[derive(Debug, Default)]
pub(crate) struct SharedArrays(Mutex<Vec<(String, Arc<Vec<String>>)>>);

impl SharedArrays {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.iter().position(|(other, _)| other == name)
    }

    /// The first array of a name stays.
    pub(crate) fn add(&self, name: &str, elements: Vec<String>) -> usize {
        if let Some(index) = self.find(name) {
            return index;
        }
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.push((name.to_owned(), Arc::new(elements)));
        arrays.len() - 1
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<Vec<String>>> {
        let arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.get(index).map(|(_, elements)| Arc::clone(elements))
    }
}

/// Folders for imports, and files that are relative to them.
type ProtoFiles = (Vec<String>, Vec<String>);

/// Files that the script has opened, read once.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Paths are relative to it.
    pub(crate) directory: std::path::PathBuf,
    root: FileRoot,
    read: Mutex<HashMap<std::path::PathBuf, Arc<Vec<u8>>>>,
    /// Descriptors of gRPC by the folders and files that they were made of.
    described: Mutex<HashMap<ProtoFiles, Descriptors>>,
}

impl Files {
    pub(crate) fn new(directory: std::path::PathBuf, root: FileRoot) -> Self {
        Self {
            directory,
            root,
            read: Mutex::default(),
            described: Mutex::default(),
        }
    }

    /// The descriptors of these files, made once for all virtual users.
    pub(crate) fn described(
        &self,
        imports: &[String],
        files: &[String],
        compile: impl FnOnce() -> Result<Descriptors, String>,
    ) -> Result<Descriptors, String> {
        let key = (imports.to_vec(), files.to_vec());
        let mut described = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = described.get(&key) {
            return Ok(found.clone());
        }
        let made = compile()?;
        described.insert(key, made.clone());
        Ok(made)
    }

    /// A path of the script, absolute and without `..`, as k6 makes it: by its text alone.
    fn absolute(&self, folder: &str, name: &str) -> std::path::PathBuf {
        let folder = folder.strip_prefix("file://").unwrap_or(folder);
        let path = self.directory.join(folder).join(name);
        let normal = relative(&path.to_string_lossy());
        normal.map_or(path, |normal| std::path::Path::new("/").join(normal))
    }

    /// Where a `.proto` file of that name may be on this machine.
    ///
    /// - `imports`: folders; without any, it is that of the script.
    pub(crate) fn proto_places(&self, imports: &[String], name: &str) -> Vec<std::path::PathBuf> {
        let here = [String::new()];
        let imports = if imports.is_empty() {
            &here[..]
        } else {
            imports
        };
        let paths = imports.iter().map(|folder| self.absolute(folder, name));
        paths
            .filter_map(|path| self.root.place(&path).ok())
            .collect()
    }

    pub(crate) fn open(&self, path: &str) -> Result<Arc<Vec<u8>>, String> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let shown = self.absolute("", path);
        let path = self.root.place(&shown)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = read.get(&path) {
            return Ok(Arc::clone(bytes));
        }
        let shown = self.root.shown(&shown);
        if path.is_dir() {
            return Err(format!("open({}): it is a directory", shown.display()));
        }
        let bytes =
            std::fs::read(&path).map_err(|error| format!("open({}): {error}", shown.display()))?;
        let bytes = Arc::new(bytes);
        read.insert(path, Arc::clone(&bytes));
        Ok(bytes)
    }

    /// Contents of everything that was read so far, by absolute path: what `open()` had, and the `.proto` files of gRPC.
    pub(crate) fn contents(&self) -> BTreeMap<std::path::PathBuf, Arc<Vec<u8>>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: BTreeMap<_, _> = read
            .iter()
            .map(|(path, content)| (path.clone(), Arc::clone(content)))
            .collect();
        let described = self.described.lock();
        let described = described.unwrap_or_else(PoisonError::into_inner);
        for ((imports, _), descriptors) in described.iter() {
            for name in descriptors.file_names() {
                for path in self.proto_places(imports, &name) {
                    // Those of Google are part of every implementation; descriptor sets were opened.
                    if let Ok(content) = std::fs::read(&path) {
                        all.insert(path, Arc::new(content));
                    }
                }
            }
        }
        all
    }
}

/// Which tags samples get by themselves.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct SystemTags {
    pub(crate) proto: bool,
    pub(crate) status: bool,
    pub(crate) subproto: bool,
    pub(crate) method: bool,
    pub(crate) url: bool,
    pub(crate) ip: bool,
    /// Metadata instead of tags, as in k6.
    pub(crate) vu: bool,
    pub(crate) iter: bool,
    pub(crate) name: bool,
    pub(crate) group: bool,
    pub(crate) check: bool,
    pub(crate) error: bool,
    pub(crate) error_code: bool,
    pub(crate) tls_version: bool,
    pub(crate) scenario: bool,
    pub(crate) service: bool,
    pub(crate) expected_response: bool,
}

impl SystemTags {
    pub(crate) fn of(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|other| other == name);
        Self {
            proto: has("proto"),
            status: has("status"),
            subproto: has("subproto"),
            method: has("method"),
            url: has("url"),
            ip: has("ip"),
            vu: has("vu"),
            iter: has("iter"),
            name: has("name"),
            group: has("group"),
            check: has("check"),
            error: has("error"),
            error_code: has("error_code"),
            tls_version: has("tls_version"),
            scenario: has("scenario"),
            service: has("service"),
            expected_response: has("expected_response"),
        }
    }
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

/// One exchange, to be measured.
pub(crate) struct Hop<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) url: &'a str,
    pub(crate) method: &'a str,
    pub(crate) status: u16,
    pub(crate) timings: Timings,
    pub(crate) protocol: &'static str,
    pub(crate) tls_version: &'a str,
    pub(crate) peer: Option<std::net::IpAddr>,
    pub(crate) error: Option<&'a str>,
    pub(crate) error_code: u16,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// The challenge of an authentication, which is no failure.
    pub(crate) is_challenge: bool,
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

    /// The sinks of the worker, whose next samples get the metadata of this user.
    fn sinks(&self) -> RefMut<'_, Sinks> {
        let mut sinks = self.worker.sinks.borrow_mut();
        if sinks.keeps_points() {
            let on = self.shared.system_tags;
            let mut metadata = self.metadata.borrow().clone();
            if on.vu {
                metadata.push(("vu".to_owned(), self.number.to_string()));
            }
            if on.iter && self.id.is_some() {
                let (_, own) = self.iteration.get();
                metadata.push(("iter".to_owned(), own.to_string()));
            }
            metadata.sort();
            sinks.set_metadata((!metadata.is_empty()).then(|| metadata.into()));
        }
        sinks
    }

    /// Since the start of the run.
    pub(crate) fn at(&self) -> Duration {
        self.shared.progress.elapsed(SystemClock.now())
    }

    /// Adds a sample with the tags of the virtual user and these.
    pub(crate) fn add(&self, id: MetricId, value: f64, more: &[(String, String)]) {
        let tags = self.tags.borrow();
        let group = self.group.borrow();
        let mut all: Vec<Tag<'_>> = tags.iter().map(borrowed).collect();
        if self.shared.system_tags.group {
            all.push((Cow::Borrowed("group"), Cow::Borrowed(&group)));
        }
        all.extend(more.iter().map(borrowed));
        let mut sinks = self.sinks();
        sinks.add(id, value, &all, self.at());
    }

    /// Adds a sample with these tags only, among which those of the virtual user are.
    pub(crate) fn add_with(&self, id: MetricId, value: f64, tags: &[(String, String)]) {
        let tags: Vec<Tag<'_>> = tags.iter().map(borrowed).collect();
        let mut sinks = self.sinks();
        sinks.add(id, value, &tags, self.at());
    }

    pub(crate) fn count_check(&self, name: &str, is_passed: bool, tags: Vec<(String, String)>) {
        let group = self.group.borrow().clone();
        let mut checks = self.worker.checks.borrow_mut();
        checks.count(&group, name, is_passed);
        drop(checks);
        let mut tags = tags;
        if self.shared.system_tags.check {
            tags.push(("check".to_owned(), name.to_owned()));
        }
        let value = f64::from(u8::from(is_passed));
        self.add(self.shared.built_in.checks, value, &tags);
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

    /// Bytes for `data_sent` and `data_received` of the iteration.
    pub(crate) fn count_bytes(&self, sent: u64, received: u64) {
        self.sent.set(self.sent.get() + sent);
        self.received.set(self.received.get() + received);
    }

    /// Adds the samples of one exchange.
    pub(crate) fn measure_exchange(&self, hop: &Hop<'_>) {
        let on = self.shared.system_tags;
        let request = hop.request;
        let mut tags: Vec<Tag<'_>> = request.tags.iter().map(borrowed).collect();
        let mut tag = |is_on: bool, name, value| push_tag(&mut tags, is_on, name, value);
        let name = request.name();
        tag(on.method, "method", hop.method.into());
        tag(on.status, "status", hop.status.to_string().into());
        tag(on.url, "url", name.unwrap_or(hop.url).into());
        tag(on.name && name.is_none(), "name", hop.url.into());
        tag(on.proto, "proto", hop.protocol.into());
        tag(on.tls_version, "tls_version", hop.tls_version.into());
        if let Some(peer) = hop.peer {
            tag(on.ip, "ip", peer.to_string().into());
        }
        tag(on.error, "error", hop.error.unwrap_or_default().into());
        if hop.error_code != 0 {
            tag(
                on.error_code,
                "error_code",
                hop.error_code.to_string().into(),
            );
        }
        let is_expected = request.is_expected(hop.status);
        let is_expected = is_expected.map(|is| (is && hop.error.is_none()) || hop.is_challenge);
        if let Some(is_expected) = is_expected {
            tag(
                on.expected_response,
                "expected_response",
                is_expected.to_string().into(),
            );
        }
        let metrics = &self.shared.built_in;
        let timings = hop.timings;
        let at = self.at();
        let mut sinks = self.sinks();
        let mut add = |id, value| sinks.add(id, value, &tags, at);
        add(metrics.http_reqs, 1.0);
        if let Some(is_expected) = is_expected {
            add(metrics.http_req_failed, f64::from(u8::from(!is_expected)));
        }
        for (id, duration) in [
            (metrics.http_req_duration, timings.duration()),
            (metrics.http_req_blocked, timings.blocked),
            (metrics.http_req_connecting, timings.connecting),
            (metrics.http_req_tls_handshaking, timings.tls_handshaking),
            (metrics.http_req_sending, timings.sending),
            (metrics.http_req_waiting, timings.waiting),
            (metrics.http_req_receiving, timings.receiving),
        ] {
            add(id, millis(duration));
        }
        drop(sinks);
        self.count_bytes(hop.sent, hop.received);
    }

    /// Adds the samples of an iteration, or of what takes its place in setup and teardown.
    pub(crate) fn end_iteration(&self, took: Option<Duration>) {
        // A script that ends the run has no code behind that which would leave its groups.
        while self.has_aborted.get() && self.leave_group() {}
        let metrics = &self.shared.built_in;
        self.add(metrics.data_sent, self.sent.take() as f64, &[]);
        self.add(metrics.data_received, self.received.take() as f64, &[]);
        if let Some(took) = took {
            self.add(metrics.iterations, 1.0, &[]);
            self.add(metrics.iteration_duration, millis(took), &[]);
        }
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
            response.request.method, response.masked_url, response.error
        );
        self.warn(&masked_urls(&text));
    }

    pub(crate) fn warn(&self, text: &str) {
        (self.shared.log)(Level::Warning, text, "");
    }

    pub(crate) fn verdict(&self, change: impl FnOnce(&mut Verdict)) {
        let verdict = self.shared.verdict.lock();
        change(&mut verdict.unwrap_or_else(PoisonError::into_inner));
    }
}

fn push_tag<'a>(tags: &mut Vec<Tag<'a>>, is_on: bool, name: &'static str, value: Cow<'a, str>) {
    if is_on && !value.is_empty() {
        tags.push((Cow::Borrowed(name), value));
    }
}

fn borrowed(tag: &(String, String)) -> Tag<'_> {
    (Cow::Borrowed(&tag.0), Cow::Borrowed(&tag.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_take_turns_at_a_rate() {
        let start = SystemClock.now();
        let rate = RequestRate::new(10, start);
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert_eq!(rate.turn(at(0)), None);
        assert_eq!(rate.turn(at(0)), Some(at(100)));
        assert_eq!(rate.turn(at(50)), Some(at(200)));
        // A pause is not made up for.
        assert_eq!(rate.turn(at(1000)), None);
        assert_eq!(rate.turn(at(1000)), Some(at(1100)));
        assert_eq!(RequestRate::new(0, start).turn(at(0)), None);
    }
}
