//! `cargo xtask services`: the databases of the monitor's second store, for tests and by hand.
//!
//! PostgreSQL, MariaDB and Redis are Debian's, ClickHouse the engine of the Python package `chdb-core` behind a server of its HTTP interface. Tests
//! start their own; `up` starts a pair until it is interrupted.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};

use crate::free_port::free_port;
use crate::packages::{self, Package};
use crate::python::{self, Packages};
use crate::{Failure, Outcome, bench, step};

/// The same that tests use. It needs the standard library only.
#[path = "../../crates/plimsoll-testkit/src/services.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "tests use parts that the command does not need"
)]
mod servers;

/// ClickHouse's engine, and its version 26.9.
const CHDB: &str = "chdb-core==26.9.0";

/// Names functions in Python for profiles; it lies beside, since it needs no server of its own.
const PY_SPY: &str = "py-spy==0.4.3";

/// `pg_ctlcluster` is on the search path, the programs that tests start are not.
const POSTGRES: Package = Package {
    program: "pg_ctlcluster",
    name: "postgresql",
};

/// The server of MariaDB, without a service that starts by itself.
const MARIADB: Package = Package {
    program: "mariadb-install-db",
    name: "mariadb-server-core",
};

/// Its installation reads options by a program of the client.
const MARIADB_CLIENT: Package = Package {
    program: "my_print_defaults",
    name: "mariadb-client-core",
};

/// A broker of MQTT.
const MOSQUITTO: Package = Package {
    program: "mosquitto",
    name: "mosquitto",
};

/// The programs of Redis, the server among them, without a service that starts by itself.
const REDIS: Package = Package {
    program: "redis-check-rdb",
    name: "redis-tools",
};

/// Servers of which each has a probe of the monitor.
const PROBED: [Package; 7] = [
    packages::PROMETHEUS,
    // For a stand-in of systemd.
    Package {
        program: "dbus-daemon",
        name: "dbus-daemon",
    },
    Package {
        program: "chronyd",
        name: "chrony",
    },
    Package {
        program: "nats-server",
        name: "nats-server",
    },
    Package {
        program: "slapd",
        name: "slapd",
    },
    Package {
        program: "snmpd",
        name: "snmpd",
    },
    Package {
        program: "rabbitmqctl",
        name: "rabbitmq-server",
    },
];

/// What is done with the databases
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what is missing: databases and other servers of Debian by apt, ClickHouse's engine and py-spy by pip under the target directory
    Install,
    /// Start both on free ports and print their URLs; they end with the standard input, or at `services down`
    Up,
    /// End those that `services up` started
    Down,
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    match arguments.task {
        Task::Install => install(root).map(|_| ()),
        Task::Up => up(root),
        Task::Down => down(root),
    }
}

/// Installs what is missing, and returns the virtual environment.
pub(crate) fn install(root: &Path) -> Result<PathBuf, Failure> {
    packages::install(root, &[POSTGRES, MARIADB, MARIADB_CLIENT, REDIS, MOSQUITTO])?;
    packages::install(root, &PROBED)?;
    packages::install(root, &[packages::PHP, packages::UWSGI])?;
    let environment = folder(root)?.join("venv");
    // Without the packages for data frames, which the engine does not need.
    let wanted = Packages {
        found: |environment| {
            python::has_module(environment, "chdb") && environment.join("bin/py-spy").exists()
        },
        arguments: &["--no-deps", CHDB, PY_SPY],
    };
    python::environment(root, &environment, &wanted)?;
    Ok(environment)
}

fn folder(root: &Path) -> Result<PathBuf, Failure> {
    Ok(bench::target_directory(root)?.join("services"))
}

fn up(root: &Path) -> Outcome {
    let environment = install(root)?;
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let postgres = servers::PostgresServer::start(Some(port));
    let clickhouse = servers::ClickHouseServer::start(&environment, 0);
    println!(
        "store = {{ postgres = \"{}\", clickhouse = \"{}\" }}",
        postgres.database(),
        clickhouse.database()
    );
    let pid = folder(root)?.join("pid");
    std::fs::write(&pid, std::process::id().to_string())
        .map_err(|error| format!("cannot write {}: {error}", pid.display()))?;
    println!("press Ctrl+D, or run `cargo xtask services down`, to end them");
    let mut rest = Vec::new();
    // Waits for the end of the input; what is typed before does not matter.
    std::io::stdin().read_to_end(&mut rest).ok();
    std::fs::remove_file(&pid).ok();
    Ok(())
}

/// The servers notice the end of the process that started them.
fn down(root: &Path) -> Outcome {
    let file = folder(root)?.join("pid");
    let Ok(pid) = std::fs::read_to_string(&file) else {
        println!("none were started");
        return Ok(());
    };
    let outcome = step::run(root, Command::new("kill").arg(pid.trim()));
    std::fs::remove_file(&file).ok();
    outcome
}
