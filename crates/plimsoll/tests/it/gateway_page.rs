//! The admin page of a gateway, as a browser shows it.

use plimsoll_testkit::{MaterialFiles, Origin, eventually};

use crate::browser::{Browser, Pictures, ask};
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

#[test]
fn servers_and_routes_are_changed_by_forms_that_show_the_difference_first() {
    let (a, b) = (Origin::hello(), Origin::hello());
    let files = MaterialFiles::new();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nproxy = \"shop\"\n\
         [upstream.shop]\nservers = [\"{}\"]\n\
         [admin]\naddress = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef\"\nchanges = \"memory\"\n",
        a.url("")
    );
    let file = files.write("plimsoll.toml", &text);
    let (server, [admin]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let pictures = Pictures::of_environment();
    let mut browser = Browser::start();
    let admin = admin.replace("http://", "http://me:0123456789abcdef@");
    browser.open(&format!("{admin}gateway/"));
    eventually(|| browser.text().contains("Changes end with the process."));
    // A server, reviewed and then added.
    browser.evaluate("document.querySelector('[aria-label=\"add a server to shop\"]').click()");
    let enter = format!(
        "document.querySelector('[name=url]').value = '{}'",
        b.url("")
    );
    browser.evaluate(&enter);
    browser.evaluate("document.getElementById('review').click()");
    eventually(|| browser.text().contains("+ upstream.shop.servers[2]: "));
    pictures.take_picture(&mut browser, "gateway-change");
    assert_eq!(b.requests(), 0);
    browser.evaluate("document.getElementById('apply').click()");
    eventually(|| browser.text().contains("Changes since the file"));
    eventually(|| browser.text().contains("2 of 2"));
    // A route with an error, and then without.
    let open = "[...document.querySelectorAll('button')].find((it) => it.textContent === 'Add route').click()";
    browser.evaluate(open);
    let enter = |text: &str| {
        format!(
            "{{ const text = document.querySelector('textarea'); text.value = '{text}'; text.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        )
    };
    browser.evaluate(&enter("prefix = \"/new\"\\nrespnd = {}"));
    browser.evaluate("document.getElementById('review').click()");
    eventually(|| browser.text().contains("did you mean `respond`?"));
    assert_eq!(
        browser.evaluate("document.getElementById('apply').disabled"),
        true
    );
    browser.evaluate(&enter("prefix = \"/new\"\\nrespond = { body = \"new\" }"));
    browser.evaluate("document.querySelector('[name=place]').value = 'shop'");
    browser.evaluate("document.getElementById('review').click()");
    eventually(|| browser.evaluate("document.getElementById('apply').disabled") == false);
    browser.evaluate("document.getElementById('apply').click()");
    eventually(|| browser.text().contains("{\"prefix\":\"/new\""));
    let address = server
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/');
    assert!(ask(address, "GET", "/new", "").ends_with("new"));
    pictures.take_picture(&mut browser, "gateway");
    let width = browser.evaluate_on_phone("document.documentElement.scrollWidth - innerWidth");
    assert_eq!(width, 0, "nothing is wider than a phone");
    // Removing is reviewed at once.
    browser.evaluate("document.querySelector('[aria-label^=\"remove http\"]').click()");
    eventually(|| browser.evaluate("document.getElementById('apply').disabled") == false);
    browser.evaluate("document.getElementById('apply').click()");
    eventually(|| browser.text().contains("1 of 1"));
    // Browsers report the response to the dry run with an error.
    let complaints = browser.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains("a status of 422"), "{complaints:?}");
}
