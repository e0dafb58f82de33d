//! The admin pages: sign-in, roles, forms, what is typed into them.

mod forms;

mod monitors;

mod rights;

mod scripts;

mod sign_in;

use std::net::IpAddr;

use http::{Method, StatusCode};
use plimsoll_monitor::config::{DEFAULT_ORGANISATION, StorePlan};
use plimsoll_monitor_web::setup;
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
    /// By which a user has signed in.
    pub(crate) device: Option<String>,
    /// Where it is.
    pub(crate) address: Option<IpAddr>,
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
        if let Some(device) = &self.device {
            cookies.push(format!("plimsoll-device={device}"));
        }
        let cookies = cookies.join("; ");
        let fields = [("cookie", cookies.as_str()), ("host", "monitor.test")];
        let running = &admin.running;
        let response = running.response_from(self.address, method, path, &fields, body);
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
                "plimsoll-device" => self.device = value,
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
