//! A primary and its standby behind one URL.

use plimsoll_testkit::free_port;

use super::*;

/// A primary and a standby of it on ports of their own, and a URL of both with an empty database.
fn primary_and_standby() -> (PostgresServer, PostgresServer, String) {
    let (first, second) = (free_port().unwrap(), free_port().unwrap());
    let primary = PostgresServer::start(Some(first));
    let database = primary.database();
    let standby = primary.start_standby(second);
    let one = format!("127.0.0.1:{first}");
    let url = database.replace(&one, &format!("{one},127.0.0.1:{second}"));
    (primary, standby, url)
}

#[test]
fn a_primary_that_hangs_is_left_for_the_standby_that_is_promoted() {
    let folder = TempDir::new().unwrap();
    let (primary, standby, url) = primary_and_standby();
    let store = open(&ServerUrls {
        postgres: Secret::new(url),
        ..without_clickhouse(&folder)
    });
    let long = Duration::from_hours(1);
    let (org, monitor) = block_on(async {
        assert!(store.hold_lease("one", "a", long).await.unwrap());
        assert!(store.hold_lease("one", "a", long).await.unwrap());
        monitor_in(&store, "one").await
    });
    primary.replicate_synchronously();
    block_on(async {
        store.append(org, rows(monitor, 0..10)).await.unwrap();
        store.flush().await.unwrap();
    });
    // It accepts connections and does not respond.
    primary.freeze();
    standby.promote();
    block_on(async {
        store.append(org, rows(monitor, 5..20)).await.unwrap();
        let silent = store.org("one").await;
        assert!(matches!(silent, Err(StoreError::Away(_))), "{silent:?}");
        assert_eq!(store.org("one").await.unwrap(), org);
        // A process that leads begins anew from what the other server has, with its lease.
        assert!(!store.hold_lease("one", "a", long).await.unwrap());
        assert!(store.hold_lease("one", "a", long).await.unwrap());
    });
    eventually(|| block_on(counted(&store, org, monitor)) == (20, 20));
}

#[test]
fn what_a_standby_had_not_received_is_written_anew() {
    let folder = TempDir::new().unwrap();
    let (mut primary, mut standby, url) = primary_and_standby();
    let store = open(&ServerUrls {
        postgres: Secret::new(url),
        ..without_clickhouse(&folder)
    });
    let (org, monitor) = block_on(monitor_in(&store, "one"));
    primary.wait_for_standby(&standby);
    // The partition of the day is made while the standby is away.
    standby.stop();
    block_on(async {
        store.append(org, rows(monitor, 0..10)).await.unwrap();
        store.flush().await.unwrap();
    });
    primary.crash();
    standby.resume();
    standby.promote();
    block_on(async {
        store.append(org, rows(monitor, 10..30)).await.unwrap();
    });
    eventually(|| block_on(counted(&store, org, monitor)) == (20, 20));
}

#[test]
fn a_primary_that_takes_no_writes_any_more_is_away_until_it_does() {
    let folder = TempDir::new().unwrap();
    let postgres = PostgresServer::start(None);
    let url = postgres.database();
    let database = database_of(&Secret::new(url.clone()));
    let store = open(&ServerUrls {
        postgres: Secret::new(url),
        ..without_clickhouse(&folder)
    });
    let set = |value: &str| {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
        postgres.sql(&database, &set);
        postgres.sql(&database, "SELECT pg_reload_conf()");
    };
    assert!(block_on(store.org("one")).is_ok());
    set("on");
    let mut number = 0;
    let mut refused = None;
    eventually(|| {
        number += 1;
        refused = block_on(store.org(&format!("other-{number}"))).err();
        refused.is_some()
    });
    assert!(matches!(refused, Some(StoreError::Away(_))), "{refused:?}");
    set("off");
    eventually(|| block_on(store.org("last")).is_ok());
}
