//! Escalations: the steps of a file, and those that the admin pages keep in the store.

use http::{Method, StatusCode};
use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::admin::{Admin, between};
use crate::client::Running;
use crate::notices::{Receiver, WRITER};

const TOKEN: &str = r#"
    [[token]]
    name = "ann"
    sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    scopes = ["write"]
"#;

fn channel(name: &str, receiver: &Receiver) -> String {
    let address = receiver.address;
    format!("[[notify]]\nname = \"{name}\"\nwebhook = {{ url = \"http://{address}/\" }}\n")
}

/// The state of the notice of a kind to a channel.
fn state(running: &Running, channel: &str, kind: &str) -> Option<String> {
    let (_, text) = running.call(Method::GET, "/api/v1/notices", &[WRITER], "");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let notices = answer["notices"].as_array().unwrap();
    let is_it = |it: &&Value| it["channel"] == channel && it["message"]["kind"] == kind;
    let found = notices.iter().find(is_it)?;
    Some(found["state"].as_str().unwrap().to_owned())
}

#[test]
fn an_opening_takes_its_steps_until_it_is_acknowledged() {
    let folder = TempDir::new().unwrap();
    let [ops, boss, others] = [(); 3].map(|()| Receiver::new(&[]));
    let [a, b] = [(); 2].map(|()| refused_address());
    let config = format!(
        "store = \"state.db\"\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\nrecover = 1\nhold = \"0s\"\nflap = false\n{TOKEN}\
         [[monitor]]\nname = \"a\"\nhttp = \"http://{a}/\"\n[[monitor]]\nname = \"b\"\nhttp = \"http://{b}/\"\n\
         {}{}{}\
         [[escalation]]\nname = \"of a\"\nmonitors = [\"a\"]\n[[escalation.step]]\nnotify = [\"ops\"]\n\
         [[escalation.step]]\nafter = \"3s\"\nnotify = \"boss\"\n\
         [[escalation]]\nname = \"of b\"\nmonitors = [\"b\"]\n[[escalation.step]]\nnotify = \"ops\"\n\
         [[escalation.step]]\nafter = \"1h\"\nnotify = [\"boss\"]\n",
        channel("ops", &ops),
        channel("boss", &boss),
        channel("others", &others),
    );
    let running = Running::new(folder.path(), "monitor.toml", &config);
    let sorted = |receiver: &Receiver| {
        let mut titles = receiver.titles();
        titles.sort();
        titles
    };
    eventually(|| sorted(&ops) == ["a is down", "b is down"]);
    // Nobody acknowledges the incident of `a`, so it goes on to the next step; that of `b` is acknowledged.
    let path = "/api/v1/monitors/_b/acknowledge";
    assert_eq!(
        running.call(Method::POST, path, &[WRITER], "").0,
        StatusCode::OK
    );
    eventually(|| boss.titles() == ["a is down"]);
    let _origins = [a, b].map(|address| Origin::builder().port(address.port()).start());
    // The end goes to who got the beginning.
    eventually(|| sorted(&boss) == ["a is down", "a is up again"]);
    eventually(|| sorted(&ops).len() == 4);
    for kind in ["opened", "resolved"] {
        let state = state(&running, "others", kind);
        assert_ne!(state.as_deref(), Some("sent"), "{kind}");
    }
    assert!(others.titles().is_empty(), "{:?}", others.titles());
}

#[test]
fn errors_of_escalations_name_their_place() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let text = "[[monitor]]\nname = \"m\"\nmanual = true\n\
        [[notify]]\nname = \"ops\"\nslack = { url = \"http://a\" }\n\
        [[escalation]]\nname = \"a\"\nmonitors = [\"x\"]\n[[escalation.step]]\nnotify = [\"nobody\"]\n\
        [[escalation.step]]\nafter = \"5m\"\nnotify = [\"ops\"]\n[[escalation.step]]\nafter = \"5m\"\nnotify = []\n\
        [[escalation]]\nname = \"a\"\n[[escalation.step]]\nnotify = [\"ops\"]\n[[escalation]]\nname = \"b\"\n";
    std::fs::write(&path, text).unwrap();
    let error = plimsoll_monitor::config::load(&path, &|_| None).unwrap_err();
    let problems = format!("{error:?}");
    for expected in [
        "there is no monitor and no group `x`",
        "there is no channel and no rotation `nobody`",
        "must be later than the step before",
        "`notify` is missing",
        "`a` is the name of another escalation",
        "`step` is missing",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}

#[test]
fn an_escalation_is_added_changed_and_removed_in_the_admin_pages() {
    let [ops, boss] = [(); 2].map(|()| Receiver::new(&[]));
    let config = format!(
        "[[monitor]]\nname = \"by-hand\"\nmanual = true\n{}{}\
         [[escalation]]\nname = \"of the file\"\nmonitors = []\n[[escalation.step]]\nnotify = \"ops\"\n",
        channel("ops", &ops),
        channel("boss", &boss)
    );
    let admin = Admin::new(&config);
    let mut owner = admin.owner();
    let url = format!("http://{}/", ops.address);
    let kept = [
        ("action", "save"),
        ("name", "kept"),
        ("kind", "webhook"),
        ("field-url", url.as_str()),
    ];
    assert_eq!(
        owner.post(&admin, "/admin/new-channel", &kept).0,
        StatusCode::SEE_OTHER
    );
    let first = [
        ("name", "night"),
        ("monitor", "_by-hand"),
        ("notify-1", "ops"),
        ("after-2", "15m"),
        ("notify-2", "boss"),
        ("notify-2", "kept"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-escalation", &first);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let list = owner.get(&admin, "/admin/notices");
    for part in [
        "/admin/escalations/night/edit",
        "at once: ops",
        "after 15 min: boss, kept",
        "1 monitor<",
        "of the file <span",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let handle = admin.running.monitor.handle();
    let result = plimsoll_monitor::engine::PushedResult {
        is_up: false,
        reason: None,
        took: std::time::Duration::ZERO,
    };
    let pushed = handle.push("_by-hand", result);
    admin.running.block_on(pushed).unwrap();
    eventually(|| ops.titles() == ["by-hand is down"]);
    assert!(boss.titles().is_empty());
    // A channel of a step cannot be removed, nor renamed.
    let delete = [("action", "delete")];
    let (status, text) = owner.post(&admin, "/admin/channels/kept/edit", &delete);
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    assert!(text.contains("`night` depends on `kept`"), "{text}");
    let form = owner.get(&admin, "/admin/escalations/night/edit");
    for part in [
        "value=\"15m\"",
        "name=\"notify-2\" value=\"kept\" checked",
        "value=\"_by-hand\" checked",
    ] {
        assert!(form.contains(part), "{part}: {form}");
    }
    let version = between(&form, "name=\"version\" value=\"", "\"").to_owned();
    let edit = "/admin/escalations/night/edit";
    let wrong = [
        ("version", version.as_str()),
        ("name", "night"),
        ("notify-1", "ops"),
        ("notify-2", "boss"),
    ];
    let (status, text) = owner.post(&admin, edit, &wrong);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("`after` is missing"), "{text}");
    assert!(text.contains("id=\"after-2-error\""), "{text}");
    let right = [
        ("version", version.as_str()),
        ("name", "day"),
        ("notify-1", "ops"),
    ];
    assert_eq!(owner.post(&admin, edit, &right).0, StatusCode::SEE_OTHER);
    assert_eq!(owner.post(&admin, edit, &right).0, StatusCode::NOT_FOUND);
    assert_eq!(
        owner.post(&admin, "/admin/channels/kept/edit", &delete).0,
        StatusCode::SEE_OTHER
    );
    let edit = "/admin/escalations/day/edit";
    assert_eq!(owner.post(&admin, edit, &delete).0, StatusCode::SEE_OTHER);
    let list = owner.get(&admin, "/admin/notices");
    assert!(!list.contains("/admin/escalations/"), "{list}");
    let log = owner.get(&admin, "/admin/audit");
    for action in [
        "escalation.create",
        "escalation.update",
        "escalation.delete",
    ] {
        assert!(log.contains(action), "{action}: {log}");
    }
}

#[test]
fn a_rotation_is_added_changed_and_removed_in_the_admin_pages() {
    let [ann, bob] = [(); 2].map(|()| Receiver::new(&[]));
    let config = format!(
        "[defaults]\nconfirm = 1\nrecover = 1\nhold = \"0s\"\nflap = false\n[[monitor]]\nname = \"by-hand\"\nmanual = true\n{}",
        channel("ann", &ann)
    );
    let admin = Admin::new(&config);
    let mut owner = admin.owner();
    let url = format!("http://{}/", bob.address);
    let kept = [
        ("action", "save"),
        ("name", "bob"),
        ("kind", "webhook"),
        ("field-url", url.as_str()),
    ];
    assert_eq!(
        owner.post(&admin, "/admin/new-channel", &kept).0,
        StatusCode::SEE_OTHER
    );
    let unknown = [
        ("name", "team"),
        ("members", "ann\nnobody"),
        ("start", "2026-03-02T09:00"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-rotation", &unknown);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        text.contains("there is no channel `nobody`") && text.contains("ann\nnobody"),
        "{text}"
    );
    // The turn of `bob` never comes: the first one has not begun to end.
    let first = [
        ("name", "team"),
        ("members", "ann\r\nbob"),
        ("start", "2020-03-02T09:00"),
        ("rotate", "876000h"),
        ("calendar", "new"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-rotation", &first);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let list = owner.get(&admin, "/admin/notices");
    assert!(
        list.contains("/admin/rotations/team/edit") && list.contains("<td>ann</td>"),
        "{list}"
    );
    // Channels of the file and of the store take turns.
    let handle = admin.running.monitor.handle();
    let push = |is_up| {
        let result = plimsoll_monitor::engine::PushedResult {
            is_up,
            reason: None,
            took: std::time::Duration::ZERO,
        };
        let pushed = handle.push("_by-hand", result);
        admin.running.block_on(pushed).unwrap();
    };
    push(false);
    eventually(|| ann.titles() == ["by-hand is down"]);
    assert!(bob.titles().is_empty());
    let edit = "/admin/rotations/team/edit";
    let form = owner.get(&admin, edit);
    let calendar = between(&form, "<a href=\"/on-call/", "\"").to_owned();
    let (status, text) = admin.running.get(&format!("/on-call/{calendar}"));
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("SUMMARY:team: ann"), "{text}");
    // A member cannot be removed, and neither can a rotation that an escalation names.
    let delete = [("action", "delete")];
    assert_eq!(
        owner.post(&admin, "/admin/channels/bob/edit", &delete).0,
        StatusCode::CONFLICT
    );
    let escalation = [("name", "all"), ("notify-1", "team")];
    assert_eq!(
        owner.post(&admin, "/admin/new-escalation", &escalation).0,
        StatusCode::SEE_OTHER
    );
    assert_eq!(owner.post(&admin, edit, &delete).0, StatusCode::CONFLICT);
    assert_eq!(
        owner.post(&admin, "/admin/escalations/all/edit", &delete).0,
        StatusCode::SEE_OTHER
    );
    // From now on it is `bob`, by an override.
    let version = between(&form, "name=\"version\" value=\"", "\"").to_owned();
    let more = "[[override]]\nwho = \"bob\"\nfrom = \"2020-03-04T08:00:00Z\"\nuntil = \"2100-01-01T00:00:00Z\"";
    let changed = [
        ("version", version.as_str()),
        ("name", "team"),
        ("members", "ann"),
        ("start", "2020-03-02T09:00"),
        ("more", more),
    ];
    let (status, text) = owner.post(&admin, edit, &changed);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    push(true);
    eventually(|| ann.titles() == ["by-hand is down", "by-hand is up again"]);
    push(false);
    eventually(|| bob.titles() == ["by-hand is down"]);
    assert_eq!(owner.post(&admin, edit, &delete).0, StatusCode::SEE_OTHER);
    assert_eq!(
        owner.post(&admin, "/admin/channels/bob/edit", &delete).0,
        StatusCode::SEE_OTHER
    );
}
