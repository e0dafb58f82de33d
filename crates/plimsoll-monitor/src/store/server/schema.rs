//! The tables of PostgreSQL, and how older ones become the present ones: forward only.

use crate::store::StoreError;
use crate::store::server::postgres::{Postgres, Scoped, shown};

/// Each brings a schema from the version of its position to the next.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
];

/// Brings the schema up to date in one transaction; processes that start together do so one after the other.
///
/// Fails with [`StoreError::Newer`] if a newer version of plimsoll has been here.
pub(super) async fn migrate(postgres: &Postgres, url: &str) -> Result<(), StoreError> {
    postgres
        .write_all(async |scoped: &Scoped<'_>| {
            scoped
                .batch(
                    "SELECT pg_advisory_xact_lock(1886153069, -1);
                     CREATE TABLE IF NOT EXISTS plimsoll_schema (version BIGINT NOT NULL);",
                )
                .await?;
            let row = scoped
                .one("SELECT COALESCE(MAX(version), 0) FROM plimsoll_schema", &[])
                .await?;
            let (found, known): (i64, i64) = (row.try_get(0)?, version_of(MIGRATIONS.len()));
            if found > known {
                return Err(StoreError::Newer {
                    path: shown(url),
                    found,
                    known,
                });
            }
            for (step, sql) in MIGRATIONS.iter().enumerate() {
                if version_of(step) < found {
                    continue;
                }
                scoped.batch(sql).await?;
                let insert = "INSERT INTO plimsoll_schema (version) VALUES ($1)";
                scoped.execute(insert, &[&version_of(step + 1)]).await?;
            }
            Ok(())
        })
        .await
}

fn version_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
