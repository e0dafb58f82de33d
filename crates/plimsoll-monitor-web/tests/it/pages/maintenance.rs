//! Maintenance on pages: its days, its end, and the page of each.

use http::{Method, StatusCode};
use plimsoll_testkit::eventually;
use tempfile::TempDir;

use crate::client::Running;

#[test]
fn maintenance_names_its_day_once_and_the_calendar_has_all_of_it() {
    let folder = TempDir::new().unwrap();
    let text = r#"
        store = "memory"
        [[monitor]]
        name = "m"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "patches"
        cron = "30 10 * * *"
        duration = "1h"
        "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let count = |path: &str, text: &str| running.get(path).1.matches(text).count();
    eventually(|| count("/", ">Scheduled</span>") == 3);
    assert!(count("/", "data-from=") >= 3);
    // One more begins or is under way on the day of the test, depending on its time.
    assert!((14..=15).contains(&count("/calendar.ics", "BEGIN:VEVENT")));
}

#[test]
fn maintenance_that_is_over_is_completed_in_json_and_history() {
    let folder = TempDir::new().unwrap();
    let now = jiff::Timestamp::now();
    let began = now - jiff::SignedDuration::from_hours(3);
    let text = format!(
        r#"
        store = "memory"
        [[monitor]]
        name = "m"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "move"
        once = "{began}"
        duration = "1h"
        [[maintenance]]
        name = "long ago"
        once = "2025-01-31T23:30:00Z"
        duration = "1h"
        [[maintenance]]
        name = "now"
        once = "{began}"
        duration = "9h"
        [[maintenance]]
        name = "never before"
        cron = "0 3 * * *"
        duration = "1h"
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    eventually(|| running.get("/").1.contains("In progress"));
    let all = |path: &str| {
        let answer = running.json(&format!("/api/v2/{path}"));
        let all = answer["scheduled_maintenances"].as_array().unwrap().clone();
        let of = |name: &str| all.iter().find(|one| one["name"] == name).cloned();
        [of("now"), of("move"), of("long ago"), of("never before")]
    };
    let path = "scheduled-maintenances.json";
    let [under_way, over, old, recurring] = all(path);
    assert_eq!(under_way.unwrap()["status"], "in_progress");
    let over = over.unwrap();
    assert_eq!(over["status"], "completed");
    let moment = |field: &str| over[field].as_str().unwrap().parse::<jiff::Timestamp>();
    let millis = |at: jiff::Timestamp| at.as_millisecond();
    let ended = began + jiff::SignedDuration::from_hours(1);
    assert_eq!(
        millis(moment("scheduled_for").unwrap()),
        millis(began),
        "{over}"
    );
    for field in ["scheduled_until", "resolved_at", "updated_at"] {
        assert_eq!(millis(moment(field).unwrap()), millis(ended), "{field}");
    }
    assert_eq!(over["components"][0]["name"], "m");
    assert_eq!(old, None, "only of the last ninety days");
    // No result says that it took place.
    assert_ne!(recurring.unwrap()["status"], "completed");
    for path in ["active", "upcoming"] {
        let [_, over, ..] = all(&format!("scheduled-maintenances/{path}.json"));
        assert_eq!(over, None, "{path}");
    }
    let summary = running.json("/api/v2/summary.json").to_string();
    assert!(!summary.contains("completed"), "{summary}");
    let month = began.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m");
    let page = running.get(&format!("/history/{month}")).1;
    assert_eq!(page.matches(">move</a></h3>").count(), 1, "{page}");
    assert!(!page.contains(">now</a></h3>"), "it is not over: {page}");
    let page = running.get("/history/2025-01").1;
    assert!(page.contains(">long ago</a></h3>"), "{page}");
    assert!(page.contains(">Completed</span>"), "{page}");
    let page = running.get("/history/2025-02").1;
    assert!(!page.contains(">long ago</a></h3>"), "{page}");
}

#[test]
fn each_maintenance_has_a_page() {
    let folder = TempDir::new().unwrap();
    let now = jiff::Timestamp::now();
    let began = now - jiff::SignedDuration::from_hours(3);
    // Occurrences that come are never under way, at any time of the day.
    let hour = now.to_zoned(jiff::tz::TimeZone::UTC).hour();
    let [night, early, late] = [5, 6, 18].map(|later| (hour + later) % 24);
    let text = format!(
        r#"
        store = "memory"
        [[monitor]]
        name = "Search"
        manual = true
        [[monitor]]
        name = "Mail"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "Move <1>/2 ü"
        once = "{began}"
        duration = "1h"
        monitors = ["Search"]
        [[maintenance]]
        name = "long ago"
        once = "2025-01-31T23:30:00Z"
        duration = "1h"
        [[maintenance]]
        name = "now"
        once = "{began}"
        duration = "9h"
        about = "A new <switch>, in two steps.\nMail may be late; nothing is lost."
        [[maintenance]]
        name = "patches"
        cron = "0 {night} * * *"
        duration = "1h"
        about = "Security updates"
        [[maintenance]]
        name = "backup"
        cron = "0 {early} * * *"
        duration = "10m"
        monitors = ["Search"]
        [[maintenance]]
        name = "backup"
        cron = "30 {late} * * *"
        duration = "10m"
        monitors = ["Mail"]
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    eventually(|| running.get("/").1.contains("In progress"));
    let answer = running.json("/api/v2/scheduled-maintenances.json");
    let all = answer["scheduled_maintenances"].as_array().unwrap();
    let paths = |name: &str| -> Vec<String> {
        let found = all.iter().filter(|one| one["name"] == name);
        let links = found.map(|one| one["shortlink"].as_str().unwrap());
        links
            .map(|link| link.strip_prefix("http://localhost").unwrap().to_owned())
            .collect()
    };
    let shown = |path: &str| {
        let (status, page) = running.get(path);
        assert_eq!(status, StatusCode::OK, "{path}");
        page
    };
    let over = &paths("Move <1>/2 ü")[0];
    let page = shown(over);
    for expected in [
        "<title>Move &#60;1&#62;/2 ü – P</title>",
        ">Completed</span>",
        "<time datetime=",
        "/components/%5Fsearch\">Search</a>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("Mail"), "it is not affected: {page}");
    assert!(!page.contains("Other dates"), "it took place once: {page}");
    let month = began.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m");
    assert!(shown(&format!("/history/{month}")).contains(over.as_str()));
    let under_way = &paths("now")[0];
    assert!(shown(under_way).contains(">In progress</span>"));
    // The page and the calendar link the occurrences; each has links to others.
    let coming = paths("patches");
    let calendar = shown("/calendar.ics").replace("\r\n ", "");
    for path in [under_way, &coming[1], &coming[2]] {
        assert!(shown("/").contains(&format!("href=\"{path}\"")), "{path}");
        let url = format!("URL:http://localhost{path}\r\n");
        assert!(calendar.contains(&url), "{url}: {calendar}");
    }
    let page = shown(&coming[1]);
    assert!(page.contains("Other dates") && page.contains(&format!("href=\"{}\"", coming[2])));
    assert_eq!(page.matches(&coming[1]).count(), 1, "{page}");
    // Windows of one name have dates of their own.
    let backups = all.iter().filter(|one| one["name"] == "backup");
    let backups: Vec<_> = backups
        .map(|one| {
            let start = one["scheduled_for"].as_str().unwrap();
            let link = one["shortlink"].as_str().unwrap();
            (
                start.contains(&format!("T{early:02}:00")),
                link.rsplit('/').next().unwrap(),
            )
        })
        .collect();
    let (_, first) = backups.iter().find(|(is_early, _)| *is_early).unwrap();
    let page = shown(&format!("/maintenance/{first}"));
    let linked = |wanted: bool| {
        let ids = backups.iter().filter(|(is_early, _)| *is_early == wanted);
        ids.filter(|(_, id)| page.contains(&format!("/{id}\"")))
            .count()
    };
    assert!(linked(true) > 1, "{page}");
    assert_eq!(linked(false), 0, "{page}");
    assert_eq!(
        shown("/").matches(">backup</a>").count(),
        6,
        "three of each"
    );
    // Its text is everywhere; occurrences of one window share it.
    let text = "A new &#60;switch&#62;, in two steps.\nMail may be late; nothing is lost.</div>";
    assert!(shown("/").contains(text) && shown(under_way).contains(text));
    let of_calendar = "DESCRIPTION:A new <switch>\\, in two steps.\\nMail may be late\\; nothing is lost.\\nAffects Search\\, Mail\r\n";
    assert!(calendar.contains(of_calendar), "{calendar}");
    let now = all.iter().find(|one| one["name"] == "now").unwrap();
    let update = &now["incident_updates"][0];
    assert_eq!(
        update["body"],
        "A new <switch>, in two steps.\nMail may be late; nothing is lost."
    );
    assert_eq!(update["status"], "in_progress");
    assert_eq!(update["incident_id"], now["id"]);
    let backup = all.iter().find(|one| one["name"] == "backup").unwrap();
    assert_eq!(backup["incident_updates"], serde_json::json!([]));
    assert_eq!(shown("/").matches("Security updates").count(), 1);
    assert!(shown(&coming[1]).contains("Security updates"));
    let below = shown(&format!("/status/p{}", coming[1]));
    assert!(below.contains(&format!("href=\"/status/p{}\"", coming[2])));
    for (language, expected) in [
        ("de", "Weitere Termine"),
        ("fr", "Autres dates"),
        ("es", "Otras fechas"),
        ("ja", "ほかの日程"),
    ] {
        let page = running.response(
            Method::GET,
            &coming[1],
            &[("accept-language", language)],
            "",
        );
        assert!(page.body().contains(expected), "{language}");
    }
    // Older than the snapshot.
    let old = shown("/history/2025-01");
    let old = old.split("href=\"").find(|part| part.contains("long-ago"));
    let old = old.unwrap().split('"').next().unwrap();
    let page = shown(old);
    assert!(page.contains(">long ago</a></h2>"), "{old}: {page}");
    // It went on into the next month.
    for page in [page, shown("/history/2025-01")] {
        assert!(page.contains("datetime=\"2025-02-01T00:30:00Z\""), "{page}");
    }
    for missing in [
        "/maintenance",
        "/maintenance/x",
        "/maintenance/w-1-patches",
        "/maintenance/w99999999999999999999-patches",
        "/maintenance/w9223372036854775807-patches",
        // The monitor had no result then, and the page does not announce so much ahead.
        "/maintenance/w1738292400000-patches",
        "/maintenance/w4102455600000-patches",
        "/maintenance/w1738366200000-short-ago",
    ] {
        let (status, _) = running.get(missing);
        assert_eq!(status, StatusCode::NOT_FOUND, "{missing}");
    }
}
