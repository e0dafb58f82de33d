//! Servers that come and go, zones, and the kinds of health checks.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use plimsoll_testkit::http::get;
use plimsoll_testkit::{MaterialFiles, NameServer, Origin, Script, eventually, refused_address};

use crate::server::{Served, named};

fn gateway(upstream: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\nproxy = \"all\"\n[upstream.all]\n{upstream}\n"
    ))
}

/// Names and states of the servers.
fn servers(gateway: &Served) -> Vec<(String, String)> {
    let text = get(gateway.addresses[1], "/upstreams").into_text();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let servers = document["upstreams"][0]["servers"].as_array().unwrap();
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    servers
        .iter()
        .map(|it| (text(&it["server"]), text(&it["state"])))
        .collect()
}

/// Responses to so many requests.
fn responses(gateway: &Served, count: usize) -> BTreeSet<String> {
    (0..count)
        .map(|_| get(gateway.address(), "/").into_text())
        .collect()
}

/// An origin that says its address, on a port that others have too.
fn origin_at(address: Ipv4Addr, port: u16) -> Origin {
    let text = address.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let script = Script::serve(answer);
    Origin::builder()
        .address(address)
        .port(port)
        .script(move |_| script.clone())
        .start()
}

#[test]
fn each_address_of_a_name_is_a_server_and_changes_are_followed() {
    let (one, two) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3));
    let first = origin_at(one, 0);
    let port = first.port();
    let _second = origin_at(two, port);
    let name_server = NameServer::builder().start();
    name_server.set("api.test", &[IpAddr::V4(one), IpAddr::V4(two)], 1);
    let gateway = gateway(&format!(
        "servers = \"http://api.test:{port}\"\ndns = true\nresolvers = \"{}\"",
        name_server.address()
    ));
    eventually(|| servers(&gateway).len() == 2);
    let both = BTreeSet::from([one.to_string(), two.to_string()]);
    assert_eq!(responses(&gateway, 8), both);
    let head = first.heads().pop().unwrap();
    assert!(
        head.to_ascii_lowercase().contains("host: localhost"),
        "{head}"
    );
    name_server.set("api.test", &[IpAddr::V4(two)], 1);
    eventually(|| servers(&gateway).len() == 1);
    assert_eq!(responses(&gateway, 8), BTreeSet::from([two.to_string()]));
    assert_eq!(
        servers(&gateway)[0].0,
        format!("http://api.test:{port} ({two})")
    );
    // A name that is gone keeps the addresses that it had.
    let before = name_server.questions().len();
    name_server.set("api.test", &[], 1);
    eventually(|| name_server.questions().len() > before + 2);
    assert_eq!(responses(&gateway, 4), BTreeSet::from([two.to_string()]));
}

#[test]
fn servers_in_a_file_are_followed_and_a_broken_file_changes_nothing() {
    let (one, two) = (named("one"), named("two"));
    let files = MaterialFiles::new();
    let file = files.write("servers.toml", &format!("servers = \"{}\"", one.url()));
    let gateway = gateway(&format!("file = \"{}\"", file.display()));
    assert_eq!(responses(&gateway, 4), BTreeSet::from(["one".to_owned()]));
    fs::write(
        &file,
        format!("servers = [\"{}\", \"{}\"]", one.url(), two.url()),
    )
    .unwrap();
    eventually(|| servers(&gateway).len() == 2);
    assert_eq!(responses(&gateway, 8).len(), 2);
    fs::write(&file, "servers = [\"ftp://x\"").unwrap();
    assert_eq!(responses(&gateway, 8).len(), 2);
    fs::write(&file, format!("servers = \"{}\"", two.url())).unwrap();
    eventually(|| servers(&gateway).len() == 1);
    assert_eq!(responses(&gateway, 4), BTreeSet::from(["two".to_owned()]));
}

#[test]
fn requests_stay_in_the_zone_as_long_as_its_servers_are_there() {
    let (near, far) = (named("near"), named("far"));
    let gateway = gateway(&format!(
        "zone = \"a\"\nservers = [{{ url = \"{}\", zone = \"a\" }}, {{ url = \"{}\", zone = \"b\" }}]\n\
        health = {{ kind = \"tcp\", interval = \"20ms\", unhealthy = 1 }}",
        near.url(),
        far.url()
    ));
    assert_eq!(responses(&gateway, 8), BTreeSet::from(["near".to_owned()]));
    near.end();
    eventually(|| servers(&gateway)[0].1 == "unhealthy");
    assert_eq!(responses(&gateway, 8), BTreeSet::from(["far".to_owned()]));
}

#[test]
fn a_backup_gets_requests_while_no_other_server_is_available() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&it| it.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let (one, two, spare) = (named("one"), named("two"), named("spare"));
    let gateway = gateway(&format!(
        "servers = [\"{}\", \"{}\", {{ url = \"{}\", backup = true }}]\nsticky = \"server\"\npanic_threshold = 50\n\
        health = {{ kind = \"tcp\", interval = \"20ms\", unhealthy = 1 }}",
        one.url(),
        two.url(),
        spare.url()
    ));
    assert_eq!(responses(&gateway, 8), names(&["one", "two"]));
    one.end();
    eventually(|| servers(&gateway)[0].1 == "unhealthy");
    assert_eq!(responses(&gateway, 8), names(&["two"]));
    two.end();
    eventually(|| servers(&gateway)[1].1 == "unhealthy");
    assert_eq!(responses(&gateway, 8), names(&["spare"]));
}

#[test]
fn a_backup_in_the_zone_stands_in_for_servers_of_other_zones() {
    let (far, spare) = (named("far"), named("spare"));
    let gateway = gateway(&format!(
        "zone = \"a\"\nservers = [{{ url = \"{}\", zone = \"b\" }}, {{ url = \"{}\", zone = \"a\", backup = true }}]\n\
        health = {{ kind = \"tcp\", interval = \"20ms\", unhealthy = 1 }}",
        far.url(),
        spare.url()
    ));
    assert_eq!(responses(&gateway, 4), BTreeSet::from(["far".to_owned()]));
    far.end();
    eventually(|| servers(&gateway)[0].1 == "unhealthy");
    assert_eq!(responses(&gateway, 4), BTreeSet::from(["spare".to_owned()]));
}

#[test]
fn a_request_that_all_others_failed_is_sent_to_the_backup() {
    let spare = named("spare");
    let gateway = gateway(&format!(
        "servers = [\"http://{}\", {{ url = \"{}\", backup = true }}]\n",
        refused_address(),
        spare.url()
    ));
    assert_eq!(responses(&gateway, 3), BTreeSet::from(["spare".to_owned()]));
}

#[test]
fn the_health_service_of_grpc_is_asked() {
    let health = |content: &str| {
        Served::routes(&format!(
            "[[route]]\npath = \"/grpc.health.v1.Health/Check\"\n\
            respond = {{ body = \"{content}\", type = \"application/grpc\", headers = {{ grpc-status = \"0\" }} }}\n\
            [[route]]\nrespond = {{ body = \"hello\" }}\n"
        ))
    };
    let serving = health("\\u0000\\u0000\\u0000\\u0000\\u0002\\b\\u0001");
    let not_serving = health("\\u0000\\u0000\\u0000\\u0000\\u0002\\b\\u0002");
    let gateway = gateway(&format!(
        "protocol = \"http2\"\nservers = [\"{}\", \"{}\", \"http://{}\"]\n\
        health = {{ kind = \"grpc\", service = \"shop.Cart\", interval = \"20ms\", unhealthy = 1 }}",
        serving.url(),
        not_serving.url(),
        refused_address()
    ));
    let states = || {
        servers(&gateway)
            .into_iter()
            .map(|it| it.1)
            .collect::<Vec<_>>()
    };
    eventually(|| states() == ["healthy", "unhealthy", "unhealthy"]);
    assert_eq!(responses(&gateway, 6), BTreeSet::from(["hello".to_owned()]));
}
