//! Pages that need a password.

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_testkit::Origin;
use tempfile::TempDir;

use super::text;
use crate::client::Running;

#[test]
fn a_password_opens_a_page_and_nothing_else_does() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    let host = ("host", "inside.example");
    let get = |path: &str, more: &[(&str, &str)]| {
        let fields = [&[host], more].concat();
        running.response(Method::GET, path, &fields, "")
    };
    for path in [
        "/",
        "/api/v2/summary.json",
        "/feed.atom",
        "/events",
        "/history",
        "/embed",
    ] {
        let refused = get(path, &[]);
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(!refused.body().contains("Web"), "{path}");
    }
    let sign_in = |password: &str, origin: &str| {
        let fields = [host, ("origin", origin)];
        let form = format!("password={password}");
        running.response(Method::POST, "/sign-in", &fields, &form)
    };
    let own = "http://inside.example";
    assert_eq!(sign_in("wrong", own).status(), StatusCode::UNAUTHORIZED);
    assert_eq!(
        sign_in("pass", "http://evil.example").status(),
        StatusCode::FORBIDDEN
    );
    let signed_in = sign_in("pass", own);
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let session = cookie.split(';').next().unwrap();
    assert_eq!(get("/", &[("cookie", session)]).status(), StatusCode::OK);
    let forged = session.replace("page-inside=", "page-inside=9");
    assert_eq!(
        get("/", &[("cookie", &forged)]).status(),
        StatusCode::UNAUTHORIZED
    );
    // Programs use basic authentication: `page:pass`.
    let basic = ("authorization", "Basic cGFnZTpwYXNz");
    assert_eq!(get("/feed.atom", &[basic]).status(), StatusCode::OK);
    for _ in 0..10 {
        sign_in("wrong", own);
    }
    assert_eq!(sign_in("pass", own).status(), StatusCode::TOO_MANY_REQUESTS);
}

/// A page with this password, for clients of proxies in 10.0.0.0/8.
fn with_password(password: &str) -> String {
    let hash = bcrypt::hash(password, 4).unwrap();
    format!(
        "store = \"memory\"\ntrusted_proxies = \"10.0.0.0/8\"\n\
         [[monitor]]\nname = \"web\"\nmanual = true\n\
         [[page]]\nslug = \"inside\"\ntitle = \"Inside\"\npassword_bcrypt = \"{hash}\"\n"
    )
}

pub(super) fn basic(password: &str) -> String {
    use base64::Engine as _;
    let credentials = base64::prelude::BASE64_STANDARD.encode(format!("page:{password}"));
    format!("Basic {credentials}")
}

#[test]
fn passwords_by_basic_and_by_the_form_have_one_limit() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let get = |password: &str, client: [u8; 4]| {
        let credentials = basic(password);
        let fields = [("authorization", credentials.as_str())];
        let client = Some(client.into());
        running.response_from(client, Method::GET, "/status/inside/feed.atom", &fields, "")
    };
    let [one, other] = [[192, 0, 2, 1], [192, 0, 2, 2]];
    assert_eq!(get("pass", other).status(), StatusCode::OK);
    for _ in 0..10 {
        assert_eq!(get("wrong", one).status(), StatusCode::UNAUTHORIZED);
    }
    for password in ["wrong", "also-wrong"] {
        let refused = get(password, one);
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers().contains_key("retry-after"));
    }
    let form = |password: &str| {
        let body = format!("password={password}");
        let path = "/status/inside/sign-in";
        running.response_from(Some(one.into()), Method::POST, path, &[], &body)
    };
    assert_eq!(form("pass").status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        get("pass", other).status(),
        StatusCode::OK,
        "another source"
    );
}

#[test]
fn a_right_password_that_nobody_gave_yet_counts_as_an_attempt_too() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let get = |password: &str| {
        let credentials = basic(password);
        let fields = [("authorization", credentials.as_str())];
        running.response(Method::GET, "/status/inside/feed.atom", &fields, "")
    };
    for number in 0..30 {
        get(&format!("wrong-{number}"));
    }
    assert_eq!(get("pass").status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn limits_count_the_clients_that_trusted_proxies_name() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let wrong = basic("wrong");
    let attempts = |peer: [u8; 4], client: &dyn Fn(u8) -> String| {
        let statuses = (0..11).map(|number| {
            let client = client(number);
            let fields = [
                ("authorization", wrong.as_str()),
                ("x-forwarded-for", client.as_str()),
            ];
            let path = "/status/inside/feed.atom";
            let peer = Some(peer.into());
            let response = running.response_from(peer, Method::GET, path, &fields, "");
            response.status().as_u16()
        });
        statuses.last()
    };
    let each = |number: u8| format!("203.0.113.{number}");
    let same = |_: u8| "203.0.113.100".to_owned();
    assert_eq!(attempts([10, 0, 0, 1], &each), Some(401));
    assert_eq!(attempts([10, 0, 0, 1], &same), Some(429));
    assert_eq!(attempts([198, 51, 100, 1], &each), Some(429), "not trusted");
}

#[test]
fn another_password_ends_the_sessions_of_a_page() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let signed_in = |password: &str| {
        let body = format!("password={password}");
        let response = running.response(Method::POST, "/status/inside/sign-in", &[], &body);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    };
    let sees = |cookie: &str| {
        let fields = [("cookie", cookie)];
        let response = running.response(Method::GET, "/status/inside/", &fields, "");
        response.status() == StatusCode::OK
    };
    let reload = |text: &str| {
        let path = folder.path().join("monitor.toml");
        std::fs::write(&path, text).unwrap();
        let plan = load(&path, &|_| None).unwrap();
        running
            .block_on(running.monitor.handle().reload(plan))
            .unwrap();
    };
    let cookie = signed_in("pass");
    assert!(sees(&cookie));
    let text = std::fs::read_to_string(folder.path().join("monitor.toml")).unwrap();
    reload(&format!("{text}\n"));
    assert!(sees(&cookie), "the same password");
    reload(&with_password("other"));
    assert!(!sees(&cookie));
    assert!(sees(&signed_in("other")));
}
