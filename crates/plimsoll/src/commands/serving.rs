//! Serves a configuration until a signal ends it: what `up`, `mock` and `serve` have in common.

mod changing;

mod configuration;

mod keeping;

#[cfg(feature = "lab")]
mod profiling;

mod signals;

mod takeover;

mod confinement;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use plimsoll_server::config::{
    ActionKind, Changes, ChangesPlan, GuardKind, ListenKind, LogPlan, LogTarget, SectionKind,
    ServerPlan, is_in_shared_folder,
};
use plimsoll_server::{
    AdminPath, AuditSource, Engine, EngineError, Inherited, LogWriter, Notice, OpenLog, Severity,
};
use plimsoll_wire::{WatchedFiles, descriptors};
use tokio::sync::oneshot;

use self::changing::{Handled, Loaded, audit_reload, audited_reply};
use self::configuration::{Configuration, room};
pub(crate) use self::confinement::ConfinementArgs;
use self::confinement::Sandbox;
pub(crate) use self::confinement::keep_private;
use self::keeping::{KeepCertificates, MakeKeeper};
use self::signals::{Event, Signals};
use self::takeover::{Predecessor, Successors};
use crate::exit::Exit;
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
    let logs = write_logs(plan)?;
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
        logs,
        keeper,
        file,
        &mut signals,
        &manager,
        successors,
    )
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
    mut logs: Vec<LogWriter>,
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
            let logs = write_logs(&new.plan)?;
            let is_stored = new.must_store();
            new.store()?;
            engine.reload(&new.plan.engine).map_err(|error| {
                if is_stored {
                    loaded.restore();
                }
                could_not(&error)
            })?;
            Ok((new, logs, watched))
        });
        match applied {
            Ok((new, new_logs, new_watched)) => {
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
                // What is noted by the old logs is still written.
                (loaded, logs, watched) = (new, new_logs, new_watched);
                if let Err(failed) = keep(keeper.as_mut(), &loaded.plan, event == Event::Reload) {
                    terminal::print_failure(&failed);
                }
                if event != Event::Change {
                    report_addresses(&loaded.plan, &engine)?;
                }
            }
            // What is served stays as it was, but the logs may have been moved.
            Err(failed) => {
                let failed = configuration.explained(failed);
                logs.iter().for_each(LogWriter::reopen);
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
    logs.into_iter().for_each(LogWriter::finish);
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

/// Has the access logs written.
fn write_logs(plan: &ServerPlan) -> Result<Vec<LogWriter>, Failed> {
    plan.logs.iter().map(write_log).collect()
}

fn write_log(LogPlan { log, target }: &LogPlan) -> Result<LogWriter, Failed> {
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
    log.write_to(open).map_err(|error| {
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
