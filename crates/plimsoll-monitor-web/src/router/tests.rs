use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, StatusCode};
use plimsoll_model::Clock as _;
use plimsoll_monitor::config::{ApiToken, load};
use plimsoll_monitor::engine::Monitor;
use plimsoll_monitor::store::{NewSession, Role, Scope, UserId};
use plimsoll_monitor::time::Timestamp;
use tempfile::TempDir;
use tower_service::Service as _;

use super::*;
use crate::request::is_for_readers;

/// Every route, by who may use it. A route that is not here fails the test: say who may see it, and mean it.
const TABLE: &[(Audience, &[&str])] = &[
    (
        Audience::Everyone,
        &[
            "GET /api/v1/endpoints/{key}/health/badge.svg",
            "GET /api/v1/endpoints/{key}/health/badge.shields",
            "GET /api/v1/endpoints/{key}/uptimes/{duration}/badge.svg",
            "GET /api/v1/endpoints/{key}/response-times/{duration}/badge.svg",
            "GET /api/v1/openapi.json",
            "GET /api/v1/config",
            "GET /api/v1/suites/statuses",
            "GET /health",
            "GET /metrics",
            "GET /api/v1/monitors/{key}/badge.svg",
            "GET /api/v1/tags/{tag}/badge.svg",
            "GET /admin/sign-in",
            "POST /admin/sign-in",
            "GET /admin/oidc/start",
            "GET /admin/oidc/callback",
            "GET /admin/",
            "GET /admin/assets/{name}",
            "GET /admin/{*rest}",
        ],
    ),
    (
        Audience::OwnSecret,
        &[
            "POST /api/v1/endpoints/{key}/external",
            "GET /acknowledge/{token}",
            "POST /acknowledge/{token}",
            "GET /on-call/{file}",
            "GET /ping/{token}",
            "POST /ping/{token}",
            "GET /ping/{token}/{signal}",
            "POST /ping/{token}/{signal}",
            "GET /ping/{key}/{slug}/{signal}",
            "POST /ping/{key}/{slug}/{signal}",
        ],
    ),
    (
        Audience::Page,
        &[
            "GET /status/{slug}",
            "POST /status/{slug}",
            "PUT /status/{slug}",
            "PATCH /status/{slug}",
            "DELETE /status/{slug}",
            "OPTIONS /status/{slug}",
            "GET /status/{slug}/{*rest}",
            "POST /status/{slug}/{*rest}",
            "PUT /status/{slug}/{*rest}",
            "PATCH /status/{slug}/{*rest}",
            "DELETE /status/{slug}/{*rest}",
            "OPTIONS /status/{slug}/{*rest}",
            "GET /status/{slug}/",
            "POST /status/{slug}/",
            "PUT /status/{slug}/",
            "PATCH /status/{slug}/",
            "DELETE /status/{slug}/",
            "OPTIONS /status/{slug}/",
        ],
    ),
    (
        Audience::Reader,
        &[
            "GET /api/v1/monitors",
            "GET /api/v1/monitors/{key}",
            "GET /api/v1/monitors/{key}/results",
            "GET /api/v1/monitors/{key}/uptime",
            "GET /api/v1/monitors/{key}/latency",
            "GET /api/v1/incidents",
            "GET /api/v1/incidents/{id}",
            "GET /api/v1/notices",
            "GET /api/v1/regions",
            "GET /api/v1/processes",
            "GET /api/v1/discovery",
            "GET /api/v1/on-call",
            "GET /api/v1/declared-incidents",
            "GET /api/v1/declared-incidents/{id}",
            "GET /api/v3/checks/",
            "GET /api/v3/checks/{id}",
            "GET /api/v3/checks/{id}/flips/",
        ],
    ),
    (
        Audience::Scope(Scope::Write),
        &[
            "GET /api/v1/definitions/monitor",
            "GET /api/v1/definitions/monitor/{id}",
            "PUT /api/v1/definitions/monitor/{id}",
            "DELETE /api/v1/definitions/monitor/{id}",
            "GET /api/v1/definitions/maintenance",
            "GET /api/v1/definitions/maintenance/{id}",
            "PUT /api/v1/definitions/maintenance/{id}",
            "DELETE /api/v1/definitions/maintenance/{id}",
            "GET /api/v1/definitions/page",
            "GET /api/v1/definitions/page/{id}",
            "PUT /api/v1/definitions/page/{id}",
            "DELETE /api/v1/definitions/page/{id}",
            "POST /api/v1/monitors",
            "POST /api/v1/monitors/bulk",
            "GET /api/v1/monitors/export",
            "PUT /api/v1/monitors/{key}",
            "PATCH /api/v1/monitors/{key}",
            "DELETE /api/v1/monitors/{key}",
            "POST /api/v1/declared-incidents",
            "PATCH /api/v1/declared-incidents/{id}",
            "POST /api/v1/monitors/{key}/check-now",
            "POST /api/v1/monitors/{key}/pause",
            "POST /api/v1/monitors/{key}/resume",
            "POST /api/v1/monitors/{key}/acknowledge",
            "POST /api/v1/monitors/{key}/resolve",
            "POST /api/v1/monitors/{key}/status",
            "GET /probe",
            "POST /api/v3/checks/",
            "POST /api/v3/checks/{id}",
            "DELETE /api/v3/checks/{id}",
            "POST /api/v3/checks/{id}/pause",
            "POST /api/v3/checks/{id}/resume",
            "GET /api/v3/checks/{id}/pings/",
            "GET /api/v3/channels/",
        ],
    ),
    (
        Audience::Scope(Scope::Admin),
        &[
            "GET /api/v1/definitions/notify",
            "GET /api/v1/definitions/notify/{id}",
            "PUT /api/v1/definitions/notify/{id}",
            "DELETE /api/v1/definitions/notify/{id}",
            "GET /api/v1/definitions/on_call",
            "GET /api/v1/definitions/on_call/{id}",
            "PUT /api/v1/definitions/on_call/{id}",
            "DELETE /api/v1/definitions/on_call/{id}",
            "GET /api/v1/definitions/escalation",
            "GET /api/v1/definitions/escalation/{id}",
            "PUT /api/v1/definitions/escalation/{id}",
            "DELETE /api/v1/definitions/escalation/{id}",
            "GET /api/v1/tokens",
            "POST /api/v1/tokens",
            "DELETE /api/v1/tokens/{id}",
            "GET /api/v1/audit",
            "GET /api/v1/subscribers",
            "DELETE /api/v1/subscribers/{id}",
        ],
    ),
    (
        Audience::Agent,
        &["GET /api/v1/agent/work", "POST /api/v1/agent/results"],
    ),
    (
        Audience::GatusUser,
        &[
            "GET /api/v1/endpoints/statuses",
            "GET /api/v1/endpoints/{key}/statuses",
        ],
    ),
    (
        Audience::GatusPublic,
        &[
            "GET /api/v1/endpoints/{key}/uptimes/{duration}",
            "GET /api/v1/endpoints/{key}/response-times/{duration}",
            "GET /api/v1/endpoints/{key}/response-times/{duration}/history",
        ],
    ),
    (
        Audience::Session(Role::Viewer),
        &[
            "GET /admin",
            "POST /admin/sign-out",
            "GET /admin/monitors",
            "GET /admin/wall",
            "GET /admin/monitors/{key}",
            "GET /admin/incidents",
            "GET /admin/incidents/{id}",
            "GET /admin/outages/{id}",
            "GET /admin/notices",
            "GET /admin/pages",
            "GET /admin/maintenance",
            "GET /admin/reports",
            "GET /admin/reports.csv",
            "GET /admin/account",
            "POST /admin/account/password",
            "POST /admin/account/totp",
            "POST /admin/account/recovery",
            "POST /admin/account/sessions",
            "POST /admin/account/unlink",
        ],
    ),
    (
        Audience::Session(Role::Editor),
        &[
            "GET /admin/new-monitor",
            "POST /admin/new-monitor",
            "GET /admin/monitors/{key}/edit",
            "POST /admin/monitors/{key}/edit",
            "POST /admin/monitors/bulk",
            "POST /admin/monitors/{key}/act",
            "GET /admin/new-incident",
            "POST /admin/new-incident",
            "POST /admin/incidents/{id}/update",
            "POST /admin/notices/test",
            "GET /admin/new-page",
            "POST /admin/new-page",
            "GET /admin/pages/{slug}/edit",
            "POST /admin/pages/{slug}/edit",
            "GET /admin/pages/{slug}/readers",
            "POST /admin/pages/{slug}/readers",
            "POST /admin/maintenance/add",
            "POST /admin/maintenance/remove",
        ],
    ),
    (
        Audience::Session(Role::Admin),
        &[
            "GET /admin/members",
            "POST /admin/members/add",
            "POST /admin/members/change",
            "GET /admin/tokens",
            "POST /admin/tokens/add",
            "POST /admin/tokens/revoke",
            "GET /admin/new-rotation",
            "POST /admin/new-rotation",
            "GET /admin/rotations/{name}/edit",
            "POST /admin/rotations/{name}/edit",
            "GET /admin/new-escalation",
            "POST /admin/new-escalation",
            "GET /admin/escalations/{name}/edit",
            "POST /admin/escalations/{name}/edit",
            "GET /admin/new-channel",
            "POST /admin/new-channel",
            "GET /admin/channels/{name}/edit",
            "POST /admin/channels/{name}/edit",
            "GET /admin/audit",
        ],
    ),
];

/// A running monitor, and the text of its configuration's kind.
struct Place {
    _folder: TempDir,
    monitor: Monitor,
    router: Router,
    runtime: tokio::runtime::Runtime,
    /// A user of each role.
    users: Vec<(Role, UserId)>,
}

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Nobody,
    Token(Option<Scope>),
    Agent,
    User(Role),
    /// The user of Gatus's `security.basic`.
    Basic,
}

const CLIENTS: [Client; 11] = [
    Client::Nobody,
    Client::Token(None),
    Client::Token(Some(Scope::Read)),
    Client::Token(Some(Scope::Write)),
    Client::Token(Some(Scope::Admin)),
    Client::Agent,
    Client::User(Role::Viewer),
    Client::User(Role::Editor),
    Client::User(Role::Admin),
    Client::User(Role::Owner),
    Client::Basic,
];

fn token_text(scope: Option<Scope>) -> &'static str {
    scope.map_or("unknown", Scope::name)
}

/// The tables of tokens and an agent.
fn credentials() -> String {
    let hash = |text: &str| ApiToken::written(&ApiToken::hash_of(text));
    let tokens = [
        (Scope::Read, "[\"read\"]"),
        (Scope::Write, "[\"read\", \"write\"]"),
        (Scope::Admin, "[\"read\", \"write\", \"admin\"]"),
    ];
    let tokens = tokens.map(|(scope, scopes)| {
        let name = scope.name();
        let hash = hash(name);
        format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nscopes = {scopes}\n")
    });
    let agent = format!("[[agent]]\nname = \"eu\"\nsha256 = \"{}\"\n", hash("agent"));
    tokens.concat() + &agent
}

fn native(more: &str) -> String {
    let hash = bcrypt::hash("page", 4).unwrap();
    format!(
        "store = \"memory\"\n[[monitor]]\nname = \"web\"\nmanual = true\n\
         [[page]]\nslug = \"inside\"\ntitle = \"Inside\"\npassword_bcrypt = \"{hash}\"\n{more}"
    )
}

fn gatus(more: &str) -> String {
    format!(
        "{more}storage: {{type: memory}}\nendpoints:\n\
         - {{name: web, url: 'tcp://127.0.0.1:9', conditions: ['[CONNECTED] == true']}}\n"
    )
}

impl Place {
    fn new(file: &str, text: &str, has_users: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        let plan = load(&path, &|_| None).unwrap_or_else(|error| panic!("{error:?}"));
        let store = plan.open_store().unwrap();
        let monitor = crate::start(plan, store, Arc::new(|_: &str| {})).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let handle = monitor.handle().clone();
        let users = runtime.block_on(async {
            let mut users = Vec::new();
            for role in Role::ALL.into_iter().filter(|_| has_users) {
                let secret = ("no hash".to_owned(), false);
                let name = role.name();
                let now = Timestamp(1_772_366_400_000);
                let added = handle
                    .store
                    .add_user(handle.org, name, role, secret, false, now);
                users.push((role, added.await.unwrap()));
            }
            handle.refresh_access().await.unwrap();
            users
        });
        Self {
            router: router(monitor.handle().clone()),
            _folder: folder,
            monitor,
            runtime,
            users,
        }
    }

    /// The cookie of a new session, since some routes end theirs.
    fn session(&self, role: Role) -> Option<String> {
        let (_, user) = self.users.iter().find(|(other, _)| *other == role)?;
        let cookie = format!("session-of-{}", fastrand::u64(..));
        let handle = self.monitor.handle();
        let now = Timestamp::from_system(plimsoll_wire::SystemClock.wall());
        let session = NewSession {
            user: *user,
            hash: ApiToken::hash_of(&cookie),
            until: now.plus(Duration::from_mins(10)),
            address: String::new(),
            agent: String::new(),
        };
        let opened = handle.store.open_session(handle.org, session, now);
        self.runtime.block_on(opened).unwrap();
        Some(cookie)
    }

    fn call(&self, method: &Method, path: &str, client: Client) -> Response {
        let mut request = Request::builder().method(method.clone()).uri(path);
        let mut body = String::new();
        let authorization = match client {
            Client::Nobody | Client::User(_) => None,
            Client::Token(scope) => Some(format!("Bearer {}", token_text(scope))),
            Client::Agent => Some("Bearer agent".to_owned()),
            Client::Basic => Some("Basic YW5uOnNlY3JldA==".to_owned()),
        };
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Client::User(role) = client
            && let Some(cookie) = self.session(role)
        {
            request = request
                .header(COOKIE, format!("plimsoll-admin={cookie}"))
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            body = format!("csrf={}", admin::csrf_of("session", &cookie));
        }
        let request = request.body(Body::from(body)).unwrap();
        let mut router = self.router.clone();
        let Ok(response) = self.runtime.block_on(router.call(request));
        response
    }
}

/// A path with something in each of its places.
fn filled(path: &str) -> String {
    [
        ("{key}", "web"),
        ("{id}", "1"),
        ("{duration}", "1h"),
        ("{slug}", "inside"),
        ("{*rest}", "feed.atom"),
        ("{token}", "not-the-token"),
        ("{signal}", "start"),
        ("{file}", "not-the-token.ics"),
        ("{name}", "none"),
    ]
    .into_iter()
    .fold(path.to_owned(), |path, (place, value)| {
        path.replace(place, value)
    })
}

fn is_refused(response: &Response) -> bool {
    let location = response.headers().get(LOCATION);
    let leads_to_sign_in = location.is_some_and(|to| to.as_bytes().starts_with(b"/admin/sign-in?"));
    leads_to_sign_in
        || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&response.status())
}

/// Whether a client may use routes for an audience, by what the documentation says.
///
/// - `is_open`: whether there are neither tokens nor users.
/// - `gatus`: whether the file is Gatus's, and has a user by `security.basic`.
fn may_use(audience: Audience, client: Client, is_open: bool, gatus: Option<bool>) -> bool {
    let reads = is_open || matches!(client, Client::Token(Some(_)));
    match audience {
        Audience::Everyone | Audience::OwnSecret | Audience::Page => true,
        Audience::Reader => reads,
        Audience::Scope(needed) => {
            matches!(client, Client::Token(Some(scope)) if !is_open && scope >= needed)
        }
        Audience::Agent => client == Client::Agent && !is_open,
        Audience::GatusPublic => gatus.is_some() || reads,
        Audience::GatusUser => match gatus {
            None => reads,
            Some(has_user) => !has_user || client == Client::Basic,
        },
        Audience::Session(needed) => matches!(client, Client::User(role) if role >= needed),
    }
}

#[test]
fn every_route_is_in_the_table() {
    let place = Place::new("monitor.toml", &native(""), false);
    let api = Api::new(place.monitor.handle().clone(), Arc::default());
    let written = |audience: Audience, route: &str| format!("{audience:?} {route}");
    let there: BTreeSet<_> = routes(&api)
        .listed()
        .iter()
        .map(|it| written(it.audience, &format!("{} {}", it.method, it.path)))
        .collect();
    let expected: BTreeSet<_> = TABLE
        .iter()
        .flat_map(|(audience, all)| all.iter().map(|route| written(*audience, route)))
        .collect();
    assert_eq!(there, expected);
}

#[test]
fn a_standby_serves_pages_and_calendars() {
    for (audience, routes) in TABLE {
        for route in *routes {
            let (_, path) = route.split_once(' ').unwrap();
            let is_served = *audience == Audience::Page || path.starts_with("/on-call/");
            assert_eq!(is_for_readers(path), is_served, "{route}");
        }
    }
}

#[test]
fn every_client_sees_what_its_audience_may_see() {
    let with_basic = {
        use base64::Engine as _;
        let hash = bcrypt::hash("secret", 4).unwrap();
        let hash = base64::prelude::BASE64_STANDARD.encode(hash);
        format!("security:\n  basic: {{username: ann, password-bcrypt-base64: '{hash}'}}\n")
    };
    for (file, text, has_users, is_open, gatus) in [
        ("monitor.toml", native(""), false, true, None),
        ("monitor.toml", native(&credentials()), true, false, None),
        ("config.yaml", gatus(""), false, true, Some(false)),
        ("config.yaml", gatus(&with_basic), true, false, Some(true)),
    ] {
        let place = Place::new(file, &text, has_users);
        let has_tokens = gatus.is_none() && !is_open;
        for (audience, routes) in TABLE {
            for route in *routes {
                let (method, path) = route.split_once(' ').unwrap();
                let method: Method = method.parse().unwrap();
                let path = filled(path);
                for client in CLIENTS {
                    // Clients that this configuration does not have.
                    let is_known = match client {
                        Client::User(_) => has_users,
                        Client::Token(_) | Client::Agent => has_tokens,
                        Client::Basic => gatus == Some(true),
                        Client::Nobody => true,
                    };
                    if !is_known {
                        continue;
                    }
                    let response = place.call(&method, &path, client);
                    let status = response.status();
                    let case = format!("{route} of {audience:?} by {client:?} in {file}: {status}");
                    match audience {
                        // What the form or the secret in it says comes later.
                        Audience::Everyone => {
                            assert_ne!(status, StatusCode::UNAUTHORIZED, "{case}");
                        }
                        Audience::OwnSecret | Audience::Page => {
                            assert!(!status.is_success(), "{case}");
                        }
                        audience => {
                            let expected = may_use(*audience, client, is_open, gatus);
                            assert_eq!(!is_refused(&response), expected, "{case}");
                        }
                    }
                    let nosniff = response.headers().get(X_CONTENT_TYPE_OPTIONS);
                    assert_eq!(
                        nosniff.map(HeaderValue::as_bytes),
                        Some(&b"nosniff"[..]),
                        "{case}"
                    );
                }
            }
        }
    }
}
