//! Applications of Debian's packages: the same requests to them through nginx, and through `plimsoll up` with the
//! configuration that `plimsoll gateway import` makes of nginx's file.
//!
//! Both have one host name and port 80, at two addresses of this machine, so that an application says the same to both. A
//! case is a request. It fails where the status, a field or the content differs, apart from what is another one each time.

pub(super) mod django;
pub(super) mod wordpress;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use regex::Regex;

use super::exchange::{Answer, Origin, by_curl};
use super::{Bench, Results};
use crate::packages;
use crate::server::Server;
use crate::{Failure, Outcome};

/// The addresses that the two listen at.
const THEIRS: Ipv4Addr = Ipv4Addr::new(127, 0, 80, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(127, 0, 80, 2);

/// Fields of the connection, of the server itself, and of files that each server names in its own way.
const LEFT_OUT: [&str; 11] = [
    "accept-ranges",
    "connection",
    "content-length",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "via",
];

/// An application behind both.
struct Site {
    host: &'static str,
    /// The cookies of the client of each, as curl keeps them; with one for both, those of the answers of plimsoll are taken.
    jars: [PathBuf; 2],
    /// Expressions for what is another one each time, which `…` stands for.
    random: Vec<Regex>,
    _servers: [Server; 2],
}

impl Site {
    /// Starts both.
    ///
    /// - `is_one_client`: the session that plimsoll got is that of nginx too.
    /// - `adapt`: nginx's configuration for an address.
    fn start(
        bench: &Bench<'_>,
        (host, is_one_client): (&'static str, bool),
        random: &[&str],
        adapt: impl Fn(Ipv4Addr) -> String,
    ) -> Result<Self, Failure> {
        let folder = &bench.scratch;
        for address in [THEIRS, OURS] {
            if TcpStream::connect((address, 80)).is_ok() {
                return Err(format!("another server listens on port 80 of {address}").into());
            }
        }
        let files = [folder.join("theirs.conf"), folder.join("ours.conf")];
        write(&files[0], &adapt(THEIRS))?;
        write(&files[1], &adapt(OURS))?;
        let nginx = packages::find("nginx", &[]).ok_or("nginx is not installed")?;
        let mut nginx = Command::new(nginx);
        nginx.arg("-p").arg(folder).arg("-c").arg(&files[0]);
        let nginx = Server::start(nginx.args(["-g", "daemon off;"]))?;
        let imported = folder.join("plimsoll.toml");
        let mut import = Command::new(&bench.plimsoll);
        import.args(["gateway", "import"]).arg(&files[1]);
        crate::step::run(folder, import.arg("-o").arg(&imported))?;
        let mut up = Command::new(&bench.plimsoll);
        up.arg("up").arg(&imported).stdout(Stdio::null());
        let plimsoll = Server::start(&mut up)?;
        wait_until("a server on port 80", || {
            [THEIRS, OURS]
                .iter()
                .all(|it| TcpStream::connect((*it, 80)).is_ok())
        })?;
        let random = random.iter().map(|it| Regex::new(it));
        Ok(Self {
            host,
            jars: [
                "cookies",
                if is_one_client {
                    "cookies"
                } else {
                    "theirs.cookies"
                },
            ]
            .map(|it| folder.join(it)),
            random: random
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?,
            _servers: [nginx, plimsoll],
        })
    }

    /// One request to plimsoll alone, whose cookies are kept.
    fn ours(&self, request: &str) -> Result<Answer, Failure> {
        self.send(OURS, request)
    }

    /// One request to each, to plimsoll first, of which the answer to each is kept apart.
    fn each(&self, request: &str) -> Result<[Answer; 2], Failure> {
        let found = self.ours(request)?;
        Ok([self.send(THEIRS, request)?, found])
    }

    /// The same request to both.
    fn compare(&self, request: &str, results: &mut Results) -> Outcome {
        let [expected, found] = self.each(request)?;
        results.add_result(
            request.lines().next().unwrap_or_default(),
            self.differences(&expected, &found),
        );
        Ok(())
    }

    /// - `{cookie:NAME}` of the request is the value of a cookie, and `{side}` another text for each server.
    fn send(&self, address: Ipv4Addr, request: &str) -> Result<Answer, Failure> {
        let [our_jar, their_jar] = &self.jars;
        let (side, jar) = if address == OURS {
            ("ours", our_jar)
        } else {
            ("theirs", their_jar)
        };
        let mut request = request.replace("{side}", side);
        for line in fs::read_to_string(jar).unwrap_or_default().lines() {
            if let [.., name, value] = line.split('\t').collect::<Vec<_>>().as_slice() {
                request = request.replace(&format!("{{cookie:{name}}}"), value);
            }
        }
        let origin = Origin {
            scheme: "http",
            host: self.host,
            address,
            port: 80,
        };
        let jar = jar.display().to_string();
        // The session of the other is not changed.
        let is_kept = address == OURS || our_jar != their_jar;
        let more = ["-b", &jar, "-c", &jar];
        by_curl(&origin, &request, &more[..if is_kept { 4 } else { 2 }])
    }

    fn differences(&self, expected: &Answer, found: &Answer) -> Result<(), String> {
        let (theirs, ours) = (self.shown(expected), self.shown(found));
        let names: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
        let mut differences = Vec::new();
        for name in names {
            let (theirs, ours) = (theirs.get(name), ours.get(name));
            // Files have it where a configuration says nothing.
            let is_usual = name == "cache-control"
                && theirs.is_none()
                && ours.is_some_and(|it| it == "no-cache");
            if theirs != ours && !is_usual {
                let [theirs, ours] = [theirs, ours].map(|it| it.map_or("none", String::as_str));
                let from = common(theirs, ours);
                let [theirs, ours] =
                    [theirs, ours].map(|it| it.chars().skip(from).take(120).collect::<String>());
                differences.push(format!("{name}: nginx {theirs:?}, plimsoll {ours:?}"));
            }
        }
        match differences.as_slice() {
            [] => Ok(()),
            some => Err(some.join("; ")),
        }
    }

    /// What has to be the same, by name.
    fn shown(&self, answer: &Answer) -> BTreeMap<String, String> {
        let mut shown = BTreeMap::from([("status".to_owned(), answer.status.to_string())]);
        let mut fields: Vec<_> = answer
            .fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
            .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
            .collect();
        // The order of fields of one name counts for cookies, and for nothing else that is compared.
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        let text = answer.text();
        // Pages of errors and redirects are each server's own, and so is the type of a file.
        let is_own = text.contains("<center>nginx/")
            || answer.status >= 400
                && answer.field("content-type") == Some("text/plain; charset=utf-8")
            || text.starts_with("<!doctype html>\n<title>Redirect</title>");
        // Clients are sent to folders by 308, which keeps the method.
        if is_own && answer.status == 308 {
            shown.insert("status".to_owned(), "301".to_owned());
        }
        let is_file = answer.field("last-modified").is_some();
        for (name, value) in fields {
            if name == "content-type" && (is_own || is_file) || name == "cache-control" && is_own {
                continue;
            }
            // nginx makes the targets of its redirects URLs.
            let own = format!("http://{}", self.host);
            let value = value.strip_prefix(&own).unwrap_or(value);
            let mut value = self.without_random(value);
            if name == "content-type" {
                value = value.replace("; ", ";");
            }
            let all: &mut String = shown.entry(name).or_default();
            all.extend([value.as_str(), "\n"]);
        }
        if let Some(value) = shown.get_mut("cache-control") {
            *value = value.trim_end().to_owned();
        }
        if !is_own {
            shown.insert("content".to_owned(), self.without_random(&text));
        }
        shown
    }

    fn without_random(&self, text: &str) -> String {
        let mut text = text.replace("theirs", "ours");
        for random in &self.random {
            text = random.replace_all(&text, "…").into_owned();
        }
        text
    }
}

/// How many characters two texts begin with that are the same, less a few that show where that is.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs
        .take_while(|(one, other)| one == other)
        .count()
        .saturating_sub(20)
}

/// Debian's nginx.conf with one site in it, and its files in a folder.
fn debian(folder: &str, site: &str) -> String {
    fs::read_to_string("/etc/nginx/nginx.conf")
        .unwrap_or_default()
        .replace("www-data", "root")
        .replace("/run/nginx.pid", &format!("{folder}/nginx.pid"))
        .replace("/var/log/nginx", folder)
        .replace("include /etc/nginx/modules-enabled/*.conf;", "")
        .replace("include /etc/nginx/conf.d/*.conf;", "")
        .replace("include /etc/nginx/sites-enabled/*;", site)
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Waits for half a minute at most.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Outcome {
    for _ in 0..300 {
        if is_so() {
            return Ok(());
        }
        thread::park_timeout(Duration::from_millis(100));
    }
    Err(format!("there is no {what}").into())
}
