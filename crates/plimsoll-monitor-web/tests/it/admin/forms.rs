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

#[test]
fn a_declared_incident_is_resolved_by_a_button_of_its_own() {
    let admin = Admin::new("[[monitor]]\nname = \"m\"\nmanual = true\n");
    let owner = admin.owner();
    let declared = [
        ("title", "Search is slow"),
        ("phase", "identified"),
        ("impact", "minor"),
        ("monitor", "_m"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-incident", &declared);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let button = "<button name=\"action\" value=\"resolve\">";
    let (_, open) = owner.get_as(&admin, "/admin/incidents/1");
    assert!(open.contains(button), "{open}");
    assert!(
        open.contains("<small>1 chosen</small></summary>"),
        "a folded list says how many are chosen: {open}"
    );
    let resolved = [&declared[..], &[("action", "resolve"), ("body", "Done.")]].concat();
    let (status, text) = owner.post(&admin, "/admin/incidents/1/update", &resolved);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, over) = owner.get_as(&admin, "/admin/incidents/1");
    assert!(
        over.contains("<option value=\"resolved\" selected>Resolved</option>"),
        "{over}"
    );
    assert!(over.contains("Done.") && !over.contains(button), "{over}");
}

#[test]
fn what_is_chosen_stands_first() {
    let admin = Admin::new(
        "[[monitor]]\nname = \"a\"\nmanual = true\n[[monitor]]\nname = \"b\"\nmanual = true\n[[monitor]]\nname = \"c\"\nmanual = true\n",
    );
    let owner = admin.owner();
    let preview = [
        ("title", "T"),
        ("slug", "t"),
        ("monitor", "_c"),
        ("action", "preview"),
    ];
    let (status, text) = owner.post(&admin, "/admin/new-page", &preview);
    assert_eq!(status, StatusCode::OK, "{text}");
    let place = |label: &str| {
        text.find(label)
            .unwrap_or_else(|| panic!("{label}: {text}"))
    };
    assert!(place("value=\"_c\" checked> c<") < place("value=\"_a\"> a<"));
    assert!(place("value=\"_a\"> a<") < place("value=\"_b\"> b<"));
}

#[test]
fn a_page_is_at_its_slug_however_a_link_writes_that() {
    let admin = Admin::new("[[monitor]]\nname = \"m\"\nmanual = true\n");
    let owner = admin.owner();
    let page = [("title", "Our shop"), ("slug", "our-shop")];
    let (status, text) = owner.post(&admin, "/admin/new-page", &page);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, list) = owner.get_as(&admin, "/admin/pages");
    let (_, rest) = list.split_once("<a href=\"/status/").unwrap();
    let link = format!("/status/{}", rest.split('"').next().unwrap());
    for path in [link.as_str(), "/status/our-shop/", "/status/our%2Dshop/"] {
        let (status, text) = admin.running.get(path);
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        assert!(text.contains("data-base=\"/status/our-shop\""), "{text}");
    }
}

#[test]
fn maintenance_names_the_monitors_that_it_is_for() {
    let admin = Admin::new("[[monitor]]\nname = \"VPN gateway\"\nmanual = true\n");
    let owner = admin.owner();
    let window = [
        ("name", "now"),
        ("when", "cron"),
        ("cron", "* * * * *"),
        ("duration", "1h"),
        ("monitor", "_vpn-gateway"),
    ];
    let (status, text) = owner.post(&admin, "/admin/maintenance/add", &window);
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    let (_, list) = owner.get_as(&admin, "/admin/maintenance");
    assert!(
        list.contains("data-head=\"Monitors\">VPN gateway</td>"),
        "{list}"
    );
    eventually(|| {
        let (_, list) = owner.get_as(&admin, "/admin/maintenance");
        list.contains("<b>now</b> under way until <time")
    });
    // Its health began before.
    eventually(|| {
        let (_, wall) = owner.get_as(&admin, "/admin/wall");
        wall.contains("<span class=\"since\">Maintenance</span>")
    });
    eventually(|| {
        let (_, overview) = owner.get_as(&admin, "/admin");
        overview.contains("<b>1</b><span>in maintenance</span>")
    });
}
