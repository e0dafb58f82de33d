//! Every page of the monitor by axe-core: `cargo xtask axe` installs it and runs this test.

use std::fs;

use plimsoll_testkit::{eventually, refused_address};
use tempfile::TempDir;

use crate::browser::Browser;
use crate::plimsoll::{command, plimsoll, run};
use crate::served::Served;

/// The file of axe-core, which `cargo xtask axe` sets.
const FILE: &str = "PLIMSOLL_AXE";

/// What is looked at.
const PAGES: [&str; 33] = [
    "/",
    "/subscribe",
    "/history",
    "/components/public_api",
    "/incidents/d1",
    "/incidents/none",
    "/nothing",
    "/status/nothing/",
    "/embed",
    "/admin/account",
    "/admin",
    "/admin/monitors",
    "/admin/outages/1",
    "/admin/wall",
    "/admin/wall?theme=light",
    "/admin/monitors/public_api",
    "/admin/new-monitor",
    "/admin/incidents",
    "/admin/incidents/1",
    "/admin/new-incident",
    "/admin/maintenance",
    "/admin/pages",
    "/admin/new-page",
    "/admin/notices",
    "/admin/new-channel",
    "/admin/new-channel?kind=webhook",
    "/admin/new-channel?kind=email",
    "/admin/new-escalation",
    "/admin/new-rotation",
    "/admin/reports",
    "/admin/members",
    "/admin/tokens",
    "/admin/audit",
];

/// Rules of WCAG 2.0 to 2.2, A and AA, and good practice.
const RUN: &str = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map(
    (it) => it.id + ': ' + it.help + ' at ' + it.nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).slice(0, 5).join('; ')).join('\\n'))";

fn configuration() -> String {
    let address = refused_address();
    format!(
        r#"
        store = "monitor.db"
        [subscriptions]
        email = {{ host = "127.0.0.1", port = 1, security = "none", from = "status@acme.example" }}
        [[page]]
        slug = "acme"
        title = "Acme Cloud"
        about = "Storage and search for everyone."
        url = "http://status.acme.example"
        [[notify]]
        name = "ann"
        webhook = {{ url = "http://{address}/" }}
        [[on_call]]
        name = "backend"
        members = ["ann"]
        start = "2026-01-01T09:00"
        [defaults]
        interval = "1s"
        confirm = 1
        slo = "99.9%"
        [[monitor]]
        name = "API"
        group = "Public"
        tcp = "{address}"
        [[monitor]]
        name = "Website"
        group = "Public"
        manual = true
        [[maintenance]]
        name = "patches"
        cron = "30 2 * * *"
        duration = "1h"
        monitors = ["API"]
        [[maintenance]]
        name = "move"
        cron = "* * * * *"
        duration = "1m"
        monitors = ["Website"]
        "#
    )
}

#[test]
#[ignore = "`cargo xtask axe` installs axe-core and runs it"]
#[expect(
    clippy::disallowed_methods,
    reason = "the file is named by the task that runs this"
)]
fn axe_core_finds_nothing_on_any_page() {
    let axe = fs::read_to_string(std::env::var(FILE).unwrap()).unwrap();
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("monitor.toml");
    fs::write(&config, configuration()).unwrap();
    let path = config.to_str().unwrap();
    let made = plimsoll(&["monitor", "init", path, "--name", "ann"]).exits(0);
    let password = made
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("password: "));
    let password = password.unwrap().to_owned();
    let token = plimsoll(&["monitor", "token", "t", "--write", "--store", path]).exits(0);
    let served = Served::start(&["monitor", path, "--listen", "127.0.0.1:0"]);
    let url = served.url.trim_end_matches('/').to_owned();
    let mut declare = command(&[
        "monitor",
        "incident",
        "open",
        "Search is slow",
        "--monitor",
        "public_api",
    ]);
    declare.args(["--message", "We are looking into it.", "--url", &url]);
    run(declare.env("PLIMSOLL_MONITOR_TOKEN", token.stdout.trim())).exits(0);
    let mut browser = Browser::start();
    let mut found = Vec::new();
    let visit = |browser: &mut Browser, path: &str| {
        browser.open(&format!("{url}{path}"));
        let here = format!(
            "location.pathname + location.search === {path:?} && document.readyState === 'complete'"
        );
        eventually(|| browser.evaluate(&here) == true);
    };
    let mut judge = |browser: &mut Browser, path: &str| {
        for scheme in ["light", "dark"] {
            browser.color_scheme(scheme);
            browser.evaluate(&axe);
            let violations = browser.evaluate(RUN);
            let violations = violations.as_str().unwrap_or("axe-core did not run");
            if !violations.is_empty() {
                found.push(format!("{path} {scheme}\n{violations}"));
            }
        }
    };
    visit(&mut browser, "/admin/sign-in");
    judge(&mut browser, "/admin/sign-in");
    browser.open(&format!("{url}/admin/sign-in"));
    let sign_in = |browser: &mut Browser, expression: &str| {
        eventually(|| browser.evaluate(expression) == true);
    };
    let fill = |id: &str, text: &str| format!("document.getElementById({id:?}).value = {text:?};");
    let first = format!(
        "{}{}setTimeout(() => document.querySelector('button.main').click()); true",
        fill("name", "ann"),
        fill("password", &password)
    );
    sign_in(&mut browser, &first);
    let own = "a password of my own";
    let second = format!(
        "location.pathname === '/admin/account' && (() => {{ {}{}{}setTimeout(() => document.querySelector('button.main').click()); return true; }})()",
        fill("present", &password),
        fill("new", own),
        fill("again", own)
    );
    sign_in(&mut browser, &second);
    sign_in(&mut browser, "location.pathname === '/admin'");
    for path in PAGES {
        visit(&mut browser, path);
        judge(&mut browser, path);
    }
    // A form whose fields are wrong.
    visit(&mut browser, "/admin/new-monitor");
    let wrong = format!(
        "{}{}{}setTimeout(() => document.querySelector('button.main').click()); true",
        fill("name", "x"),
        fill("target", "ftp://x"),
        fill("interval", "soon"),
    );
    browser.evaluate(&wrong);
    let focus = "document.querySelector('[aria-invalid]') && document.activeElement.id";
    eventually(|| browser.evaluate(focus) == "target");
    judge(&mut browser, "/admin/new-monitor with errors");
    // Its path has a date.
    browser.open(&format!("{url}/"));
    let link = "document.querySelector('a[href^=\"/maintenance/\"]')?.pathname ?? ''";
    eventually(|| browser.evaluate(link) != "");
    let path = browser.evaluate(link);
    visit(&mut browser, path.as_str().unwrap());
    judge(&mut browser, path.as_str().unwrap());
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
