//! The configuration of a server, which is loaded time and again.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "serve")]
use plimsoll_gateway::is_expressgateway;
use plimsoll_server::config::{Compiler, ConfigProblem, NamedPath, PathUse, ServerPlan};
use plimsoll_server::{ChangeQueue, ChangeRequests, Counters, Limits, Notices};
use plimsoll_wire::{cores, descriptors};

use super::confinement::Sandbox;
use super::{Brought, Source, report};
#[cfg(feature = "serve")]
use crate::commands::gateway::import;
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// A configuration that can be loaded time and again.
pub(super) struct Configuration {
    source: Source,
    pub(super) compiler: Compiler,
    /// Connections that the limit on open files has room for.
    pub(super) room: Option<usize>,
    /// In force until the process ends.
    pub(super) sandbox: Option<Sandbox>,
}

/// Room for fewer connections deserves a warning.
const FEW_CONNECTIONS: usize = 1024;

/// Connections that the limit on open files has room for beside what the workers of `plan` need.
pub(super) fn room(plan: &ServerPlan) -> Option<usize> {
    // A worker has its runtime, and each listener a socket in it, perhaps one of QUIC too.
    let of_worker = 5 + 2 * plan.engine.listeners.len();
    let room = descriptors::room_for_connections((plan.engine.threads * of_worker) as u64)?;
    Some(usize::try_from(room).unwrap_or(usize::MAX))
}

impl Configuration {
    /// - Also the changes that clients of its plans want.
    pub(super) fn new(source: Source, brought: Brought) -> (Self, ChangeRequests) {
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
    pub(super) fn named(&self, plan: &ServerPlan, takeover: Option<&Path>) -> Vec<NamedPath> {
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
    pub(super) fn cap_connections(&self, plan: &mut ServerPlan) {
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
    pub(super) fn load_file(&self) -> Result<(String, ServerPlan), Failed> {
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

    pub(super) fn compile(&self, text: &str) -> Result<ServerPlan, Failed> {
        self.compiler.compile(text).map_err(|problems| Failed {
            exit: Exit::Usage,
            problems: problems.iter().map(|problem| self.shown(problem)).collect(),
        })
    }

    /// Says what to do where the sandbox may have refused a file that one of the files of the configuration names.
    pub(super) fn explained(&self, mut failed: Failed) -> Failed {
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
