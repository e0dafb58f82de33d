//! The leases of the processes that run the checks, one for each organisation.

use std::time::Duration;

use crate::store::StoreError;
use crate::store::server::postgres::{Postgres, Scoped};

/// Takes or renews the lease, unless another process has it. The clock is that of PostgreSQL.
pub(super) async fn hold(
    postgres: &Postgres,
    organisation: &str,
    holder: &str,
    lasts: Duration,
) -> Result<bool, StoreError> {
    let seconds = lasts.as_secs_f64();
    postgres
        .write_all(async |scoped: &Scoped<'_>| {
            let changed = scoped
                .execute(
                    "INSERT INTO leases (name, holder, until)
                     VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
                     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
                     WHERE leases.holder = excluded.holder OR leases.until < clock_timestamp()",
                    &[&organisation, &holder, &seconds],
                )
                .await?;
            Ok(changed > 0)
        })
        .await
}

/// Ends the lease, so that another process need not wait until it is over.
pub(super) async fn end(
    postgres: &Postgres,
    organisation: &str,
    holder: &str,
) -> Result<(), StoreError> {
    postgres
        .write_all(async |scoped: &Scoped<'_>| {
            let sql = "DELETE FROM leases WHERE name = $1 AND holder = $2";
            scoped.execute(sql, &[&organisation, &holder]).await?;
            Ok(())
        })
        .await
}
