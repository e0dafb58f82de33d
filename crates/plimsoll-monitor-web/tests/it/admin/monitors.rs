//! Monitors on the admin pages: added, listed, changed together, and their outages.

use http::{Method, StatusCode};
use plimsoll_testkit::{Origin, eventually, refused_address};

use super::{Admin, between, encoded};

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
    let link = format!("<a href=\"{url}\" rel=\"noopener noreferrer\">{url}</a>");
    assert!(text.contains(&link), "{link}: {text}");
    assert!(text.contains("met: <code>status == 200</code>"), "{text}");
    let shown = || owner.get_as(&admin, "/admin/monitors/_shop").1;
    eventually(|| !shown().contains("No results yet."));
    eventually(|| shown().contains("Response times: p50, p95 and p99, "));
    let shown = shown();
    let chart = between(&shown, "Response times: p50, p95 and p99, ", "<");
    assert!(
        chart.ends_with(" UTC") && chart.contains(" 20"),
        "dates and zone: {chart}"
    );
    // The phases of the check lie on one another, and are in a table too.
    let phases = between(&shown, "Mean time of a check by phase, ", "<");
    assert!(
        phases.ends_with(" UTC") && phases.contains(" 20"),
        "dates and zone: {phases}"
    );
    for part in [
        "class=\"area ",
        "<summary>Values as a table</summary>",
        "<th scope=\"col\">connect</th>",
        "<th scope=\"col\">wait</th>",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

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
    assert!(
        text.contains("aria-describedby=\"interval-error\" aria-invalid=\"true\" autofocus>"),
        "{text}"
    );
    assert!(
        text.contains("<p class=\"wrong\" id=\"interval-error\">"),
        "{text}"
    );
    assert!(
        text.contains(
            "aria-describedby=\"target-error target-hint\" aria-invalid=\"true\" autofocus>"
        ),
        "{text}"
    );
    assert!(text.contains("<a href=\"#target\">http:"), "{text}");
}

/// The form shows masks; who sends them back with another target neither saves nor tests it.
#[test]
fn credentials_do_not_follow_a_target_that_is_changed_in_the_form() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (origin, other) = (Origin::hello(), Origin::hello());
    let url = origin.url("/");
    let with = |target: &str, more: &str, action: &str, path: &str| {
        let fields = [
            ("name", "Shop"),
            ("kind", "http"),
            ("target", target),
            ("interval", "1h"),
            ("more", more),
            ("action", action),
            ("version", "1"),
        ];
        owner.post(&admin, path, &fields)
    };
    let hidden = "[http]\nbearer = \"s3cret-bearer\"";
    let (status, text) = with(&url, hidden, "save", "/admin/new-monitor");
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let edit = "/admin/monitors/_shop/edit";
    let (_, form) = owner.get_as(&admin, edit);
    assert!(
        form.contains("********") && !form.contains("s3cret"),
        "{form}"
    );
    let masked = "[http]\nbearer = \"********\"";
    let insecure = format!("{masked}\ninsecure = true");
    for (target, more) in [(other.url("/"), masked), (url.clone(), insecure.as_str())] {
        for action in ["test", "save"] {
            let (status, text) = with(&target, more, action, edit);
            assert_eq!(
                status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{action} {target}"
            );
            assert!(text.contains("given again"), "{text}");
        }
    }
    assert_eq!(other.requests(), 0);
    let before = origin.requests();
    let (status, text) = with(&format!("{url}x"), masked, "save", edit);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    eventually(|| origin.requests() > before);
    let head = origin.heads().last().cloned().unwrap_or_default();
    assert!(head.contains("Bearer s3cret-bearer"), "{head}");
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
    assert!(log.contains(">signed in</td>"), "{log}");
    assert!(log.contains(">paused a monitor</td>"), "{log}");
    for action in [
        "monitor.create",
        "monitor.pause",
        "monitor.resume",
        "monitor.update",
        "monitor.delete",
        "session.open",
    ] {
        assert!(log.contains(&format!("title=\"{action}\"")), "{action}");
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
    let (_, list) = owner.get_as(&admin, "/admin/monitors");
    assert!(
        list.contains("<path class=\"unknown\" d=\"M0 14h3v6h-3z"),
        "{list}"
    );
    assert!(list.contains("aria-label=\"Uptime in 24 hours: "), "{list}");
    let shop = || owner.get_as(&admin, "/admin/monitors/_shop").1;
    eventually(|| shop().contains("aria-label=\"Downtime: "));
    let shop = shop();
    assert!(shop.contains("Last 90 days"), "{shop}");
    assert!(
        shop.matches("<rect class=\"unknown\"").count() >= 88,
        "{shop}"
    );
    let (_, overview) = owner.get_as(&admin, "/admin");
    assert_eq!(overview.matches(">Shop</a>").count(), 1, "{overview}");
    assert!(overview.contains("No other problems."), "{overview}");
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
        report.contains("Shop: 1 outage") && report.contains("<a href=\"/admin/monitors/%5F"),
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
fn two_thousand_monitors_are_listed_in_pages_and_filtered() {
    let admin = Admin::new("");
    let owner = admin.owner();
    let (_, text) = owner.post(
        &admin,
        "/admin/tokens/add",
        &[("name", "ci"), ("scope", "write")],
    );
    let token = between(&text, "<code class=\"secret\">", "</code>");
    let all: Vec<_> = (0..2_000)
        .map(|number| serde_json::json!({ "name": format!("m{number}"), "group": format!("g{}", number % 2), "manual": true, "tags": [format!("t{}", number % 10)] }))
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
    let list = |query: &str| owner.get_as(&admin, &format!("/admin/monitors{query}")).1;
    let count = |query: &str| list(query).matches("<tr data-health").count();
    let mut seen = std::collections::BTreeSet::new();
    for page in 1..=20 {
        let text = list(&format!("?page={page}"));
        let keys = text.split("name=\"key\" value=\"").skip(1);
        seen.extend(keys.map(|rest| rest.split('"').next().unwrap().to_owned()));
        assert_eq!(seen.len(), page * 100);
        assert!(text.contains(&format!("Page {page} of 20")), "{text}");
        assert_eq!(text.contains("rel=\"prev\""), page > 1);
        assert_eq!(text.contains("rel=\"next\""), page < 20);
    }
    let first = list("");
    assert!(first.contains("1–100 of 2000 monitors"));
    assert_eq!(first.matches("<svg class=\"bars\"").count(), 100);
    let (_, wall) = owner.get_as(&admin, "/admin/wall");
    assert_eq!(wall.matches("data-key=\"").count(), 500);
    assert!(wall.contains("1500 more have no tile"), "{wall}");
    assert!(wall.contains("class=\"tiles c21\""), "{wall}");
    let (_, wall) = owner.get_as(&admin, "/admin/wall?tag=t3&q=m19&theme=light");
    assert_eq!(
        wall.matches("data-key=\"").count(),
        11,
        "m193 and m1903 to m1993"
    );
    assert!(wall.contains("<body class=\"light\">"), "{wall}");
    assert!(
        list("?page=99").contains("Page 20 of 20"),
        "the last one is as far as it goes"
    );
    assert_eq!(count("?tag=t3"), 100);
    assert!(list("?tag=t3").contains("href=\"/admin/monitors?tag=t3&#38;page=2\""));
    assert_eq!(count("?q=m199"), 11);
    assert_eq!(count("?q=m199+t9"), 2, "m199 and m1999");
    assert!(
        list("?group=g1&q=m19").contains("56 of 2000"),
        "the odd ones of m19, m190 to m199 and m1900 to m1999"
    );
    assert_eq!(
        count("?q=g1+pending&page=10"),
        100,
        "a group and a state by their words"
    );
    assert_eq!(count("?health=down"), 0);
    let fields = [
        ("action", "pause"),
        ("key", "g1_m1"),
        ("list", "group=g1&page=2&done=x"),
    ];
    let body = encoded(&[&[("csrf", owner.csrf.as_str())][..], &fields].concat());
    let response = owner
        .clone()
        .call(&admin, Method::POST, "/admin/monitors/bulk", &body);
    assert_eq!(
        response.headers()["location"],
        "/admin/monitors?group=g1&page=2&done=paused",
        "back to the same page"
    );
}

#[test]
fn the_wall_has_the_worst_first() {
    let manual = |name: &str| format!("[[monitor]]\nname = \"{name}\"\nmanual = true\n");
    let admin = Admin::new(&["a", "b", "c", "d"].map(manual).concat());
    let owner = admin.owner();
    let act = |key: &str, action: &str| {
        let path = format!("/admin/monitors/_{key}/act");
        let (status, text) = owner.post(&admin, &path, &[("action", action)]);
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    };
    act("a", "up");
    act("c", "down");
    act("d", "down");
    act("b", "pause");
    let wall = || owner.get_as(&admin, "/admin/wall").1;
    eventually(|| wall().contains("<title>2 down"));
    act("c", "acknowledge");
    eventually(|| wall().contains(", acknowledged</span>"));
    let wall = wall();
    let keys = wall.split("data-key=\"").skip(1);
    let keys: Vec<_> = keys.map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(keys, ["_d", "_c", "_b", "_a"], "{wall}");
    assert!(
        wall.contains("<li class=\"major\"><b>2</b> down</li>"),
        "{wall}"
    );
    assert!(
        wall.contains("<span class=\"reason\">owner set it</span>"),
        "{wall}"
    );
}
