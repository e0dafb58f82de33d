//! Sessions: who gets one, by a password and by codes.

use std::net::IpAddr;

use http::{Method, StatusCode};

use super::{Admin, Browser, PASSWORD, between};

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
fn a_slash_at_the_end_leads_to_the_page_without_it() {
    let admin = Admin::new("");
    let mut browser = Browser::default();
    for (path, page) in [
        ("/admin/", "/admin"),
        ("/admin/monitors/", "/admin/monitors"),
        ("/admin//example.org/", "/admin//example.org"),
    ] {
        let response = browser.call(&admin, Method::GET, path, "");
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path}");
        assert_eq!(response.headers()["location"], page);
    }
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
    assert!(cookie.starts_with("__Host-plimsoll-form="), "{cookie}");
    assert!(cookie.contains("; Path=/;"), "{cookie}");
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

#[test]
fn strangers_do_not_keep_a_member_out() {
    let admin = Admin::new("");
    let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
    let at = |last| Browser {
        address: address(last),
        ..Browser::default()
    };
    let mut own = at(1);
    assert_eq!(own.sign_in(&admin, "owner", PASSWORD, "").0, 303);
    for stranger in 10..19 {
        let (status, _) = at(stranger).sign_in(&admin, "owner", "wrong", "");
        assert!([401, 429].contains(&status.as_u16()), "{status}");
    }
    let (status, _) = at(20).sign_in(&admin, "owner", PASSWORD, "");
    assert_eq!(
        status,
        StatusCode::TOO_MANY_REQUESTS,
        "from an unknown place"
    );
    let mut elsewhere = Browser {
        device: own.device.clone(),
        ..at(21)
    };
    assert_eq!(elsewhere.sign_in(&admin, "owner", PASSWORD, "").0, 303);
    let mut without_cookies = at(1);
    assert_eq!(
        without_cookies.sign_in(&admin, "owner", PASSWORD, "").0,
        303
    );
    // A device is nothing but a count of attempts: it needs the password, and has few of them too.
    let mut device = Browser {
        device: own.device.clone(),
        ..at(22)
    };
    let tries = (0..9).map(|_| device.sign_in(&admin, "owner", "wrong", "").0.as_u16());
    assert_eq!(
        tries.collect::<Vec<_>>(),
        [401, 401, 401, 401, 401, 401, 401, 401, 429]
    );
}

/// Turns one-time codes on, which needs one.
fn turn_on(admin: &Admin, owner: &Browser, secret: &str, code: &str) -> (StatusCode, String) {
    let form = [
        ("secret", secret),
        ("code", code),
        ("present", PASSWORD),
        ("action", "on"),
    ];
    owner.post(admin, "/admin/account/totp", &form)
}

#[test]
fn one_time_codes_are_needed_once_they_are_on() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (_, account) = owner.get_as(&admin, "/admin/account");
    let secret = between(&account, "name=\"secret\" value=\"", "\"").to_owned();
    assert!(account.contains("<svg class=\"qr\""), "{account}");
    let (status, text) = turn_on(&admin, &owner, &secret, "000000");
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains(&secret), "the same secret again");
    let (status, text) = turn_on(&admin, &owner, &secret, &code(&secret, 0));
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
    let (status, text) = turn_on(&admin, &owner, &secret, &code(&secret, 0));
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
