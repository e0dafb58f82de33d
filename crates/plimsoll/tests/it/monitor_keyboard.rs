//! The admin pages at the width of a phone, by keys alone: what a new member does first.

use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::browser::{Browser, Key, NARROW};
use crate::monitor_admin::initialized;
use crate::served::Served;

/// What has the focus: its id, what it is called, whether it can be seen, and whether the focus can be.
const HERE: &str = "(() => {
    const it = document.activeElement;
    const { left, right, top, bottom, width } = it.getBoundingClientRect();
    const label = it.getAttribute('aria-label') || it.labels?.[0]?.innerText || it.innerText || it.title || '';
    return {
        id: it.id,
        label: it === document.body ? 'nothing' : label.trim(),
        isSeen: width > 1 && left >= 0 && right <= innerWidth && bottom > 0 && top < innerHeight,
        isMarked: getComputedStyle(it).outlineStyle !== 'none',
    };
})()";

/// Somebody with a keyboard.
struct Member {
    browser: Browser,
    url: String,
}

impl Member {
    /// Waits for a page, which has all of its content on the screen's width.
    #[track_caller]
    fn arrives(&mut self, path: &str) {
        let loaded = format!(
            "location.pathname + location.search === {path:?} && document.readyState === 'complete'"
        );
        eventually(|| self.browser.evaluate(&loaded) == true);
        let width = "document.documentElement.scrollWidth";
        let width = self.browser.evaluate(width);
        assert_eq!(width, NARROW, "{path} scrolls sideways");
    }

    #[track_caller]
    fn opens(&mut self, path: &str) {
        self.browser.open(&format!("{}{path}", self.url));
        self.arrives(path);
    }

    fn types(&mut self, text: &str) {
        self.browser.type_text(text);
    }

    /// Presses Tab until what is called so, or has that id behind a `#`, has the focus.
    #[track_caller]
    fn tabs_to(&mut self, wanted: &str, most: usize) {
        let mut passed = Vec::new();
        for _ in 0..most {
            self.browser.press(Key::Tab);
            let here = self.browser.evaluate(HERE);
            let label = here["label"].as_str().unwrap_or_default().to_owned();
            assert!(
                !label.is_empty() && here["isSeen"] == true && here["isMarked"] == true,
                "what has the focus has a name, and both can be seen: {here}"
            );
            if is_called(&here, wanted) {
                return;
            }
            passed.push(label);
        }
        panic!("{wanted} is not within {most} tabs: {passed:?}");
    }

    /// Waits until something has the focus: a page moves it after its text is there.
    #[track_caller]
    fn is_at(&mut self, wanted: &str) {
        eventually(|| is_called(&self.browser.evaluate(HERE), wanted));
    }

    fn enters(&mut self) {
        self.browser.press(Key::Enter);
    }

    #[track_caller]
    fn reads(&mut self, text: &str) {
        let expression = format!("document.body.innerText.includes({text:?})");
        eventually(|| self.browser.evaluate(&expression) == true);
    }
}

fn is_called(here: &Value, wanted: &str) -> bool {
    match wanted.strip_prefix('#') {
        Some(id) => here["id"] == id,
        None => here["label"]
            .as_str()
            .is_some_and(|label| label.starts_with(wanted)),
    }
}

#[test]
fn what_a_new_member_does_first_is_done_by_keys_on_a_phone() {
    let folder = TempDir::new().unwrap();
    let hook = Origin::hello();
    let (path, password) = initialized(folder.path(), "");
    let served = Served::start(&["monitor", &path, "--listen", "127.0.0.1:0"]);
    let mut member = Member {
        browser: Browser::start(),
        url: served.url.trim_end_matches('/').to_owned(),
    };
    member.browser.become_phone();

    // The first sign-in leads to a password of one's own, and then to the first monitor.
    member.opens("/admin/sign-in");
    member.is_at("#name");
    member.types("ann");
    member.tabs_to("#password", 1);
    member.types(&password);
    member.enters();
    member.arrives("/admin/account?done=must-change");
    member.is_at("#present");
    member.types(&password);
    for field in ["#new", "#again"] {
        member.tabs_to(field, 1);
        member.types("a password of my own");
    }
    member.enters();
    member.arrives("/admin?done=password");
    member.tabs_to("Add the first monitor", 7);
    member.enters();

    // A monitor is tried and saved, and its overview says why it is down.
    member.arrives("/admin/new-monitor");
    member.is_at("#name");
    member.types("Shop");
    member.tabs_to("#target", 3);
    member.types(&format!("http://{}/", refused_address()));
    member.tabs_to("#interval", 1);
    member.types("200ms");
    member.tabs_to("Test now", 5);
    member.enters();
    member.reads("Nothing is saved yet.");
    member.is_at("Test: down");
    member.tabs_to("Save", 1);
    member.enters();
    member.arrives("/admin/monitors/%5Fshop?done=added");
    eventually(|| {
        member.opens("/admin");
        let link = "document.querySelector('a[href^=\"/admin/outages/\"]') !== null";
        member.browser.evaluate(link) == true
    });
    member.tabs_to("Shop", 14);
    member.enters();
    member.arrives("/admin/outages/1");
    member.reads("Connection refused");

    // A channel is found by a part of its name, and tried before it is saved.
    member.opens("/admin/new-channel");
    member.tabs_to("Search the channels", 4);
    member.types("webh");
    member.enters();
    member.arrives("/admin/new-channel?kind=webhook");
    member.is_at("#name");
    member.types("desk");
    member.tabs_to("URL", 1);
    member.types(&hook.url("/hook"));
    member.tabs_to("Send a test", 12);
    member.enters();
    member.reads("The test message was accepted.");
    member.is_at("The test message was accepted.");
    member.tabs_to("Save", 1);
    member.enters();
    member.arrives("/admin/notices?done=saved");
    assert_eq!(hook.heads().len(), 1);

    // A page has its slug of its title.
    member.opens("/admin/new-page");
    member.is_at("#title");
    member.types("Sch\u{f6}ner Shop 24/7!");
    member.tabs_to("#slug", 1);
    let slug = "document.activeElement.value";
    assert_eq!(member.browser.evaluate(slug), "schoner-shop-24-7");
    member.tabs_to("Save", 5);
    member.enters();
    member.arrives("/admin/pages?done=saved");
    member.tabs_to("/status/schoner-shop-24-7/", 10);
    member.enters();
    member.reads("Powered by plimsoll");

    // An incident is declared and resolved.
    member.opens("/admin/new-incident");
    member.is_at("#title");
    member.types("Payments fail");
    member.tabs_to("#body", 12);
    member.types("We look into it.");
    member.tabs_to("Shop", 2);
    member.browser.press(Key::Space);
    member.tabs_to("Declare", 3);
    member.enters();
    member.arrives("/admin/incidents/1?done=declared");
    member.tabs_to("#body", 8);
    member.types("They are paid again.");
    member.tabs_to("Resolve", 5);
    member.enters();
    member.arrives("/admin/incidents/1?done=updated");
    member.reads("They are paid again.");

    // A window that recurs is planned.
    member.opens("/admin/maintenance");
    member.tabs_to("Add a window", 4);
    member.enters();
    member.tabs_to("#name", 1);
    member.types("Patches");
    member.tabs_to("#when", 1);
    member.browser.press(Key::Letter('b'));
    member.tabs_to("#cron", 1);
    member.types("0 3 * * *");
    member.tabs_to("#duration", 1);
    member.types("1h");
    member.tabs_to("Add", 5);
    member.enters();
    member.arrives("/admin/maintenance?done=saved");

    // A password and a token that are shown once are where the focus is.
    member.opens("/admin/members");
    member.tabs_to("#name", 5);
    member.types("bob");
    member.tabs_to("Add", 2);
    member.enters();
    member.arrives("/admin/members/add");
    member.is_at("Copy the password of bob now.");
    member.opens("/admin/tokens");
    member.tabs_to("#name", 4);
    member.types("deploy");
    member.tabs_to("Create", 3);
    member.enters();
    member.arrives("/admin/tokens/add");
    member.is_at("Copy the token now.");

    let complaints = member.browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");

    // One-time codes: a wrong one is told at its field.
    member.opens("/admin/account");
    member.tabs_to("#code", 9);
    member.types("000000");
    member.tabs_to("#present-on", 1);
    member.types("a password of my own");
    member.tabs_to("Turn on", 1);
    member.enters();
    member.arrives("/admin/account/totp");
    member.is_at("#code");

    // The checks of a monitor are paused.
    member.opens("/admin/monitors");
    member.tabs_to("Shop", 12);
    member.enters();
    member.arrives("/admin/monitors/%5Fshop");
    member.tabs_to("Pause", 7);
    member.enters();
    member.arrives("/admin/monitors/%5Fshop?done=paused");
    member.reads("Checks are paused.");
}
