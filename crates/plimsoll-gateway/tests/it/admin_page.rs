//! The page of the admin port.

use std::io::{Read as _, Write as _};

use plimsoll_testkit::eventually;
use plimsoll_testkit::http::{connect, exchange, get, get_with};

use crate::server::{Served, configuration, named};

/// A gateway to these servers, with an admin port that has these keys.
fn gateway(servers: &[&str], admin: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{admin}\n{}",
        configuration(servers, "")
    ))
}

#[test]
fn the_page_shows_servers_and_routes_without_a_script() {
    let (a, b) = (named("a"), named("b"));
    let gateway = gateway(&[&a.url(), &b.url()], "");
    let admin = gateway.addresses[1];
    let redirect = get(admin, "/gateway");
    assert_eq!(redirect.status, 308);
    assert!(redirect.head.contains("location: /gateway/"));
    for _ in 0..4 {
        assert_eq!(get(gateway.address(), "/").status, 200);
    }
    let page = get(admin, "/gateway/");
    assert_eq!(page.status, 200);
    assert!(
        page.head
            .contains("content-security-policy: default-src 'none'")
    );
    for wanted in [
        &*a.url(),
        &*b.url(),
        "2 of 2",
        "<td class=\"name\">/</td>",
        ">all<",
    ] {
        assert!(page.text().contains(wanted), "{wanted}: {}", page.text());
    }
    // Rates and the responses of routes come with the next samples.
    eventually(|| {
        let text = get(admin, "/gateway/").into_text();
        text.contains("data-label=\"2xx, 3xx\">4</td>")
    });
    let put = format!(
        "PUT /upstreams/all?server={}&weight=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        a.url()
    );
    assert_eq!(exchange(admin, put.as_bytes()).status, 204);
    assert!(get(admin, "/gateway/").text().contains("drained"));
    assert_eq!(get(admin, "/gateway/else").status, 404);
}

#[test]
fn events_carry_the_page_again_when_it_changes() {
    let server = named("a");
    let gateway = gateway(&[&server.url()], "");
    let mut stream = connect(gateway.addresses[1]);
    stream
        .write_all(b"GET /gateway/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut seen = String::new();
    let mut until = |wanted: &str| {
        while !seen.contains(wanted) {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "ended before {wanted}: {seen}");
            seen += &String::from_utf8_lossy(&piece[..read]);
        }
    };
    until("content-type: text/event-stream");
    until("data: <dl");
    assert_eq!(get(gateway.address(), "/").status, 200);
    until("data-label=\"2xx, 3xx\">1</td>");
}

#[test]
fn a_token_guards_the_page_and_browsers_give_it_as_a_password() {
    let server = named("a");
    let gateway = gateway(&[&server.url()], "token = \"0123456789abcdef\"");
    let admin = gateway.addresses[1];
    let by_program = get(admin, "/gateway/");
    assert_eq!(by_program.status, 401);
    assert!(by_program.head.contains("www-authenticate: Bearer"));
    let by_browser = get_with(admin, "/gateway/", "Accept: text/html,*/*;q=0.8\r\n");
    assert_eq!(by_browser.status, 401);
    assert!(by_browser.head.contains("www-authenticate: Basic realm="));
    for accepted in ["application/json, text/html;q=0.1", "text/event-stream"] {
        let by_page = get_with(admin, "/config/changes", &format!("Accept: {accepted}\r\n"));
        assert_eq!(by_page.status, 401);
        assert!(by_page.head.contains("www-authenticate: Basic realm="));
    }
    // `me` with the token, and with another password.
    let basic = "Authorization: Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    assert_eq!(get_with(admin, "/gateway/", basic).status, 200);
    assert_eq!(
        get_with(admin, "/gateway/", "Authorization: Basic bWU6d3Jvbmc=\r\n").status,
        401
    );
    let bearer = "Authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(get_with(admin, "/gateway/", bearer).status, 200);
    // A page elsewhere can make a browser send the password, but not hide where the request comes from.
    for foreign in [
        "Origin: http://evil.test\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        let fields = format!("{basic}{foreign}");
        assert_eq!(
            get_with(admin, "/upstreams", &fields).status,
            401,
            "{foreign}"
        );
    }
}

#[test]
fn the_configuration_is_shown_without_its_secrets() {
    let token = "0123456789abcdef-secret";
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"http://127.0.0.1:9\", headers = {{ authorization = \"{token}\" }} }}\n\
         [admin]\naddress = \"127.0.0.1:0\"\ntoken = \"{token}\"\n"
    ));
    let admin = gateway.addresses[1];
    assert_eq!(get(admin, "/config").status, 401);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let shown = get_with(admin, "/config", &bearer);
    assert_eq!(shown.status, 200);
    let text = shown.text();
    assert!(
        !text.contains(token) && text.contains("http://127.0.0.1:9"),
        "{text}"
    );
    let table: toml::Table = text.parse().unwrap();
    assert!(table.contains_key("route"));
}

#[test]
fn responses_are_timed_by_route_over_all_attempts() {
    let fine = named("fine");
    let refused = format!("http://{}", plimsoll_testkit::refused_address());
    let text = |more: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"site\"\nproxy = \"all\"\n\
             [upstream.all]\nservers = [\"{}\", \"{refused}\"]\n{more}\
             [admin]\naddress = \"127.0.0.1:0\"\n",
            fine.url()
        )
    };
    let mut gateway = Served::new(&text(""));
    for _ in 0..6 {
        assert_eq!(get(gateway.address(), "/").status, 200);
    }
    let count = |gateway: &Served| {
        let metrics = get(gateway.addresses[1], "/metrics").into_text();
        let name = "plimsoll_gateway_route_seconds_count{route=\"site\"} ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let count: u64 = line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
        let all =
            format!("plimsoll_gateway_route_seconds_bucket{{route=\"site\",le=\"+Inf\"}} {count}");
        assert!(metrics.contains(&all), "{metrics}");
        count
    };
    assert_eq!(count(&gateway), 6);
    // The counts of a configuration that was replaced are not lost.
    gateway.reload(&text("keep = 3\n"));
    assert_eq!(get(gateway.address(), "/").status, 200);
    assert_eq!(count(&gateway), 7);
}
