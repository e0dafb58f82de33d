//! `oidc` of routes: sign-in at a provider on loopback, with browsers that keep cookies.

use std::collections::BTreeMap;

use plimsoll_testkit::http::{HttpResponse, exchange};
use plimsoll_testkit::{IdentityProvider, Origin, eventually};
use serde_json::json;
use url::Url;

use crate::server::{Served, compiled};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The public URL of the gateway; requests go to its address.
const SITE: &str = "https://wiki.test";

fn provider() -> IdentityProvider {
    IdentityProvider::new("https://wiki.test/oidc/callback")
}

fn configuration(provider: &IdentityProvider, origin: &Origin, keys: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\noidc = {{ issuer = \"{}\", client_id = \"{}\", client_secret = \"{}\", url = \"{SITE}\", {keys} }}\n\
         proxy = {{ to = \"{}\", headers = {{ x-user = \"{{jwt.sub}}\", x-mail = \"{{jwt.claim:email}}\", x-groups = \"{{jwt.claim:groups}}\" }} }}\n",
        provider.url(),
        IdentityProvider::CLIENT,
        IdentityProvider::SECRET,
        origin.url("")
    )
}

fn gateway(provider: &IdentityProvider, origin: &Origin, keys: &str) -> Served {
    Served::new(&configuration(provider, origin, keys))
}

/// A browser, as far as cookies and redirects matter.
#[derive(Debug, Clone, Default)]
struct Browser {
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn get(&mut self, served: &Served, path: &str) -> HttpResponse {
        self.send(served, path, "Accept: text/html\r\n")
    }

    fn send(&mut self, served: &Served, path: &str, fields: &str) -> HttpResponse {
        let cookies = self.cookies.iter();
        let cookies: Vec<_> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookie = match cookies.as_slice() {
            [] => String::new(),
            cookies => format!("Cookie: {}\r\n", cookies.join("; ")),
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: wiki.test\r\nConnection: close\r\n{fields}{cookie}\r\n"
        );
        let response = exchange(served.address(), request.as_bytes());
        let lines = response.head.lines().filter_map(|it| it.split_once(": "));
        for (_, cookie) in lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (pair, attributes) = cookie.split_once("; ").unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            assert!(name.starts_with("__Host-"), "{cookie}");
            let expected = ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"];
            assert!(
                expected.iter().all(|it| attributes.contains(it)),
                "{cookie}"
            );
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    /// Goes to the provider and comes back; the response to that.
    fn sign_in(
        &mut self,
        served: &Served,
        provider: &IdentityProvider,
        path: &str,
    ) -> HttpResponse {
        let there = location(&self.get(served, path));
        let back = provider.authorize(&there).unwrap();
        self.get(served, &path_of(&back))
    }

    fn session(&self) -> Option<&String> {
        self.cookies.get("__Host-plimsoll-session")
    }
}

fn location(response: &HttpResponse) -> String {
    assert_eq!(response.status, 303, "{response:?}");
    assert_eq!(response.field("cache-control"), Some("no-store"));
    response.field("location").unwrap().to_owned()
}

fn path_of(url: &str) -> String {
    let url = Url::parse(url).unwrap();
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

fn last_head(origin: &Origin) -> String {
    origin.heads().pop().unwrap().to_ascii_lowercase()
}

#[test]
fn a_browser_signs_in_and_comes_back_to_where_it_wanted_to_go() {
    let (provider, origin) = (provider(), Origin::hello());
    provider.set(|state| state.user["groups"] = json!(["ops", "dev"]));
    let served = gateway(&provider, &origin, &format!("secret = \"{SECRET}\""));
    let mut browser = Browser::default();
    let response = browser.sign_in(&served, &provider, "/page?x=1&y=%2F");
    assert_eq!(location(&response), "https://wiki.test/page?x=1&y=%2F");
    assert_eq!(origin.requests(), 0);
    assert_eq!(browser.cookies.len(), 1, "the sign-in is over: {browser:?}");
    browser
        .cookies
        .insert("theme".to_owned(), "dark".to_owned());
    let forged = "X-User: root\r\nX-Mail: root@example.org\r\nX_Groups: root\r\n";
    assert_eq!(browser.send(&served, "/page?x=1", forged).status, 200);
    let head = last_head(&origin);
    for expected in [
        "x-user: u-1\r\n",
        "x-mail: ann@example.org\r\n",
        "x-groups: ops,dev\r\n",
        "cookie: theme=dark\r\n",
    ] {
        assert!(head.contains(expected), "{head}");
    }
    assert!(
        !head.contains("root") && !head.contains("plimsoll-session"),
        "{head}"
    );
    assert_eq!(provider.requests("GET /jwks"), 1);
    assert_eq!(provider.requests("POST /token"), 1);
}

#[test]
fn only_visits_of_pages_are_led_to_the_provider() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "");
    let mut browser = Browser::default();
    for fields in [
        "Accept: application/json\r\n",
        "",
        "Accept: text/html\r\nSec-Fetch-Mode: cors\r\n",
        "Accept: text/html\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ] {
        let response = browser.send(&served, "/", fields);
        assert_eq!(response.status, 401, "{fields}: {response:?}");
    }
    let post = "POST / HTTP/1.1\r\nHost: wiki.test\r\nAccept: text/html\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(exchange(served.address(), post.as_bytes()).status, 401);
    let visit = "Sec-Fetch-Mode: navigate\r\n";
    assert_eq!(browser.send(&served, "/", visit).status, 303);
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_session_cannot_be_made_changed_or_taken_to_another_place() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, &format!("secret = \"{SECRET}\""));
    let mut browser = Browser::default();
    browser.sign_in(&served, &provider, "/");
    let session = browser.session().unwrap().clone();
    assert_eq!(browser.get(&served, "/").status, 200);
    let other = gateway(
        &provider,
        &origin,
        "secret = \"another-secret-of-32-characters--\"",
    );
    let elsewhere = gateway(
        &provider,
        &origin,
        &format!("secret = \"{SECRET}\", cookie = \"__Host-other\""),
    );
    let mut flipped = session.clone().into_bytes();
    flipped[40] = if flipped[40] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let flow = {
        let mut browser = Browser::default();
        browser.get(&served, "/");
        browser.cookies.into_values().next().unwrap()
    };
    for (served, name, value) in [
        (&other, "__Host-plimsoll-session", session.as_str()),
        (&elsewhere, "__Host-other", &session),
        (&served, "__Host-plimsoll-session", &flipped),
        (&served, "__Host-plimsoll-session", ""),
        (&served, "__Host-plimsoll-session", "{\"sub\":\"root\"}"),
        (&served, "__Host-plimsoll-session", &flow),
        (&served, "plimsoll-session", &session),
    ] {
        let mut browser = Browser::default();
        browser.cookies.insert(name.to_owned(), value.to_owned());
        assert_eq!(browser.get(served, "/").status, 303, "{name}={value}");
    }
    // A cookie of nonsense beside the right one.
    let two = format!("Cookie: __Host-plimsoll-session=x; __Host-plimsoll-session={session}\r\n");
    assert_eq!(Browser::default().send(&served, "/", &two).status, 200);
}

#[test]
fn responses_that_belong_to_no_sign_in_open_no_session() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "");
    let mut browser = Browser::default();
    let there = location(&browser.get(&served, "/"));
    let back = path_of(&provider.authorize(&there).unwrap());
    // Another browser, such as that of a victim who is sent an attacker's link.
    let mut other = Browser::default();
    other.get(&served, "/");
    assert_eq!(other.get(&served, &back).status, 400);
    assert_eq!(other.get(&served, "/oidc/callback").status, 400);
    assert_eq!(
        other.get(&served, "/oidc/callback?code=x&state=").status,
        400
    );
    assert!(other.session().is_none());
    // A response of another provider (RFC 9207).
    let mixed = back.replace("iss=", "iss=https%3A%2F%2Fevil.test&was=");
    let response = browser.clone().get(&served, &mixed);
    assert_eq!(response.status, 403, "{response:?}");
    assert_eq!(browser.clone().get(&served, &back).status, 303);
    // A code is good once.
    let response = browser.get(&served, &back);
    assert_eq!(response.status, 403, "{response:?}");
    assert!(response.text().contains("invalid_grant"), "{response:?}");
    // What the provider refuses is shown, as text.
    let there = location(&browser.get(&served, "/"));
    let (_, state) = Url::parse(&there)
        .unwrap()
        .query_pairs()
        .into_owned()
        .find(|(name, _)| name == "state")
        .unwrap();
    let response = browser.get(
        &served,
        &format!("/oidc/callback?state={state}&error=access%0A_denied"),
    );
    assert_eq!(response.status, 403);
    assert!(response.text().contains("access _denied"), "{response:?}");
    assert!(
        response
            .field("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    assert!(browser.session().is_none());
}

#[test]
fn forged_id_tokens_open_no_session() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "");
    for (forged, reason) in [
        (json!({ "nonce": "other" }), "of another sign-in"),
        (json!({ "aud": "other" }), "for another client"),
        (json!({ "iss": "https://evil.test" }), "of another issuer"),
        (json!({ "exp": 1 }), "has expired"),
        (json!({ "sub": "" }), "is not a signed"),
    ] {
        provider.set(|state| state.forged = forged);
        let mut browser = Browser::default();
        let response = browser.sign_in(&served, &provider, "/");
        assert_eq!(response.status, 403, "{response:?}");
        assert!(response.text().contains(reason), "{reason}: {response:?}");
        assert!(browser.cookies.is_empty(), "{browser:?}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn the_way_back_leads_to_this_site_alone() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "");
    for (path, back) in [
        ("//evil.test/x", "https://wiki.test//evil.test/x"),
        (
            "/?next=https://evil.test",
            "https://wiki.test/?next=https://evil.test",
        ),
        ("/%0d%0aset-cookie:x", ""),
        ("/\\evil.test", ""),
    ] {
        let mut browser = Browser::default();
        // Some have no normal form, so no route gets them.
        if back.is_empty() {
            assert_eq!(browser.get(&served, path).status, 400, "{path}");
            continue;
        }
        let response = browser.sign_in(&served, &provider, path);
        assert_eq!(location(&response), back);
    }
    let long = format!("/{}", "x".repeat(2000));
    let response = Browser::default().sign_in(&served, &provider, &long);
    assert_eq!(location(&response), "https://wiki.test/");
}

#[test]
fn tabs_sign_in_beside_each_other_and_do_not_pile_up() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "");
    let mut browser = Browser::default();
    let (one, two) = (
        location(&browser.get(&served, "/one")),
        location(&browser.get(&served, "/two")),
    );
    assert_eq!(browser.cookies.len(), 2);
    for (there, path) in [(one, "/one"), (two, "/two")] {
        let back = provider.authorize(&there).unwrap();
        let response = browser.get(&served, &path_of(&back));
        assert_eq!(location(&response), format!("{SITE}{path}"));
    }
    let mut browser = Browser::default();
    for _ in 0..40 {
        browser.get(&served, "/");
        assert!(browser.cookies.len() <= 9, "{}", browser.cookies.len());
    }
}

#[test]
fn groups_decide_and_a_changed_configuration_holds_for_open_sessions() {
    let (provider, origin) = (provider(), Origin::hello());
    let keys = |group: &str| {
        format!("secret = \"{SECRET}\", claims = {{ \"realm.groups\" = [\"{group}\"] }}")
    };
    let mut served = gateway(&provider, &origin, &keys("ops"));
    let mut browser = Browser::default();
    let response = browser.sign_in(&served, &provider, "/");
    assert_eq!(response.status, 403, "{response:?}");
    assert!(response.text().contains("`realm.groups`") && response.text().contains("/oidc/logout"));
    assert!(browser.cookies.is_empty());
    provider.set(|state| state.user["realm"] = json!({ "groups": ["dev", "ops"] }));
    assert_eq!(browser.sign_in(&served, &provider, "/").status, 303);
    assert_eq!(browser.get(&served, "/").status, 200);
    served.reload(&configuration(&provider, &origin, &keys("admin")));
    assert_eq!(browser.get(&served, "/").status, 403);
    served.reload(&configuration(&provider, &origin, &keys("dev")));
    assert_eq!(browser.get(&served, "/").status, 200);
}

#[test]
fn secrets_are_replaced_without_ending_sessions_and_made_up_ones_survive_a_reload() {
    let (provider, origin) = (provider(), Origin::hello());
    let text = |keys: &str| configuration(&provider, &origin, keys);
    let other = "another-secret-of-32-characters--";
    let mut served = Served::new(&text(&format!("secret = [\"{SECRET}\"]")));
    let mut browser = Browser::default();
    browser.sign_in(&served, &provider, "/");
    served.reload(&text(&format!("secret = [\"{other}\", \"{SECRET}\"]")));
    assert_eq!(browser.get(&served, "/").status, 200);
    let mut new = Browser::default();
    new.sign_in(&served, &provider, "/");
    served.reload(&text(&format!("secret = [\"{other}\"]")));
    assert_eq!(new.get(&served, "/").status, 200);
    assert_eq!(browser.get(&served, "/").status, 303, "its secret is gone");
    let mut served = Served::new(&text(""));
    browser.sign_in(&served, &provider, "/");
    served.reload(&text("lifetime = \"1h\""));
    assert_eq!(browser.get(&served, "/").status, 200);
}

#[test]
fn a_session_ends_with_its_lifetime_or_by_signing_out() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "lifetime = \"2s\"");
    let mut browser = Browser::default();
    browser.sign_in(&served, &provider, "/");
    let kept = browser.clone();
    assert_eq!(browser.get(&served, "/").status, 200);
    // Without regard to the age of cookies in the browser.
    eventually(|| kept.clone().get(&served, "/").status == 303);
    let served = gateway(&provider, &origin, "");
    browser.sign_in(&served, &provider, "/");
    let foreign = "Sec-Fetch-Site: cross-site\r\n";
    assert_eq!(browser.send(&served, "/oidc/logout", foreign).status, 403);
    assert!(browser.session().is_some());
    let end = location(&browser.get(&served, "/oidc/logout"));
    let expected = format!(
        "{}/end-session?client_id=plimsoll&post_logout_redirect_uri=https%3A%2F%2Fwiki.test%2F",
        provider.url()
    );
    assert_eq!(end, expected);
    assert!(browser.cookies.is_empty());
}

#[test]
fn claims_of_userinfo_are_taken_of_the_same_user_alone() {
    let (provider, origin) = (provider(), Origin::hello());
    provider.set(|state| state.at_userinfo = true);
    let served = gateway(&provider, &origin, "userinfo = true");
    let mut browser = Browser::default();
    browser.sign_in(&served, &provider, "/");
    browser.get(&served, "/");
    assert!(last_head(&origin).contains("x-mail: ann@example.org\r\n"));
    provider.set(|state| state.userinfo_subject = Some("u-2"));
    let mut browser = Browser::default();
    browser.sign_in(&served, &provider, "/");
    browser.get(&served, "/");
    assert!(!last_head(&origin).contains("x-mail"));
}

#[test]
fn a_provider_that_is_away_is_told_and_open_sessions_go_on() {
    let (provider, origin) = (provider(), Origin::hello());
    provider.set(|state| state.is_away = true);
    let served = gateway(&provider, &origin, "");
    let mut browser = Browser::default();
    let response = browser.get(&served, "/");
    assert_eq!(response.status, 502, "{response:?}");
    assert!(
        response.text().contains("the provider does not answer"),
        "{response:?}"
    );
    // What is not for visitors is in the log.
    assert!(!response.text().contains("503"), "{response:?}");
    // Tried again after a while, not by each request.
    let tried = provider.requests("GET /.well-known/openid-configuration");
    assert_eq!(tried, 1);
    browser.get(&served, "/");
    assert_eq!(
        provider.requests("GET /.well-known/openid-configuration"),
        tried
    );
    provider.set(|state| state.is_away = false);
    eventually(|| browser.get(&served, "/").status == 303);
    browser.cookies.clear();
    browser.sign_in(&served, &provider, "/");
    provider.set(|state| state.is_away = true);
    assert_eq!(browser.get(&served, "/").status, 200);
}

#[test]
fn claims_that_fit_no_cookie_are_reported() {
    let (provider, origin) = (provider(), Origin::hello());
    provider.set(|state| state.user["groups"] = json!("x".repeat(6000)));
    let served = gateway(&provider, &origin, "");
    let response = Browser::default().sign_in(&served, &provider, "/");
    assert_eq!(response.status, 500, "{response:?}");
    assert!(response.text().contains("name fewer in `keep`"));
    let served = gateway(&provider, &origin, "keep = [\"email\"]");
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&served, &provider, "/").status, 303);
    browser.get(&served, "/");
    assert!(!last_head(&origin).contains("x-groups"));
}

#[test]
fn mistakes_are_reported_with_what_to_do() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
oidc = { }
respond = {}
[[route]]
prefix = "/app"
oidc = { issuer = "http://id.test", client_id = "a", url = "https://a.test/app", callback = "/oidc/callback", logout = "out", cookie = "session", secret = "short", lifetime = "0s", scopes = [], client_secret = "a", client_secret_file = "b" }
respond = {}
"#;
    let problems = compiled(text).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    for expected in [
        "route[1].oidc: `issuer` is missing",
        "route[1].oidc: `client_id` is missing",
        "route[1].oidc: `url` is missing",
        "route[2].oidc.issuer: must be a URL that begins with `https://`",
        "route[2].oidc.url: is scheme and host alone; `callback` has the path",
        "route[2].oidc.callback: is not below the route, whose prefix is /app/",
        "route[2].oidc.logout: begins with a slash",
        "route[2].oidc.cookie: is a name that begins with `__Host-`",
        "route[2].oidc: a `secret` has 32 characters or more",
        "route[2].oidc: `lifetime` is from 1s to 400 days",
        "route[2].oidc.scopes: is an empty list",
        "route[2].oidc: both `client_secret` and a file of it are given",
    ] {
        let is_there = problems.iter().any(|it| it.starts_with(expected));
        assert!(is_there, "{expected}: {problems:#?}");
    }
}
