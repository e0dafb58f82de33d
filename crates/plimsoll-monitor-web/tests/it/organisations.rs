//! Organisations that share servers: each route with the numbers and keys of another one.

use std::path::Path;

use http::{Method, StatusCode};
use plimsoll_monitor::config::ApiToken;
use plimsoll_testkit::services::{PostgresServer, clickhouse_database};
use plimsoll_testkit::{eventually, refused_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

/// An organisation with a monitor that is down, in the file and in the store, and what else has a number.
struct Organisation {
    running: Running,
    token: String,
    /// The keys of its monitors.
    keys: Vec<String>,
    /// Of one of its monitors.
    tag: String,
    incident: i64,
    declared: i64,
    stored_token: i64,
    subscriber: String,
}

impl Organisation {
    fn new(folder: &Path, name: &str, store: &str) -> Self {
        let token = ApiToken::generate().unwrap();
        let address = refused_address();
        let text = format!(
            r#"
            organisation = "{name}"
            {store}
            [subscriptions]
            allow_private = true
            [[page]]
            slug = "page"
            title = "Page"
            url = "https://status.example.org"
            [defaults]
            interval = "100ms"
            [[token]]
            name = "all"
            sha256 = "{}"
            scopes = ["admin"]
            [[monitor]]
            name = "{name}-web"
            tcp = "{address}"
            confirm = 1
            tags = ["{name}"]
            "#,
            ApiToken::written(&ApiToken::hash_of(&token))
        );
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let mut made = Self {
            running: Running::new(&folder, "monitor.toml", &text),
            token,
            keys: vec![format!("_{name}-web"), format!("_{name}-api")],
            tag: name.to_owned(),
            incident: 0,
            declared: 0,
            stored_token: 0,
            subscriber: String::new(),
        };
        let definition = json!({ "name": format!("{name}-api"), "tcp": address.to_string() });
        made.post("/api/v1/monitors", &definition);
        let incidents = "/api/v1/incidents";
        let number = |page: Value, list: &str| page[list][0]["id"].as_i64();
        eventually(|| number(made.get(incidents), "incidents").is_some());
        made.incident = number(made.get(incidents), "incidents").unwrap();
        let declared = json!({ "title": "slow", "monitors": [made.keys[0]] });
        let declared = made.post("/api/v1/declared-incidents", &declared);
        made.declared = declared["id"].as_i64().unwrap();
        let token = json!({ "name": "reader", "scope": "read" });
        let token = made.post("/api/v1/tokens", &token);
        made.stored_token = token["id"].as_i64().unwrap();
        let form = format!("means=webhook&address=http://{address}/{name}");
        let path = "/status/page/subscribe";
        let (status, text) = made.running.call(Method::POST, path, &[], &form);
        assert_eq!(status, StatusCode::OK, "{text}");
        let subscribers = made.get("/api/v1/subscribers");
        let subscriber = subscribers["subscribers"][0]["id"].as_str();
        subscriber.unwrap().clone_into(&mut made.subscriber);
        made
    }

    fn call(&self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let bearer = format!("Bearer {}", self.token);
        let fields = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        self.running.call(method, path, &fields, body)
    }

    fn get(&self, path: &str) -> Value {
        let (status, text) = self.call(Method::GET, path, "");
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.call(Method::POST, path, &body.to_string());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The values of a path's parameter, each of which is this organisation's.
    fn values_for(&self, path: &str) -> Vec<String> {
        if path.contains("{key}") {
            self.keys.clone()
        } else if path.contains("{tag}") {
            vec![self.tag.clone()]
        } else if path.starts_with("/api/v1/incidents/") {
            vec![self.incident.to_string()]
        } else if path.starts_with("/api/v1/declared-incidents/") {
            vec![self.declared.to_string()]
        } else if path.starts_with("/api/v1/tokens/") {
            vec![self.stored_token.to_string()]
        } else if path.starts_with("/api/v1/subscribers/") {
            vec![self.subscriber.clone()]
        } else if path.starts_with("/api/v1/definitions/") {
            // That of the monitor in the store is its key.
            self.keys[1..].to_vec()
        } else {
            panic!("the test does not know what the parameter of {path} names")
        }
    }
}

#[test]
fn every_route_responds_with_404_to_what_another_organisation_has() {
    let folder = TempDir::new().unwrap();
    let postgres = PostgresServer::shared().database();
    let clickhouse = clickhouse_database();
    let store = format!("store = {{ postgres = \"{postgres}\", clickhouse = \"{clickhouse}\" }}");
    let own = Organisation::new(folder.path(), "one", &store);
    let other = Organisation::new(folder.path(), "other", &store);
    let document = own.get("/api/v1/openapi.json");
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.contains('{') {
            continue;
        }
        for method in item.as_object().unwrap().keys() {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                continue;
            };
            if !["GET", "PUT", "PATCH", "POST", "DELETE"].contains(&method.as_str()) {
                continue;
            }
            for value in other.values_for(path) {
                let (begin, rest) = path.split_once('{').unwrap();
                let (_, end) = rest.split_once('}').unwrap();
                let path = [begin, &value, end].concat();
                // Under an id of another organisation it adds one of its own, as is seen below.
                if method == Method::PUT && path.starts_with("/api/v1/definitions/") {
                    continue;
                }
                // One that each route accepts for its own data, so that it is the number that is refused.
                let body = match (method.as_str(), path.rsplit('/').next()) {
                    ("PUT", _) => json!({ "name": "other-api", "tcp": "127.0.0.1:1" }).to_string(),
                    ("PATCH", _) if path.contains("declared") => {
                        json!({ "title": "b" }).to_string()
                    }
                    ("PATCH", _) => json!({ "interval": "5s" }).to_string(),
                    ("POST", Some("status")) => json!({ "up": true }).to_string(),
                    _ => String::new(),
                };
                let (status, text) = own.call(method.clone(), &path, &body);
                assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {text}");
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
    // Nor is it in lists, nor may it be named in a request.
    for path in [
        "/api/v1/monitors",
        "/api/v1/incidents",
        "/api/v1/declared-incidents",
        "/api/v1/tokens",
        "/api/v1/audit",
        "/api/v1/subscribers",
        "/api/v1/regions",
        "/api/v1/notices",
    ] {
        let page = own.get(path);
        assert!(!page.to_string().contains("other"), "{path}: {page}");
    }
    let declared = json!({ "title": "x", "monitors": [other.keys[0]] }).to_string();
    let (status, text) = own.call(Method::POST, "/api/v1/declared-incidents", &declared);
    assert!(status.is_client_error(), "{status} {text}");
    // The same id names a definition in each organisation.
    let path = format!("/api/v1/definitions/monitor/{}", other.keys[1]);
    let before = other.get(&path);
    let definition = json!({ "name": "mine", "manual": true }).to_string();
    let (status, text) = own.call(Method::PUT, &path, &definition);
    assert_eq!(status, StatusCode::CREATED, "{text}");
    assert_eq!(own.get(&path)["key"], "_mine");
    assert_eq!(other.get(&path), before);
    // A token is one of its organisation.
    let bearer = format!("Bearer {}", own.token);
    let fields = [("authorization", bearer.as_str())];
    let (status, _) = other
        .running
        .call(Method::GET, "/api/v1/monitors", &fields, "");
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // All of it is still there.
    assert!(
        other
            .get("/api/v1/monitors")
            .to_string()
            .contains("other-api")
    );
    let path = format!("/api/v1/incidents/{}", other.incident);
    assert_eq!(other.get(&path)["id"], other.incident);
}
