//! Incidents, pages and maintenance by forms.

use http::StatusCode;
use plimsoll_testkit::eventually;

use super::Admin;

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
    let began = |started| {
        let fields = [
            ("title", "Mail is late"),
            ("started", started),
            ("zone", "Europe/Berlin"),
        ];
        owner.post(&admin, "/admin/new-incident", &fields)
    };
    let (status, text) = began("2026-03-01T22:00");
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, list) = owner.get_as(&admin, "/admin/incidents");
    assert!(list.contains("datetime=\"2026-03-01T21:00:00Z\""), "{list}");
    let (status, text) = began("2999-03-01T22:00");
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("cannot begin in the future"), "{text}");
    assert!(text.contains("id=\"started-error\""), "{text}");
    let (status, text) = owner.post(
        &admin,
        "/admin/incidents/1/update",
        &[("body", "It is late.")],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        text.contains("id=\"title-error\"") && text.contains(">It is late.</textarea>"),
        "{text}"
    );

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
    assert!(text.contains("value=\"_m\" checked> m"), "{text}");
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
    let foreign = (
        "css",
        "body { background: url(https://elsewhere.example/) }",
    );
    let fields = [&renamed[..], &[foreign]].concat();
    let (status, text) = owner.post(&admin, "/admin/pages/ours/edit", &fields);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        text.contains("id=\"css-error\">must load nothing"),
        "{text}"
    );
    let looks = [
        ("logo", "data:image/png;base64,iVBORw0KGgo="),
        ("font", "serif"),
        ("density", "compact"),
        ("css", "body {\r\n  --accent: #0a7d5a;\r\n}"),
    ];
    let fields = [&renamed[..], &looks].concat();
    let (status, text) = owner.post(&admin, "/admin/pages/ours/edit", &fields);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, text) = admin.running.get("/status/new/");
    assert!(text.contains("src=\"/status/new/logo\""), "{text}");
    assert_eq!(admin.running.get("/status/new/").0, StatusCode::OK);
    let (_, form) = owner.get_as(&admin, "/admin/pages/new/edit");
    assert!(form.contains("<option selected>serif</option>"), "{form}");
    assert!(
        form.contains(">body {\n  --accent: #0a7d5a;\n}</textarea>"),
        "{form}"
    );
    let (status, _) = owner.post(&admin, "/admin/pages/new/edit", &[("action", "delete")]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let (_, list) = owner.get_as(&admin, "/admin/pages");
    assert!(list.contains("No status pages yet."), "{list}");
    // As from a form that was opened before.
    let gone = [("action", "delete")];
    let (status, text) = owner.post(&admin, "/admin/pages/new/edit", &gone);
    assert_eq!(status, StatusCode::NOT_FOUND, "{text}");

    let window = [
        ("name", "patches"),
        ("when", "once"),
        ("date", "2001-01-01T00:00"),
        ("duration", "2h"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &window);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let weekly = [
        ("name", "weekly"),
        ("when", "monday"),
        ("time", "02:30"),
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
            ("date", "soon"),
            ("duration", "2h"),
        ],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("is not a date"), "{text}");
    // Clocks are put forward over it.
    let gap = [
        ("name", "gap"),
        ("when", "once"),
        ("date", "2026-03-29T02:30"),
        ("zone", "Europe/Berlin"),
        ("duration", "2h"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &gap);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("does not exist in Europe/Berlin"), "{text}");
    assert!(text.contains("id=\"date-error\""), "{text}");
    assert!(
        text.contains("value=\"2026-03-29T02:30\""),
        "it is kept: {text}"
    );
    // Clocks show it twice: the first one is meant.
    let twice = [
        ("name", "twice"),
        ("when", "once"),
        ("date", "2125-10-28T02:30"),
        ("zone", "Europe/Berlin"),
        ("duration", "2h"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &twice);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, calendar) = owner.get_as(&admin, "/admin/maintenance");
    assert!(
        calendar.contains("datetime=\"2125-10-28T00:30:00Z\""),
        "{calendar}"
    );
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
            ("cron", "0 3 * * *"),
            ("duration", "2h"),
            ("about", &long),
        ],
    );
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("must have at most 2000 characters"), "{text}");
    assert!(text.contains(&format!(">{long}</textarea>")), "it is kept");
    let patches = [("name", "patches")];
    let (status, _) = owner.post(&admin, "/admin/maintenance/remove", &patches);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let (status, _) = owner.post(&admin, "/admin/maintenance/remove", &patches);
    assert_eq!(status, StatusCode::NOT_FOUND);
    // A window that is under way holds its monitor.
    let now = [
        ("name", "now"),
        ("when", "cron"),
        ("cron", "* * * * *"),
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
