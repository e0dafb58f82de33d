//! The contract for status pages.

use std::time::Duration;

use crate::detect::status::{Health, Status};
use crate::store::contract::{NOON, new, one, row};
use crate::store::{
    Change, DeclaredEdit, DeclaredId, Impact, NewDeclared, PublicPhase, Resolution, Store,
    StoreError,
};
use crate::time::Timestamp;

pub(super) async fn declared_incidents_have_versions(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let other = store.org("other").await.unwrap();
    let new = NewDeclared {
        title: "slow".to_owned(),
        phase: PublicPhase::Investigating,
        impact: Impact::Minor,
        counts_as_downtime: true,
        started: NOON,
        monitors: vec![monitor],
        body: "we are looking".to_owned(),
        actor: Some("ann".to_owned()),
        idempotency: Some(("key".to_owned(), [7; 32])),
    };
    let first = store.declare(org, new.clone(), NOON).await.unwrap();
    assert_eq!((first.version, first.updates.len()), (1, 1));
    assert_eq!(first.monitors, [monitor]);
    // The same request again declares nothing.
    let again = store.declare(org, new.clone(), NOON).await.unwrap();
    assert_eq!(again, first);
    let reused = NewDeclared {
        idempotency: Some(("key".to_owned(), [8; 32])),
        ..new.clone()
    };
    let reused = store.declare(org, reused, NOON).await;
    assert!(matches!(reused, Err(StoreError::Conflict)), "{reused:?}");
    // Another organisation has neither the monitor nor the incident.
    let foreign = store.declare(other, new, NOON).await;
    assert!(
        matches!(foreign, Err(StoreError::NotFound(_))),
        "{foreign:?}"
    );
    assert_eq!(store.declared_one(other, first.id).await.unwrap(), None);
    let later = NOON.plus(Duration::from_mins(5));
    let edit = DeclaredEdit {
        phase: Some(PublicPhase::Resolved),
        body: Some("it is over".to_owned()),
        version: Some(1),
        ..DeclaredEdit::default()
    };
    let foreign = store
        .edit_declared(other, first.id, edit.clone(), later)
        .await;
    assert!(
        matches!(foreign, Err(StoreError::NotFound(_))),
        "{foreign:?}"
    );
    let resolved = store
        .edit_declared(org, first.id, edit.clone(), later)
        .await
        .unwrap();
    assert_eq!((resolved.version, resolved.resolved), (2, Some(later)));
    assert_eq!(resolved.updates[0].body, "it is over");
    let stale = store.edit_declared(org, first.id, edit, later).await;
    assert!(matches!(stale, Err(StoreError::Conflict)), "{stale:?}");
    // A postmortem does not move the end; a reopened incident has none.
    let phase = async |phase| {
        let edit = DeclaredEdit {
            phase: Some(phase),
            ..DeclaredEdit::default()
        };
        let now = later.plus(Duration::from_mins(5));
        store.edit_declared(org, first.id, edit, now).await.unwrap()
    };
    assert_eq!(phase(PublicPhase::Postmortem).await.resolved, Some(later));
    assert_eq!(phase(PublicPhase::Monitoring).await.resolved, None);
    let list = async |since| store.declared(org, since, None, 10).await.unwrap().len();
    assert_eq!(list(Timestamp(i64::MAX)).await, 1, "it is open");
    phase(PublicPhase::Resolved).await;
    assert_eq!(list(Timestamp(i64::MAX)).await, 0);
    assert_eq!(list(NOON).await, 1);
    let before = store
        .declared(org, NOON, Some(DeclaredId(first.id.0)), 10)
        .await;
    assert!(before.unwrap().is_empty());
}

pub(super) async fn histories_are_those_of_single_calls(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    let ids = store
        .sync_monitors(org, "file", vec![new("a"), new("b")], NOON)
        .await
        .unwrap();
    let change = |monitor, seconds: i64, health| Change::Health {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        health,
        reason: None,
    };
    let opened = |monitor, seconds: i64| Change::Opened {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        reason: None,
    };
    let changes = vec![
        change(ids[0], -60, Health::Up),
        change(ids[0], 10, Health::Down),
        opened(ids[0], 10),
        change(ids[1], 20, Health::Up),
    ];
    store.record(org, changes).await.unwrap();
    let rows = vec![
        row(ids[0], 5, Status::Up, 1_000),
        row(ids[1], 6, Status::Up, 2_000),
    ];
    store.append(org, rows).await.unwrap();
    let end = Timestamp(NOON.0 + 60_000);
    let wanted = vec![ids[1], ids[0]];
    let histories = store
        .histories(org, wanted.clone(), NOON, NOON, end)
        .await
        .unwrap();
    for (id, history) in wanted.iter().zip(&histories) {
        let health = store.health(org, *id, NOON, end).await.unwrap();
        let health: Vec<_> = health.into_iter().map(|(change, _)| change).collect();
        assert_eq!(history.health, health);
        let hour = Resolution::Hour;
        let hours = store.rollups(org, *id, hour, NOON, end).await.unwrap();
        assert_eq!((hours.len(), history.hours.as_ref()), (1, Some(&hours)));
    }
    assert_eq!(
        histories[1].health.len(),
        2,
        "with the change before the window"
    );
    let open = store.timelines(org, Timestamp(i64::MAX), 10).await.unwrap();
    assert_eq!(
        (open.len(), open[0].1.len()),
        (1, 1),
        "open, with its event"
    );
    let other = store.org("other").await.unwrap();
    let foreign = store
        .histories(other, wanted, NOON, NOON, end)
        .await
        .unwrap();
    assert!(
        foreign
            .iter()
            .all(|one| one.health.is_empty() && one.hours.as_ref().is_none_or(Vec::is_empty))
    );
    let foreign = store.timelines(other, Timestamp(0), 10).await.unwrap();
    assert!(foreign.is_empty());
}
