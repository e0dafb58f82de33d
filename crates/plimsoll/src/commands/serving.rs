//! Serves a configuration until a signal ends it: what `up`, `mock` and `serve` have in common.

mod changing;

mod keeping;

#[cfg(feature = "lab")]
mod profiling;

mod takeover;

mod confinement;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(feature = "serve")]
use plimsoll_gateway::is_expressgateway;
use plimsoll_server::config::{
    ActionKind, Changes, ChangesPlan, Compiler, ConfigProblem, GuardKind, ListenKind, LogPlan,
    LogTarget, NamedPath, PathUse, SectionKind, ServerPlan, is_in_shared_folder,
};
use plimsoll_server::{
    AdminPath, AuditSource, ChangeQueue, ChangeRequest, ChangeRequests, Counters, Drained, Engine,
    EngineError, Inherited, Limits, LogWriter, Notice, Notices, OpenLog, Severity,
};
use plimsoll_wire::{WatchedFiles, cores, descriptors};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

#[cfg(feature = "serve")]
use crate::commands::gateway::import;
use crate::commands::serving::changing::{Handled, Loaded, audit_reload, audited_reply};
pub(crate) use crate::commands::serving::confinement::ConfinementArgs;
use crate::commands::serving::confinement::Sandbox;
#[cfg(feature = "monitor")]
pub(crate) use crate::commands::serving::confinement::keep_private;
use crate::commands::serving::keeping::{KeepCertificates, MakeKeeper};
use crate::commands::serving::takeover::{Predecessor, Successors};
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::service_manager::{self, ServiceManager};
use crate::terminal;

/// Where a configuration comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file, which is read again for each request.
    File(PathBuf),
    /// A command line, of which this is the meaning; its paths are relative to the working directory.
    CommandLine(String),
}

/// Actions, sections and paths that other crates add to a server.
#[derive(Debug)]
pub(crate) struct Brought {
    actions: Vec<ActionKind>,
    guards: Vec<GuardKind>,
    sections: Vec<SectionKind>,
    listens: Vec<ListenKind>,
    admin_paths: Vec<AdminPath>,
    /// Has certificates ordered.
    keeper: Option<MakeKeeper>,
}

impl Brought {
    /// Everything that is compiled in.
    pub(crate) fn all() -> Self {
        let mut brought = Self::for_sites();
        brought.add_servers();
        #[cfg(feature = "monitor")]
        brought.actions.push(crate::commands::monitor::KIND);
        #[cfg(feature = "lab")]
        brought.admin_paths.push(profiling::path());
        brought
    }

    #[cfg(feature = "serve")]
    fn add_servers(&mut self) {
        self.actions.extend([
            plimsoll_mock::KIND,
            plimsoll_gateway::PROXY,
            plimsoll_gateway::CONNECT,
        ]);
        self.guards.extend(plimsoll_gateway::GUARDS);
        self.sections
            .extend([plimsoll_gateway::UPSTREAMS, plimsoll_gateway::TRACES]);
        self.listens.extend(plimsoll_gateway::LISTENS);
        self.keeper = Some(keeping::keeper);
    }

    #[cfg(not(feature = "serve"))]
    fn add_servers(&mut self) {}

    /// The parts that sites need, and nothing else: the program of packed ones consists of what can be reached from here.
    pub(crate) fn for_sites() -> Self {
        Self {
            actions: vec![plimsoll_site::FILES],
            guards: Vec::new(),
            sections: Vec::new(),
            listens: Vec::new(),
            admin_paths: Vec::new(),
            keeper: None,
        }
    }
}

/// Prints what happens while it is served.
pub(crate) fn report(notice: &Notice) {
    let shown = Problem::from(notice.clone());
    match notice.severity {
        Severity::Note => terminal::print_notes(&[shown]),
        Severity::Warning => terminal::print_warnings(&[shown]),
        Severity::Error => terminal::print_failure(&shown.could_not_run()),
    }
}

/// Reports every mistake, and serves nothing; returns where it would listen, a line for each address.
pub(crate) fn check(source: Source, brought: Brought) -> Result<Vec<String>, Failed> {
    let (configuration, _) = Configuration::new(source, brought);
    let loaded = configuration.load(&Changes::default())?;
    let listeners = loaded.plan.engine.listeners.iter();
    let lines =
        listeners.map(|it| format!("would listen on {}://{}/", it.serves.scheme(), it.address));
    Ok(lines.collect())
}

/// Reports every mistake, and serves nothing; returns the text of the file, translated if it is of another program.
pub(crate) fn checked(source: Source, brought: Brought) -> Result<String, Failed> {
    let (configuration, _) = Configuration::new(source, brought);
    let loaded = configuration.load(&Changes::default())?;
    Ok(loaded.file().to_owned())
}

/// Options of a server that are about its process, not about what it serves.
#[derive(Debug)]
pub(crate) struct ProcessOptions<'a> {
    /// A socket in the file system, by which it takes over from a server and hands over to the next one.
    pub(crate) takeover: Option<&'a Path>,
    /// Also loads the file again when it changes.
    pub(crate) watch: bool,
    /// The rights that it gives up.
    pub(crate) confinement: &'a ConfinementArgs,
}

/// Serves until SIGTERM or Ctrl-C; SIGHUP loads the configuration again.
pub(crate) fn run(
    source: Source,
    brought: Brought,
    options: &ProcessOptions<'_>,
) -> Result<Exit, Failed> {
    let ProcessOptions {
        takeover,
        watch,
        confinement,
    } = *options;
    let privileges = confinement.begin()?;
    // As it is before it is loaded: a change in between is one.
    let file = match &source {
        Source::File(file) if watch => Some(WatchedFiles::new(vec![file.clone()])),
        _ => None,
    };
    let keeper = brought.keeper;
    let (mut configuration, changes) = Configuration::new(source, brought);
    let keeper = keeper.map(|make| make(&configuration.compiler));
    let inherited = service_manager::inherited().map_err(|error| {
        let message = format!("cannot take the sockets of LISTEN_FDS: {error}");
        Problem::new(message).could_not_run()
    })?;
    configuration.compiler.inherited = Arc::new(Inherited::new(inherited));
    let mut loaded = configuration.load(&Changes::default())?;
    // Each connection is an open file; a limit that cannot be raised is one on connections.
    descriptors::raise().ok();
    configuration.room = room(&loaded.plan);
    configuration.cap_connections(&mut loaded.plan);
    let manager = ServiceManager::of_environment();
    let mut signals =
        Signals::watch(changes).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let counters = Arc::clone(&configuration.compiler.counters);
    let at_socket = |error: std::io::Error| {
        let path = takeover.unwrap_or(Path::new("")).display();
        Problem::with("--takeover", format!("cannot use {path}: {error}")).could_not_run()
    };
    let predecessor = match takeover {
        None => None,
        Some(path) => Predecessor::connect(path).map_err(at_socket)?,
    };
    let taken = match &predecessor {
        None => Vec::new(),
        Some(predecessor) => predecessor.sockets().map_err(at_socket)?,
    };
    // It makes no more changes, but may have made some since the configuration was loaded.
    if predecessor.is_some() && loaded.is_outdated() {
        loaded = configuration.load(&Changes::default())?;
        configuration.cap_connections(&mut loaded.plan);
    }
    let plan = &loaded.plan;
    let bound = privileges.bind(|| Engine::bind(&plan.engine, counters, taken))?;
    let bound = bound.map_err(|error| could_not(&error))?;
    if confinement.has_sandbox() {
        if let Some(socket) = takeover.filter(|socket| is_in_shared_folder(socket)) {
            let message = format!(
                "{} lies in a folder that other programs share: the sandbox permits no new files there",
                socket.display()
            );
            let hint = "use a folder of its own, such as /run/plimsoll/takeover.sock";
            return Err(Problem::with("--takeover", message).hint(hint).usage());
        }
        if let Some(ChangesPlan::File(file)) = &plan.changes
            && is_in_shared_folder(file)
        {
            let message = format!(
                "{} lies in a folder that other programs share: the sandbox permits no new files there",
                file.display()
            );
            let hint = "use a folder of its own, such as /var/lib/plimsoll/changes.toml";
            return Err(Problem::with("admin.changes", message).hint(hint).usage());
        }
        let sandbox = Sandbox::enter(&configuration.named(plan, takeover))?;
        configuration.compiler.permitted = Some(sandbox.permitted().clone());
        configuration.sandbox = Some(sandbox);
    }
    let log = write_log(plan)?;
    let mut engine = bound.start().map_err(|error| could_not(&error))?;
    let successors = takeover.map(Successors::listen).transpose();
    let successors = successors.map_err(at_socket)?;
    if let Some(successors) = &successors {
        signals.wait_at(successors).map_err(at_socket)?;
    }
    report_addresses(plan, &engine)?;
    match predecessor {
        None => manager.ready(&status(plan, &engine)),
        Some(predecessor) => {
            predecessor.end(engine.take_links()).map_err(at_socket)?;
            manager.took_over(&status(plan, &engine));
        }
    }
    serve(
        &configuration,
        engine,
        loaded,
        log,
        keeper,
        file,
        &mut signals,
        &manager,
        successors,
    )
}

/// A configuration that can be loaded time and again.
struct Configuration {
    source: Source,
    compiler: Compiler,
    /// Connections that the limit on open files has room for.
    room: Option<usize>,
    /// In force until the process ends.
    sandbox: Option<Sandbox>,
}

/// Room for fewer connections deserves a warning.
const FEW_CONNECTIONS: usize = 1024;

/// Connections that the limit on open files has room for beside what the workers of `plan` need.
fn room(plan: &ServerPlan) -> Option<usize> {
    // A worker has its runtime, and each listener a socket in it, perhaps one of QUIC too.
    let of_worker = 5 + 2 * plan.engine.listeners.len();
    let room = descriptors::room_for_connections((plan.engine.threads * of_worker) as u64)?;
    Some(usize::try_from(room).unwrap_or(usize::MAX))
}

impl Configuration {
    /// - Also the changes that clients of its plans want.
    fn new(source: Source, brought: Brought) -> (Self, ChangeRequests) {
        let directory = match &source {
            Source::File(file) => file.parent().unwrap_or(Path::new("")),
            Source::CommandLine(_) => Path::new(""),
        };
        let mut compiler = Compiler::new(directory, &Arc::<Counters>::default());
        compiler.threads = cores::available().len().max(1);
        compiler.actions = brought.actions;
        compiler.guards = brought.guards;
        compiler.sections = brought.sections;
        compiler.listens = brought.listens;
        compiler.notices = Notices::new(report);
        compiler.admin_paths = brought.admin_paths;
        let refresh = plimsoll_site::refresh_path(&compiler.states);
        compiler.admin_paths.push(refresh);
        let (queue, changes) = ChangeQueue::new();
        compiler.change_queue = Some(queue);
        let configuration = Self {
            source,
            compiler,
            room: None,
            sandbox: None,
        };
        (configuration, changes)
    }

    /// Every path that the server uses while `plan` is served.
    fn named(&self, plan: &ServerPlan, takeover: Option<&Path>) -> Vec<NamedPath> {
        let named = |path: &Path, usage| NamedPath {
            path: path.to_owned(),
            usage,
        };
        let mut all = plan.paths.clone();
        if let Source::File(file) = &self.source {
            all.push(named(file, PathUse::Read));
        }
        all.extend(takeover.map(|socket| named(socket, PathUse::WriteFile)));
        all
    }

    /// Accepts no more connections than there is room for: one beyond it would take the place of a file.
    fn cap_connections(&self, plan: &mut ServerPlan) {
        let limits = &mut plan.engine.limits;
        let Some(room) = self.room.filter(|room| *room < limits.connections) else {
            return;
        };
        let allowed = limits.connections;
        let message = format!(
            "the limit on open files leaves room for {room} connections, fewer than the {allowed} allowed"
        );
        limits.connections = room;
        let hint =
            "raise it with `ulimit -n` or LimitNOFILE=, or set a lower `connections` in [limits]";
        let problem = Problem::new(message).hint(hint);
        // The default is the most that any machine needs, so less of it is worth a word only where the file chose the number
        // or where little is left.
        if room < FEW_CONNECTIONS {
            terminal::print_warnings(&[problem]);
        } else if allowed != Limits::default().connections {
            terminal::print_notes(&[problem]);
        }
    }

    /// Its text, and what that asks for.
    fn load_file(&self) -> Result<(String, ServerPlan), Failed> {
        let file = match &self.source {
            Source::CommandLine(text) => return Ok((text.clone(), self.compile(text)?)),
            Source::File(file) => file,
        };
        let bytes = Problems::read(file).map_err(|message| {
            Problem::new(message)
                .hint("`plimsoll up --init` writes a file to start from")
                .usage()
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Problem::new(format!("{} is not UTF-8", file.display())).usage())?;
        #[cfg(feature = "serve")]
        if is_expressgateway(&text) {
            return self.load_expressgateway(file, &text);
        }
        let plan = self.compile(&text)?;
        Ok((text, plan))
    }

    #[cfg(feature = "serve")]
    /// Translates the file on the way. What is wrong with the translation has no place in the file itself.
    fn load_expressgateway(&self, file: &Path, text: &str) -> Result<(String, ServerPlan), Failed> {
        let imported = import::of_expressgateway(&file.display().to_string(), text)?;
        terminal::print_notes(&import::shown_notes(&imported.notes));
        let compiled = self.compiler.compile(&imported.toml);
        let plan = compiled.map_err(|problems| {
            let about = format!("{}, translated", file.display());
            let problems = problems.iter().map(|it| Problem::new(it).about(&about));
            Failed {
                exit: Exit::Usage,
                problems: problems.collect(),
            }
        })?;
        Ok((imported.toml, plan))
    }

    fn compile(&self, text: &str) -> Result<ServerPlan, Failed> {
        self.compiler.compile(text).map_err(|problems| Failed {
            exit: Exit::Usage,
            problems: problems.iter().map(|problem| self.shown(problem)).collect(),
        })
    }

    /// Says what to do where the sandbox may have refused a file that one of the files of the configuration names.
    fn explained(&self, mut failed: Failed) -> Failed {
        /// Of `EACCES`, as the standard library prints it.
        const REFUSED: &str = "(os error 13)";

        if self.sandbox.is_some() {
            for problem in &mut failed.problems {
                if problem.message.contains(REFUSED) && problem.hint.is_none() {
                    let hint = "the sandbox permits the paths that were named at the start: restart the server to use others";
                    problem.hint = Some(hint.to_owned());
                }
            }
        }
        failed
    }

    fn shown(&self, problem: &ConfigProblem) -> Problem {
        let shown = match &self.source {
            Source::File(file) => {
                let place = format!("{}:{}:{}", file.display(), problem.line, problem.column);
                Problem::new(problem).about(&place)
            }
            Source::CommandLine(_) => match flag_of(&problem.key) {
                Some(flag) => Problem::with(&flag, &problem.message),
                None => Problem::new(problem),
            },
        };
        match &problem.hint {
            Some(hint) => shown.hint(hint),
            None => shown,
        }
    }
}

/// The flag or argument of a serving command that a key of its configuration was made from.
///
/// - `key`: such as `route[1].files.root`.
fn flag_of(key: &str) -> Option<String> {
    let names = key.split('.').map(|name| name.split('[').next());
    let names: Vec<_> = names.map(Option::unwrap_or_default).collect();
    let flag = match names[..] {
        ["route", "files", "root"] => "DIR",
        ["route", "files", "pack"] => "the packed site",
        ["route", "mock", "dir" | "file"] => "DIR or FILE",
        ["route", "monitor"] => "FILE",
        ["route", "files", "clean_urls"] => "--no-clean-urls",
        ["route", "files", "compress"] => "--no-compress",
        ["upstream", "servers", "servers", ..] => "--to",
        ["upstream", "servers", "protocol"] => "--upstream-http2",
        ["upstream", "servers", "tls", "ca"] => "--cacert",
        ["upstream", "servers", "tls", "insecure"] => "--insecure",
        ["upstream", "servers", "retry", ..] => "--retries",
        ["upstream", "servers", "health", ..] => "--health",
        ["route", "proxy", "host"] => "--host",
        ["upstream", "servers", name] => return Some(format!("--{}", name.replace('_', "-"))),
        ["listen", "address"] => "--listen",
        ["listen", "tls", "cert"] => "--cert",
        ["listen", "tls", "key"] => "--key",
        ["listen", "redirect_https", ..] => "--https-redirect",
        ["admin", "address"] => "--admin",
        ["metrics", "address"] => "--metrics",
        ["metrics", "prefix"] => "--metrics-prefix",
        ["log", "file"] => "--access-log",
        ["route", "files" | "mock", name] | [name @ ("threads" | "pin")] => {
            return Some(format!("--{}", name.replace('_', "-")));
        }
        _ => return None,
    };
    Some(flag.to_owned())
}

/// Serves until a signal ends it.
#[expect(
    clippy::too_many_arguments,
    reason = "each is what one thing is done with"
)]
fn serve(
    configuration: &Configuration,
    mut engine: Engine,
    mut loaded: Loaded,
    mut log: Option<LogWriter>,
    mut keeper: Option<Box<dyn KeepCertificates>>,
    mut file: Option<WatchedFiles>,
    signals: &mut Signals,
    manager: &ServiceManager,
    successors: Option<Successors>,
) -> Result<Exit, Failed> {
    let mut has_successor = false;
    let mut watched = WatchedFiles::new(loaded.plan.certificates.clone());
    keep(keeper.as_mut(), &loaded.plan, false)?;
    loop {
        let mut event = signals.next(manager.alive_every());
        let mut source = AuditSource::Signal;
        let file = file.as_mut().filter(|_| event == Event::Look);
        if file.is_some_and(WatchedFiles::has_changed) {
            event = Event::Reload;
            source = AuditSource::File;
        }
        let mut request = None;
        let attempted = match event {
            Event::End => break,
            Event::Successor => {
                let Some(successor) = signals.successor.take() else {
                    continue;
                };
                match takeover::hand_over(&successor, &engine) {
                    Ok(true) => {
                        has_successor = true;
                        loaded.report_lost();
                        engine.leave_files();
                        break;
                    }
                    Ok(false) => {
                        let message = "another process was to take over but did not start";
                        terminal::print_warnings(&[Problem::new(message)]);
                    }
                    Err(error) => {
                        let message = format!("another process could not take over: {error}");
                        terminal::print_warnings(&[Problem::new(message)]);
                    }
                }
                continue;
            }
            Event::IsAlive => {
                manager.alive();
                continue;
            }
            Event::Look if !watched.has_changed() => continue,
            // The file may be half written: what holds is what was loaded.
            Event::Look => configuration
                .compile(&loaded.text)
                .map(|plan| loaded.with_plan(plan)),
            Event::Reload => {
                manager.reloading();
                configuration.load(&loaded.changes)
            }
            Event::Change => {
                let Some(wanted) = signals.request.take() else {
                    continue;
                };
                match configuration.handle(&loaded, &wanted) {
                    Handled::Replied(reply) => {
                        audited_reply(wanted, reply, &loaded.plan.audit);
                        continue;
                    }
                    Handled::Reload => {
                        request = Some(wanted);
                        event = Event::Reload;
                        manager.reloading();
                        configuration.load(&loaded.changes)
                    }
                    Handled::New(new) => {
                        request = Some(wanted);
                        Ok(*new)
                    }
                }
            }
        };
        let applied = attempted.and_then(|mut new| {
            configuration.cap_connections(&mut new.plan);
            let watched = WatchedFiles::new(new.plan.certificates.clone());
            let log = write_log(&new.plan)?;
            let is_stored = new.must_store();
            new.store()?;
            engine.reload(&new.plan.engine).map_err(|error| {
                if is_stored {
                    loaded.restore();
                }
                could_not(&error)
            })?;
            Ok((new, log, watched))
        });
        match applied {
            Ok((new, new_log, new_watched)) => {
                let before = loaded.content();
                match request {
                    Some(request) => {
                        configuration.reply(request, &before, Ok(&new), &new.plan.audit);
                    }
                    None if event == Event::Reload => {
                        audit_reload(&new.plan.audit, source, Some((&before, &new.content())));
                    }
                    None => {}
                }
                // What is noted by the old log is still written.
                (loaded, log, watched) = (new, new_log, new_watched);
                if let Err(failed) = keep(keeper.as_mut(), &loaded.plan, event == Event::Reload) {
                    terminal::print_failure(&failed);
                }
                if event != Event::Change {
                    report_addresses(&loaded.plan, &engine)?;
                }
            }
            // What is served stays as it was, but the log may have been moved.
            Err(failed) => {
                let failed = configuration.explained(failed);
                if let Some(log) = &log {
                    log.reopen();
                }
                terminal::print_failure(&failed);
                let audit = &loaded.plan.audit;
                match request {
                    Some(request) => {
                        configuration.reply(request, &loaded.content(), Err(&failed), audit);
                    }
                    None if event == Event::Reload => audit_reload(audit, source, None),
                    None => {}
                }
            }
        }
        if event == Event::Reload {
            manager.ready(&status(&loaded.plan, &engine));
        }
    }
    // The service goes on in the other process.
    if !has_successor {
        manager.stopping();
    }
    drop(successors);
    drop(keeper);
    signals.changes.close();
    let (done, drained) = oneshot::channel();
    let timeout = loaded.plan.drain;
    let draining = thread::spawn(move || done.send(engine.drain(timeout)).is_ok());
    let drained = signals.unless_signalled_again(drained);
    if drained.is_some() {
        draining.join().ok();
    }
    if let Some(log) = log {
        log.finish();
    }
    match drained {
        None => Ok(Exit::Interrupted),
        Some(drained) => {
            if drained.cut_off > 0 {
                let cut_off = drained.cut_off;
                let message = format!("{cut_off} connections were still open at the end");
                terminal::print_warnings(&[Problem::new(message)]);
            }
            Ok(Exit::Fine)
        }
    }
}

/// Has the certificates of `plan` ordered.
fn keep(
    keeper: Option<&mut Box<dyn KeepCertificates>>,
    plan: &ServerPlan,
    at_once: bool,
) -> Result<(), Failed> {
    let Some(keeper) = keeper else {
        return Ok(());
    };
    keeper
        .keep(plan, at_once)
        .map_err(|error| Problem::new(format!("cannot keep certificates: {error}")).could_not_run())
}

/// Has the access log written, if there is one.
fn write_log(plan: &ServerPlan) -> Result<Option<LogWriter>, Failed> {
    let Some(LogPlan { log, target }) = &plan.log else {
        return Ok(None);
    };
    let (open, shown): (OpenLog, _) = match target.clone() {
        LogTarget::Stdout => (
            Box::new(|| Ok(Box::new(std::io::stdout()))),
            "the standard output".to_owned(),
        ),
        LogTarget::File(path) => {
            let shown = path.display().to_string();
            (Box::new(move || LogTarget::open_file(&path)), shown)
        }
    };
    log.write_to(open).map(Some).map_err(|error| {
        Problem::new(format!("cannot write the access log to {shown}: {error}")).could_not_run()
    })
}

fn report_addresses(plan: &ServerPlan, engine: &Engine) -> Result<(), Failed> {
    let bound = engine.bound(&plan.engine);
    for (listener, address) in plan.engine.listeners.iter().zip(bound) {
        let scheme = listener.serves.scheme();
        print(&match address.port() {
            Some(address) => format!("listening on {scheme}://{address}/"),
            None => format!("listening on {address}"),
        })?;
    }
    Ok(())
}

/// Where it serves, for the parent process.
fn status(plan: &ServerPlan, engine: &Engine) -> String {
    let bound = engine.bound(&plan.engine);
    let addresses: Vec<_> = bound.iter().map(ToString::to_string).collect();
    format!("listening on {}", addresses.join(", "))
}

fn could_not(error: &EngineError) -> Failed {
    Problem::caused_by(error).could_not_run()
}

fn print(line: &str) -> Result<(), Failed> {
    terminal::print(line).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// How often certificates are checked for changes: a reload a second after renewal is soon enough, and a check is one
/// stat(2) per file.
const LOOK: Duration = Duration::from_secs(1);

/// Far enough to never come.
const FAR: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Reload,
    /// Whether certificates have changed, or the file.
    Look,
    /// Whether it still does.
    IsAlive,
    /// A process takes over.
    Successor,
    /// A client of the admin port wants a change.
    Change,
    End,
}

/// The signals that a server handles.
struct Signals {
    runtime: Runtime,
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
    alive: Option<Interval>,
    /// Where processes connect that take over.
    successors: Option<UnixListener>,
    /// The one that has connected.
    successor: Option<UnixStream>,
    changes: ChangeRequests,
    /// The change that is wanted.
    request: Option<ChangeRequest>,
}

impl Signals {
    /// Waits for processes that take over, too.
    fn wait_at(&mut self, successors: &Successors) -> std::io::Result<()> {
        let _guard = self.runtime.enter();
        let listener = successors.listener()?;
        self.successors = Some(UnixListener::from_std(listener)?);
        Ok(())
    }

    /// From now on they do not end the program by themselves.
    fn watch(changes: ChangeRequests) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (hang_up, terminate, interrupt) = {
            let _guard = runtime.enter();
            (
                signal(SignalKind::hangup())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        Ok(Self {
            runtime,
            hang_up,
            terminate,
            interrupt,
            alive: None,
            successors: None,
            successor: None,
            changes,
            request: None,
        })
    }

    /// - `alive_every`: how often the service manager wants a sign of life.
    fn next(&mut self, alive_every: Option<Duration>) -> Event {
        let alive = self.alive.get_or_insert_with(|| {
            let _guard = self.runtime.enter();
            let every = alive_every.unwrap_or(Duration::MAX);
            let mut alive = tokio::time::interval(every.min(FAR));
            alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
            alive
        });
        let successors = &self.successors;
        let connected = async {
            match successors {
                None => std::future::pending().await,
                Some(successors) => successors.accept().await?.0.into_std(),
            }
        };
        let successor = &mut self.successor;
        let (changes, request) = (&mut self.changes, &mut self.request);
        self.runtime.block_on(async {
            tokio::select! {
                connected = connected => {
                    *successor = connected.ok();
                    Event::Successor
                }
                Some(wanted) = changes.next() => {
                    *request = Some(wanted);
                    Event::Change
                }
                _ = alive.tick(), if alive_every.is_some() => Event::IsAlive,
                () = tokio::time::sleep(LOOK) => Event::Look,
                _ = self.hang_up.recv() => Event::Reload,
                _ = self.terminate.recv() => Event::End,
                _ = self.interrupt.recv() => Event::End,
            }
        })
    }

    /// The server to wait for; absent if the user does not want to wait.
    fn unless_signalled_again(&mut self, drained: oneshot::Receiver<Drained>) -> Option<Drained> {
        self.runtime.block_on(async {
            tokio::select! {
                drained = drained => drained.ok(),
                _ = self.terminate.recv() => None,
                _ = self.interrupt.recv() => None,
            }
        })
    }
}
