//! What roles, forms and tokens may do, and how it ends.

use http::{Method, StatusCode};
use plimsoll_monitor::config::ApiToken;

use super::{Admin, PASSWORD, between};

/// Every route that changes something, and the least role that may use it.
const WRITES: [(&str, &str); 30] = [
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
    ("/admin/new-rotation", "admin"),
    ("/admin/rotations/r/edit", "admin"),
    ("/admin/new-escalation", "admin"),
    ("/admin/escalations/e/edit", "admin"),
    ("/admin/channels/c/edit", "admin"),
    ("/admin/members/add", "admin"),
    ("/admin/members/change", "admin"),
    ("/admin/tokens/add", "admin"),
    ("/admin/tokens/revoke", "admin"),
    ("/admin/sign-in", "none"),
    // The link in a notice is its permission.
    ("/acknowledge/a.b", "none"),
];

#[test]
fn every_form_needs_its_token_and_its_role() {
    let admin = Admin::new("[[monitor]]\nname = \"m\"\nmanual = true\n");
    let owner = admin.owner();
    let roles = ["viewer", "editor", "admin"];
    let browsers = roles.map(|role| admin.member(&owner, role, role));
    // The table has every route of the source that takes a POST.
    let source = include_str!("../../../src/admin.rs");
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
        ("/admin/wall", 0),
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
