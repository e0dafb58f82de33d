//! Readers of status pages that subscribe.

use http::{Method, StatusCode};
use plimsoll_testkit::{eventually, mail_server, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Running;
use crate::notices::Receiver;

/// The hash of `secret`.
const TOKEN: &str = r#"
        [[token]]
        name = "ann"
        sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        scopes = ["admin"]
"#;
const ADMIN: (&str, &str) = ("authorization", "Bearer secret");

fn running(folder: &TempDir, more: &str) -> Running {
    let text = format!(
        r#"
        store = "state.db"
        [subscriptions]
        allow_private = true
        {more}
        [[page]]
        slug = "acme"
        title = "Acme"
        url = "http://status.acme.example"
        [[monitor]]
        name = "API"
        tcp = "{}"
        interval = "1h"
        {TOKEN}
        "#,
        refused_address()
    );
    Running::new(folder.path(), "monitor.toml", &text)
}

fn subscribe(running: &Running, means: &str, address: &str) -> (StatusCode, String) {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("means", means)
        .append_pair("address", address);
    let path = "/status/acme/subscribe";
    running.call(Method::POST, path, &[], &form.finish())
}

/// The path of a link to the page.
fn path(link: &Value) -> String {
    let link = link.as_str().unwrap();
    let below = link.strip_prefix("http://status.acme.example").unwrap();
    format!("/status/acme{below}")
}

fn declare(running: &Running, title: &str) -> i64 {
    let body = format!(r#"{{"title": "{title}", "body": "We look into it."}}"#);
    let path = "/api/v1/declared-incidents";
    let fields = [ADMIN, ("content-type", "application/json")];
    let (status, text) = running.call(Method::POST, path, &fields, &body);
    assert_eq!(status, StatusCode::CREATED, "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["id"]
        .as_i64()
        .unwrap()
}

fn update(running: &Running, id: i64, body: &str) {
    let path = format!("/api/v1/declared-incidents/{id}");
    let (status, text) = running.call(Method::PATCH, &path, &[ADMIN], body);
    assert_eq!(status, StatusCode::OK, "{text}");
}

#[test]
fn a_webhook_gets_updates_once_its_link_was_followed_and_none_after_it_ended() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let running = running(&folder, "");
    let page = running.get("/status/acme/").1;
    assert!(page.contains("/status/acme/subscribe"), "{page}");
    let address = format!("http://{}/hook", receiver.address);
    assert_eq!(subscribe(&running, "webhook", &address).0, StatusCode::OK);
    eventually(|| receiver.bodies().len() == 1);
    let first = receiver.bodies().remove(0);
    let confirm = path(&first["meta"]["confirm"]);

    // Nothing is sent before the link was followed, and what looks at it only follows nothing.
    let early = declare(&running, "Early");
    let (status, question) = running.get(&confirm);
    assert_eq!(status, StatusCode::OK);
    assert!(question.contains("method=\"post\""), "{question}");
    let count = |running: &Running| {
        running.json_as(ADMIN, "/api/v1/subscribers")["subscribers"][0]["subscribed_at"].is_string()
    };
    assert!(!count(&running));
    let wrong = confirm.replace("link=", "link=0");
    assert_eq!(
        running.call(Method::POST, &wrong, &[], "").0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        running.call(Method::POST, &confirm, &[], "").0,
        StatusCode::OK
    );
    assert!(count(&running));

    let id = declare(&running, "Search is slow");
    update(
        &running,
        id,
        r#"{"phase": "identified", "body": "An index is rebuilt."}"#,
    );
    update(&running, early, r#"{"phase": "resolved", "body": "Over."}"#);
    eventually(|| receiver.bodies().len() >= 4);
    let bodies = receiver.bodies();
    let seen = |body: &Value| {
        let incident = &body["incident"];
        (
            incident["name"].as_str().unwrap().to_owned(),
            incident["status"].as_str().unwrap().to_owned(),
        )
    };
    let mut names: Vec<_> = bodies[1..].iter().map(|body| seen(body).0).collect();
    names.sort();
    assert_eq!(names, ["Early", "Search is slow", "Search is slow"]);
    assert_eq!(bodies[1]["page"]["name"], "Acme");
    let head = receiver.requests.lock().unwrap()[1].0.to_ascii_lowercase();
    assert!(head.contains("plimsoll-signature: t="), "{head}");

    // Another process with the same store repeats nothing that was noted as sent.
    let sent = || {
        let notices = running.json_as(ADMIN, "/api/v1/notices?state=sent");
        notices["notices"].as_array().unwrap().len()
    };
    eventually(|| sent() == 4);
    let stop = path(&bodies[1]["meta"]["unsubscribe"]);
    drop(running);
    let running = self::running(&folder, "");
    let one_click = "List-Unsubscribe=One-Click";
    let (status, text) = running.call(Method::POST, &stop, &[], one_click);
    assert_eq!(status, StatusCode::OK, "{text}");
    update(&running, id, r#"{"phase": "resolved", "body": "Over."}"#);
    let list = || {
        running.json_as(ADMIN, "/api/v1/subscribers")["subscribers"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(list(), 0);
    assert_eq!(
        running.call(Method::POST, &stop, &[], one_click).0,
        StatusCode::NOT_FOUND
    );
    drop(running);
    assert_eq!(receiver.bodies().len(), 4);
}

#[test]
fn mail_and_slack_have_links_and_the_reader_s_language() {
    let folder = TempDir::new().unwrap();
    let (server, mail) = mail_server();
    let receiver = Receiver::new(&[]);
    let email = format!(
        "email = {{ host = \"{}\", port = {}, security = \"none\", from = \"Acme <status@acme.example>\" }}",
        server.ip(),
        server.port()
    );
    let running = running(&folder, &email);
    let slack = format!("http://{}/slack", receiver.address);
    let form = |means: &str, address: &str| format!("means={means}&address={address}");
    let german = [
        ("accept-language", "de"),
        ("origin", "http://a"),
        ("host", "a"),
    ];
    for (means, address) in [("slack", slack.as_str()), ("email", "ann@example.org")] {
        let form = form(means, address);
        let (status, text) = running.call(Method::POST, "/status/acme/subscribe", &german, &form);
        assert_eq!(status, StatusCode::OK, "{text}");
    }
    eventually(|| receiver.bodies().len() == 1);
    let text = receiver.bodies()[0]["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("Bestätigen Sie Ihr Abonnement von Acme"),
        "{text}"
    );
    let mail = mail.join().unwrap();
    assert!(mail.contains("To: ann@example.org"), "{mail}");
    assert!(
        mail.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"),
        "{mail}"
    );
    assert!(
        mail.contains("List-Unsubscribe: <http://status.acme.example/subscribe/stop"),
        "{mail}"
    );
}

#[test]
fn addresses_of_strangers_are_checked_bounded_and_kept_away_from_private_hosts() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let text = format!(
        r#"
        store = "memory"
        [subscriptions]
        slack = false
        [[page]]
        slug = "acme"
        title = "Acme"
        url = "http://status.acme.example"
        [[page]]
        slug = "hidden"
        title = "Without an address"
        {TOKEN}
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    for (means, address) in [
        ("email", "ann@example.org"),
        ("slack", "https://hooks.slack.com/services/a"),
        ("webhook", "http://a.example/"),
        ("webhook", "javascript:alert(1)"),
        ("pigeon", "x"),
    ] {
        let (status, text) = subscribe(&running, means, address);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{means} {address}: {text}");
    }
    // A name that leads to this machine.
    let address = format!("https://localhost:{}/", receiver.address.port());
    assert_eq!(subscribe(&running, "webhook", &address).0, StatusCode::OK);
    eventually(|| {
        let notices = running.json_as(ADMIN, "/api/v1/notices");
        let error = notices["notices"][0]["error"].as_str().unwrap_or_default();
        error.contains("not allowed") || error.contains("refused") || error.contains("address")
    });
    assert!(receiver.requests.lock().unwrap().is_empty());
    // The same again sends no second message, and the answer does not show that.
    let again = subscribe(&running, "webhook", &address);
    assert_eq!(again.0, StatusCode::OK);
    assert_eq!(
        running.json_as(ADMIN, "/api/v1/notices")["notices"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // One address makes a few attempts a minute.
    let attempts = (0..20).map(|_| subscribe(&running, "webhook", "x").0);
    assert!(
        attempts
            .into_iter()
            .any(|status| status == StatusCode::TOO_MANY_REQUESTS)
    );
    assert_eq!(
        running.get("/status/hidden/subscribe").0,
        StatusCode::NOT_FOUND
    );
    let other_site = [("origin", "https://evil.example"), ("host", "a")];
    let path = "/status/acme/subscribe";
    let (status, _) = running.call(Method::POST, path, &other_site, "means=webhook");
    assert_eq!(status, StatusCode::FORBIDDEN);
}

const TWO: &str = r#"
        store = "state.db"
        [subscriptions]
        allow_private = true
        [[page]]
        slug = "acme"
        title = "Acme"
        url = "http://status.acme.example"
        [[monitor]]
        name = "API"
        manual = true
        [[monitor]]
        name = "Web"
        manual = true
"#;

#[test]
fn a_reader_chooses_components_and_changes_the_choice() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let running = Running::new(folder.path(), "monitor.toml", &format!("{TWO}{TOKEN}"));
    let page = running.get("/status/acme/subscribe").1;
    assert!(page.contains("name=\"component\" value=\"_api\""), "{page}");
    let form = format!(
        "means=webhook&address=http://{}/&component=_api&component=unknown",
        receiver.address
    );
    let path_of_form = "/status/acme/subscribe";
    assert_eq!(
        running.call(Method::POST, path_of_form, &[], &form).0,
        StatusCode::OK
    );
    eventually(|| receiver.bodies().len() == 1);
    let confirm = path(&receiver.bodies()[0]["meta"]["confirm"]);
    assert_eq!(
        running.call(Method::POST, &confirm, &[], "").0,
        StatusCode::OK
    );
    let incident = |title: &str, monitor: &str| {
        let body = format!(r#"{{"title": "{title}", "monitors": ["{monitor}"]}}"#);
        let fields = [ADMIN, ("content-type", "application/json")];
        let path = "/api/v1/declared-incidents";
        let (status, text) = running.call(Method::POST, path, &fields, &body);
        assert_eq!(status, StatusCode::CREATED, "{text}");
    };
    let names = || {
        let bodies = receiver.bodies();
        let names = bodies[1..]
            .iter()
            .map(|body| body["incident"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    incident("The web is slow", "_web");
    incident("The API is slow", "_api");
    eventually(|| !names().is_empty());
    // Both were written at the same moment, or the one about the web before the other.
    assert_eq!(names(), ["The API is slow"]);
    // The link that ends it changes the choice too.
    let stop = path(&receiver.bodies()[1]["meta"]["unsubscribe"]);
    let page = running.get(&stop).1;
    assert!(
        page.contains("value=\"_api\" checked") && page.contains("value=\"_web\">"),
        "{page}"
    );
    let change = stop.replace("/stop?", "/change?");
    let (status, text) = running.call(Method::POST, &change, &[], "component=_web");
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains("Your subscription has been changed."));
    eventually(|| names().contains(&"The web is slow".to_owned()));
    let wrong = change.replace("link=", "link=0");
    let (status, _) = running.call(Method::POST, &wrong, &[], "component=_web");
    assert_eq!(status, StatusCode::NOT_FOUND);
    // All of them is the same as none chosen.
    running.call(Method::POST, &change, &[], "component=_web&component=_api");
    incident("Both are slow", "_api");
    eventually(|| names().contains(&"Both are slow".to_owned()));
}

#[test]
fn one_source_leaves_a_few_addresses_a_day() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &format!("{TWO}{TOKEN}"));
    let tries = 30;
    let statuses: Vec<_> = (0..tries)
        .map(|number| subscribe(&running, "webhook", &format!("http://127.0.0.1:1/{number}")).0)
        .collect();
    let taken = statuses.iter().filter(|it| **it == StatusCode::OK).count();
    assert!(taken <= 20, "{taken}");
    assert_eq!(statuses[tries - 1], StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn a_mailbox_gets_few_links_however_its_address_is_written() {
    let folder = TempDir::new().unwrap();
    let email = format!(
        "email = {{ host = \"127.0.0.1\", port = {}, security = \"none\", from = \"Acme <status@acme.example>\" }}",
        refused_address().port()
    );
    let running = running(&folder, &email);
    for address in [
        "ann@example.org",
        "ANN@Example.org",
        "ann+1@example.org",
        "Ann+2@example.org",
        "ann+3@example.org",
        "aNN+4@example.org",
        "bob@example.org",
    ] {
        let (status, text) = subscribe(&running, "email", address);
        assert_eq!(status, StatusCode::OK, "{address}: {text}");
    }
    let subscribers = running.json_as(ADMIN, "/api/v1/subscribers");
    let subscribers = subscribers["subscribers"].as_array().unwrap();
    let addresses = subscribers
        .iter()
        .map(|it| it["address"].as_str().unwrap().to_owned());
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort();
    let expected = [
        "Ann+2@example.org",
        "ann+1@example.org",
        "ann@example.org",
        "bob@example.org",
    ];
    assert_eq!(addresses, expected);
}

#[test]
fn valid_links_are_followed_as_often_as_need_be_and_wrong_ones_are_not() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let running = running(&folder, "");
    let address = format!("http://{}/hook", receiver.address);
    assert_eq!(subscribe(&running, "webhook", &address).0, StatusCode::OK);
    eventually(|| receiver.bodies().len() == 1);
    let link = path(&receiver.bodies()[0]["meta"]["confirm"]);
    let follow = |link: &str| running.call(Method::POST, link, &[], "").0;
    for _ in 0..15 {
        assert_eq!(follow(&link), StatusCode::OK);
    }
    let wrong = link.replace("link=", "link=0");
    let statuses: Vec<_> = (0..12).map(|_| follow(&wrong)).collect();
    assert_eq!(statuses[0], StatusCode::NOT_FOUND);
    assert!(
        statuses.contains(&StatusCode::TOO_MANY_REQUESTS),
        "{statuses:?}"
    );
}

#[test]
fn errors_that_name_readers_are_for_admins() {
    let folder = TempDir::new().unwrap();
    // The hash of `looks`.
    let hash = plimsoll_monitor::config::ApiToken::written(
        &plimsoll_monitor::config::ApiToken::hash_of("looks"),
    );
    let reader = format!("[[token]]\nname = \"bob\"\nsha256 = \"{hash}\"\nscopes = [\"read\"]\n");
    let text = format!("{TWO}{TOKEN}{reader}");
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let address = format!("http://{}/", refused_address());
    assert_eq!(subscribe(&running, "webhook", &address).0, StatusCode::OK);
    let error = |token| {
        let notices = running.json_as(("authorization", token), "/api/v1/notices");
        notices["notices"][0]["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    eventually(|| !error("Bearer secret").is_empty());
    assert!(error("Bearer secret").contains("refused"));
    assert_eq!(
        error("Bearer looks"),
        "a token with the scope `admin` sees why"
    );
}
