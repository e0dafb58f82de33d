//! A real pebble, an authority for tests, on free ports and with a certificate of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_testkit::{Authority, MaterialFiles, NameServer, eventually, free_ports};
use plimsoll_wire::tls::Trust;
use serde_json::json;
use url::Url;

/// What an authority of a test does besides issuing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PebbleOptions {
    /// How long its certificates hold, in seconds.
    pub(crate) validity: Option<u64>,
    /// It knows the account `kid-1` and refuses others.
    pub(crate) wants_external_account: bool,
}

/// The key of `kid-1`.
pub(crate) const EXTERNAL_KEY: &str =
    "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// An authority that somebody else may start.
#[derive(Debug)]
pub(crate) struct Pebble {
    files: MaterialFiles,
    names: NameServer,
    port: u16,
    management: u16,
    /// Where it asks in the clear, and by TLS.
    pub(crate) http: u16,
    pub(crate) tls: u16,
}

/// One that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

impl Pebble {
    pub(crate) fn configure(options: PebbleOptions) -> Self {
        let [port, management, http, tls] = free_ports().unwrap();
        let files = MaterialFiles::new();
        let authority = Authority::new();
        let leaf = authority.issue(&["127.0.0.1"]);
        files.write("ca.pem", &authority.pem());
        let mut configuration = json!({
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": files.write("cert.pem", leaf.pem()),
            "privateKey": files.write("key.pem", leaf.key_pem()),
            "httpPort": http,
            "tlsPort": tls,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": options.wants_external_account,
            "externalAccountMACKeys": { "kid-1": EXTERNAL_KEY },
        });
        if let Some(validity) = options.validity {
            configuration["certificateValidityPeriod"] = validity.into();
        }
        files.write(
            "pebble.json",
            &json!({ "pebble": configuration }).to_string(),
        );
        let local = Ipv4Addr::LOCALHOST;
        let names = NameServer::builder()
            .record("a.test", local, 60)
            .record("b.test", local, 60)
            .record("shop.example.org", local, 60);
        Self {
            files,
            names: names.start(),
            port,
            management,
            http,
            tls,
        }
    }

    pub(crate) fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }

    /// What vouches for its own server.
    pub(crate) fn ca(&self) -> PathBuf {
        self.files.path("ca.pem")
    }

    /// Starts it and waits until it serves.
    pub(crate) fn start(&self) -> Running {
        let log = fs::File::create(self.files.path("log")).unwrap();
        let child = Command::new("pebble")
            .arg("-config")
            .arg(self.files.path("pebble.json"))
            .args(["-dnsserver", &self.names.address().to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("pebble is installed by `cargo xtask test`");
        let running = Running { child };
        for port in [self.port, self.management] {
            eventually(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        }
        running
    }

    /// A file with the root of what it issues, as long as it runs.
    pub(crate) fn root(&self) -> PathBuf {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let limits = FetchLimits {
            timeout: Duration::from_secs(20),
            bytes: 1 << 20,
            redirects: 0,
        };
        let fetcher = Fetcher::believing(Trust::Only(self.ca()), limits).unwrap();
        let url = format!("https://127.0.0.1:{}/roots/0", self.management);
        let url = Url::parse(&url).unwrap();
        let root = runtime.block_on(fetcher.send("GET", &url, Vec::new(), None));
        let root = String::from_utf8(root.unwrap().content).unwrap();
        self.files.write("root.pem", &root)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
