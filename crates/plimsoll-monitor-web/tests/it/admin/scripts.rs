//! What is typed into forms is shown as text.

use http::{Method, StatusCode};

use super::{Admin, Browser, PASSWORD, encoded};

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
                        ("date", text),
                        ("time", text),
                        ("cron", text),
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
                ("time", "02:30"),
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
            "/admin/wall",
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
