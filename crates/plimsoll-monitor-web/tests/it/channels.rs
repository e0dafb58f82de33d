//! Channels of notices that are kept in the store: added, changed and removed in the admin pages.

use http::StatusCode;
use plimsoll_monitor::notify::CHANNELS;
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
    let url = format!("http://{}/", receiver.address);
    let fields = [
        ("action", "save"),
        ("name", "ops"),
        ("kind", "webhook"),
        ("field-url", url.as_str()),
        ("field-secret", "hidden-secret"),
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
        "name=\"kind\" value=\"webhook\"",
        "it is set, and stays",
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
        ("field-url", ""),
        ("field-secret", ""),
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
    assert!(list.contains("<td>Webhook</td>"), "its kind: {list}");
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
    let refused = |name: &str, kind: &str, more: &[(&str, &str)], why: &str| {
        let fields = [&[("action", "save"), ("name", name), ("kind", kind)], more].concat();
        let (status, text) = owner.post(&admin, "/admin/new-channel", &fields);
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains(why), "{why}: {text}");
    };
    let url = ("field-url", "http://a");
    refused("a", "webhook", &[], "id=\"field-url-error\"");
    refused("a", "webhook", &[url, ("more", "url = ")], "More settings");
    refused("a", "webhook", &[url, ("more", "onn = 1")], "onn");
    refused("a", "webhook", &[url, ("field-body", "{{ nme }}")], "nme");
    refused("file", "slack", &[url], "another channel");
    refused("a", "pigeon", &[], "no such channel");
    let more = "slack.url = { env = \"HOME\" }";
    refused("a", "slack", &[("more", more)], "`url` is missing");
    // The one of the file is changed there.
    let (status, _) = owner.post(&admin, "/admin/channels/file/edit", &[("action", "delete")]);
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[test]
fn without_private_addresses_a_channel_of_the_store_reaches_none() {
    let receiver = Receiver::new(&[]);
    let admin = Admin::new("allow_private = false\n");
    let owner = admin.owner();
    let url = format!("http://{}/", receiver.address);
    let fields = [
        ("action", "save"),
        ("name", "inside"),
        ("kind", "slack"),
        ("field-url", url.as_str()),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-channel", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(&admin, "/admin/notices/test", &[("channel", "inside")]);
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    assert!(receiver.requests.lock().unwrap().is_empty());
}

#[test]
fn every_kind_has_a_form_with_its_fields() {
    let admin = Admin::new("");
    let mut owner = admin.owner();
    let list = owner.get(&admin, "/admin/new-channel");
    for channel in CHANNELS {
        let path = format!("/admin/new-channel?kind={}", channel.key);
        assert!(
            list.contains(&format!("href=\"{path}\"")),
            "{}",
            channel.key
        );
        let form = owner.get(&admin, &path);
        for field in channel.fields {
            let control = format!("name=\"field-{}\"", field.key);
            assert!(form.contains(&control), "{}: {control}", channel.key);
        }
        assert!(form.contains("Send a test"), "{}", channel.key);
    }
    assert!(
        owner
            .get(&admin, "/admin/new-channel?kind=pigeon")
            .contains("Choose where")
    );
}

#[test]
fn a_webhook_is_shown_and_tried_before_it_is_saved() {
    let receiver = Receiver::new(&[]);
    let admin = Admin::new("");
    let mut owner = admin.owner();
    let url = format!("http://{}/hook", receiver.address);
    let fields = |action| {
        [
            ("action", action),
            ("name", "desk"),
            ("kind", "webhook"),
            ("field-url", url.as_str()),
            ("field-method", "PUT"),
            (
                "field-headers",
                "Authorization: Bearer hidden-token\nX-Title: {{ title }}",
            ),
            (
                "field-body",
                "{\"title\": \"{{ title }} \\u0021\", \"over\": {{ up }}}",
            ),
        ]
    };
    let (status, text) = owner.post(&admin, "/admin/new-channel", &fields("preview"));
    assert_eq!(status, StatusCode::OK, "{text}");
    let (_, shown) = text.split_once("id=\"preview\"").unwrap();
    let host = format!("PUT http://{}/********", receiver.address);
    for part in [
        host.as_str(),
        "authorization: ********",
        "x-title: Shop/API is down",
        "Shop/API is up again !",
        "&#34;over&#34;: 1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("hidden-token"), "{shown}");
    assert!(
        receiver.requests.lock().unwrap().is_empty(),
        "nothing was sent"
    );
    let (status, text) = owner.post(&admin, "/admin/new-channel", &fields("test"));
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains("The test message was accepted."), "{text}");
    assert_eq!(receiver.titles(), ["Test of plimsoll monitor !"]);
    assert!(
        owner
            .get(&admin, "/admin/notices")
            .contains("No channels yet.")
    );
    // What was typed is still there, and what is wrong is said.
    let wrong = [
        ("action", "test"),
        ("name", "desk"),
        ("kind", "webhook"),
        ("field-url", "http://127.0.0.1:1/"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-channel", &wrong);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        text.contains("was not accepted") && text.contains("value=\"desk\""),
        "{text}"
    );
}

#[test]
fn stored_credentials_go_to_no_other_server() {
    let receiver = Receiver::new(&[]);
    let admin = Admin::new("");
    let mut owner = admin.owner();
    let gotify = |url| {
        [
            ("action", "save"),
            ("name", "push"),
            ("kind", "gotify"),
            ("field-url", url),
        ]
    };
    let first = [
        &gotify("http://127.0.0.1:1/")[..],
        &[("field-token", "hidden-token")],
    ]
    .concat();
    let (status, text) = owner.post(&admin, "/admin/new-channel", &first);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let url = format!("http://{}/", receiver.address);
    let edit = "/admin/channels/push/edit";
    let text = owner.get(&admin, edit);
    assert!(
        text.contains("http://127.0.0.1:1/") && !text.contains("hidden-token"),
        "{text}"
    );
    for action in ["test", "preview", "save"] {
        let mut fields = gotify(&url);
        fields[0].1 = action;
        let (status, text) = owner.post(&admin, edit, &fields);
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains("type `token` again"), "{text}");
    }
    assert!(receiver.requests.lock().unwrap().is_empty());
}
