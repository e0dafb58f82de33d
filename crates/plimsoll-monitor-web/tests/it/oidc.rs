//! Sign-in by `OpenID` Connect, against a provider on loopback that checks what a provider has to check, with real keys.

use http::{Method, StatusCode};
use plimsoll_testkit::IdentityProvider;
use serde_json::json;
use url::Url;

use crate::admin::{Admin, Browser, PASSWORD};

fn provider() -> IdentityProvider {
    IdentityProvider::new("https://monitor.test/admin/oidc/callback")
}

/// The table of a configuration.
fn table(provider: &IdentityProvider, more: &str) -> String {
    format!(
        "[oidc]\nname = \"Example ID\"\nissuer = \"{}\"\nclient_id = \"{}\"\nclient_secret = \"{}\"\nurl = \"https://monitor.test/\"\n{more}\n",
        provider.url(),
        IdentityProvider::CLIENT,
        IdentityProvider::SECRET,
    )
}

fn location(response: &http::Response<String>) -> String {
    assert_eq!(
        response.status(),
        StatusCode::SEE_OTHER,
        "{}",
        response.body()
    );
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// The path and query of the way back.
fn path_of(back: &str) -> String {
    let url = Url::parse(back).unwrap();
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

/// Goes to the provider and back.
fn through(
    admin: &Admin,
    provider: &IdentityProvider,
    browser: &mut Browser,
    start: &str,
) -> http::Response<String> {
    let there = location(&browser.call(admin, Method::GET, start, ""));
    let back = provider.authorize(&there).unwrap();
    browser.call(admin, Method::GET, &path_of(&back), "")
}

fn audit(admin: &Admin) -> String {
    let mut owner = admin.owner();
    owner.get(admin, "/admin/audit")
}

#[test]
fn a_member_signs_in_by_the_provider_with_either_signature() {
    let provider = provider();
    let admin = Admin::new(&table(&provider, ""));
    let owner = admin.owner();
    let (status, _) = owner.post(
        &admin,
        "/admin/members/add",
        &[("name", "Ann@example.org"), ("role", "editor")],
    );
    assert_eq!(status, StatusCode::OK);
    for algorithm in ["RS256", "ES256"] {
        provider.set(|state| state.algorithm = algorithm);
        let mut browser = Browser::default();
        let page = browser.get(&admin, "/admin/sign-in?next=/admin/monitors");
        assert!(page.contains("Sign in with Example ID"), "{page}");
        assert!(page.contains("/admin/oidc/start?next=%2Fadmin%2Fmonitors"));
        let response = through(
            &admin,
            &provider,
            &mut browser,
            "/admin/oidc/start?next=/admin/monitors",
        );
        assert_eq!(location(&response), "/admin/monitors");
        assert!(browser.oidc.is_none(), "the sign-in is over");
        assert!(
            browser
                .get(&admin, "/admin/account")
                .contains("Ann@example.org")
        );
    }
    // The password that was shown to the admin is not asked for, and is of no use.
    let log = audit(&admin);
    assert!(
        log.contains("member.link") && log.contains("Example ID"),
        "{log}"
    );
}

#[test]
fn a_user_is_known_by_the_subject_once_linked() {
    let provider = provider();
    let admin = Admin::new(&table(&provider, ""));
    let mut owner = admin.owner();
    let page = owner.get(&admin, "/admin/account");
    let link = crate::admin::between(&page, "/admin/oidc/start?link=", "\"").to_owned();
    // The token of another session links nothing.
    let other = owner
        .clone()
        .call(&admin, Method::GET, "/admin/oidc/start?link=guess", "");
    assert_eq!(location(&other), "/admin/sign-in?next=/admin/account");
    let response = through(
        &admin,
        &provider,
        &mut owner,
        &format!("/admin/oidc/start?link={link}"),
    );
    assert_eq!(location(&response), "/admin/account?done=linked");
    assert!(
        owner
            .get(&admin, "/admin/account")
            .contains("<strong>ann@example.org</strong>")
    );
    // Another address, not even verified: it is the same user.
    provider.set(|state| state.user = json!({ "sub": "u-1", "email": "x@y.z" }));
    let mut browser = Browser::default();
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(location(&response), "/admin");
    assert!(browser.get(&admin, "/admin/members").contains("owner"));
    // The same user is not linked to a second member.
    let mut ann = admin.member(&owner, "ann", "viewer");
    let page = ann.get(&admin, "/admin/account");
    let link = crate::admin::between(&page, "/admin/oidc/start?link=", "\"").to_owned();
    let start = format!("/admin/oidc/start?link={link}");
    let response = through(&admin, &provider, &mut ann, &start);
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response
            .body()
            .contains("This user is linked to another member.")
    );
    // A member whose password is reset has no links any more.
    provider.set(|state| state.user = json!({ "sub": "u-2" }));
    let response = through(&admin, &provider, &mut ann, &start);
    assert_eq!(location(&response), "/admin/account?done=linked");
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(location(&response), "/admin");
    let members = owner.get(&admin, "/admin/members");
    let (_, row) = members.split_once(">ann").unwrap();
    let id = crate::admin::between(row, "name=\"id\" value=\"", "\"");
    let fields = [("id", id), ("action", "reset")];
    let (status, text) = owner.post(&admin, "/admin/members/change", &fields);
    assert_eq!(status, StatusCode::OK, "{text}");
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    provider.set(|state| state.user = json!({ "sub": "u-1" }));
    // And unlinked, it signs in no more.
    let (status, _) = owner.post(&admin, "/admin/account/unlink", &[]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response.body().contains("no verified e-mail address"),
        "{}",
        response.body()
    );
}

#[test]
fn other_users_of_the_provider_are_refused_or_become_members_of_a_domain() {
    let provider = provider();
    let admin = Admin::new(&table(&provider, ""));
    let mut browser = Browser::default();
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response
            .body()
            .contains("No member is named ann@example.org")
    );
    assert!(browser.session.is_none());

    let admin = Admin::new(&table(
        &provider,
        "domains = [\"example.org\"]\nnew_members = \"viewer\"",
    ));
    provider.set(|state| state.at_userinfo = true);
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(location(&response), "/admin", "the address is at userinfo");
    let (status, _) = browser.get_as(&admin, "/admin/new-monitor");
    assert_eq!(status, StatusCode::FORBIDDEN, "a viewer");
    assert!(audit(&admin).contains("member.add"));
    // The response of userinfo about another user does not count.
    provider.set(|state| {
        state.user["sub"] = "u-2".into();
        state.userinfo_subject = Some("u-1");
    });
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert!(
        response.body().contains("no verified e-mail address"),
        "{}",
        response.body()
    );
    for (email, verified, expected) in [
        (
            "eve@example.com",
            true,
            "Addresses of this domain may not sign in",
        ),
        ("eve@example.org", false, "no verified e-mail address"),
        (
            "eve@example.org.example.com",
            true,
            "Addresses of this domain",
        ),
    ] {
        provider.set(|state| {
            state.userinfo_subject = None;
            state.user = json!({ "sub": "u-3", "email": email, "email_verified": verified });
        });
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(
            response.body().contains(expected),
            "{email}: {}",
            response.body()
        );
    }
}

#[test]
fn forged_and_repeated_responses_open_no_session() {
    let provider = provider();
    let admin = Admin::new(&table(&provider, ""));
    let owner = admin.owner();
    let (status, _) = owner.post(
        &admin,
        "/admin/members/add",
        &[("name", "ann@example.org"), ("role", "editor")],
    );
    assert_eq!(status, StatusCode::OK);
    let refused = |response: &http::Response<String>, why: &str| {
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.body().contains(why), "{why}: {}", response.body());
    };
    // Without the cookie, and with that of another sign-in.
    let there = location(&Browser::default().call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    refused(
        &Browser::default().call(&admin, Method::GET, &back, ""),
        "The sign-in took too long",
    );
    let mut victim = Browser::default();
    victim.call(&admin, Method::GET, "/admin/oidc/start", "");
    refused(
        &victim.call(&admin, Method::GET, &back, ""),
        "another sign-in",
    );
    assert!(victim.session.is_none() && victim.oidc.is_none());
    // Another issuer in the response, another nonce, another audience, an expired token.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    let mixed = back.replace("iss=http", "iss=https");
    refused(
        &browser.call(&admin, Method::GET, &mixed, ""),
        "another issuer",
    );
    for (forged, why) in [
        (json!({ "nonce": "x" }), "another sign-in"),
        (json!({ "aud": "other" }), "another client"),
        (json!({ "exp": 1 }), "has expired"),
        (json!({ "iss": "http://127.0.0.1:1" }), "another issuer"),
    ] {
        provider.set(|state| state.forged = forged);
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        refused(&response, why);
    }
    provider.set(|state| state.forged = json!({}));
    // A code is good for one sign-in.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    let cookie = browser.oidc.clone();
    assert_eq!(
        location(&browser.call(&admin, Method::GET, &back, "")),
        "/admin"
    );
    let mut again = Browser {
        oidc: cookie,
        ..Browser::default()
    };
    refused(
        &again.call(&admin, Method::GET, &back, ""),
        "invalid_grant (refused)",
    );
    // What the provider refuses is shown.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let (_, state) = Url::parse(&there)
        .unwrap()
        .query_pairs()
        .into_owned()
        .find(|(name, _)| name == "state")
        .unwrap();
    let denied = format!(
        "/admin/oidc/callback?state={state}&error=access_denied&error_description=%3Cb%3Eno"
    );
    let response = browser.call(&admin, Method::GET, &denied, "");
    refused(&response, "access_denied &#60;b&#62;no");
}

#[test]
fn keys_that_the_provider_replaces_are_read_again_and_others_are_kept() {
    let provider = provider();
    let admin = Admin::new(&table(
        &provider,
        "domains = [\"*\"]\nnew_members = \"viewer\"",
    ));
    let requests = |path: &str| provider.requests(&format!("GET {path}"));
    for _ in 0..3 {
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        assert_eq!(location(&response), "/admin");
    }
    assert_eq!(
        (
            requests("/jwks"),
            requests("/.well-known/openid-configuration")
        ),
        (1, 1)
    );
    // Keys younger than half a minute are not read again: tokens with unknown keys make no requests without end.
    provider.set(|state| state.kid = "second".to_owned());
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(response.body().contains("does not publish the key"));
    assert_eq!(requests("/jwks"), 1);
}

#[test]
fn a_provider_that_is_away_or_another_one_is_reported_and_passwords_still_work() {
    let address = plimsoll_testkit::refused_address();
    let text = format!(
        "[oidc]\nissuer = \"http://{address}\"\nclient_id = \"a\"\nurl = \"http://localhost:1\"\n"
    );
    let admin = Admin::new(&text);
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response.body().contains("Cannot reach the provider"),
        "{}",
        response.body()
    );
    admin.signed_in("owner", PASSWORD);

    let provider = provider();
    provider.set(|state| state.issuer = "https://id.example".to_owned());
    let admin = Admin::new(&table(&provider, ""));
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert!(
        response.body().contains("it is `https://id.example`"),
        "{}",
        response.body()
    );
    // Without the table there is no such sign-in.
    let admin = Admin::new("");
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}
