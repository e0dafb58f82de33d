//! What lists servers: one contract for all sources, and what each has besides.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use plimsoll_testkit::http::get;
use plimsoll_testkit::{MaterialFiles, NameServer, NamedService, eventually};
use serde_json::Value;

use crate::catalogues::{Catalogue, Kind};
use crate::server::{Served, compiled, named};

/// A source that a test moves.
trait MovedSource {
    /// The keys of the upstream.
    fn upstream(&self) -> String;

    /// Lists these from now on; with none, and with the list that it has, it is still a list.
    fn set(&self, servers: &[SocketAddr]);

    fn set_away(&self, is_away: bool);

    /// Whether it can list nothing.
    fn may_be_empty(&self) -> bool {
        true
    }
}

struct OfCatalogue {
    catalogue: Catalogue,
    kind: Kind,
    _files: MaterialFiles,
}

impl OfCatalogue {
    fn new(kind: Kind) -> Self {
        let files = MaterialFiles::new();
        let socket = files.write("socket", "");
        fs::remove_file(&socket).unwrap();
        Self {
            catalogue: Catalogue::start(kind, socket),
            kind,
            _files: files,
        }
    }
}

impl MovedSource for OfCatalogue {
    fn upstream(&self) -> String {
        let url = self.catalogue.url();
        match self.kind {
            Kind::Kubernetes => {
                format!("kubernetes = {{ service = \"shop/all:http\", api = \"{url}\" }}")
            }
            Kind::Docker => {
                let socket = self.catalogue.socket().display();
                format!("docker = {{ labels = \"plimsoll.upstream=all\", socket = \"{socket}\" }}")
            }
            Kind::Consul => format!("consul = {{ service = \"all\", api = \"{url}\" }}"),
        }
    }

    fn set(&self, servers: &[SocketAddr]) {
        self.catalogue.set(servers);
    }

    fn set_away(&self, is_away: bool) {
        self.catalogue.set_away(is_away);
    }
}

struct OfFile {
    files: MaterialFiles,
    path: PathBuf,
    is_away: std::cell::Cell<bool>,
    last: std::cell::RefCell<String>,
}

impl OfFile {
    fn new() -> Self {
        let files = MaterialFiles::new();
        Self {
            path: files.write("servers.toml", "servers = \"http://127.0.0.1:1\""),
            files,
            is_away: std::cell::Cell::new(false),
            last: std::cell::RefCell::default(),
        }
    }

    fn write(&self) {
        let text = if self.is_away.get() {
            "servers = ["
        } else {
            &*self.last.borrow()
        };
        self.files.write("servers.toml", text);
    }
}

impl MovedSource for OfFile {
    fn upstream(&self) -> String {
        format!("file = \"{}\"", self.path.display())
    }

    fn set(&self, servers: &[SocketAddr]) {
        let servers = servers.iter().map(|it| format!("\"http://{it}\""));
        let servers = servers.collect::<Vec<_>>().join(", ");
        self.last.replace(format!("servers = [{servers}]"));
        self.write();
    }

    fn set_away(&self, is_away: bool) {
        self.is_away.set(is_away);
        self.write();
    }

    fn may_be_empty(&self) -> bool {
        false
    }
}

struct OfServices {
    name_server: NameServer,
    is_away: std::cell::Cell<bool>,
    last: std::cell::RefCell<Vec<SocketAddr>>,
}

const SERVICE: &str = "_http._tcp.all.test";

impl OfServices {
    fn new() -> Self {
        let name_server = NameServer::builder().start();
        name_server.set("one.test", &[Ipv4Addr::LOCALHOST.into()], 60);
        Self {
            name_server,
            is_away: std::cell::Cell::new(false),
            last: std::cell::RefCell::default(),
        }
    }

    fn write(&self) {
        let last = self.last.borrow();
        let services = last.iter().map(|it| NamedService {
            priority: 10,
            weight: 1,
            port: it.port(),
            target: "one.test",
        });
        let mut services: Vec<_> = services.collect();
        if self.is_away.get() {
            services.clear();
        } else if services.is_empty() {
            // Decidedly none (RFC 2782).
            services.push(NamedService {
                priority: 0,
                weight: 0,
                port: 0,
                target: "",
            });
        }
        self.name_server.set_services(SERVICE, &services, 1);
    }
}

impl MovedSource for OfServices {
    fn upstream(&self) -> String {
        let address = self.name_server.address();
        format!("srv = \"{SERVICE}\"\nresolvers = \"{address}\"")
    }

    fn set(&self, servers: &[SocketAddr]) {
        self.last.replace(servers.to_vec());
        self.write();
    }

    fn set_away(&self, is_away: bool) {
        self.is_away.set(is_away);
        self.write();
    }
}

fn gateway(upstream: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\nproxy = \"all\"\n[upstream.all]\n{upstream}\n"
    ))
}

fn upstream(gateway: &Served) -> Value {
    let text = get(gateway.addresses[1], "/upstreams").into_text();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["upstreams"][0].clone()
}

fn servers(gateway: &Served) -> usize {
    upstream(gateway)["servers"].as_array().unwrap().len()
}

/// Responses to so many requests.
fn responses(gateway: &Served, count: usize) -> BTreeSet<String> {
    (0..count)
        .map(|_| get(gateway.address(), "/").into_text())
        .collect()
}

/// Servers appear, vanish, flap, and stay what they were while their source is away.
fn contract(source: &dyn MovedSource) {
    let (one, two) = (named("one"), named("two"));
    let (first, second) = (one.address(), two.address());
    let both = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    source.set(&[first]);
    let gateway = gateway(&source.upstream());
    eventually(|| servers(&gateway) == 1 && upstream(&gateway)["source"]["state"] == "current");
    assert_eq!(responses(&gateway, 2), BTreeSet::from(["one".to_owned()]));
    source.set(&[first, second]);
    eventually(|| servers(&gateway) == 2);
    assert_eq!(responses(&gateway, 8), both);
    source.set(&[second]);
    eventually(|| servers(&gateway) == 1);
    assert_eq!(responses(&gateway, 2), BTreeSet::from(["two".to_owned()]));
    for _ in 0..20 {
        source.set(&[first]);
        source.set(&[second, first]);
    }
    eventually(|| servers(&gateway) == 2);
    source.set_away(true);
    source.set(&[first]);
    eventually(|| upstream(&gateway)["source"]["state"] == "away");
    let away = upstream(&gateway)["source"].clone();
    assert!(
        away["problem"].as_str().is_some_and(|it| !it.is_empty()),
        "{away}"
    );
    eventually(|| {
        upstream(&gateway)["source"]["away_seconds"].as_f64() > away["away_seconds"].as_f64()
    });
    let metrics = get(gateway.addresses[1], "/metrics").into_text();
    let metric = "plimsoll_gateway_source_away_seconds{upstream=\"all\",source=";
    let line = metrics.lines().find(|line| line.starts_with(metric));
    assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{line:?}");
    assert_eq!(responses(&gateway, 8), both);
    source.set_away(false);
    eventually(|| servers(&gateway) == 1);
    let back = upstream(&gateway)["source"].clone();
    assert_eq!(
        (&back["state"], &back["away_seconds"]),
        (&Value::from("current"), &Value::from(0.0))
    );
    assert_eq!(responses(&gateway, 2), BTreeSet::from(["one".to_owned()]));
    // Nothing changes while it is away, nor when it is back.
    source.set_away(true);
    eventually(|| upstream(&gateway)["source"]["state"] == "away");
    source.set_away(false);
    eventually(|| upstream(&gateway)["source"]["state"] == "current");
    assert_eq!(responses(&gateway, 2), BTreeSet::from(["one".to_owned()]));
    if source.may_be_empty() {
        source.set(&[]);
        eventually(|| servers(&gateway) == 0);
        assert_eq!(get(gateway.address(), "/").status, 503);
    }
}

#[test]
fn endpoint_slices_of_kubernetes_keep_the_contract() {
    contract(&OfCatalogue::new(Kind::Kubernetes));
}

#[test]
fn containers_keep_the_contract() {
    contract(&OfCatalogue::new(Kind::Docker));
}

#[test]
fn the_catalogue_of_consul_keeps_the_contract() {
    contract(&OfCatalogue::new(Kind::Consul));
}

#[test]
fn a_file_keeps_the_contract() {
    contract(&OfFile::new());
}

#[test]
fn srv_records_keep_the_contract() {
    contract(&OfServices::new());
}

#[test]
fn a_watch_that_is_too_old_begins_anew() {
    let (one, two) = (named("one"), named("two"));
    let source = OfCatalogue::new(Kind::Kubernetes);
    source.set(&[one.address()]);
    let gateway = gateway(&source.upstream());
    eventually(|| servers(&gateway) == 1);
    let watches = || {
        let requests = source.catalogue.requests();
        requests.iter().filter(|it| it.contains("watch=1")).count()
    };
    eventually(|| watches() == 1);
    // What changed meanwhile is not in the events.
    source.catalogue.set(&[one.address(), two.address()]);
    source.catalogue.compact();
    eventually(|| servers(&gateway) == 2);
    let lists = source.catalogue.requests();
    let lists = lists.iter().filter(|it| !it.contains("watch=1"));
    assert!(lists.count() >= 1);
    assert_eq!(upstream(&gateway)["source"]["name"], "shop/all:http");
}

#[test]
fn what_is_wrong_with_a_source_is_said_where_it_is() {
    let problems = |upstream: &str| {
        let text = format!("[[route]]\nproxy = \"all\"\n[upstream.all]\n{upstream}\n");
        let problems = compiled(&text).err().unwrap_or_default();
        let problems = problems.iter().map(ToString::to_string);
        problems
            .filter(|it| !it.contains("listen"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (upstream, expected) in [
        ("kubernetes = \"api\"", "is not a service"),
        ("kubernetes = { port = 80 }", "service"),
        ("docker = { port = 80 }", "labels"),
        (
            "docker = { labels = \"a\", socket = \"/s\", api = \"http://x\" }",
            "`api` is given too",
        ),
        (
            "consul = { service = \"a\", scheme = \"ftp\" }",
            "is one of \"http\", \"https\", \"tcp\"",
        ),
        (
            "consul = { service = \"a\", api = \"http://u:p@h\" }",
            "has a user",
        ),
        ("srv = \"api.test\"", "is not the name of a service"),
        (
            "srv = \"_a._tcp.test\"\nservers = \"http://a\"",
            "another key says already",
        ),
        (
            "srv = \"_a._tcp.test\"\nconsul = \"a\"",
            "another key says already",
        ),
        ("srv = \"_a._tcp.test\"\ndns = true", "`dns` has no effect"),
    ] {
        let found = problems(upstream);
        assert!(found.contains(expected), "{upstream}: {found}");
    }
}
