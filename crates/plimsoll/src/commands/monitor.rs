//! `plimsoll monitor`: checks services at intervals and keeps their incidents.

mod export_pages;
mod incident;

mod kept;

mod operate;

mod server;

mod agent;

#[cfg_attr(feature = "k6", path = "monitor/script.rs")]
#[cfg_attr(not(feature = "k6"), path = "monitor/no_script.rs")]
mod script;

#[cfg(feature = "mcp")]
pub(crate) use self::server::Server as ApiServer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_model::document::readable_toml_string;
use plimsoll_monitor::config::{self, ApiToken, Dialect, LoadError, Plan, StorePlan};
use plimsoll_monitor::notify::send_test;
use plimsoll_monitor::store::{self, Scope, StoreError};
use plimsoll_monitor::{Timestamp, import};
use plimsoll_monitor_web::action;
use plimsoll_monitor_web::setup::{self, SetupError};
use plimsoll_server::MakeAction;
use plimsoll_server::config::{ActionKind, Mounted, Value};
use plimsoll_wire::SystemClock;

use crate::commands::serving::Brought;
use crate::exit::Exit;
use crate::flags::{Preferred, Problems, ServingArgs, quoted_path};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Monitor services: scheduled checks, incidents, uptime, status pages, an HTTP API
///
/// FILE is a TOML file of plimsoll, or a configuration of Gatus (.yaml, .yml, or a folder of these). The file is loaded
/// again when it changes. The API listens on 127.0.0.1:8080, and for Gatus's configurations where `web` says.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<MonitorCommand>,

    /// Configuration: TOML, or YAML of Gatus
    #[arg(default_value = "monitor.toml")]
    file: PathBuf,

    /// Report all errors and warnings of the configuration and exit
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    serving: ServingArgs,
}

#[derive(Debug, clap::Subcommand)]
enum MonitorCommand {
    /// Copy the store to a new file, also while a monitor uses it
    Backup {
        /// Configuration whose store is copied
        config: PathBuf,

        /// New file
        to: PathBuf,
    },

    Agent(agent::AgentArgs),

    /// Make a token for the API and print the configuration that accepts it
    Token {
        /// Who uses it
        name: String,

        /// Permit changes too: monitors, incidents, pause, check now
        #[arg(long)]
        write: bool,

        /// Permit everything, tokens and the audit log included
        #[arg(long)]
        admin: bool,

        /// Make the token of an agent, whose region is the name
        #[arg(long, conflicts_with_all = ["write", "admin", "store"])]
        agent: bool,

        /// Keep it in the store of this configuration, where it can be revoked, instead of printing lines for the file
        #[arg(long, value_name = "CONFIG")]
        store: Option<PathBuf>,

        /// End it after this time, such as 90d; only with --store
        #[arg(long, value_name = "DURATION", requires = "store", value_parser = plimsoll_model::parse_duration)]
        expires: Option<Duration>,
    },

    /// Make the first user of the admin pages, the owner
    ///
    /// Prints a password that the owner changes at the first sign-in. Works while the monitor runs.
    Init {
        /// Configuration whose store gets the user
        #[arg(default_value = "monitor.toml")]
        config: PathBuf,

        /// Name to sign in with
        #[arg(long, default_value = "admin")]
        name: String,

        /// Read the password from standard input instead of making one
        #[arg(long)]
        password_stdin: bool,

        /// Give the user of this name a new password, without one-time codes and sessions, instead of adding one
        #[arg(long)]
        reset: bool,
    },

    /// Add a monitor to the store of a running monitor
    Add(Box<kept::Added>),

    /// List the monitors of a running monitor with their health and last result
    List(Box<operate::Listed>),

    /// Check at once and print the result; exit with 1 if the monitor is down
    CheckNow(operate::Chosen),

    /// Stop the checks of a monitor
    Pause(operate::Chosen),

    /// Resume the checks of a monitor
    Resume(operate::Chosen),

    /// Print the monitors in the store of a running monitor as a configuration
    Export {
        #[command(flatten)]
        server: server::Server,
    },

    /// Write a status page of a running monitor as files, for a server of static files
    ExportPages(export_pages::ExportPages),

    /// Declare, update and resolve incidents of a running monitor
    #[command(subcommand)]
    Incident(Box<incident::IncidentCommand>),

    /// Send a test message to channels of notices and report what their receivers answer
    NotifyTest {
        /// Configuration with the channels
        config: PathBuf,

        /// Channel, by its name; all unless it is given
        channel: Option<String>,
    },

    /// Print monitors of other tools, such as Uptime Kuma, as a configuration
    ///
    /// Takes a backup of Uptime Kuma or its store `kuma.db`, what the APIs of UptimeRobot and Better Stack return,
    /// `components.json` of Statuspage, or targets of Prometheus; with --apply a TOML file of plimsoll too.
    Import {
        /// File (JSON, YAML, SQLite, or TOML)
        file: PathBuf,

        /// Add the monitors to the store of a running monitor; those whose keys are there are replaced
        #[arg(long, conflicts_with = "history")]
        apply: bool,

        /// Write the history of `kuma.db` into the store of this configuration, which was imported from it and does not run
        #[arg(long, value_name = "CONFIG")]
        history: Option<PathBuf>,

        #[command(flatten)]
        server: server::Server,
    },

    /// Replace the store by a backup
    Restore {
        /// Configuration whose store is replaced
        config: PathBuf,

        /// File of a backup
        from: PathBuf,

        /// Overwrite a store that exists
        #[arg(long)]
        replace: bool,
    },
}

/// The action of routes.
pub(crate) const KIND: ActionKind = ActionKind {
    key: "monitor",
    compile,
};

#[expect(
    clippy::needless_pass_by_value,
    reason = "the type of compilers of actions"
)]
fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    action::compile(&value, mounted, variable, script::SUPPLIED)
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the binary reads the environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    match &args.command {
        Some(MonitorCommand::Backup { config, to }) => return backup(config, to),
        Some(MonitorCommand::Restore {
            config,
            from,
            replace,
        }) => return restore(config, from, *replace),
        Some(MonitorCommand::Token {
            name,
            write,
            admin,
            agent,
            store,
            expires,
        }) => {
            if *agent {
                return agent_token(name);
            }
            let scope = match (admin, write) {
                (true, _) => Scope::Admin,
                (false, true) => Scope::Write,
                (false, false) => Scope::Read,
            };
            return match store {
                Some(config) => stored_token(config, name, scope, *expires),
                None => token(name, scope),
            };
        }
        Some(MonitorCommand::Init {
            config,
            name,
            password_stdin,
            reset,
        }) => return init(config, name, *password_stdin, *reset),
        Some(MonitorCommand::Agent(args)) => return agent::run(args),
        Some(MonitorCommand::Add(added)) => return kept::add(added),
        Some(MonitorCommand::List(listed)) => return operate::list(listed),
        Some(MonitorCommand::CheckNow(chosen)) => return operate::check_now(chosen),
        Some(MonitorCommand::Pause(chosen)) => return operate::pause(chosen),
        Some(MonitorCommand::Resume(chosen)) => return operate::resume(chosen),
        Some(MonitorCommand::Export { server }) => return kept::export(server),
        Some(MonitorCommand::ExportPages(plan)) => return export_pages::run(plan),
        Some(MonitorCommand::Incident(command)) => return incident::run(command),
        Some(MonitorCommand::NotifyTest { config, channel }) => {
            return notify_test(config, channel.as_deref());
        }
        Some(MonitorCommand::Import {
            file,
            history: Some(config),
            ..
        }) => return import_history(file, config),
        Some(MonitorCommand::Import {
            file,
            apply,
            server,
            history: None,
        }) => return import(file, apply.then_some(server)),
        None => {}
    }
    if !args.check {
        // The store belongs to the user that the server becomes.
        args.serving.confinement.act_as_user()?;
    }
    let plan = load(&args.file)?;
    if args.check {
        let warnings = plan.warnings.iter().map(|warning| {
            let message = format!("{}: {}", warning.place, warning.message);
            Problem::new(message).about(&args.file.display().to_string())
        });
        terminal::print_warnings(&warnings.collect::<Vec<_>>());
        let monitors = match plan.monitors.len() {
            1 => "1 monitor".to_owned(),
            count => format!("{count} monitors"),
        };
        let fine = format!("{}: {monitors}, no errors", args.file.display());
        terminal::print(&fine).map_err(|error| Problem::caused_by(&error).could_not_run())?;
        return Ok(Exit::Fine);
    }
    // Its errors are then those of this command.
    match plan.store.open() {
        // The monitor waits for databases that are away, and says so.
        Ok(_) | Err(StoreError::Away(_)) => {}
        // The process that it takes over from leaves the store once it drains.
        Err(StoreError::InUse(_)) if args.serving.takes_over() => {}
        Err(error) => return Err(unusable(&error)),
    }
    let mut preferred = Preferred::default();
    if let Dialect::Gatus(settings) = &plan.dialect
        && let Ok(address) = settings.address.parse()
    {
        preferred.listen.push((address, None));
    }
    let route = format!("[[route]]\nmonitor = {}\n", quoted_path(&args.file));
    args.serving
        .serve_preferring(&route, &preferred, Brought::all())
}

fn load(file: &Path) -> Result<Plan, Failed> {
    config::load_with(file, &variable, script::SUPPLIED).map_err(|error| match error {
        LoadError::Problems { path, problems } => Failed {
            exit: Exit::Usage,
            problems: problems
                .iter()
                .map(|problem| {
                    let place = format!("{path}:{}:{}", problem.line, problem.column);
                    let shown = Problem::new(problem).about(&place);
                    match &problem.hint {
                        Some(hint) => shown.hint(hint),
                        None => shown,
                    }
                })
                .collect(),
        },
        error @ LoadError::Read { .. } => Problem::new(error.to_string()).usage(),
    })
}

fn unusable(error: &StoreError) -> Failed {
    Problem::caused_by(error).could_not_run()
}

/// A configuration's store, which outlives the process.
fn lasting(config: &Path) -> Result<Plan, Failed> {
    let plan = load(config)?;
    match plan.store {
        StorePlan::Memory => {
            let problem = Problem::new(format!("{} keeps its data in memory", config.display()));
            Err(problem.hint("give it a `store`").usage())
        }
        _ => Ok(plan),
    }
}

/// The file of a configuration's store.
fn file_of(config: &Path) -> Result<PathBuf, Failed> {
    match lasting(config)?.store {
        StorePlan::Sqlite(path) => Ok(path),
        StorePlan::Memory => Err(Problem::new("the store is in memory").usage()),
        StorePlan::Servers(..) => {
            let problem = Problem::new(format!(
                "{} keeps its data in PostgreSQL and ClickHouse",
                config.display()
            ));
            let hint = "copy PostgreSQL with pg_dump, and ClickHouse with its BACKUP statement";
            Err(problem.hint(hint).usage())
        }
    }
}

fn backup(config: &Path, to: &Path) -> Result<Exit, Failed> {
    let path = file_of(config)?;
    store::backup(&path, to).map_err(|error| unusable(&error))?;
    done(&format!("wrote {}", to.display()))
}

fn restore(config: &Path, from: &Path, replace: bool) -> Result<Exit, Failed> {
    let path = file_of(config)?;
    store::restore(from, &path, replace).map_err(|error| unusable(&error))?;
    done(&format!(
        "restored {} from {}",
        path.display(),
        from.display()
    ))
}

fn token(name: &str, scope: Scope) -> Result<Exit, Failed> {
    let token = ApiToken::generate()
        .map_err(|error| Problem::new(format!("no random numbers: {error}")).could_not_run())?;
    let scopes = match scope {
        Scope::Read => "[\"read\"]",
        Scope::Write => "[\"read\", \"write\"]",
        Scope::Admin => "[\"read\", \"write\", \"admin\"]",
    };
    done(&format!(
        "{token}\n\n[[token]]\nname = {}\nsha256 = \"{}\"\nscopes = {scopes}",
        readable_toml_string(name),
        ApiToken::written(&ApiToken::hash_of(&token)),
    ))
}

fn agent_token(name: &str) -> Result<Exit, Failed> {
    let token = ApiToken::generate()
        .map_err(|error| Problem::new(format!("no random numbers: {error}")).could_not_run())?;
    done(&format!(
        "{token}\n\n[[agent]]\nname = {}\nsha256 = \"{}\"",
        readable_toml_string(name),
        ApiToken::written(&ApiToken::hash_of(&token)),
    ))
}

fn stored_token(
    config: &Path,
    name: &str,
    scope: Scope,
    expires: Option<Duration>,
) -> Result<Exit, Failed> {
    let plan = lasting(config)?;
    let made = setup::add_token(&plan.store, &plan.organisation, name, scope, expires);
    let token = made.map_err(|error| Problem::caused_by(&error).could_not_run())?;
    done(&token)
}

fn init(config: &Path, name: &str, from_stdin: bool, reset: bool) -> Result<Exit, Failed> {
    let plan = lasting(config)?;
    let given = if from_stdin {
        let mut line = String::new();
        std::io::stdin()
            .read_line(&mut line)
            .map_err(|error| Problem::caused_by(&error).could_not_run())?;
        Some(line.trim_end_matches(['\r', '\n']).to_owned())
    } else {
        None
    };
    let outcome = if reset {
        setup::reset_password(&plan.store, &plan.organisation, name, given)
    } else {
        setup::add_owner(&plan.store, &plan.organisation, name, given)
    };
    match outcome {
        Ok(Some(password)) => done(&format!(
            "user: {name}\npassword: {password}\nSign in at /admin; you choose another password there."
        )),
        Ok(None) => done(&format!("user: {name}\nSign in at /admin.")),
        Err(error @ SetupError::HasUsers) => {
            let problem = Problem::caused_by(&error);
            Err(problem
                .hint("add members at /admin/members, or give --reset for a new password")
                .usage())
        }
        Err(error @ (SetupError::Password(_) | SetupError::Name | SetupError::NoUser)) => {
            Err(Problem::caused_by(&error).usage())
        }
        Err(error) => Err(Problem::caused_by(&error).could_not_run()),
    }
}

fn notify_test(config: &Path, channel: Option<&str>) -> Result<Exit, Failed> {
    let plan = load(config)?;
    let chosen: Vec<_> = plan
        .channels
        .iter()
        .filter(|plan| channel.is_none_or(|name| plan.name == name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = plan
            .channels
            .iter()
            .map(|plan| plan.name.as_str())
            .collect();
        let problem = match channel {
            Some(name) => Problem::new(format!("there is no channel `{name}`")),
            None => Problem::new(format!("{} has no [[notify]]", config.display())),
        };
        let problem = if names.is_empty() {
            problem
        } else {
            problem.hint(format!("channels are {}", names.join(", ")))
        };
        return Err(problem.usage());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let local = tokio::task::LocalSet::new();
    let mut problems = Vec::new();
    for plan in chosen {
        match local.block_on(&runtime, send_test(plan)) {
            Ok(()) => {
                done(&format!("{}: sent", plan.name))?;
            }
            Err(failure) => problems.push(Problem::new(failure.reason).about(&plan.name)),
        }
    }
    if problems.is_empty() {
        return Ok(Exit::Fine);
    }
    Err(Failed {
        exit: Exit::Objective,
        problems,
    })
}

fn import(file: &Path, apply: Option<&server::Server>) -> Result<Exit, Failed> {
    let shown = file.display().to_string();
    if let Some(server) = apply
        && file
            .extension()
            .is_some_and(|extension| extension == "toml")
    {
        let text = Problems::read(file).map_err(|message| Problem::new(message).usage())?;
        return kept::apply(&String::from_utf8_lossy(&text), file, server);
    }
    let imported = import::import_file(file);
    let (_, imported) =
        imported.map_err(|error| Problem::caused_by(&error).about(&shown).usage())?;
    let mut remarks: Vec<_> = imported.remarks.iter().map(Problem::new).collect();
    if apply.is_some() && imported.text.contains("[[notify]]") {
        let left_out = "--apply adds monitors only; the file without it has [[notify]] too";
        remarks.push(Problem::new(left_out));
    }
    terminal::print_warnings(&remarks);
    match apply {
        Some(server) => kept::apply(&imported.text, file, server),
        None => done(imported.text.trim_end()),
    }
}

/// Writes what Uptime Kuma has seen into the store of a configuration.
fn import_history(file: &Path, config: &Path) -> Result<Exit, Failed> {
    let plan = load(config)?;
    let could_not = |error: &dyn std::error::Error| Problem::caused_by(error).could_not_run();
    let store = plan.open_store().map_err(|error| could_not(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| could_not(&error))?;
    let now = Timestamp::from_system(SystemClock.wall());
    let written = runtime.block_on(import::import_history(file, &plan, &*store, now));
    let shown = file.display().to_string();
    let written = written.map_err(|error| Problem::caused_by(&error).about(&shown).usage())?;
    let remarks: Vec<_> = written.remarks.iter().map(Problem::new).collect();
    terminal::print_warnings(&remarks);
    done(&format!(
        "{} monitors have a history: {} results, {} incidents",
        written.monitors, written.results, written.incidents
    ))
}

fn done(line: &str) -> Result<Exit, Failed> {
    terminal::print(line).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
