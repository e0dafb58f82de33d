//! What the pages presume: servers, files, certificates, an authority. Their addresses and paths are replaced by those of the test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plimsoll_testkit::{Authority, IdentityProvider, free_ports};
use regex::{Captures, Regex};
use serde_json::json;
use tempfile::TempDir;

use super::servers;
use crate::pebble::{Pebble, PebbleOptions};

/// `secret`, as `htpasswd` writes it.
const USERS: &str = "ann:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n";

/// The public half of `RSA_TEST_KEY`.
const ISSUER_KEY: &str = include_str!("issuer.pem");

/// Paths of the pages, and below which folder of the test they are.
const PATHS: [(&str, &str); 11] = [
    ("/srv/www", "www"),
    ("/srv/errors", "errors"),
    ("/etc/ssl/", "ssl/"),
    ("/etc/nginx/", "etc/"),
    ("/etc/traefik/", "etc/"),
    ("/etc/caddy/", "etc/"),
    ("/etc/haproxy/", "etc/"),
    ("/etc/plimsoll/", "etc/"),
    ("/var/log/", "log/"),
    ("/var/cache/", "cache/"),
    ("/var/www/acme", "acme-challenges"),
];

/// Everything around the programs of one page.
pub(super) struct Surroundings {
    folder: TempDir,
    servers: Vec<(String, String)>,
    provider: IdentityProvider,
}

/// The ports of a page, with those of the test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports([(&'static str, u16); 3]);

impl Ports {
    pub(super) fn new(http: u16, https: u16, database: u16) -> Self {
        Self([("80", http), ("443", https), ("5432", database)])
    }

    pub(super) fn free() -> Self {
        let [http, https, database] = free_ports().unwrap();
        Self::new(http, https, database)
    }

    /// Those that an authority makes its enquiries at.
    pub(super) fn for_authority(pebble: &Pebble) -> Self {
        let [database] = free_ports().unwrap();
        Self::new(pebble.http, pebble.tls, database)
    }

    /// - `port`: of the page.
    pub(super) fn port(&self, port: &str) -> Option<u16> {
        let found = self.0.iter().find(|(known, _)| *known == port);
        found.map(|(_, port)| *port)
    }

    /// Replaces the group `port` of an expression, and writes the address of this machine before it.
    pub(super) fn replaced(&self, text: &str, expression: &str) -> String {
        let expression = Regex::new(expression).expect("the expression is valid");
        let replaced = expression.replace_all(text, |found: &Captures<'_>| {
            let port = self.port(&found["port"]).unwrap();
            format!("{}127.0.0.1:{port}{}", &found["before"], &found["behind"])
        });
        replaced.into_owned()
    }

    /// Those that a configuration listens at.
    pub(super) fn all_in(&self, text: &str) -> Vec<u16> {
        let ports = self.0.iter().map(|(_, port)| *port);
        let found = ports.filter(|it| text.contains(&format!(":{it}")));
        let found: Vec<u16> = found.collect();
        assert!(!found.is_empty(), "no port is listened at: {text}");
        found
    }
}

impl Surroundings {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        // Workers of nginx are another user.
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["www/assets", "errors", "ssl", "etc", "acme-challenges"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        let leaf = Authority::new().issue(&["shop.example.org"]);
        let both = format!("{}{}", leaf.pem(), leaf.key_pem());
        let provider = IdentityProvider::new("http://127.0.0.1/");
        let mut keys = serde_json::Value::Null;
        provider.set(|state| {
            "https://id.example.org".clone_into(&mut state.issuer);
            state.algorithm = "RS256";
            keys = state.keys();
        });
        let page = "<h1>we will be back</h1>\n";
        let whole =
            format!("HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n{page}");
        for (name, text) in [
            ("www/index.html", "<h1>the page</h1>\n"),
            ("www/assets/app.css", "body { }\n"),
            ("errors/50x.html", page),
            ("errors/503.http", &whole),
            ("ssl/shop.crt", leaf.pem()),
            ("ssl/shop.key", leaf.key_pem()),
            ("ssl/shop.pem", &both),
            ("etc/users", USERS),
            ("etc/issuer.pem", ISSUER_KEY),
            ("etc/issuer.json", &keys.to_string()),
        ] {
            fs::write(path.join(name), text).unwrap();
        }
        Self {
            folder,
            servers: servers::start(),
            provider,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where access logs are written.
    pub(super) fn log(&self) -> PathBuf {
        self.folder().join("log/access.log")
    }

    /// Takes away what programs before have left: logs, caches, certificates.
    pub(super) fn clear(&self) {
        for name in ["log", "cache", "acme", "caddy"] {
            fs::remove_dir_all(self.folder().join(name)).ok();
        }
        for name in ["log", "cache"] {
            fs::create_dir(self.folder().join(name)).unwrap();
        }
    }

    /// A text of a page with the addresses and paths of this test. Long times are short, and nothing is written to standard output.
    pub(super) fn adapt(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (page, name) in PATHS {
            text = text.replace(page, &format!("{}/{name}", self.folder().display()));
        }
        for (page, ours) in &self.servers {
            text = text.replace(page, ours);
        }
        // A machine has as many addresses as it likes in 127.0.0.0/8.
        let log = format!("file = \"{}\"", self.log().display());
        text = text
            .replace("10.8.", "127.8.")
            .replace("file = \"-\"", &log);
        for (page, ours) in [(r"\b30s\b", "500ms"), (r"\b2s\b", "200ms")] {
            let page = Regex::new(page).expect("the expression is valid");
            text = page.replace_all(&text, ours).into_owned();
        }
        text
    }

    /// A field with tokens in place of their names.
    pub(super) fn with_tokens(&self, text: &str) -> String {
        let token = |more: serde_json::Value| {
            let mut claims = json!({ "aud": "shop", "sub": "ann" });
            for (name, value) in more.as_object().into_iter().flatten() {
                claims[name] = value.clone();
            }
            self.provider.token(&claims)
        };
        if text.contains("EXPIRED") {
            return text.replace("EXPIRED", &token(json!({ "exp": 1_500_000_000 })));
        }
        if text.contains("TOKEN") {
            return text.replace("TOKEN", &token(json!({})));
        }
        text.to_owned()
    }
}

/// Our configuration with the ports of a test. Certificates are ordered of its authority, or else made here.
pub(super) fn ours(text: &str, ports: &Ports, pebble: Option<&Pebble>) -> String {
    let listens =
        r#"(?P<before>address = ")(?:0\.0\.0\.0|\[::\])?:(?P<port>80|443|5432)(?P<behind>")"#;
    let text = ports.replaced(text, listens);
    if let Some(pebble) = pebble {
        let (directory, ca) = (pebble.directory(), pebble.ca());
        let ca = ca.display();
        let acme = format!("acme = {{ directory = \"{directory}\", ca = \"{ca}\", ");
        return text.replace("acme = { ", &acme);
    }
    let acme = Regex::new(r"acme = \{[^}]*\}").expect("the expression is valid");
    let own = "self_signed = [\"shop.example.org\"]";
    acme.replace_all(&text, own).into_owned()
}

/// The authority of a task that orders certificates.
pub(super) fn authority(ours: &str) -> Option<Pebble> {
    ours.contains("acme = {")
        .then(|| Pebble::configure(PebbleOptions::default()))
}
