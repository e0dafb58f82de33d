//! Channels of notices that are kept in the store: added, changed and removed in the admin pages.

use http::StatusCode;
use plimsoll_testkit::{eventually, refused_address};

use crate::admin::{Admin, between};
use crate::notices::Receiver;

fn down() -> String {
    format!(
        "[defaults]\nconfirm = 1\ninterval = \"1h\"\n[[monitor]]\nname = \"m\"\ntcp = \"{}\"\n[[monitor]]\nname = \"by-hand\"\nmanual = true\n",
        refused_address()
    )
}

#[test]
fn a_channel_of_the_store_receives_what_opens_until_it_is_removed() {
    let receiver = Receiver::new(&[]);
    let admin = Admin::new(&down());
    let mut owner = admin.owner();
    let settings = format!(
        "url = \"http://{}/\"\nsecret = \"hidden-secret\"",
        receiver.address
    );
    let fields = [
        ("action", "save"),
        ("name", "ops"),
        ("kind", "webhook"),
        ("settings", settings.as_str()),
        ("on", "opened"),
        ("on", "resolved"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-channel", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(&admin, "/admin/notices/test", &[("channel", "ops")]);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    eventually(|| receiver.titles() == ["Test of plimsoll monitor"]);
    // Credentials are not shown, and an empty field keeps them.
    let text = owner.get(&admin, "/admin/channels/ops/edit");
    assert!(
        !text.contains("hidden-secret") && !text.contains("http://127"),
        "{text}"
    );
    for chosen in [
        "value=\"webhook\" selected",
        "value=\"opened\" checked",
        "value=\"resolved\" checked",
    ] {
        assert!(text.contains(chosen), "{chosen}: {text}");
    }
    let version = between(&text, "name=\"version\" value=\"", "\"").to_owned();
    let changed = [
        ("action", "save"),
        ("version", version.as_str()),
        ("name", "operators"),
        ("kind", "webhook"),
        ("settings", ""),
        ("monitor", "_by-hand"),
    ];
    let edit = "/admin/channels/ops/edit";
    let (status, text) = owner.post(&admin, edit, &changed);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, _) = owner.post(&admin, edit, &changed);
    assert_eq!(status, StatusCode::NOT_FOUND, "it has another name now");
    let handle = admin.running.monitor.handle();
    let push = |is_up| {
        let result = plimsoll_monitor::engine::PushedResult {
            is_up,
            reason: Some("by hand".to_owned()),
            took: std::time::Duration::ZERO,
        };
        admin
            .running
            .block_on(handle.push("_by-hand", result))
            .unwrap();
    };
    push(false);
    eventually(|| receiver.titles().contains(&"by-hand is down".to_owned()));
    assert!(!receiver.titles().contains(&"m is down".to_owned()) || receiver.titles().len() <= 3);
    let list = owner.get(&admin, "/admin/notices");
    assert!(list.contains("/admin/channels/operators/edit"), "{list}");
    assert!(list.contains("<td>webhook</td>"), "its kind: {list}");
    let delete = [("action", "delete")];
    let edit = "/admin/channels/operators/edit";
    assert_eq!(owner.post(&admin, edit, &delete).0, StatusCode::SEE_OTHER);
    let list = owner.get(&admin, "/admin/notices");
    assert!(list.contains("No channels yet."), "{list}");
    let log = owner.get(&admin, "/admin/audit");
    for action in ["notify.create", "notify.update", "notify.delete"] {
        assert!(log.contains(action), "{action}: {log}");
    }
}

#[test]
fn errors_of_a_channel_are_shown_and_the_environment_is_not_read() {
    let admin =
        Admin::new("[[notify]]\nname = \"file\"\nslack = { url = \"http://127.0.0.1:1/\" }\n");
    let owner = admin.owner();
    let refused = |name: &str, kind: &str, settings: &str, why: &str| {
        let fields = [
            ("action", "save"),
            ("name", name),
            ("kind", kind),
            ("settings", settings),
        ];
        let (status, text) = owner.post(&admin, "/admin/new-channel", &fields);
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains(why), "{why}: {text}");
    };
    refused("a", "webhook", "", "url");
    refused("a", "webhook", "url = ", "Settings");
    refused("a", "webhook", "url = \"http://a\"\nurll = 1", "urll");
    refused("file", "slack", "url = \"http://a\"", "another channel");
    refused("a", "pigeon", "", "exactly one of");
    refused(
        "a",
        "slack",
        "url = { env = \"HOME\" }",
        "the environment has no variable",
    );
    // The one of the file is changed there.
    let (status, _) = owner.post(&admin, "/admin/channels/file/edit", &[("action", "delete")]);
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[test]
fn without_private_addresses_a_channel_of_the_store_reaches_none() {
    let receiver = Receiver::new(&[]);
    let admin = Admin::new("allow_private = false\n");
    let owner = admin.owner();
    let settings = format!("url = \"http://{}/\"", receiver.address);
    let fields = [
        ("action", "save"),
        ("name", "inside"),
        ("kind", "slack"),
        ("settings", settings.as_str()),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-channel", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(&admin, "/admin/notices/test", &[("channel", "inside")]);
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    assert!(receiver.requests.lock().unwrap().is_empty());
}
