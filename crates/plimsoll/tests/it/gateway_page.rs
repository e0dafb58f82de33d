//! The admin page of a gateway, as a browser shows it.

use plimsoll_testkit::{MaterialFiles, Origin, eventually};

use crate::browser::{Browser, ask};
use crate::plimsoll::command;
use crate::served::Served;

#[test]
fn the_page_shows_live_figures_and_drains_a_server() {
    let (a, b) = (Origin::hello(), Origin::hello());
    let files = MaterialFiles::new();
    let file = files.write(
        "plimsoll.toml",
        &format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"shop\"\n\
             [upstream.shop]\nservers = [\"{}\", \"{}\"]\n[admin]\naddress = \"127.0.0.1:0\"\n",
            a.url(""),
            b.url("")
        ),
    );
    let (server, [admin]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let address = server
        .url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let mut browser = Browser::start();
    browser.open(&format!("{admin}gateway"));
    eventually(|| browser.text().contains("2 of 2"));
    ask(&address, "GET", "/", "");
    // Without the page being loaded again.
    let counted = "[...document.querySelectorAll('td[data-label=\"2xx, 3xx\"]')].map(it => it.textContent).join()";
    eventually(|| browser.evaluate(counted) == "1,0,1" || browser.evaluate(counted) == "0,1,1");
    browser.evaluate("document.querySelector('button[data-weight=\"0\"]').click()");
    eventually(|| browser.text().contains("drained"));
    eventually(|| browser.text().contains("Restore"));
    let set = "{ const input = document.querySelector('input'); input.value = '7'; input.dispatchEvent(new Event('change', { bubbles: true })); }";
    browser.evaluate(set);
    eventually(|| browser.evaluate("document.querySelector('.plain').textContent") == "7");
    assert_eq!(browser.complaints(), [""; 0]);
}
