//! The admin pages: sign-in, roles, forms, what is typed into them.

use http::{Method, StatusCode};
use plimsoll_monitor::config::{ApiToken, DEFAULT_ORGANISATION, StorePlan};
use plimsoll_monitor::setup;
use plimsoll_testkit::{Origin, eventually, refused_address};
use tempfile::TempDir;

use crate::client::Running;

pub(crate) const PASSWORD: &str = "correct horse battery";

/// A monitor with an owner, in a store of its own.
pub(crate) struct Admin {
    _folder: TempDir,
    pub(crate) running: Running,
}

/// A browser: cookies, and the token of forms.
#[derive(Default, Clone)]
pub(crate) struct Browser {
    pub(crate) session: Option<String>,
    pub(crate) form: Option<String>,
    /// A sign-in by a provider that is under way.
    pub(crate) oidc: Option<String>,
    pub(crate) csrf: String,
}

impl Admin {
    pub(crate) fn new(more: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let text = format!("store = \"m.db\"\n{more}");
        setup::add_owner(
            &StorePlan::Sqlite(folder.path().join("m.db")),
            DEFAULT_ORGANISATION,
            "owner",
            Some(PASSWORD.to_owned()),
        )
        .unwrap();
        let running = Running::new(folder.path(), "monitor.toml", &text);
        Self {
            _folder: folder,
            running,
        }
    }

    pub(crate) fn signed_in(&self, name: &str, password: &str) -> Browser {
        let mut browser = Browser::default();
        let (status, text) = browser.sign_in(self, name, password, "");
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
        browser.get(self, "/admin/account");
        browser
    }

    pub(crate) fn owner(&self) -> Browser {
        self.signed_in("owner", PASSWORD)
    }

    /// A member with a role, with a password of its own.
    pub(crate) fn member(&self, owner: &Browser, name: &str, role: &str) -> Browser {
        let (status, text) = owner.post(
            self,
            "/admin/members/add",
            &[("name", name), ("role", role)],
        );
        assert_eq!(status, StatusCode::OK, "{text}");
        let made = between(&text, "<code class=\"secret\">", "</code>").to_owned();
        let browser = self.signed_in(name, &made);
        let (status, _) = browser.get_as(self, "/admin");
        assert_eq!(
            status,
            StatusCode::SEE_OTHER,
            "the password must be changed first"
        );
        let (status, text) = browser.post(
            self,
            "/admin/account/password",
            &[("present", &made), ("new", PASSWORD), ("again", PASSWORD)],
        );
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
        browser
    }
}

pub(crate) fn between<'t>(text: &'t str, before: &str, behind: &str) -> &'t str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{before} is not in {text}"));
    rest.split(behind).next().unwrap()
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(pairs);
    form.finish()
}

impl Browser {
    pub(crate) fn call(
        &mut self,
        admin: &Admin,
        method: Method,
        path: &str,
        body: &str,
    ) -> http::Response<String> {
        let mut cookies = Vec::new();
        if let Some(session) = &self.session {
            cookies.push(format!("plimsoll-admin={session}"));
        }
        if let Some(form) = &self.form {
            cookies.push(format!("plimsoll-form={form}"));
        }
        if let Some(oidc) = &self.oidc {
            cookies.push(format!("plimsoll-oidc={oidc}"));
        }
        let cookies = cookies.join("; ");
        let fields = [("cookie", cookies.as_str()), ("host", "monitor.test")];
        let response = admin.running.response(method, path, &fields, body);
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap().to_owned();
            let value = Some(value).filter(|value| !value.is_empty());
            match name {
                "plimsoll-admin" => self.session = value,
                "plimsoll-form" => self.form = value,
                "plimsoll-oidc" => self.oidc = value,
                other => panic!("{other}"),
            }
        }
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"));
        assert_eq!(response.headers()["x-frame-options"], "DENY");
        if response.body().contains("name=\"csrf\"") {
            between(response.body(), "name=\"csrf\" value=\"", "\"").clone_into(&mut self.csrf);
        }
        response
    }

    pub(crate) fn sign_in(
        &mut self,
        admin: &Admin,
        name: &str,
        password: &str,
        code: &str,
    ) -> (StatusCode, String) {
        self.call(admin, Method::GET, "/admin/sign-in", "");
        let csrf = self.csrf.clone();
        let body = encoded(&[
            ("csrf", &csrf),
            ("name", name),
            ("password", password),
            ("code", code),
        ]);
        let response = self.call(admin, Method::POST, "/admin/sign-in", &body);
        (response.status(), response.body().clone())
    }

    pub(crate) fn get(&mut self, admin: &Admin, path: &str) -> String {
        let response = self.call(admin, Method::GET, path, "");
        assert_eq!(
            response.status(),
            StatusCode::OK,
            "{path}: {}",
            response.body()
        );
        response.body().clone()
    }

    pub(crate) fn get_as(&self, admin: &Admin, path: &str) -> (StatusCode, String) {
        let response = self.clone().call(admin, Method::GET, path, "");
        (response.status(), response.body().clone())
    }

    pub(crate) fn post(
        &self,
        admin: &Admin,
        path: &str,
        pairs: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let mut all = vec![("csrf", self.csrf.as_str())];
        all.extend(pairs);
        let response = self.clone().call(admin, Method::POST, path, &encoded(&all));
        (response.status(), response.body().clone())
    }
}

#[test]
fn without_a_session_every_page_leads_to_the_sign_in() {
    let admin = Admin::new("");
    let mut browser = Browser::default();
    for path in [
        "/admin",
        "/admin/monitors?q=a",
        "/admin/members",
        "/admin/new-monitor",
    ] {
        let response = browser.call(&admin, Method::GET, path, "");
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let to = response.headers()["location"].to_str().unwrap();
        assert!(to.starts_with("/admin/sign-in?next=%2Fadmin"), "{to}");
    }
    let response = browser.call(
        &admin,
        Method::POST,
        "/admin/monitors/bulk",
        "action=delete",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_sign_in_needs_the_password_and_opens_a_new_session() {
    let admin = Admin::new("");
    // A session that another person chose is not taken over.
    let mut browser = Browser {
        session: Some("chosen-by-another-person".to_owned()),
        ..Browser::default()
    };
    for (name, password) in [("owner", "wrong"), ("nobody", PASSWORD), ("", "")] {
        let (status, text) = browser.sign_in(&admin, name, password, "");
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(text.contains("Name, password or code are wrong."));
    }
    let (status, _) = browser.sign_in(&admin, "owner", PASSWORD, "");
    assert_eq!(status, StatusCode::SEE_OTHER);
    let first = browser.session.clone().unwrap();
    assert_ne!(first, "chosen-by-another-person");
    assert!(browser.get(&admin, "/admin").contains("Overview"));
    // And another sign-in has another one.
    let mut other = Browser::default();
    other.sign_in(&admin, "owner", PASSWORD, "");
    assert_ne!(other.session.unwrap(), first);
    let (status, _) = browser.post(&admin, "/admin/sign-out", &[]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(
        browser.get_as(&admin, "/admin").0,
        StatusCode::SEE_OTHER,
        "the cookie is of no use"
    );
}

#[test]
fn cookies_are_secure_and_hsts_is_set_behind_tls() {
    let admin = Admin::new("");
    let fields = [("x-forwarded-proto", "https")];
    let response = admin
        .running
        .response(Method::GET, "/admin/sign-in", &fields, "");
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    assert!(response.headers().contains_key("strict-transport-security"));
    let response = admin
        .running
        .response(Method::GET, "/admin/sign-in", &[], "");
    assert!(
        !response.headers()["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Secure")
    );
    assert!(!response.headers().contains_key("strict-transport-security"));
}

#[test]
fn too_many_attempts_are_refused_for_a_while() {
    let admin = Admin::new("");
    let mut browser = Browser::default();
    let mut statuses = Vec::new();
    for _ in 0..9 {
        statuses.push(browser.sign_in(&admin, "owner", "wrong", "").0.as_u16());
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 401, 401, 401, 429]);
    let (status, text) = browser.sign_in(&admin, "owner", PASSWORD, "");
    assert_eq!(
        status,
        StatusCode::TOO_MANY_REQUESTS,
        "the right one too: {text}"
    );
}

/// Every route that changes something, and the least role that may use it.
const WRITES: [(&str, &str); 25] = [
    ("/admin/sign-out", "viewer"),
    ("/admin/account/password", "viewer"),
    ("/admin/account/totp", "viewer"),
    ("/admin/account/recovery", "viewer"),
    ("/admin/account/sessions", "viewer"),
    ("/admin/account/unlink", "viewer"),
    ("/admin/pages/p/readers", "editor"),
    ("/admin/new-monitor", "editor"),
    ("/admin/monitors/_m/edit", "editor"),
    ("/admin/monitors/bulk", "editor"),
    ("/admin/monitors/_m/act", "editor"),
    ("/admin/new-incident", "editor"),
    ("/admin/incidents/1/update", "editor"),
    ("/admin/notices/test", "editor"),
    ("/admin/new-page", "editor"),
    ("/admin/pages/p/edit", "editor"),
    ("/admin/maintenance/add", "editor"),
    ("/admin/maintenance/remove", "editor"),
    ("/admin/new-channel", "admin"),
    ("/admin/channels/c/edit", "admin"),
    ("/admin/members/add", "admin"),
    ("/admin/members/change", "admin"),
    ("/admin/tokens/add", "admin"),
    ("/admin/tokens/revoke", "admin"),
    ("/admin/sign-in", "none"),
];

#[test]
fn every_form_needs_its_token_and_its_role() {
    let admin = Admin::new("[[monitor]]\nname = \"m\"\nmanual = true\n");
    let owner = admin.owner();
    let roles = ["viewer", "editor", "admin"];
    let browsers = roles.map(|role| admin.member(&owner, role, role));
    // The table has every route of the source that takes a POST.
    let source = include_str!("../../src/admin.rs");
    let count = source.matches("post(").count();
    assert_eq!(count, WRITES.len(), "the table names every write route");
    for (path, least) in WRITES.into_iter().filter(|(_, least)| *least != "none") {
        let needed = roles.iter().position(|role| *role == least).unwrap();
        for (index, browser) in browsers.iter().enumerate() {
            // Without the token nothing happens, whatever the role.
            let mut forged = browser.clone();
            forged.csrf = "forged".to_owned();
            let (status, text) = forged.post(&admin, path, &[("action", "none")]);
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
            assert!(text.contains("not of this session"), "{path}: {text}");
            forged.csrf = owner.csrf.clone();
            assert_eq!(
                forged.post(&admin, path, &[]).0,
                StatusCode::FORBIDDEN,
                "{path}: another session's token"
            );
            if index < needed {
                let (status, text) = browser.post(&admin, path, &[("action", "none")]);
                assert_eq!(status, StatusCode::FORBIDDEN, "{} at {path}", roles[index]);
                assert!(text.contains("Your role does not permit this"), "{text}");
            } else if path != "/admin/sign-out" {
                let (status, text) = browser.post(&admin, path, &[("action", "none")]);
                assert!(
                    status != StatusCode::FORBIDDEN && !text.contains("Your role"),
                    "{} at {path}: {status}",
                    roles[index]
                );
            }
        }
    }
    for (path, least) in [
        ("/admin/members", 2),
        ("/admin/tokens", 2),
        ("/admin/audit", 2),
        ("/admin/new-monitor", 1),
        ("/admin/reports", 0),
    ] {
        for (index, browser) in browsers.iter().enumerate() {
            let expected = if index < least {
                StatusCode::FORBIDDEN
            } else {
                StatusCode::OK
            };
            assert_eq!(
                browser.get_as(&admin, path).0,
                expected,
                "{} at {path}",
                roles[index]
            );
        }
    }
}

#[test]
fn a_monitor_is_tested_added_and_shown_with_its_first_result() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let origin = Origin::hello();
    let url = origin.url("/");
    let fields = [
        ("name", "Shop"),
        ("kind", "http"),
        ("target", &url),
        ("interval", "1h"),
        ("tags", "eu, shop"),
        ("expect", "status == 200\r\nbody contains 'hello'"),
    ];
    let mut trial = fields.to_vec();
    trial.push(("action", "test"));
    let (status, text) = owner.post(&admin, "/admin/new-monitor", &trial);
    assert_eq!(status, StatusCode::OK);
    assert!(
        text.contains("Test:") && text.contains("operational") && text.contains("connect"),
        "{text}"
    );
    assert!(text.contains("Nothing is saved yet."));
    assert_eq!(
        owner.get_as(&admin, "/admin/monitors/_shop").0,
        StatusCode::NOT_FOUND
    );

    let mut save = fields.to_vec();
    save.push(("action", "save"));
    let (status, text) = owner.post(&admin, "/admin/new-monitor", &save);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    // The interval is an hour: the result is that of the check at once.
    let (_, text) = owner.get_as(&admin, "/admin/monitors/_shop?done=added");
    assert!(text.contains("The monitor is added."));
    assert!(text.contains("met: <code>status == 200</code>"), "{text}");
    let shown = || owner.get_as(&admin, "/admin/monitors/_shop").1;
    eventually(|| !shown().contains("No results yet."));
    eventually(|| shown().contains("Response times in UTC: p50, p95 and p99"));

    // The edit form has what was typed, and a second edit of the same version is refused.
    let (_, form) = owner.get_as(&admin, "/admin/monitors/_shop/edit");
    assert!(
        form.contains("value=\"eu, shop\"") && form.contains("body contains &#39;hello&#39;"),
        "{form}"
    );
    let mut edit = save.clone();
    edit[0].1 = "Shop 2";
    edit.push(("version", "1"));
    let (status, text) = owner.post(&admin, "/admin/monitors/_shop/edit", &edit);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(&admin, "/admin/monitors/_shop-2/edit", &edit);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("changed meanwhile"), "{text}");

    let wrong = [
        ("name", "x"),
        ("kind", "http"),
        ("target", "ftp://x"),
        ("interval", "soon"),
        ("action", "save"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-monitor", &wrong);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        text.contains("interval:") && text.contains("http:") && text.contains("value=\"ftp://x\""),
        "{text}"
    );
}

#[test]
fn many_monitors_are_paused_tagged_and_deleted_together() {
    let admin = Admin::new("[[monitor]]\nname = \"of the file\"\nmanual = true\n");
    let owner = admin.owner();
    for name in ["a", "b", "c"] {
        let (status, text) = owner.post(
            &admin,
            "/admin/new-monitor",
            &[("name", name), ("kind", "manual"), ("action", "save")],
        );
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    }
    let selected = [("key", "_a"), ("key", "_b"), ("key", "_of-the-file")];
    let bulk = |action: &str, tags: &str| {
        let mut pairs = vec![("action", action), ("tags", tags)];
        pairs.extend(selected);
        let (status, text) = owner.post(&admin, "/admin/monitors/bulk", &pairs);
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    };
    let list = |query: &str| owner.get_as(&admin, &format!("/admin/monitors{query}")).1;
    bulk("pause", "");
    assert_eq!(list("?health=paused").matches("<tr data-health").count(), 3);
    bulk("resume", "");
    assert_eq!(list("?health=paused").matches("<tr data-health").count(), 0);
    bulk("tag", "blue green");
    assert_eq!(
        list("?tag=blue").matches("<tr data-health").count(),
        2,
        "the file's has no tags"
    );
    bulk("untag", "blue");
    assert_eq!(list("?tag=blue").matches("<tr data-health").count(), 0);
    assert_eq!(list("?q=GREEN").matches("<tr data-health").count(), 2);
    bulk("delete", "");
    let rest = list("");
    assert_eq!(rest.matches("<tr data-health").count(), 2);
    assert!(rest.contains("of the file"));
    let (_, log) = owner.get_as(&admin, "/admin/audit");
    for action in [
        "monitor.create",
        "monitor.pause",
        "monitor.resume",
        "monitor.update",
        "monitor.delete",
        "session.open",
    ] {
        assert!(log.contains(action), "{action}");
    }
}

#[test]
fn an_outage_is_shown_acknowledged_and_reported() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let target = format!("http://{}/", refused_address());
    let fields = [
        ("name", "Shop"),
        ("kind", "http"),
        ("target", target.as_str()),
        ("interval", "100ms"),
        ("confirm", "2"),
        ("action", "save"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-monitor", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    eventually(|| {
        owner
            .get_as(&admin, "/admin")
            .1
            .contains("/admin/outages/1")
    });
    let (status, _) = owner.post(
        &admin,
        "/admin/monitors/_shop/act",
        &[("action", "acknowledge")],
    );
    assert_eq!(status, StatusCode::SEE_OTHER);
    eventually(|| {
        owner
            .get_as(&admin, "/admin/outages/1")
            .1
            .contains("by owner")
    });
    let (_, report) = owner.get_as(&admin, "/admin/reports?days=1");
    assert!(
        report.contains("Shop: 1 outage<") || report.contains("Shop: 1 outage"),
        "{report}"
    );
    let (status, csv) = owner.get_as(&admin, "/admin/reports.csv?days=1");
    assert_eq!(status, StatusCode::OK);
    assert!(
        csv.starts_with(
            "key,name,group,uptime,down_s,incidents,mtta_s,mttr_s\r\n\"_shop\",\"Shop\",\"\","
        ),
        "{csv}"
    );
}

#[test]
fn incidents_pages_and_maintenance_are_made_by_forms() {
    let admin = Admin::new("[[monitor]]\nname = \"m\"\nmanual = true\n");
    let owner = admin.owner();
    let (status, text) = owner.post(
        &admin,
        "/admin/new-incident",
        &[
            ("title", "Search is slow"),
            ("phase", "investigating"),
            ("impact", "major"),
            ("body", "We look."),
            ("monitor", "_m"),
        ],
    );
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(
        &admin,
        "/admin/incidents/1/update",
        &[
            ("title", "Search is slow"),
            ("phase", "postmortem"),
            ("impact", "major"),
            ("body", "It was the disk."),
            ("version", "1"),
        ],
    );
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, shown) = owner.get_as(&admin, "/admin/incidents/1");
    assert!(shown.contains("It was the disk.") && shown.contains("We look."));
    let (status, _) = owner.post(
        &admin,
        "/admin/incidents/1/update",
        &[("title", "x"), ("version", "1")],
    );
    assert_eq!(status, StatusCode::CONFLICT, "a stale version");

    let page = [
        ("title", "Our services"),
        ("slug", "ours"),
        ("monitor", "_m"),
    ];
    let mut preview = page.to_vec();
    preview.push(("action", "preview"));
    let (status, text) = owner.post(&admin, "/admin/new-page", &preview);
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("<h2 id=\"preview\">"), "{text}");
    let (status, text) = owner.post(&admin, "/admin/new-page", &page);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = admin.running.get("/status/ours/");
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("Our services"));
    let renamed = [("title", "New"), ("slug", "new"), ("version", "1")];
    for (logo, expected) in [
        ("data:image/png;base64,bm90IGEgcGljdHVyZQ==", "is not a PNG"),
        ("data:image/png;base64,?", "must be a `data:` URL in base64"),
        ("logo.png", "names a file"),
    ] {
        let fields = [&renamed[..], &[("logo", logo)]].concat();
        let (status, text) = owner.post(&admin, "/admin/pages/ours/edit", &fields);
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let logo = ("logo", "data:image/png;base64,iVBORw0KGgo=");
    let fields = [&renamed[..], &[logo]].concat();
    let (status, text) = owner.post(&admin, "/admin/pages/ours/edit", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, text) = admin.running.get("/status/new/");
    assert!(text.contains("src=\"/status/new/logo\""), "{text}");
    assert_eq!(admin.running.get("/status/new/").0, StatusCode::OK);
    let (status, _) = owner.post(&admin, "/admin/pages/new/edit", &[("action", "delete")]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let (_, list) = owner.get_as(&admin, "/admin/pages");
    assert!(list.contains("No status pages yet."), "{list}");

    let window = [
        ("name", "patches"),
        ("when", "once"),
        ("at", "2001-01-01T00:00"),
        ("duration", "2h"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &window);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let weekly = [
        ("name", "weekly"),
        ("when", "monday"),
        ("at", "02:30"),
        ("duration", "2h"),
        ("zone", "Europe/Berlin"),
        ("monitor", "_m"),
        ("about", " The <b>database</b>\r\nis moved.\r\n"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &weekly);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (status, text) = owner.post(
        &admin,
        "/admin/maintenance/add",
        &[
            ("name", "bad"),
            ("when", "once"),
            ("at", "soon"),
            ("duration", "2h"),
        ],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("is not a date"), "{text}");
    let (_, calendar) = owner.get_as(&admin, "/admin/maintenance");
    assert!(
        calendar.contains("patches") && calendar.contains("<b>weekly</b>"),
        "{calendar}"
    );
    let about = "The &#60;b&#62;database&#60;/b&#62;\nis moved.</small>";
    assert!(calendar.contains(about), "{calendar}");
    let long = "x".repeat(2_001);
    let (status, text) = owner.post(
        &admin,
        "/admin/maintenance/add",
        &[
            ("name", "long"),
            ("when", "cron"),
            ("at", "0 3 * * *"),
            ("duration", "2h"),
            ("about", &long),
        ],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("must have at most 2000 characters"), "{text}");
    assert!(text.contains(&format!(">{long}</textarea>")), "it is kept");
    let (status, _) = owner.post(&admin, "/admin/maintenance/remove", &[("name", "patches")]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    // A window that is under way holds its monitor.
    let now = [
        ("name", "now"),
        ("when", "cron"),
        ("at", "* * * * *"),
        ("duration", "1h"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &now);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    eventually(|| {
        owner
            .get_as(&admin, "/admin/monitors/_m")
            .1
            .contains("Maintenance")
    });
}

/// Ways to smuggle scripts in.
const SMUGGLED: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg/onload=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{7*7}}<%= 7*7 %>",
    "\u{202e}<b onmouseover=alert(1)>x",
];

#[test]
fn what_is_typed_is_shown_and_never_run() {
    let admin = Admin::new("");
    let owner = admin.owner();
    for (number, text) in SMUGGLED.into_iter().enumerate() {
        let name = format!("{number}{text}");
        let heartbeat = [
            ("name", name.as_str()),
            ("group", text),
            ("kind", "manual"),
            ("tags", "t"),
            ("more", "[labels]\nteam = \"x\""),
            ("action", "save"),
        ];
        let (status, answer) = owner.post(&admin, "/admin/new-monitor", &heartbeat);
        assert_eq!(status, StatusCode::SEE_OTHER, "{answer}");
        // Forms with errors show what was typed again.
        let all = [
            ("name", text),
            ("group", text),
            ("kind", text),
            ("target", text),
            ("interval", text),
            ("tags", text),
            ("expect", text),
            ("warn_unless", text),
            ("depends_on", text),
            ("timeout", text),
            ("confirm", text),
            ("more", text),
            ("action", "save"),
        ];
        let mut pages = vec![owner.post(&admin, "/admin/new-monitor", &all).1];
        let mut test = all.to_vec();
        test[12].1 = "test";
        pages.push(owner.post(&admin, "/admin/new-monitor", &test).1);
        owner.post(
            &admin,
            "/admin/new-incident",
            &[
                ("title", name.as_str()),
                ("body", text),
                ("phase", text),
                ("impact", text),
            ],
        );
        pages.push(
            owner
                .post(
                    &admin,
                    "/admin/new-incident",
                    &[("title", ""), ("body", text)],
                )
                .1,
        );
        let page = [
            ("title", text),
            ("slug", text),
            ("about", text),
            ("host", text),
            ("url", text),
            ("zone", text),
            ("color", text),
            ("more", text),
        ];
        pages.push(owner.post(&admin, "/admin/new-page", &page).1);
        let slug = format!("p{number}");
        owner.post(
            &admin,
            "/admin/new-page",
            &[("title", text), ("slug", &slug), ("about", text)],
        );
        pages.push(
            owner
                .post(
                    &admin,
                    "/admin/maintenance/add",
                    &[
                        ("name", text),
                        ("when", text),
                        ("at", text),
                        ("duration", text),
                        ("zone", text),
                        ("monitor", text),
                    ],
                )
                .1,
        );
        owner.post(
            &admin,
            "/admin/maintenance/add",
            &[
                ("name", name.as_str()),
                ("when", "monday"),
                ("at", "02:30"),
                ("duration", "1h"),
            ],
        );
        pages.push(
            owner
                .post(
                    &admin,
                    "/admin/members/add",
                    &[("name", name.as_str()), ("role", "viewer")],
                )
                .1,
        );
        pages.push(
            owner
                .post(
                    &admin,
                    "/admin/tokens/add",
                    &[("name", name.as_str()), ("scope", "read"), ("days", text)],
                )
                .1,
        );
        owner.post(
            &admin,
            "/admin/tokens/add",
            &[("name", name.as_str()), ("scope", "read")],
        );
        pages.push(
            owner
                .post(&admin, "/admin/notices/test", &[("channel", text)])
                .1,
        );
        pages.push(
            owner
                .post(
                    &admin,
                    "/admin/account/totp",
                    &[("secret", text), ("code", text), ("present", PASSWORD)],
                )
                .1,
        );
        let query = encoded(&[
            ("q", text),
            ("tag", text),
            ("health", text),
            ("done", text),
            ("next", text),
        ]);
        for path in [
            "/admin",
            "/admin/monitors",
            "/admin/incidents",
            "/admin/pages",
            "/admin/maintenance",
            "/admin/members",
            "/admin/tokens",
            "/admin/audit",
            "/admin/account",
            "/admin/reports",
            "/admin/notices",
        ] {
            let (status, page) = owner.get_as(&admin, &format!("{path}?{query}"));
            assert_eq!(status, StatusCode::OK, "{path}");
            pages.push(page);
        }
        let mut fresh = Browser::default();
        pages.push(fresh.sign_in(&admin, text, text, text).1);
        pages.push(
            fresh
                .call(&admin, Method::GET, &format!("/admin/sign-in?{query}"), "")
                .body()
                .clone(),
        );
        let key = plimsoll_monitor::config::key_of(text, &name);
        let key = percent_encoding::utf8_percent_encode(&key, percent_encoding::NON_ALPHANUMERIC);
        for path in [
            format!("/admin/monitors/{key}"),
            format!("/admin/monitors/{key}/edit"),
            format!("/admin/incidents/{}", number + 1),
            format!("/admin/pages/{slug}/edit"),
        ] {
            let (status, page) = owner.get_as(&admin, &path);
            assert_eq!(status, StatusCode::OK, "{path}: {page}");
            pages.push(page);
        }
        for page in pages {
            for raw in [
                "<script>alert",
                "<img src=x",
                "<svg/onload",
                "<b onmouseover",
                "href=\"javascript:",
                "action=\"javascript:",
            ] {
                assert!(!page.contains(raw), "{raw} of {text} is in {page}");
            }
            // The only script is the file of the pages.
            assert_eq!(
                page.matches("<script").count(),
                page.matches("<script src=\"/admin/assets/admin.js\" defer></script>")
                    .count()
            );
            assert!(
                !page.contains(" style=\"") && !page.contains("<style"),
                "nothing inline"
            );
        }
    }
}

#[test]
fn one_time_codes_are_needed_once_they_are_on() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (_, account) = owner.get_as(&admin, "/admin/account");
    let secret = between(&account, "name=\"secret\" value=\"", "\"").to_owned();
    let (status, text) = owner.post(
        &admin,
        "/admin/account/totp",
        &[
            ("secret", &secret),
            ("code", "000000"),
            ("present", PASSWORD),
            ("action", "on"),
        ],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains(&secret), "the same secret again");
    let (status, text) = owner.post(
        &admin,
        "/admin/account/totp",
        &[
            ("secret", &secret),
            ("code", &code(&secret, 0)),
            ("present", PASSWORD),
            ("action", "on"),
        ],
    );
    assert_eq!(status, StatusCode::OK, "{text}");
    let mut browser = Browser::default();
    assert_eq!(
        browser.sign_in(&admin, "owner", PASSWORD, "").0,
        StatusCode::UNAUTHORIZED
    );
    let now = code(&secret, 0);
    let (status, text) = browser.sign_in(&admin, "owner", PASSWORD, &now);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let mut second = Browser::default();
    assert_eq!(
        second.sign_in(&admin, "owner", PASSWORD, &now).0,
        StatusCode::UNAUTHORIZED,
        "a code is valid once"
    );
}

#[test]
fn recovery_codes_sign_in_once_each_without_the_app() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (_, account) = owner.get_as(&admin, "/admin/account");
    let secret = between(&account, "name=\"secret\" value=\"", "\"").to_owned();
    let (status, text) = owner.post(
        &admin,
        "/admin/account/totp",
        &[
            ("secret", &secret),
            ("code", &code(&secret, 0)),
            ("present", PASSWORD),
            ("action", "on"),
        ],
    );
    assert_eq!(status, StatusCode::OK, "{text}");
    let codes = |page: &str| {
        let items = page.split("<li><code>").skip(1);
        let items = items.map(|item| item.split('<').next().unwrap().to_owned());
        items.collect::<Vec<_>>()
    };
    let first = codes(&text);
    assert_eq!(first.len(), 10, "{text}");
    let (_, account) = owner.get_as(&admin, "/admin/account");
    assert!(codes(&account).is_empty(), "they are shown once");
    // Without the app, each recovery code works once, and not after there are new ones.
    let recovered = |code: &str| {
        Browser::default()
            .sign_in(&admin, "owner", PASSWORD, code)
            .0
    };
    assert_eq!(recovered(&first[0].to_uppercase()), StatusCode::SEE_OTHER);
    assert_eq!(recovered(&first[0]), StatusCode::UNAUTHORIZED);
    let (_, account) = owner.get_as(&admin, "/admin/account");
    assert!(account.contains("9 recovery codes left"), "{account}");
    let (status, text) = owner.post(&admin, "/admin/account/recovery", &[("present", PASSWORD)]);
    assert_eq!(status, StatusCode::OK, "{text}");
    let second = codes(&text);
    assert_eq!(recovered(&first[1]), StatusCode::UNAUTHORIZED);
    assert_eq!(recovered(&second[1]), StatusCode::SEE_OTHER);
}

/// The code of the present step, or of one later, by another way than the program's: RFC 6238 with the ring of this test.
fn code(secret: &str, later: i64) -> String {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut bytes, mut buffer, mut bits) = (Vec::new(), 0_usize, 0);
    for letter in secret.chars() {
        buffer = (buffer << 5 | alphabet.find(letter).unwrap()) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits & 255).unwrap());
        }
    }
    let seconds = jiff::Timestamp::now().as_second();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    let tag = ring::hmac::sign(&key, &(seconds / 30 + later).to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[19] & 15);
    let number = u32::from_be_bytes(tag[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

#[test]
fn sessions_and_members_can_be_ended() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let viewer = admin.member(&owner, "val", "viewer");
    let mut other = admin.signed_in("val", PASSWORD);
    assert_eq!(other.get_as(&admin, "/admin").0, StatusCode::OK);
    let (status, _) = viewer.post(&admin, "/admin/account/sessions", &[]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(
        other.get_as(&admin, "/admin").0,
        StatusCode::SEE_OTHER,
        "ended from elsewhere"
    );
    assert_eq!(
        viewer.get_as(&admin, "/admin").0,
        StatusCode::OK,
        "this one goes on"
    );
    other.sign_in(&admin, "val", PASSWORD, "");
    // The owner is number 1 and the last one; the viewer is 2.
    let (status, text) = owner.post(
        &admin,
        "/admin/members/change",
        &[("id", "1"), ("action", "remove")],
    );
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(text.contains("last owner"), "{text}");
    let (status, _) = owner.post(
        &admin,
        "/admin/members/change",
        &[("id", "1"), ("action", "role"), ("role", "viewer")],
    );
    assert_eq!(status, StatusCode::CONFLICT);
    let (status, _) = owner.post(
        &admin,
        "/admin/members/change",
        &[("id", "2"), ("action", "role"), ("role", "admin")],
    );
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(
        viewer.get_as(&admin, "/admin/tokens").0,
        StatusCode::OK,
        "the new role holds at once"
    );
    other.get(&admin, "/admin/members");
    let (status, text) = other.post(
        &admin,
        "/admin/members/change",
        &[("id", "1"), ("action", "reset")],
    );
    assert_eq!(
        status,
        StatusCode::CONFLICT,
        "an admin cannot change an owner: {text}"
    );
    let (status, text) = other.post(
        &admin,
        "/admin/members/add",
        &[("name", "x"), ("role", "owner")],
    );
    assert_eq!(status, StatusCode::CONFLICT, "nor make one: {text}");
    let (status, _) = owner.post(
        &admin,
        "/admin/members/change",
        &[("id", "2"), ("action", "remove")],
    );
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(
        viewer.get_as(&admin, "/admin").0,
        StatusCode::SEE_OTHER,
        "removed with all sessions"
    );
}

#[test]
fn a_token_of_the_pages_is_shown_once_and_works_until_it_is_revoked() {
    let admin = Admin::new("");
    let owner = admin.owner();
    assert_eq!(
        admin.running.get("/api/v1/monitors").0,
        StatusCode::UNAUTHORIZED,
        "there are users"
    );
    let (status, text) = owner.post(
        &admin,
        "/admin/tokens/add",
        &[("name", "ci"), ("scope", "write"), ("days", "30")],
    );
    assert_eq!(status, StatusCode::OK);
    let token = between(&text, "<code class=\"secret\">", "</code>").to_owned();
    assert_eq!(ApiToken::hash_of(&token).len(), 32);
    let bearer = format!("Bearer {token}");
    let call = || {
        admin
            .running
            .call(
                Method::GET,
                "/api/v1/monitors",
                &[("authorization", &bearer)],
                "",
            )
            .0
    };
    assert_eq!(call(), StatusCode::OK);
    assert!(!owner.get_as(&admin, "/admin/tokens").1.contains(&token));
    let (status, _) = owner.post(&admin, "/admin/tokens/revoke", &[("id", "1")]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(call(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_thousand_monitors_are_listed_and_filtered() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (_, text) = owner.post(
        &admin,
        "/admin/tokens/add",
        &[("name", "ci"), ("scope", "write")],
    );
    let token = between(&text, "<code class=\"secret\">", "</code>");
    let all: Vec<_> = (0..1_000)
        .map(|number| serde_json::json!({ "name": format!("m{number}"), "manual": true, "tags": [format!("t{}", number % 10)] }))
        .collect();
    let body = serde_json::json!({ "put": all }).to_string();
    let bearer = format!("Bearer {token}");
    let (status, text) = admin.running.call(
        Method::POST,
        "/api/v1/monitors/bulk",
        &[("authorization", &bearer)],
        &body,
    );
    assert_eq!(status, StatusCode::OK, "{text}");
    let count = |query: &str| {
        owner
            .get_as(&admin, &format!("/admin/monitors{query}"))
            .1
            .matches("<tr data-health")
            .count()
    };
    assert_eq!(count(""), 1_000);
    assert_eq!(count("?tag=t3"), 100);
    assert_eq!(count("?q=m99"), 11);
    assert_eq!(count("?q=m99+t9"), 2, "m99 and m999");
}
