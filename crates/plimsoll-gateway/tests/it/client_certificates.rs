//! Certificates of clients: places, `X-Forwarded-Client-Cert`, and routes that require one.

use plimsoll_client::fetch::{FetchLimits, Fetched, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector};
use plimsoll_testkit::{Authority, Leaf, MaterialFiles, Origin};
use plimsoll_wire::tls::{IdentityFiles, TlsSettings, Trust};
use ring::digest::{SHA256, digest};
use url::Url;

use crate::client::run_local;
use crate::server::{Served, compiled};

/// An authority for clients, and certificates of two of them.
struct Clients {
    files: MaterialFiles,
    ann: Leaf,
    bob: Leaf,
}

impl Clients {
    fn new() -> Self {
        let (files, authority) = (MaterialFiles::new(), Authority::new());
        files.write("ca.pem", &authority.pem());
        let uris = ["spiffe://a.test/shop", "spiffe://a.test/x,y"];
        Self {
            files,
            ann: authority.issue_for_client_with("ann.test", &uris),
            bob: authority.issue_for_client("bob.test"),
        }
    }

    /// A listener that clients may show certificates to.
    fn listener(&self) -> String {
        let ca = self.files.path("ca.pem");
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nclient_certificates = {{ ca = \"{}\", required = false }}\n",
            ca.display()
        )
    }

    /// The response to a client with this certificate, if any.
    fn get(
        &self,
        served: &Served,
        path: &str,
        leaf: Option<&Leaf>,
        fields: &[(&str, &str)],
    ) -> Fetched {
        let identity = leaf.map(|leaf| IdentityFiles {
            certificate: self.files.write("client.pem", leaf.pem()),
            key: Some(self.files.write("client.key", leaf.key_pem())),
        });
        let settings = TlsSettings {
            trust: Trust::Anyone,
            identity,
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let plan = ConnectPlan::new(ConnectOptions {
            tls: Some(settings.compile().unwrap()),
            ..ConnectOptions::default()
        });
        let limits = FetchLimits {
            timeout: std::time::Duration::from_secs(20),
            bytes: 1 << 20,
            redirects: 0,
        };
        let url = Url::parse(&format!("https://{}{path}", served.address())).unwrap();
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        run_local(async {
            let fetcher = Fetcher::over(Connector::new(plan.unwrap().into()), limits);
            fetcher
                .send("GET", &url, fields.collect(), None)
                .await
                .unwrap()
        })
    }
}

fn hexadecimal(leaf: &Leaf) -> String {
    let digest = digest(&SHA256, &leaf.der());
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().concat()
}

fn values<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    values.map(|(_, value)| value).collect()
}

#[test]
fn the_certificate_is_passed_on_as_envoy_does_and_clients_cannot_send_one() {
    let (clients, origin) = (Clients::new(), Origin::hello());
    let served = Served::new(&format!(
        "{}[[route]]\nproxy = {{ to = \"{}\", headers = {{ x-forwarded-client-cert = \"{{tls.client.xfcc}}\", x-san = \"{{tls.client.san}}\", x-sha = \"{{tls.client.sha256}}\" }} }}\n\
         [[route]]\nprefix = \"/all\"\nproxy = {{ to = \"{}\", trust = \"127.0.0.0/8\", headers = {{ x-forwarded-client-cert = \"{{tls.client.xfcc:cert,chain,dns}}\" }} }}\n",
        clients.listener(),
        origin.url(""),
        origin.url(""),
    ));
    let forged = [
        ("x-forwarded-client-cert", "Hash=forged"),
        ("x-san", "DNS:forged"),
        ("x_forwarded_client_cert", "forged"),
    ];
    assert_eq!(
        clients
            .get(&served, "/", Some(&clients.ann), &forged)
            .status,
        200
    );
    let head = origin.heads().pop().unwrap();
    let hash = hexadecimal(&clients.ann);
    let expected = format!(
        "Hash={hash};Subject=\"CN=ann.test\";DNS=ann.test;URI=spiffe://a.test/shop;URI=\"spiffe://a.test/x,y\""
    );
    assert_eq!(
        values(&head, "x-forwarded-client-cert"),
        [expected.as_str()]
    );
    let names = "DNS:ann.test,URI:spiffe://a.test/shop,URI:spiffe://a.test/x%2Cy";
    assert_eq!(values(&head, "x-san"), [names]);
    assert_eq!(values(&head, "x-sha"), [hash.as_str()]);
    assert!(!head.contains("forged"), "{head}");
    // Also where no certificate is shown, and from a trusted proxy.
    for path in ["/", "/all"] {
        assert_eq!(clients.get(&served, path, None, &forged).status, 200);
        let head = origin.heads().pop().unwrap();
        assert!(
            values(&head, "x-forwarded-client-cert").is_empty(),
            "{head}"
        );
        assert!(!head.contains("x_forwarded"), "{head}");
    }
    clients.get(&served, "/all", Some(&clients.ann), &[]);
    let head = origin.heads().pop().unwrap();
    let all = values(&head, "x-forwarded-client-cert")[0].to_owned();
    assert!(
        all.starts_with("Cert=\"-----BEGIN%20CERTIFICATE-----%0A"),
        "{all}"
    );
    assert!(
        all.contains("%0A\";Chain=\"-----BEGIN%20CERTIFICATE-----%0A"),
        "{all}"
    );
    assert!(all.ends_with("%0A\";DNS=ann.test"), "{all}");
}

#[test]
fn a_route_can_require_a_certificate_or_one_of_some() {
    let clients = Clients::new();
    let route = |path: &str, rule: &str| {
        format!(
            "[[route]]\npath = \"{path}\"\nclient_certificate = {rule}\nrespond = {{ template = \"{{tls.client.subject}}\" }}\n"
        )
    };
    let hash = hexadecimal(&clients.bob).to_uppercase();
    let text = format!(
        "{}[[route]]\npath = \"/open\"\nrespond = {{}}\n{}{}{}{}{}",
        clients.listener(),
        route("/any", "true"),
        route("/subject", "{ subject = [\"CN=ann.test\"], status = 496 }"),
        route("/san", "{ san = \"URI:spiffe://a.test/s*\" }"),
        route("/hash", &format!("{{ sha256 = [\"{hash}\"] }}")),
        route(
            "/both",
            "{ subject = \"CN=bob.test\", san = \"DNS:ann.test\" }"
        ),
    );
    let document = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let schema = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let served = Served::new(&text);
    let (ann, bob) = (Some(&clients.ann), Some(&clients.bob));
    for (path, of_ann, of_bob, of_none) in [
        ("/open", 200, 200, 200),
        ("/any", 200, 200, 403),
        ("/subject", 200, 496, 496),
        ("/san", 200, 403, 403),
        ("/hash", 403, 200, 403),
        ("/both", 403, 403, 403),
    ] {
        for (leaf, expected) in [(ann, of_ann), (bob, of_bob), (None, of_none)] {
            let response = clients.get(&served, path, leaf, &[]);
            assert_eq!(response.status, expected, "{path}");
        }
    }
    assert_eq!(
        clients.get(&served, "/any", bob, &[]).content,
        b"CN=bob.test"
    );
}

#[test]
fn a_required_certificate_that_nobody_can_show_is_a_mistake() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nclient_certificate = { subject = \"ann\", san = [\"a.test\"], sha256 = \"ab\", status = 200 }\nrespond = {}\n\
                [[route]]\nrespond = { template = \"{tls.client.xfcc:by}\" }\n";
    let problems = compiled(text).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    for expected in [
        "`client_certificate` keeps everybody out, since no listener asks clients for certificates",
        "route[1].client_certificate.subject: `ann` is not a name such as CN=ann,O=Example",
        "route[1].client_certificate.san: `a.test` does not begin with DNS:, URI:, IP: or email:",
        "route[1].client_certificate.sha256: `ab` is not a SHA-256 in hexadecimal digits",
        "route[1].client_certificate.status: must be a whole number from 400 to 599",
        "route[2].respond.template: `{tls.client.xfcc:by}` is no place",
    ] {
        let is_there = problems.iter().any(|it| it.contains(expected));
        assert!(is_there, "{expected}: {problems:#?}");
    }
}
