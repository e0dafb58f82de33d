//! The admin pages in a browser, and the commands beside them.

use std::fs;
use std::path::Path;

use plimsoll_testkit::{Origin, eventually, mail_server, refused_address};
use tempfile::TempDir;

use crate::browser::{Browser, Pictures, get};
use crate::plimsoll::plimsoll;
use crate::served::Served;

/// A configuration without monitors, and the password of its owner.
///
/// - `more`: tables of the file.
pub(crate) fn initialized(folder: &Path, more: &str) -> (String, String) {
    let file = folder.join("monitor.toml");
    let text =
        format!("store = \"monitor.db\"\n[[page]]\nslug = \"p\"\ntitle = \"Our services\"\n{more}");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap().to_owned();
    let made = plimsoll(&["monitor", "init", &path, "--name", "ann"]).exits(0);
    let password = made
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("password: "));
    let password = password.unwrap_or_else(|| panic!("{made}")).to_owned();
    let again = plimsoll(&["monitor", "init", &path]).exits(2);
    assert!(
        again.stderr.contains("the store has users already"),
        "{again}"
    );
    (path, password)
}

/// Waits for an expression of the page.
#[track_caller]
fn until(browser: &mut Browser, expression: &str) {
    eventually(|| browser.evaluate(expression) == true);
}

#[track_caller]
fn shows(browser: &mut Browser, text: &str) {
    let expression = format!("document.body.innerText.includes({text:?})");
    until(browser, &expression);
}

/// Types into fields by their ids, and presses a button of their form, once: a click that leaves the page at once could
/// take the response to the expression with it, which is then tried again.
fn submit(browser: &mut Browser, fields: &[(&str, &str)], button: &str) {
    for (id, text) in fields {
        let expression = format!("document.getElementById({id:?}).value = {text:?}; true");
        until(browser, &expression);
    }
    let expression = format!(
        "((button) => button !== null && setTimeout(() => button.click()) > 0)(document.querySelector({button:?}))"
    );
    until(browser, &expression);
}

#[test]
fn a_monitor_is_added_fails_and_its_incident_is_resolved_in_a_browser() {
    let folder = TempDir::new().unwrap();
    let pictures = Pictures::of_environment();
    let (mail, receiving) = mail_server();
    let hook = Origin::hello();
    let channels = format!(
        "[[notify]]\nname = \"mail\"\non = \"opened\"\nemail = {{ host = \"127.0.0.1\", port = {}, security = \"none\", from = \"Monitor <monitor@example.org>\", to = \"ann@example.org\" }}\n\
         [[notify]]\nname = \"hook\"\nwebhook = {{ url = \"{}\", secret = \"0123456789\" }}\n",
        mail.port(),
        hook.url("/hook")
    );
    let (path, password) = initialized(folder.path(), &channels);
    let served = Served::start(&["monitor", &path, "--listen", "127.0.0.1:0"]);
    let url = served.url.trim_end_matches('/').to_owned();
    let mut browser = Browser::start();
    browser.open(&format!("{url}/admin/monitors"));
    shows(&mut browser, "Sign in");
    pictures.take_picture(&mut browser, "01-sign-in");
    submit(
        &mut browser,
        &[("name", "ann"), ("password", &password)],
        "button.main",
    );
    // The password that another person may have seen is changed first.
    shows(&mut browser, "Choose your own password");
    pictures.take_picture(&mut browser, "02-password");
    let own = "a password of my own";
    submit(
        &mut browser,
        &[("present", &password), ("new", own), ("again", own)],
        "button.main",
    );
    shows(&mut browser, "The password is changed");

    let address = refused_address();
    let origin = Origin::builder().port(address.port()).start();
    browser.open(&format!("{url}/admin/new-monitor"));
    shows(&mut browser, "Advanced settings");
    let target = format!("http://{address}/");
    let fields = [
        ("name", "Shop"),
        ("target", target.as_str()),
        ("interval", "200ms"),
        ("expect", "body contains 'hello'"),
        ("confirm", "2"),
        ("hold", "0s"),
    ];
    submit(&mut browser, &fields, "button[value=test]");
    shows(&mut browser, "Nothing is saved yet.");
    shows(&mut browser, "met: body contains 'hello'");
    pictures.take_picture(&mut browser, "03-tested");
    until(
        &mut browser,
        "document.getElementById('target').value.startsWith('http://127.0.0.1')",
    );
    submit(&mut browser, &[], "button[value=save]");
    // The first result is there with the page.
    shows(&mut browser, "The monitor is added.");
    shows(&mut browser, "met: body contains 'hello'");
    until(
        &mut browser,
        "document.querySelector('.state.big').textContent === 'Up' || (window.again || (window.again = true, location.reload()), false)",
    );
    pictures.take_picture(&mut browser, "04-monitor-up");
    browser.open(&format!("{url}/status/p/"));
    shows(&mut browser, "All systems operational");
    pictures.take_picture(&mut browser, "05-page-up");

    drop(origin);
    browser.open(&format!("{url}/admin"));
    let down = "document.querySelector('a[href^=\"/admin/outages/\"]') !== null || (window.again || (window.again = true, location.reload()), false)";
    until(&mut browser, down);
    shows(&mut browser, "Connection refused");
    pictures.take_picture(&mut browser, "06-overview-down");
    until(
        &mut browser,
        "((link) => link !== null && setTimeout(() => link.click()) > 0)(document.querySelector('a[href^=\"/admin/outages/\"]'))",
    );
    shows(&mut browser, "Timeline");
    submit(&mut browser, &[], "button[value=acknowledge]");
    shows(&mut browser, "The incident is acknowledged.");
    pictures.take_picture(&mut browser, "07-outage");
    // Those who want to know have heard of it.
    eventually(|| receiving.is_finished());
    let message = receiving.join().unwrap();
    assert!(
        message.contains("To: ann@example.org") && message.contains("Shop"),
        "{message}"
    );
    eventually(|| !hook.heads().is_empty());
    let head = hook.heads().swap_remove(0).to_ascii_lowercase();
    assert!(
        head.starts_with("post /hook") && head.contains("signature"),
        "{head}"
    );
    browser.open(&format!("{url}/status/p/"));
    let public = "document.body.innerText.includes('Shop') && document.querySelector('.banner.major') !== null || (window.again || (window.again = true, location.reload()), false)";
    until(&mut browser, public);
    pictures.take_picture(&mut browser, "08-page-down");

    // An operator says what is going on, and that it is over.
    browser.open(&format!("{url}/admin/new-incident"));
    shows(&mut browser, "First update");
    let first = [("title", "Checkout fails"), ("body", "We are on it.")];
    submit(&mut browser, &first, "form.editor button.main");
    shows(&mut browser, "Publish");
    let update = [
        ("phase", "identified"),
        ("body", "A switch is being replaced."),
    ];
    submit(&mut browser, &update, "form.editor button.main");
    shows(&mut browser, "A switch is being replaced.");
    pictures.take_picture(&mut browser, "09-incident");
    browser.open(&format!("{url}/status/p/"));
    shows(&mut browser, "Checkout fails");
    shows(&mut browser, "A switch is being replaced.");
    pictures.take_picture(&mut browser, "10-page-incident");
    browser.open(&format!("{url}/admin/incidents"));
    until(
        &mut browser,
        "((link) => link !== null && setTimeout(() => link.click()) > 0)(document.querySelector('a[href^=\"/admin/incidents/\"]'))",
    );
    shows(&mut browser, "Update, or postmortem");
    let last = [("phase", "resolved"), ("body", "The new switch works.")];
    submit(&mut browser, &last, "form.editor button.main");
    shows(&mut browser, "The new switch works.");
    let host = url.strip_prefix("http://").unwrap();
    eventually(|| {
        let feed = get(host, "/status/p/feed.atom");
        [
            "Checkout fails",
            "We are on it.",
            "The new switch works.",
            "Shop is down",
        ]
        .iter()
        .all(|text| feed.contains(text))
    });

    let _origin = Origin::builder().port(address.port()).start();
    browser.open(&format!("{url}/admin/incidents"));
    until(
        &mut browser,
        "document.querySelector('section[aria-labelledby=outages]')?.innerText.includes('Resolved') || (window.again || (window.again = true, location.reload()), false)",
    );
    pictures.take_picture(&mut browser, "11-incidents");
    browser.open(&format!("{url}/status/p/"));
    until(
        &mut browser,
        "document.querySelector('.banner.operational') !== null || (window.again || (window.again = true, location.reload()), false)",
    );
    for (name, path) in [
        ("12-page-resolved", "/status/p/"),
        ("13-component", "/status/p/components/_shop"),
        ("14-history", "/status/p/history"),
        ("15-overview", "/admin"),
        ("16-maintenance", "/admin/maintenance"),
        ("17-pages", "/admin/pages"),
        ("18-new-page", "/admin/new-page"),
        ("19-notices", "/admin/notices"),
        ("20-reports", "/admin/reports"),
        ("21-members", "/admin/members"),
        ("22-tokens", "/admin/tokens"),
        ("23-account", "/admin/account"),
        ("24-audit", "/admin/audit"),
        ("25-monitors", "/admin/monitors"),
        ("26-new-monitor", "/admin/new-monitor"),
        ("28-page-of-incident", "/status/p/incidents/d1"),
        ("29-new-channel", "/admin/new-channel"),
    ] {
        browser.open(&format!("{url}{path}"));
        until(
            &mut browser,
            &format!("location.pathname === {path:?} && document.readyState === 'complete'"),
        );
        pictures.take_picture(&mut browser, name);
        // Nothing is cut off on a phone.
        let wide = browser.evaluate_on_phone(
            "Array.from(document.querySelectorAll('html, main .scroll')).filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent.trim().slice(0, 80)).join('; ')",
        );
        assert_eq!(wide, "", "{path}");
    }

    // Maintenance has a page of its own, which the status page links.
    browser.open(&format!("{url}/admin/maintenance"));
    shows(&mut browser, "Add a window");
    let window = [
        ("name", "Database upgrade"),
        ("when", "cron"),
        ("cron", "0 3 * * *"),
        ("duration", "2h"),
        (
            "about",
            "The database moves to a new server. Orders are accepted throughout; search may be slow.",
        ),
    ];
    submit(&mut browser, &window, "form.editor button.main");
    // Of the table: the value of a field is no text.
    shows(&mut browser, "Database upgrade");
    pictures.take_picture(&mut browser, "31-window");
    browser.open(&format!("{url}/status/p/"));
    shows(&mut browser, "Planned maintenance");
    pictures.take_picture(&mut browser, "32-page-planned");
    until(
        &mut browser,
        "((link) => link !== null && setTimeout(() => link.click()) > 0)(document.querySelector('a[href^=\"/status/p/maintenance/\"]'))",
    );
    shows(&mut browser, "Other dates");
    pictures.take_picture(&mut browser, "30-page-of-maintenance");

    // Of sessions, the browser is named; and a preview follows its form.
    browser.open(&format!("{url}/admin/account"));
    shows(&mut browser, "Chrome on Linux");
    browser.open(&format!("{url}/admin/new-page"));
    shows(
        &mut browser,
        "A page with a title and a slug is shown here.",
    );
    until(
        &mut browser,
        "document.querySelector('button[value=preview]').hidden",
    );
    until(
        &mut browser,
        "for (const [id, text] of [['slug', 'live'], ['title', 'A live page']]) { document.getElementById(id).value = text; document.getElementById(id).dispatchEvent(new Event('input', { bubbles: true })); } true",
    );
    until(
        &mut browser,
        "document.querySelector('#preview-pane h3')?.textContent === 'A live page' && document.querySelector('#preview-pane li')?.innerText.includes('Shop')",
    );
    until(&mut browser, "location.pathname === '/admin/new-page'");
    pictures.take_picture(&mut browser, "27-preview");

    // Buttons for several monitors appear with a selection.
    browser.open(&format!("{url}/admin/monitors"));
    shows(&mut browser, "1 monitor");
    let buttons =
        "getComputedStyle(document.querySelector('.bulk button[value=pause]')).visibility";
    assert_eq!(browser.evaluate(buttons), "hidden");
    browser.evaluate("document.querySelector('[data-all]').click()");
    assert_eq!(browser.evaluate(buttons), "visible");

    // Shortcuts, and filters while one types.
    browser.open(&format!("{url}/admin/monitors"));
    shows(&mut browser, "1 monitor");
    until(
        &mut browser,
        "document.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true })); document.getElementById('shortcuts').open",
    );
    until(
        &mut browser,
        "document.getElementById('shortcuts').close(); true",
    );
    until(
        &mut browser,
        "document.getElementById('q').value = 'nothing like it'; document.getElementById('q').dispatchEvent(new Event('input', { bubbles: true })); true",
    );
    until(
        &mut browser,
        "document.querySelector('.count').textContent === 'No monitor of 1' && location.search === '?q=nothing+like+it'",
    );
    until(
        &mut browser,
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'g', bubbles: true })); document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'l', bubbles: true })); true",
    );
    shows(&mut browser, "acknowledged an incident");
    let complaints = browser.complaints().to_vec();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn monitors_are_added_exported_and_imported_from_the_command_line() {
    let folder = TempDir::new().unwrap();
    let (path, _) = initialized(folder.path(), "");
    let served = Served::start(&["monitor", &path, "--listen", "127.0.0.1:0"]);
    // Tokens are added to a store that is in use.
    let token = [
        "monitor",
        "token",
        "ci",
        "--write",
        "--store",
        &path,
        "--expires",
        "90d",
    ];
    let token = plimsoll(&token).exits(0).stdout.trim().to_owned();
    assert!(token.starts_with("pm_") && !token.contains('\n'), "{token}");
    let url = served.url.clone();
    let run = |arguments: &[&str]| {
        let common = ["--url", url.as_str(), "--token", &token];
        plimsoll(&[&["monitor"], arguments, &common].concat())
    };
    let added = run(&[
        "add",
        "Shop",
        "http://127.0.0.1:9/",
        "--group",
        "Web",
        "--tag",
        "eu",
        "--set",
        "confirm = 3",
    ])
    .exits(0);
    assert_eq!(added.stdout.trim(), "added web_shop");
    run(&["add", "Data base", "tcp://127.0.0.1:9"]).exits(0);
    let unknown = run(&["add", "x", "gopher://x"]).exits(2);
    assert!(
        unknown.stderr.contains("begin it with one of http://"),
        "{unknown}"
    );
    let wrong = run(&["add", "x", "http://x/", "--interval", "soon"]).exits(2);
    assert!(wrong.stderr.contains("`interval`"), "{wrong}");

    // A target of a refused port is down, and one that an operator pauses is paused.
    let checked = run(&["check-now", "_data-base"]).exits(1);
    assert!(
        checked.stdout.starts_with("_data-base: down, "),
        "{checked}"
    );
    run(&["pause", "web_shop"]).exits(0);
    let listed = run(&["list", "--group", "Web"]).exits(0).stdout;
    assert!(
        listed.starts_with("paused       web_shop  ") && listed.lines().count() == 1,
        "{listed}"
    );
    run(&["resume", "web_shop"]).exits(0);
    assert_eq!(run(&["list", "--health", "paused"]).exits(0).stdout, "");
    let listed = run(&["list", "--json"]).exits(0).stdout;
    let keys: Vec<_> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["key"].clone())
        .collect();
    assert_eq!(keys, ["_data-base", "web_shop"]);
    let unknown = run(&["pause", "web_none"]).exits(2);
    assert!(
        unknown.stderr.contains("there is no such monitor"),
        "{unknown}"
    );

    let exported = run(&["export"]).exits(0).stdout;
    assert!(
        exported.contains("tcp = \"127.0.0.1:9\"") && exported.contains("confirm = 3"),
        "{exported}"
    );
    let file = folder.path().join("kept.toml");
    fs::write(&file, exported.replace("confirm = 3", "confirm = 4")).unwrap();
    let file = file.to_str().unwrap();
    plimsoll(&["monitor", file, "--check"]).exits(0);
    let applied = run(&["import", file, "--apply"]).exits(0);
    assert_eq!(applied.stdout.trim(), "added 0, replaced 2");
    assert!(run(&["export"]).exits(0).stdout.contains("confirm = 4"));
    let backup = folder.path().join("kuma.json");
    fs::write(
        &backup,
        r#"{"monitorList": [{"name": "db", "type": "port", "hostname": "127.0.0.1", "port": 9}]}"#,
    )
    .unwrap();
    let applied = run(&["import", backup.to_str().unwrap(), "--apply"]).exits(0);
    assert_eq!(applied.stdout.trim(), "added 1, replaced 0");

    let reset = plimsoll(&["monitor", "init", &path, "--name", "ann", "--reset"]).exits(0);
    assert!(reset.stdout.contains("password: "), "{reset}");
    let nobody = plimsoll(&["monitor", "init", &path, "--name", "bob", "--reset"]).exits(2);
    assert!(nobody.stderr.contains("no user of this name"), "{nobody}");
}
