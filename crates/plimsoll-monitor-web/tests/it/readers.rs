//! The readers of a page in the admin pages: subscribers, and links that open a page with a password.

use http::{Method, StatusCode};
use url::Url;

use crate::admin::{Admin, between};

/// The password is `secret`.
fn pages() -> String {
    let hash = bcrypt::hash("secret", 4).unwrap();
    format!(
        r#"
        [subscriptions]
        allow_private = true
        [[page]]
        slug = "acme"
        title = "Acme"
        url = "https://status.acme.example"
        password_bcrypt = "{hash}"
        [[page]]
        slug = "open"
        title = "Open"
        url = "https://open.acme.example"
        [[page]]
        slug = "other"
        title = "Other"
        password_bcrypt = "{hash}"
        [[monitor]]
        name = "API"
        manual = true
        "#
    )
}

const READERS: &str = "/admin/pages/acme/readers";

/// A link, as its path below the page.
fn made(admin: &Admin, days: &str) -> String {
    let owner = admin.owner();
    let fields = [("action", "share"), ("name", "The <board>"), ("days", days)];
    let (status, text) = owner.post(admin, READERS, &fields);
    assert_eq!(status, StatusCode::OK, "{text}");
    let link = between(&text, "<code class=\"secret\">", "</code>");
    let url = Url::parse(link).unwrap();
    assert_eq!(url.host_str(), Some("status.acme.example"));
    url.path().to_owned()
}

/// The status of a page for a browser with a cookie.
fn seen(admin: &Admin, page: &str, cookie: &str) -> StatusCode {
    let path = format!("/status/{page}/");
    let fields = [("cookie", cookie)];
    admin
        .running
        .response(Method::GET, &path, &fields, "")
        .status()
}

/// Follows a link; the cookie that the browser keeps.
fn followed(admin: &Admin, page: &str, link: &str) -> Option<String> {
    let path = format!("/status/{page}{link}");
    let response = admin.running.response(Method::GET, &path, &[], "");
    if response.status() != StatusCode::SEE_OTHER {
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        return None;
    }
    assert_eq!(response.headers()["location"], format!("/status/{page}/"));
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    cookie.split(';').next().map(str::to_owned)
}

#[test]
fn a_link_opens_one_page_until_it_is_revoked() {
    let admin = Admin::new(&pages());
    assert_eq!(seen(&admin, "acme", ""), StatusCode::UNAUTHORIZED);
    let link = made(&admin, "");
    let cookie = followed(&admin, "acme", &link).unwrap();
    assert_eq!(seen(&admin, "acme", &cookie), StatusCode::OK);
    // It is of this page only, also under the name of another one's cookie.
    assert_eq!(followed(&admin, "other", &link), None);
    assert_eq!(followed(&admin, "open", &link), None);
    let renamed = cookie.replace("share-acme", "share-other");
    assert_eq!(seen(&admin, "other", &renamed), StatusCode::UNAUTHORIZED);
    for wrong in [
        "/share/",
        "/share/x",
        &format!("{link}x"),
        &link.to_lowercase(),
    ] {
        assert_eq!(followed(&admin, "acme", wrong), None, "{wrong}");
    }
    let mut owner = admin.owner();
    let text = owner.get(&admin, READERS);
    assert!(text.contains("The &#60;board&#62;"), "{text}");
    assert!(!text.contains(&link), "the link is shown once");
    let id = between(&text, "name=\"id\" value=\"", "\"").to_owned();
    let fields = [("action", "revoke"), ("id", id.as_str())];
    let (status, _) = owner.post(&admin, "/admin/pages/other/readers", &fields);
    assert_eq!(status, StatusCode::NOT_FOUND, "the link of another page");
    let (status, _) = owner.post(&admin, READERS, &fields);
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(seen(&admin, "acme", &cookie), StatusCode::UNAUTHORIZED);
    assert_eq!(followed(&admin, "acme", &link), None);
    let log = owner.get(&admin, "/admin/audit");
    assert!(
        log.contains("share.add") && log.contains("share.revoke"),
        "{log}"
    );
}

#[test]
fn links_are_for_editors_and_for_pages_with_a_password() {
    let admin = Admin::new(&pages());
    let owner = admin.owner();
    let viewer = admin.member(&owner, "vera", "viewer");
    assert_eq!(viewer.get_as(&admin, READERS).0, StatusCode::FORBIDDEN);
    let editor = admin.member(&owner, "ed", "editor");
    assert_eq!(editor.get_as(&admin, READERS).0, StatusCode::OK);
    let share = |page: &str, days: &str| {
        let path = format!("/admin/pages/{page}/readers");
        let fields = [("action", "share"), ("name", "a"), ("days", days)];
        editor.post(&admin, &path, &fields)
    };
    let (status, text) = share("open", "");
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(text.contains("Everyone sees this page"), "{text}");
    assert_eq!(share("acme", "0").0, StatusCode::CONFLICT);
    assert_eq!(share("nowhere", "").0, StatusCode::NOT_FOUND);
    assert_eq!(share("acme", "7").0, StatusCode::OK);
}

#[test]
fn subscribers_are_listed_found_and_removed() {
    let admin = Admin::new(&pages());
    let mut owner = admin.owner();
    for number in 0..3 {
        let form = format!("means=webhook&address=http://127.0.0.1:1/hook-{number}");
        let path = "/status/open/subscribe";
        let (status, text) = admin.running.call(Method::POST, path, &[], &form);
        assert_eq!(status, StatusCode::OK, "{text}");
    }
    let text = owner.get(&admin, "/admin/pages/open/readers?q=hook-1");
    assert!(
        text.contains("0 confirmed of 3") && text.contains("/hook-1"),
        "{text}"
    );
    assert!(!text.contains("/hook-2"), "{text}");
    let id = between(&text, "name=\"id\" value=\"", "\"").to_owned();
    let fields = [("action", "remove"), ("id", id.as_str())];
    assert_eq!(
        owner.post(&admin, READERS, &fields).0,
        StatusCode::NOT_FOUND
    );
    let (status, _) = owner.post(&admin, "/admin/pages/open/readers", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let text = owner.get(&admin, "/admin/pages/open/readers");
    assert!(
        text.contains("0 confirmed of 2") && !text.contains("/hook-1"),
        "{text}"
    );
    assert!(
        owner
            .get(&admin, "/admin/audit")
            .contains("subscriber.delete")
    );
}

#[test]
fn links_end_with_their_page() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let hash = bcrypt::hash("secret", 4).unwrap();
    let more = format!("password_bcrypt = \"{hash}\"");
    let add = || {
        let fields = [
            ("action", "save"),
            ("title", "T"),
            ("slug", "t"),
            ("more", more.as_str()),
        ];
        let (status, text) = owner.post(&admin, "/admin/new-page", &fields);
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    };
    add();
    let fields = [("action", "share"), ("name", "a")];
    let (_, text) = owner.post(&admin, "/admin/pages/t/readers", &fields);
    let link = between(&text, "<code class=\"secret\">", "</code>").to_owned();
    let link = link.strip_prefix("/status/t").unwrap();
    let seen = || {
        admin
            .running
            .call(Method::GET, &format!("/status/t{link}"), &[], "")
            .0
    };
    assert_eq!(seen(), StatusCode::SEE_OTHER);
    let (status, _) = owner.post(&admin, "/admin/pages/t/edit", &[("action", "delete")]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    add();
    assert_eq!(seen(), StatusCode::NOT_FOUND);
}
