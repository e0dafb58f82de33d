//! `plimsoll up`: listeners and routes of one file.

mod watched;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_server::config::{ConfigProblem, LogPlan, LogTarget, STARTER, ServerPlan, compile};
use plimsoll_server::{Counters, Drained, Engine, EngineError, LogWriter, OpenLog};
use plimsoll_wire::{cores, descriptors};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::commands::up::watched::Watched;
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Serves HTTP by the listeners and routes of a file.
///
/// SIGHUP loads the file again, if it has no mistakes. SIGTERM and Ctrl-C stop listening and let open connections end;
/// the second time they do not wait.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, in TOML.
    #[arg(default_value = "plimsoll.toml")]
    file: PathBuf,

    /// Tell every mistake in the file, and serve nothing.
    #[arg(long)]
    check: bool,

    /// Write a file to start from, unless it is there already.
    #[arg(long, conflicts_with = "check")]
    init: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    if args.init {
        return init(&args.file);
    }
    let counters = Arc::<Counters>::default();
    let (text, plan) = load(&args.file, &counters)?;
    if args.check {
        print(&format!("{}: no mistakes", args.file.display()))?;
        return Ok(Exit::Fine);
    }
    // Each connection is an open file; a limit that cannot be raised is one on connections.
    descriptors::raise().ok();
    let mut signals =
        Signals::watch().map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let log = write_log(&plan)?;
    let engine = Engine::start(&plan.engine, counters).map_err(|error| could_not(&error))?;
    tell_addresses(&plan, &engine)?;
    serve(args, engine, text, plan, log, &mut signals)
}

fn init(file: &Path) -> Result<Exit, Failed> {
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut file| std::io::Write::write_all(&mut file, STARTER.as_bytes()));
    written.map_err(|error| {
        let message = format!("cannot write {}: {error}", file.display());
        Problem::new(message).could_not_run()
    })?;
    print(&format!(
        "wrote {}; start it with `plimsoll up {}`",
        file.display(),
        file.display()
    ))?;
    Ok(Exit::Fine)
}

/// The text of the file, and what it asks for.
fn load(file: &Path, counters: &Arc<Counters>) -> Result<(String, ServerPlan), Failed> {
    let usage = |problems| Failed {
        exit: Exit::Usage,
        problems,
    };
    let bytes = Problems::read(file).map_err(|message| {
        let problem =
            Problem::new(message).hint("`plimsoll up --init` writes a file to start from");
        usage(vec![problem])
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        usage(vec![Problem::new(format!(
            "{} is not UTF-8",
            file.display()
        ))])
    })?;
    let plan = compiled(file, &text, counters)?;
    Ok((text, plan))
}

fn compiled(file: &Path, text: &str, counters: &Arc<Counters>) -> Result<ServerPlan, Failed> {
    let directory = file.parent().unwrap_or(Path::new(""));
    let threads = cores::available().len().max(1);
    compile(text, directory, counters, threads).map_err(|problems| {
        let shown = |problem: &ConfigProblem| {
            let place = format!("{}:{}:{}", file.display(), problem.line, problem.column);
            let shown = Problem::new(problem).about(&place);
            match &problem.hint {
                Some(hint) => shown.hint(hint),
                None => shown,
            }
        };
        Failed {
            exit: Exit::Usage,
            problems: problems.iter().map(shown).collect(),
        }
    })
}

/// Serves until a signal ends it.
fn serve(
    args: &Args,
    mut engine: Engine,
    mut text: String,
    mut plan: ServerPlan,
    mut log: Option<LogWriter>,
    signals: &mut Signals,
) -> Result<Exit, Failed> {
    let mut watched = Watched::new(plan.certificates.clone());
    loop {
        let loaded = match signals.next() {
            Asked::End => break,
            Asked::Look if !watched.has_changed() => continue,
            // The file may be half written: what holds is what was loaded.
            Asked::Look => {
                compiled(&args.file, &text, engine.counters()).map(|plan| (text.clone(), plan))
            }
            Asked::Reload => load(&args.file, engine.counters()),
        };
        let reloaded = loaded.and_then(|(text, new)| {
            let watched = Watched::new(new.certificates.clone());
            let log = write_log(&new)?;
            engine
                .reload(&new.engine)
                .map_err(|error| could_not(&error))?;
            Ok((text, new, log, watched))
        });
        match reloaded {
            Ok(reloaded) => {
                // What is noted by the old log is still written.
                (text, plan, log, watched) = reloaded;
                tell_addresses(&plan, &engine)?;
            }
            // What is served stays as it was, but the log may have been moved.
            Err(failed) => {
                if let Some(log) = &log {
                    log.reopen();
                }
                terminal::print_failure(&failed);
            }
        }
    }
    let (done, drained) = oneshot::channel();
    let timeout = plan.drain;
    let draining = thread::spawn(move || done.send(engine.drain(timeout)).is_ok());
    let drained = signals.unless_asked_again(drained);
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

fn tell_addresses(plan: &ServerPlan, engine: &Engine) -> Result<(), Failed> {
    let bound = engine.bound(&plan.engine);
    for (listener, address) in plan.engine.listeners.iter().zip(bound) {
        let scheme = format!("{:?}", listener.serves);
        print(&format!("listening on {scheme}://{address}/"))?;
    }
    Ok(())
}

fn could_not(error: &EngineError) -> Failed {
    Problem::caused_by(error).could_not_run()
}

fn print(line: &str) -> Result<(), Failed> {
    terminal::print(line).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// How often certificates are looked at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Reload,
    /// Whether certificates have changed.
    Look,
    End,
}

/// The signals that a server heeds.
struct Signals {
    runtime: Runtime,
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they do not end the program by themselves.
    fn watch() -> std::io::Result<Self> {
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
        })
    }

    fn next(&mut self) -> Asked {
        self.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => Asked::Look,
                _ = self.hang_up.recv() => Asked::Reload,
                _ = self.terminate.recv() => Asked::End,
                _ = self.interrupt.recv() => Asked::End,
            }
        })
    }

    /// What is waited for, or nothing if the user does not want to wait for it.
    fn unless_asked_again(&mut self, drained: oneshot::Receiver<Drained>) -> Option<Drained> {
        self.runtime.block_on(async {
            tokio::select! {
                drained = drained => drained.ok(),
                _ = self.terminate.recv() => None,
                _ = self.interrupt.recv() => None,
            }
        })
    }
}
