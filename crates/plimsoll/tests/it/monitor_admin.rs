//! The admin pages in a browser, and the commands beside them.

use std::fs;
use std::path::Path;

use plimsoll_testkit::{Origin, eventually, refused_address};
use tempfile::TempDir;

use crate::browser::Browser;
use crate::plimsoll::plimsoll;
use crate::served::Served;

/// A configuration without monitors, and the password of its owner.
fn initialized(folder: &Path) -> (String, String) {
    let file = folder.join("monitor.toml");
    let text = "store = \"monitor.db\"\n[[page]]\nslug = \"p\"\ntitle = \"Our services\"\n";
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
    let (path, password) = initialized(folder.path());
    let served = Served::start(&["monitor", &path, "--listen", "127.0.0.1:0"]);
    let url = served.url.trim_end_matches('/').to_owned();
    let mut browser = Browser::start();
    browser.open(&format!("{url}/admin/monitors"));
    shows(&mut browser, "Sign in");
    submit(
        &mut browser,
        &[("name", "ann"), ("password", &password)],
        "button.main",
    );
    // The password that another person may have seen is changed first.
    shows(&mut browser, "Choose your own password");
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

    drop(origin);
    browser.open(&format!("{url}/admin"));
    let down = "document.querySelector('a[href^=\"/admin/outages/\"]') !== null || (window.again || (window.again = true, location.reload()), false)";
    until(&mut browser, down);
    shows(&mut browser, "Connection refused");
    until(
        &mut browser,
        "((link) => link !== null && setTimeout(() => link.click()) > 0)(document.querySelector('a[href^=\"/admin/outages/\"]'))",
    );
    shows(&mut browser, "Timeline");
    submit(&mut browser, &[], "button[value=acknowledge]");
    shows(&mut browser, "The incident is acknowledged.");
    browser.open(&format!("{url}/status/p/"));
    let public = "document.body.innerText.includes('Shop') && document.querySelector('.banner.major') !== null || (window.again || (window.again = true, location.reload()), false)";
    until(&mut browser, public);

    let _origin = Origin::builder().port(address.port()).start();
    browser.open(&format!("{url}/admin/incidents"));
    until(
        &mut browser,
        "document.body.innerText.includes('Resolved') || (window.again || (window.again = true, location.reload()), false)",
    );

    // Shortcuts, and filters without a request.
    browser.open(&format!("{url}/admin/monitors"));
    shows(&mut browser, "1 of 1");
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
        "document.getElementById('q').value = 'nothing like it'; document.getElementById('q').dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('[data-count]').textContent === '0 of 1'",
    );
    until(
        &mut browser,
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'g', bubbles: true })); document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'l', bubbles: true })); true",
    );
    shows(&mut browser, "incident.acknowledge");
    let complaints = browser.complaints().to_vec();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn monitors_are_added_exported_and_imported_from_the_command_line() {
    let folder = TempDir::new().unwrap();
    let (path, _) = initialized(folder.path());
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
