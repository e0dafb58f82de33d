//! The shares of the processes that check for an organisation, and the results that they hand over.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::StoreError;
use crate::store::server::postgres::Scoped;
use crate::store::shards::{Division, HandedOver, Shards, SharedResult};

/// The first half of the key of the lock, so that writes of the organisation are not waited for.
const LOCK: i32 = 0x706c_7368;

/// Takes or renews the share of a process, and gives up what others are entitled to. The clock is that of PostgreSQL.
pub(super) async fn hold(
    scoped: &Scoped<'_>,
    organisation: &str,
    process: &str,
    lasts: Duration,
) -> Result<Division, StoreError> {
    let seconds = lasts.as_secs_f64();
    let lock = "SELECT pg_advisory_xact_lock($1::INT, ($2::BIGINT % 2147483647)::INT)";
    scoped.query(lock, &[&LOCK, &scoped.org()]).await?;
    let sql =
        "SELECT process, shards, until > clock_timestamp() AS lives FROM shares WHERE org_id = $1";
    let mut shares = BTreeMap::new();
    let mut has_dead = false;
    for row in scoped.query(sql, &[&scoped.org()]).await? {
        if row.try_get("lives")? {
            let bits: &[u8] = row.try_get("shards")?;
            shares.insert(row.try_get("process")?, Shards::from_bytes(bits));
        } else {
            has_dead = true;
        }
    }
    let mut division = Division {
        shares,
        leader: None,
    };
    let claimed = division.claim(process);
    if has_dead {
        let sql = "DELETE FROM shares WHERE org_id = $1 AND until <= clock_timestamp()";
        scoped.execute(sql, &[&scoped.org()]).await?;
    }
    scoped
        .execute(
            "INSERT INTO shares (org_id, process, until, shards)
             VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), $4)
             ON CONFLICT (org_id, process)
             DO UPDATE SET until = excluded.until, shards = excluded.shards",
            &[&scoped.org(), &process, &seconds, &claimed.to_bytes()],
        )
        .await?;
    division.shares.insert(process.to_owned(), claimed);
    let sql = "SELECT holder FROM leases WHERE name = $1 AND until > clock_timestamp()";
    if let Some(row) = scoped.query(sql, &[&organisation]).await?.first() {
        let leader: String = row.try_get(0)?;
        // A process that takes no part checks everything itself.
        division.leader = Some(leader).filter(|leader| division.shares.contains_key(leader));
    }
    Ok(division)
}

/// Ends the share of a process, so that others need not wait until it is over.
pub(super) async fn end(scoped: &Scoped<'_>, process: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM shares WHERE org_id = $1 AND process = $2";
    scoped.execute(sql, &[&scoped.org(), &process]).await?;
    Ok(())
}

/// Hands results over. Those of shards that the process does not have are left out: another one checks them.
pub(super) async fn hand_over(
    scoped: &Scoped<'_>,
    process: &str,
    results: &[SharedResult],
) -> Result<(), StoreError> {
    let numbers: Vec<i64> = results.iter().map(|result| result.number).collect();
    let shards = results
        .iter()
        .map(|result| Shards::shard_of(result.monitor));
    let shards: Vec<i32> = shards.map(i32::from).collect();
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    scoped
        .execute(
            "INSERT INTO handed_over (org_id, process, number, at, found)
             SELECT $1, $2, given.number, clock_timestamp(), given.found
             FROM unnest($3::BIGINT[], $4::INT[], $5::TEXT[]) AS given (number, shard, found)
             JOIN shares ON shares.org_id = $1 AND shares.process = $2
                 AND shares.until > clock_timestamp()
             WHERE get_bit(shares.shards, given.shard) = 1
             ON CONFLICT DO NOTHING",
            &[&scoped.org(), &process, &numbers, &shards, &texts],
        )
        .await?;
    Ok(())
}

/// Fetches the results that others handed over, each once, in the order of each process.
pub(super) async fn fetch(scoped: &Scoped<'_>) -> Result<Vec<HandedOver>, StoreError> {
    let sql = "DELETE FROM handed_over WHERE org_id = $1 RETURNING process, number, found,
               (EXTRACT(EPOCH FROM clock_timestamp() - at) * 1000)::BIGINT AS age";
    let mut fetched = Vec::new();
    for row in scoped.query(sql, &[&scoped.org()]).await? {
        let age: i64 = row.try_get("age")?;
        fetched.push(HandedOver {
            process: row.try_get("process")?,
            number: row.try_get("number")?,
            age: Duration::from_millis(u64::try_from(age).unwrap_or(0)),
            text: row.try_get("found")?,
        });
    }
    fetched.sort_by(|one, other| (&one.process, one.number).cmp(&(&other.process, other.number)));
    Ok(fetched)
}
