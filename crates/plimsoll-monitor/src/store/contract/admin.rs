//! The contract for the admin pages and the API: definitions, users, sessions, tokens, the audit log.

use std::time::Duration;

use crate::store::contract::{NOON, new};
use crate::store::{
    DefinitionChanges, DefinitionKind, NewAudit, NewSession, NewToken, PutDefinition, Replay, Role,
    Scope, SessionChoice, Store, StoreError, TotpSecret, UserEdit,
};
use crate::time::Timestamp;

const MONITOR: DefinitionKind = DefinitionKind::Monitor;

fn put(key: &str, was: Option<&str>, version: Option<i64>) -> PutDefinition {
    PutDefinition {
        id: None,
        key: key.to_owned(),
        was: was.map(str::to_owned),
        version,
        text: format!("name = \"{key}\"\n"),
        monitor: Some(new(key)),
    }
}

fn puts(puts: Vec<PutDefinition>) -> DefinitionChanges {
    DefinitionChanges {
        puts,
        audit: vec![NewAudit {
            actor: "ann".to_owned(),
            action: "monitor.create".to_owned(),
            ..NewAudit::default()
        }],
        ..DefinitionChanges::default()
    }
}

pub(super) async fn definitions_have_versions_and_keep_their_monitors(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    let other = store.org("other").await.unwrap();
    let mut first = puts(vec![put("a", None, None), put("b", None, None)]);
    first.replay = Some(Replay {
        key: "once".to_owned(),
        request: [7; 32],
        answer: "done".to_owned(),
    });
    let made = store
        .change_definitions(org, MONITOR, first.clone(), NOON)
        .await
        .unwrap();
    assert_eq!(
        (made[0].0.version, made[0].0.actor.as_deref()),
        (1, Some("ann"))
    );
    let monitor = made[0].1.unwrap();
    assert_eq!(store.replay(org, "once").await.unwrap(), first.replay);
    assert_eq!(store.replay(other, "once").await.unwrap(), None);

    // A key in use, another version and an unknown key change nothing, whatever else the changes hold.
    for (wrong, is_conflict) in [
        (puts(vec![put("c", None, None), put("a", None, None)]), true),
        (
            puts(vec![put("c", None, None), put("a", Some("a"), Some(9))]),
            true,
        ),
        (
            puts(vec![put("c", None, None), put("x", Some("x"), None)]),
            false,
        ),
        (
            puts(vec![put("c", None, None), put("b", Some("a"), None)]),
            true,
        ),
    ] {
        let refused = store.change_definitions(org, MONITOR, wrong, NOON).await;
        match refused {
            Err(StoreError::Conflict) => assert!(is_conflict),
            Err(StoreError::NotFound(_)) => assert!(!is_conflict),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.definitions(org, MONITOR).await.unwrap().len(), 2);
    let found = store.definition(org, MONITOR, "a").await.unwrap();
    assert_eq!(found.as_ref(), Some(&made[0].0));
    for (org, kind, key) in [
        (other, MONITOR, "a"),
        (org, DefinitionKind::Page, "a"),
        (org, MONITOR, "c"),
    ] {
        assert_eq!(store.definition(org, kind, key).await.unwrap(), None);
    }
    assert_eq!(store.monitors(org).await.unwrap().len(), 2);
    assert_eq!(store.audit(org, None, 10).await.unwrap().len(), 1);

    // Another key is the same monitor.
    let renamed = puts(vec![put("z", Some("a"), Some(1))]);
    let renamed = store
        .change_definitions(org, MONITOR, renamed, NOON)
        .await
        .unwrap();
    assert_eq!((renamed[0].0.version, renamed[0].1), (2, Some(monitor)));

    // A removed monitor is retired; one of that key later has its history.
    let removal = DefinitionChanges {
        removals: vec![("z".to_owned(), Some(2))],
        ..DefinitionChanges::default()
    };
    let elsewhere = store
        .change_definitions(other, MONITOR, removal.clone(), NOON)
        .await;
    assert!(matches!(elsewhere, Err(StoreError::NotFound(_))));
    store
        .change_definitions(org, MONITOR, removal, NOON)
        .await
        .unwrap();
    assert_eq!(store.monitors(org).await.unwrap().len(), 1);
    let again = puts(vec![put("z", None, None)]);
    let again = store
        .change_definitions(org, MONITOR, again, NOON)
        .await
        .unwrap();
    assert_eq!((again[0].0.version, again[0].1), (1, Some(monitor)));
    // A monitor that takes the key of a retired one keeps its own history.
    let removal = DefinitionChanges {
        removals: vec![("z".to_owned(), None)],
        puts: vec![put("z", Some("b"), None)],
        ..DefinitionChanges::default()
    };
    let taken = store
        .change_definitions(org, MONITOR, removal, NOON)
        .await
        .unwrap();
    assert_ne!(taken[0].1, Some(monitor));
    assert!(store.definitions(other, MONITOR).await.unwrap().is_empty());
    let page = DefinitionKind::Page;
    assert!(store.definitions(org, page).await.unwrap().is_empty());
}

pub(super) async fn definitions_have_ids_that_stay(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    let other = store.org("other").await.unwrap();
    let change = async |put| {
        let changed = store.change_definitions(org, MONITOR, puts(vec![put]), NOON);
        changed.await.map(|written| written[0].0.clone())
    };
    let found = async |id| {
        let found = store.definition_by_id(org, MONITOR, id).await.unwrap();
        found.map(|definition| definition.key)
    };
    let chosen = |id: &str, key: &str| PutDefinition {
        id: Some(id.to_owned()),
        ..put(key, None, None)
    };
    // A client chose it, or it is the key.
    assert_eq!(change(chosen("x", "a")).await.unwrap().id, "x");
    assert_eq!(change(put("b", None, None)).await.unwrap().id, "b");
    assert_eq!(found("x").await.as_deref(), Some("a"));
    assert_eq!(found("b").await.as_deref(), Some("b"));
    assert_eq!(found("a").await, None);
    // It stays when the key changes, and the key may come back.
    for (was, key, id) in [("a", "c", "x"), ("b", "d", "b"), ("d", "e", "b")] {
        let renamed = change(put(key, Some(was), None)).await.unwrap();
        assert_eq!((renamed.key.as_str(), renamed.id.as_str()), (key, id));
        assert_eq!(found(id).await.as_deref(), Some(key));
    }
    assert_eq!(change(put("b", None, None)).await.unwrap().id, "b-2");
    assert_eq!(found("b").await.as_deref(), Some("e"));
    assert_eq!(found("b-2").await.as_deref(), Some("b"));
    // One that is in use is refused, also if it is only the key of another one.
    for id in ["x", "b", "b-2"] {
        let refused = change(chosen(id, "f")).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{id}");
    }
    let listed = store.definitions(org, MONITOR).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|(one, _)| one.id.as_str()).collect();
    assert_eq!(listed, ["b-2", "x", "b"], "by key");
    // Of this organisation and kind alone.
    for (org, kind) in [(other, MONITOR), (org, DefinitionKind::Page)] {
        let found = store.definition_by_id(org, kind, "x").await.unwrap();
        assert_eq!(found, None);
    }
}

pub(super) async fn users_have_roles_and_sessions(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    let other = store.org("other").await.unwrap();
    let secret = || ("hash".to_owned(), true);
    let owner = store
        .add_user(org, "ann", Role::Owner, secret(), true, NOON)
        .await
        .unwrap();
    for (name, only_first) in [("ann", false), ("bob", true)] {
        let refused = store
            .add_user(org, name, Role::Viewer, secret(), only_first, NOON)
            .await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{name}");
    }
    let viewer = store
        .add_user(org, "bob", Role::Viewer, secret(), false, NOON)
        .await
        .unwrap();
    // The last owner stays one.
    let role = |role| UserEdit {
        role: Some(role),
        ..UserEdit::default()
    };
    let refused = store.edit_user(org, owner, role(Role::Viewer)).await;
    assert!(matches!(refused, Err(StoreError::Conflict)));
    let refused = store.remove_user(org, owner).await;
    assert!(matches!(refused, Err(StoreError::Conflict)));
    assert!(
        !store
            .edit_user(other, viewer, role(Role::Owner))
            .await
            .unwrap()
    );
    assert!(!store.remove_user(other, viewer).await.unwrap());
    assert!(
        store
            .edit_user(org, viewer, role(Role::Owner))
            .await
            .unwrap()
    );
    assert!(
        store
            .edit_user(org, owner, role(Role::Viewer))
            .await
            .unwrap()
    );
    let change = UserEdit {
        password: Some(("new".to_owned(), false)),
        totp: Some(Some(TotpSecret(vec![1; 20]))),
        seen: Some(NOON),
        ..UserEdit::default()
    };
    assert!(store.edit_user(org, owner, change).await.unwrap());
    let users = store.users(org).await.unwrap();
    let ann = users.iter().find(|user| user.id == owner).unwrap();
    assert_eq!(
        (ann.role, ann.must_change, ann.seen),
        (Role::Viewer, false, Some(NOON))
    );
    assert_eq!(ann.password.expose(), "new");
    assert_eq!(ann.totp, Some(TotpSecret(vec![1; 20])));
    // Steps of one-time codes go forward only.
    assert!(store.use_totp_step(org, owner, 5).await.unwrap());
    assert!(!store.use_totp_step(org, owner, 5).await.unwrap());
    assert!(!store.use_totp_step(org, owner, 4).await.unwrap());
    assert!(!store.use_totp_step(other, owner, 6).await.unwrap());

    let later = |minutes| NOON.plus(Duration::from_mins(minutes));
    for number in 0..3_u8 {
        let session = NewSession {
            user: owner,
            hash: [number; 32],
            until: later(60),
            address: "127.0.0.1".to_owned(),
            agent: "browser".to_owned(),
        };
        store.open_session(org, session, NOON).await.unwrap();
    }
    let at = later(10);
    let (session, user) = store.session(org, [1; 32], at).await.unwrap().unwrap();
    assert_eq!((user.id, session.until), (owner, later(60)));
    let (session, _) = store.session(org, [1; 32], at).await.unwrap().unwrap();
    assert_eq!(session.seen, at, "the last use is noted");
    assert!(store.session(other, [1; 32], at).await.unwrap().is_none());
    assert!(store.session(org, [9; 32], at).await.unwrap().is_none());
    assert!(
        store
            .session(org, [1; 32], later(60))
            .await
            .unwrap()
            .is_none(),
        "it has ended"
    );
    let elsewhere = store
        .end_sessions(other, owner, SessionChoice::AllBut(0))
        .await;
    assert_eq!(elsewhere.unwrap(), 0);
    let ended = store
        .end_sessions(org, owner, SessionChoice::AllBut(session.id))
        .await;
    assert_eq!(ended.unwrap(), 2);
    assert_eq!(store.sessions(org, owner, at).await.unwrap().len(), 1);
    store.remove_user(org, owner).await.unwrap();
    assert!(
        store.session(org, [1; 32], at).await.unwrap().is_none(),
        "removed with its user"
    );
}

pub(super) async fn tokens_end_and_the_audit_log_stays(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    let other = store.org("other").await.unwrap();
    let token = NewToken {
        name: "ci".to_owned(),
        hash: [3; 32],
        scope: Scope::Write,
        until: Some(NOON.plus(Duration::from_hours(1))),
        creator: "ann".to_owned(),
    };
    let id = store.add_token(org, token.clone(), NOON).await.unwrap();
    let stored = store.tokens(org).await.unwrap();
    assert_eq!((stored[0].id, &stored[0].token), (id, &token));
    assert!(stored[0].is_valid(NOON));
    assert!(!stored[0].is_valid(NOON.plus(Duration::from_hours(1))));
    assert!(store.tokens(other).await.unwrap().is_empty());
    assert!(!store.revoke_token(other, id, NOON).await.unwrap());
    assert!(store.revoke_token(org, id, NOON).await.unwrap());
    assert!(!store.revoke_token(org, id, NOON).await.unwrap());
    assert!(!store.tokens(org).await.unwrap()[0].is_valid(NOON));

    for number in 0..5 {
        let entry = NewAudit {
            actor: "ann".to_owned(),
            address: "127.0.0.1".to_owned(),
            action: "token.create".to_owned(),
            object: number.to_string(),
            detail: Some("more".to_owned()),
        };
        let at = Timestamp(NOON.0 + number);
        store.record_audit(org, entry, at).await.unwrap();
    }
    let page = store.audit(org, None, 3).await.unwrap();
    let objects: Vec<_> = page.iter().map(|one| one.entry.object.as_str()).collect();
    assert_eq!(objects, ["4", "3", "2"]);
    let rest = store.audit(org, Some(page[2].id), 3).await.unwrap();
    assert_eq!(rest.len(), 2);
    assert!(store.audit(other, None, 3).await.unwrap().is_empty());
}
