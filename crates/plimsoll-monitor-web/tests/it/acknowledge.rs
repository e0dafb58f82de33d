//! Links of notices: following one shows an incident, and its button acknowledges it.

use http::{Method, StatusCode};
use plimsoll_testkit::{eventually, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Running;
use crate::notices::{Receiver, WRITER};

const TOKEN: &str = r#"
    [[token]]
    name = "ann"
    sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    scopes = ["write"]
"#;

/// A monitor that is down, whose notices have the link as their text.
fn down(receiver: &Receiver, more: &str) -> String {
    format!(
        "store = \"state.db\"\n{more}\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\n\
         [[monitor]]\nname = \"shop\"\ntcp = \"{}\"\n{TOKEN}\
         [[notify]]\nname = \"on call\"\n[notify.webhook]\nurl = \"http://{}/\"\n\
         body = '{{\"title\": \"{{{{ title }}}}\", \"link\": \"{{{{ acknowledge }}}}\"}}'\n",
        refused_address(),
        receiver.address
    )
}

fn wait_until_down(running: &Running) {
    let path = "/api/v1/monitors/_shop";
    eventually(|| {
        let (_, text) = running.call(Method::GET, path, &[WRITER], "");
        text.contains("\"health\":\"down\"")
    });
}

fn acknowledged_at(running: &Running) -> Value {
    let (_, text) = running.call(Method::GET, "/api/v1/incidents", &[WRITER], "");
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["incidents"][0]["acknowledged_at"].clone()
}

#[test]
fn a_link_of_a_notice_acknowledges_its_incident_by_its_button_alone() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let links = "[acknowledge]\nurl = \"https://monitor.example.org/\"\nlasts = \"1h\"";
    let running = Running::new(folder.path(), "monitor.toml", &down(&receiver, links));
    eventually(|| receiver.titles() == ["shop is down"]);
    let link = receiver.bodies()[0]["link"].as_str().unwrap().to_owned();
    let path = link.strip_prefix("https://monitor.example.org").unwrap();
    assert!(path.starts_with("/acknowledge/"), "{path}");
    // Programs that follow the link change nothing.
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let (status, page) = running.call(method.clone(), path, &[], "");
        assert_eq!(status, StatusCode::OK, "{page}");
        if method == Method::GET {
            assert!(page.contains("<h1>shop</h1>"), "{page}");
            assert!(page.contains("<form method=\"post\"><button"), "{page}");
        }
    }
    assert_eq!(acknowledged_at(&running), Value::Null);
    let response = running.response(Method::GET, path, &[], "");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    // One that was changed, or that is another action, is none.
    let (start, end) = path.split_at(path.len() - 3);
    let changed = format!("{start}{}", if end == "AAA" { "BBB" } else { "AAA" });
    for wrong in [changed.as_str(), "/acknowledge/a.b"] {
        for method in [Method::GET, Method::POST] {
            let (status, page) = running.call(method, wrong, &[], "");
            assert_eq!(status, StatusCode::NOT_FOUND, "{page}");
            assert!(page.contains("The link is not valid"), "{page}");
        }
    }
    assert_eq!(acknowledged_at(&running), Value::Null);
    let (status, page) = running.call(Method::POST, path, &[], "");
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(page.contains("shop is acknowledged"), "{page}");
    eventually(|| acknowledged_at(&running) != Value::Null);
    for method in [Method::GET, Method::POST] {
        let (_, page) = running.call(method, path, &[], "");
        assert!(
            page.contains("It was acknowledged by on call (link)"),
            "{page}"
        );
        assert!(!page.contains("<button"), "{page}");
    }
    // Guessing is slowed down.
    eventually(|| {
        let (status, _) = running.call(Method::GET, "/acknowledge/a.b", &[], "");
        status == StatusCode::TOO_MANY_REQUESTS
    });
}

#[test]
fn a_link_survives_a_restart_and_is_of_no_use_without_its_table() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let links = "[acknowledge]\nurl = \"http://localhost:9090\"";
    let config = down(&receiver, links);
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| !receiver.bodies().is_empty());
    let link = receiver.bodies()[0]["link"].as_str().unwrap().to_owned();
    let path = link.strip_prefix("http://localhost:9090").unwrap();
    drop(running);
    let running = Running::new(folder.path(), "monitor.toml", &config);
    wait_until_down(&running);
    let (status, page) = running.call(Method::GET, path, &[], "");
    assert_eq!(status, StatusCode::OK, "{page}");
    drop(running);
    let running = Running::new(folder.path(), "monitor.toml", &config.replace(links, ""));
    wait_until_down(&running);
    assert_eq!(
        running.call(Method::POST, path, &[], "").0,
        StatusCode::NOT_FOUND
    );
}
