//! Tables, and how older ones become the present ones: forward only.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::store::StoreError;
use crate::store::sqlite::{SqlitePath, database};

/// Each brings a schema from the version of its position to the next.
const MIGRATIONS: [&str; 7] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
];

/// How long a statement waits for a lock, such as that of a checkpoint.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sets a connection up.
pub(super) fn prepare(connection: &Connection, path: &SqlitePath) -> Result<(), StoreError> {
    connection.busy_timeout(PATIENCE).map_err(database)?;
    if let SqlitePath::File(path) = path {
        let mode: rusqlite::Result<String> =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        mode.map_err(|error| StoreError::Open {
            path: path.clone(),
            reason: error.to_string(),
        })?;
    }
    connection
        .execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;",
        )
        .map_err(database)
}

/// The version of a file's schema; fails if it is newer than ours.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error| StoreError::Open {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    match usize::try_from(found) {
        Ok(version) if found <= known => Ok(version),
        _ => Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        }),
    }
}

/// Whether a file has the present schema.
pub(super) fn is_present(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    Ok(version(connection, path)? == MIGRATIONS.len())
}

/// Brings the schema up to date, each step in its own transaction.
pub(super) fn migrate(connection: &mut Connection, path: &SqlitePath) -> Result<(), StoreError> {
    let path = match path {
        SqlitePath::File(path) => path.clone(),
        SqlitePath::Memory => PathBuf::from(":memory:"),
    };
    let from = version(connection, &path)?;
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(from) {
        let mut migrated = || -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            transaction.execute_batch(sql)?;
            transaction.pragma_update(
                None,
                "user_version",
                i64::try_from(step + 1).unwrap_or(i64::MAX),
            )?;
            transaction.commit()
        };
        migrated().map_err(database)?;
    }
    Ok(())
}
