//! The other programs, with the blocks of their pages.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use plimsoll_testkit::eventually;
use plimsoll_wire::process::{Output, Process, ProcessSpec};
use regex::Regex;

use super::surroundings::{Ports, Surroundings};
use crate::pebble::Pebble;

/// A program that a page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Nginx,
    Traefik,
    Caddy,
    HaProxy,
}

impl Peer {
    /// The name of its page, of the program in tables, of its blocks, and what goes between two files.
    pub(super) const fn page(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Nginx => ("from-nginx", "nginx", "nginx", ""),
            Self::Traefik => ("from-traefik", "Traefik", "yaml", "---\n"),
            Self::Caddy => ("from-caddy", "Caddy", "Caddyfile", ""),
            Self::HaProxy => ("from-haproxy", "HAProxy", "haproxy", ""),
        }
    }

    /// The name of a file that `plimsoll gateway import` reads.
    pub(super) const fn imported(self) -> &'static str {
        match self {
            Self::Nginx => "site.conf",
            Self::Traefik => "traefik.yml",
            Self::Caddy => "Caddyfile",
            Self::HaProxy => "haproxy.cfg",
        }
    }

    /// What the import is given: ports of nginx are replaced here, those of others behind it.
    pub(super) fn for_import(self, text: &str, ports: &Ports) -> String {
        match self {
            Self::Nginx => nginx_ports(text, ports),
            _ => text.to_owned(),
        }
    }

    /// Starts it; `None` for a program that Debian does not have. Fails with what it says if it ends at once.
    ///
    /// - `text`: its configuration, with the servers and paths of the test.
    pub(super) fn start(
        self,
        text: &str,
        ports: &Ports,
        pebble: Option<&Pebble>,
        around: &Surroundings,
    ) -> Result<Option<Process>, String> {
        let folder = around.folder().display().to_string();
        let (name, text, command) = match self {
            Self::Traefik => return Ok(None),
            Self::Nginx => (
                "nginx.conf",
                nginx(&nginx_ports(text, ports), &folder),
                format!("nginx -p {folder} -c {folder}/nginx.conf"),
            ),
            Self::Caddy => (
                "peer.caddy",
                caddy(text, ports, pebble, &folder),
                format!(
                    "env HOME={folder} XDG_DATA_HOME={folder} XDG_CONFIG_HOME={folder} \
                     caddy run --adapter caddyfile --config {folder}/peer.caddy"
                ),
            ),
            Self::HaProxy => (
                "haproxy.cfg",
                ports.replaced(
                    text,
                    r"(?P<before>bind ):(?P<port>80|443|5432)(?P<behind>\b)",
                ),
                format!("haproxy -db -f {folder}/haproxy.cfg"),
            ),
        };
        fs::write(around.folder().join(name), &text).unwrap();
        let mut process = Process::spawn(&ProcessSpec {
            argv: shlex::split(&command).unwrap(),
            stdout: Output::Captured,
            stderr: Output::Captured,
            ..ProcessSpec::default()
        })
        .unwrap_or_else(|error| panic!("{error}: it is installed by `cargo xtask test`"));
        let listened = match self {
            // Also to redirect from there.
            Self::Caddy => vec![ports.port("80").unwrap()],
            _ => ports.all_in(&text),
        };
        let is_open = |port: &u16| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok();
        eventually(|| process.wait(Duration::ZERO).is_some() || listened.iter().all(is_open));
        if process.wait(Duration::ZERO).is_some() {
            return Err(format!("{command}: {}\n{text}", process.stderr_tail()));
        }
        Ok(Some(process))
    }
}

fn nginx_ports(text: &str, ports: &Ports) -> String {
    ports.replaced(
        text,
        r"(?P<before>listen )(?P<port>80|443|5432)(?P<behind>\b)",
    )
}

/// The file that includes those of `conf.d`.
fn nginx(text: &str, folder: &str) -> String {
    let stream = Regex::new(r"(?ms)^stream \{.*?^\}\n").expect("the expression is valid");
    let streams = stream.find(text).map_or("", |it| it.as_str());
    let module = if streams.is_empty() {
        ""
    } else {
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n"
    };
    let servers = stream.replace_all(text, "");
    format!(
        "{module}daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{ }}\n{streams}http {{\n\
         access_log off;\ntypes {{ text/css css; text/html html; }}\ndefault_type application/octet-stream;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\nfastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\n{servers}\n}}\n"
    )
}

/// The file with ports that a user may listen at, certificates of the test, and names of directives that Debian's version has.
fn caddy(text: &str, ports: &Ports, pebble: Option<&Pebble>, folder: &str) -> String {
    let (http, https) = (ports.port("80").unwrap(), ports.port("443").unwrap());
    let certificates = match pebble {
        None => "local_certs\n\tskip_install_trust".to_owned(),
        Some(pebble) => format!(
            "acme_ca {}\n\tacme_ca_root {}",
            pebble.directory(),
            pebble.ca().display()
        ),
    };
    let options = format!(
        "{{\n\tadmin off\n\thttp_port {http}\n\thttps_port {https}\n\tstorage file_system {folder}/caddy\n\t{certificates}\n"
    );
    let text = text.replace("basic_auth", "basicauth");
    let text = text.replace("\n:80 ", &format!("\n:{http} "));
    let text = match text.strip_prefix(":80 ") {
        Some(rest) => format!(":{http} {rest}"),
        None => text,
    };
    match text.strip_prefix("{\n") {
        Some(rest) => format!("{options}{rest}"),
        None => format!("{options}}}\n{text}"),
    }
}
