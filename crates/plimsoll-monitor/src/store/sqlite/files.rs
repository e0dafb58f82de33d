//! The files of a store: its lock, backups, and how a backup becomes a store again.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_wire::files::NewFile;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::sqlite::{database, schema};
use crate::store::{StoreError, private};

/// Copies a store, which may be in use, to a new file.
///
/// Fails if there is no store, if it cannot be read, or if the new file exists.
pub fn backup(store: &Path, to: &Path) -> Result<(), StoreError> {
    let unusable = |path: &Path, reason: String| StoreError::Open {
        path: path.to_owned(),
        reason,
    };
    if to.exists() {
        return Err(unusable(
            to,
            "it exists already; name a new file".to_owned(),
        ));
    }
    let reading = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| unusable(store, error.to_string()))?;
    schema::version(&reading, store)?;
    // SQLite takes an empty file for a new one, and would otherwise make it by the umask.
    private::create_new(to).map_err(|error| unusable(to, error.to_string()))?;
    let copied = reading.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    copied.map(|_| ()).map_err(|error| {
        // The first error is the one to report.
        fs::remove_file(to).ok();
        unusable(to, error.to_string())
    })
}

/// Copies a backup to where a store is to be.
///
/// Fails if the backup is damaged or newer than this version, if the store is in use, or if it exists and `replace` is
/// false.
pub fn restore(backup: &Path, store: &Path, replace: bool) -> Result<(), StoreError> {
    let unusable = |path: &Path, reason: String| StoreError::Open {
        path: path.to_owned(),
        reason,
    };
    if !backup.is_file() {
        return Err(unusable(backup, "there is no such file".to_owned()));
    }
    let reading = Connection::open_with_flags(backup, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| unusable(backup, error.to_string()))?;
    schema::version(&reading, backup)?;
    let sound: String = reading
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .map_err(|error| unusable(backup, error.to_string()))?;
    if sound != "ok" {
        return Err(unusable(backup, format!("it is damaged: {sound}")));
    }
    drop(reading);
    if store.exists() && !replace {
        return Err(unusable(
            store,
            "it exists already; give --replace to overwrite it".to_owned(),
        ));
    }
    let _lock = lock(store, LOCK_TRIES)?;
    let copied = File::open(backup).and_then(|mut from| {
        let mut new = NewFile::private(store)?;
        io::copy(&mut from, new.file())?;
        Ok(new)
    });
    let new = copied.map_err(|error| unusable(store, error.to_string()))?;
    for suffix in ["-wal", "-shm"] {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unusable(store, error.to_string()));
            }
            _ => {}
        }
    }
    new.put()
        .map_err(|error| unusable(store, error.to_string()))
}

/// How often the lock of a store is tried: for a second, in which a predecessor that was stopped ends, or a child that
/// was forked while the store was open starts its own program.
pub(super) const LOCK_TRIES: u32 = 20;

/// Takes the lock of a store; the system releases it when the process ends, however it does.
#[expect(
    clippy::disallowed_methods,
    reason = "a bounded pause before the store opens, when nothing else runs on this thread"
)]
pub(super) fn lock(path: &Path, tries: u32) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let opened = private::open(Path::new(&name));
    let file = opened.map_err(|error| StoreError::Open {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let mut outcome = file.try_lock();
    for _ in 1..tries {
        if !matches!(outcome, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        outcome = file.try_lock();
    }
    match outcome {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(StoreError::Open {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// Statements that a connection keeps prepared: all that there are. Of fewer, a minute's upkeep of many monitors prepares each
/// anew for every monitor.
const STATEMENTS: usize = 128;

/// Makes the file of a store if there is none. Its log and its index take their permissions from it; those of an earlier
/// version are closed to others.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    let beside = ["-wal", "-shm", "-journal"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    });
    let prepared = private::open(path).and_then(|_| {
        let mut beside = beside.iter();
        beside.try_for_each(|path| private::close(path))
    });
    prepared.map_err(|error| StoreError::Open {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path).map_err(|error| StoreError::Open {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Makes a connection keep prepared statements and their first query plans. Without the query planner stability guarantee SQLite
/// plans many statements again when bound values change, which took four fifths of the time of a status page's statements.
pub(super) fn keep_statements(connection: &Connection) -> Result<(), StoreError> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(database)?;
    Ok(())
}
