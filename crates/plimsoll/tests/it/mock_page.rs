//! The page of a mock, as a browser shows it.

use plimsoll_testkit::{MaterialFiles, eventually};

use crate::browser::{Browser, ask};
use crate::plimsoll::command;
use crate::served::Served;

const RULES: &str = r#"
[[rules]]
id = "orders"
when.request = { url_path = "/orders", method = "POST" }
respond = { status = 201, text = "made" }
scenario = { name = "cart", state = "Started", next = "full" }
"#;

/// A mock, and where it answers: itself and its admin port.
struct Mock {
    /// It answers as long as it lives.
    _server: Served,
    served: String,
    admin: String,
    _files: MaterialFiles,
}

impl Mock {
    fn start(rules: &str, token: &str) -> Self {
        let files = MaterialFiles::new();
        files.write("rules.toml", rules);
        let configuration = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmock = {{ file = \"rules.toml\" }}\n\
             [admin]\naddress = \"127.0.0.1:0\"\n{token}"
        );
        let file = files.write("plimsoll.toml", &configuration);
        let up = &mut command(&["up", &file.to_string_lossy()]);
        let (server, [admin]) = Served::with_more(up);
        let address = |url: &str| {
            let address = url.strip_prefix("http://").unwrap();
            address.trim_end_matches('/').to_owned()
        };
        Self {
            served: address(&server.url),
            admin: address(&admin),
            _server: server,
            _files: files,
        }
    }

    fn page(&self, view: &str) -> String {
        format!("http://{}/mock/{view}", self.admin)
    }
}

/// Waits until the page shows a text.
fn shows(browser: &mut Browser, text: &str) {
    eventually(|| browser.text().contains(text));
}

#[test]
fn requests_show_up_with_why_they_were_answered() {
    let mock = Mock::start(RULES, "");
    let mut browser = Browser::start();
    // Browsers are sent to where the page's own requests lead to the API.
    browser.open(mock.page("").trim_end_matches('/'));
    shows(&mut browser, "No requests yet");
    assert_eq!(
        ask(&mock.served, "POST", "/orders", "{\"amount\":2}"),
        "made"
    );
    ask(&mock.served, "PUT", "/orders", "<script>alert(1)</script>");
    shows(&mut browser, "rule orders");
    shows(&mut browser, "nothing answered it");
    browser.evaluate("location.hash = 'requests/1'");
    shows(&mut browser, "Why it matched");
    shows(&mut browser, "\"amount\": 2");
    browser.evaluate("location.hash = 'requests/2'");
    shows(&mut browser, "Near miss: orders");
    shows(&mut browser, "not met");
    shows(&mut browser, "<script>alert(1)</script>");
    assert_eq!(browser.evaluate("document.scripts.length"), 1);
    browser.evaluate("document.querySelector('input[type=checkbox]').click()");
    let rows = browser.evaluate("document.querySelectorAll('#requests li').length");
    assert_eq!(rows, 1);
    browser.evaluate(
        "const search = document.querySelector('input[type=search]'); search.value = 'zzz'; \
         search.dispatchEvent(new Event('input'))",
    );
    shows(&mut browser, "No request is like that.");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn rules_are_changed_and_tried_on_the_page() {
    let mock = Mock::start(RULES, "");
    let mut browser = Browser::start();
    browser.open(&mock.page("#rules/orders"));
    shows(&mut browser, "Save");
    let set = |text: &str| {
        format!(
            "document.getElementById('rule').value = {text}; document.getElementById('save').click()"
        )
    };
    browser.evaluate(&set("'{'"));
    shows(&mut browser, "This is no JSON");
    browser.evaluate(&set("'{\"when\":{},\"respond\":{\"status\":20}}'"));
    shows(
        &mut browser,
        "respond.status: must be a whole number from 200 to 599",
    );
    browser.evaluate(&set(
        "document.getElementById('rule').value.replace('201', '202')",
    ));
    eventually(|| {
        browser.evaluate(&set(
            "'{\"when\":{\"request\":{\"url_path\":\"/orders\"}},\"respond\":{\"text\":\"changed\"}}'",
        ));
        ask(&mock.served, "GET", "/orders", "") == "changed"
    });
    shows(&mut browser, "It answers now.");
    browser.open(&mock.page("#try"));
    shows(&mut browser, "What answers?");
    browser.evaluate(
        "const path = document.getElementById('path'); path.value = '/orders'; \
         path.dispatchEvent(new Event('input')); document.getElementById('ask').click()",
    );
    shows(
        &mut browser,
        "Answered by rules[1]: 200, 7 bytes of text/plain",
    );
    browser.open(&mock.page("#state"));
    shows(&mut browser, "No rule has a scenario.");
}

#[test]
fn a_late_answer_leaves_the_reader_where_they_went() {
    let mock = Mock::start(RULES, "");
    let mut browser = Browser::start();
    browser.open(&mock.page("#rules/orders"));
    shows(&mut browser, "Save");
    browser.evaluate(
        "globalThis.late = false; const really = window.fetch; \
         const open = new Promise((resolve) => { globalThis.letGo = resolve; }); \
         window.fetch = async (path, how) => { \
           const answer = await really(path, how); \
           if (how.method === 'PUT') { await open; answers(3).then(() => { late = true; }); } \
           return answer; }; \
         const answers = async (count) => { \
           for (let i = 0; i < count; i += 1) await really('status', {}); }; \
         document.getElementById('save').click(); location.hash = 'try'",
    );
    shows(&mut browser, "What answers?");
    browser.evaluate("document.getElementById('path').value = '/typed'; letGo()");
    // More answers than the page asks for after a change have come by then.
    eventually(|| browser.evaluate("late") == true);
    assert_eq!(
        browser.evaluate("location.hash + document.getElementById('path')?.value"),
        "#try/typed"
    );
    assert!(!browser.text().contains("It answers now."));
}

#[test]
fn the_page_asks_for_the_token() {
    let mock = Mock::start(RULES, "token = \"0123456789abcdef\"\n");
    let mut browser = Browser::start();
    browser.open(&mock.page(""));
    shows(&mut browser, "The token of [admin]");
    browser.evaluate(
        "document.getElementById('token').value = '0123456789abcdef'; \
         document.querySelector('form button').click()",
    );
    shows(&mut browser, "No requests yet");
}
