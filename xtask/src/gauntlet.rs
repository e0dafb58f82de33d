//! `cargo xtask gauntlet`: hostile servers with exact logs, and every figure of plimsoll beside them.
//!
//! Each set-up has a server of its own, written here, so that plimsoll does not judge itself. What the text, the JSON,
//! the CSV, the HTML and the log of histograms show is compared with what the server did and with theory. A figure that
//! is off by more than 2 % and not marked (a bound `≥`, a caution about the generator or the machine, or by as much as is said to be
//! the generator's at most) is a failure; counts have to be equal always, and in every format.

mod call;
mod figures;
mod judge;
mod server;
mod setup;
mod setups;
mod table;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use self::call::{Unavailable, call};
use self::figures::Outputs;
use self::judge::{Row, rows};
use self::server::Running;
use self::setup::{Load, Setup};
use self::table::Table;
use self::truth::{Allowed, Truth, start};
use crate::bench::target_directory;
use crate::clock::{now, wait};
use crate::step;
use crate::{Failure, Outcome};

/// Which set-ups, and against what
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run only set-ups whose names contain this, repeatable
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// List the set-ups
    #[arg(long)]
    list: bool,

    /// Test this program, of that profile, instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Build with this profile
    #[arg(long, default_value = "dev")]
    profile: String,

    /// Print every comparison, not only those that are marked or wrong
    #[arg(long)]
    all: bool,

    /// Write the table into docs/conformance.md
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

/// Runs the task; fails if a figure is wrong and not marked.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let setups: Vec<Setup> = setups::all()
        .filter(|setup| {
            let only = &arguments.only;
            only.is_empty() || only.iter().any(|part| setup.name.contains(part.as_str()))
        })
        .collect();
    if arguments.list {
        for setup in &setups {
            println!("{:<24} {}", setup.name, setup.about);
        }
        return Ok(());
    }
    let target = target_directory(root)?;
    let program = program(root, &target, arguments)?;
    let folder = target.join(format!("gauntlet-{}", std::process::id()));
    let allowed = match arguments.profile.as_str() {
        "dev" => Allowed::DEV,
        _ => Allowed::OPTIMISED,
    };
    prioritise();
    let mut table = Table::default();
    for (number, setup) in setups.iter().enumerate() {
        let place = folder.join(setup.name);
        fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        println!("[{}/{}] {}", number + 1, setups.len(), setup.name);
        match compare(setup, &program, &place, allowed) {
            Ok(rows) => {
                table::print(&rows, arguments.all);
                table.add(setup, &rows);
            }
            Err(Unavailable::Here(why)) => {
                println!("  not run: {why}");
                table.leave_out(setup, why);
            }
            Err(Unavailable::Failed(Failure(message))) => {
                println!("  FAILED: {message}");
                table.fail(setup);
            }
        }
    }
    // A leftover lies in the target directory.
    fs::remove_dir_all(&folder).ok();
    println!("{}", table.total());
    if arguments.write {
        table.write(root)?;
    }
    table.outcome()
}

fn program(root: &Path, target: &Path, arguments: &Arguments) -> Result<PathBuf, Failure> {
    let built = match (&arguments.program, arguments.profile.as_str()) {
        (Some(program), _) => program.clone(),
        (None, profile) => {
            let words = ["build", "--locked", "-p", "plimsoll", "--profile", profile];
            step::run(root, &mut step::cargo(&words))?;
            let folder = if profile == "dev" { "debug" } else { profile };
            target.join(folder).join("plimsoll")
        }
    };
    built
        .canonicalize()
        .map_err(|error| format!("{}: {error}", built.display()).into())
}

/// Gives the servers precedence over everything else, so that their delays are what their logs say; the generator has
/// no part in it. Where that is not permitted, a busy machine shows in the differences.
fn prioritise() {
    let id = std::process::id().to_string();
    let mut command = Command::new("chrt");
    command.args(["--fifo", "--all-tasks", "--pid", "10", &id]);
    if !command.status().is_ok_and(|status| status.success()) {
        println!("the servers get no precedence over other programs");
    }
}

/// Runs one set-up, and compares.
fn compare(
    setup: &Setup,
    program: &Path,
    folder: &Path,
    allowed: Allowed,
) -> Result<Vec<Row>, Unavailable> {
    let server = Running::start(setup.served, program, folder)?;
    let called = call(
        program,
        setup.load,
        setup.disturbance,
        &server.url(),
        server.port(),
        folder,
    )?;
    let wall = (seconds_of_day(), now());
    let end = now() + Duration::from_secs(3);
    while !server.is_idle() && now() < end {
        wait(Duration::from_millis(5));
    }
    let log = server.log();
    let is_script = matches!(setup.load, Load::Script(_));
    let out = folder.join("out");
    let outputs = Outputs::read(&out, &called.terminal, is_script)
        .map_err(|Failure(message)| format!("{message}\n{}", called.errors))?;
    let start = start(setup, &log, &outputs.json, wall).ok_or("no request arrived")?;
    let wire = server.wire_bytes();
    let truth = Truth::new(setup, &log, &outputs.json, start, wire, allowed);
    Ok(rows(setup, &truth, &outputs, called.exit))
}

/// Seconds since midnight (UTC).
#[expect(
    clippy::disallowed_methods,
    reason = "runs are dated by the wall clock"
)]
fn seconds_of_day() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() % (24.0 * 3600.0)
}
