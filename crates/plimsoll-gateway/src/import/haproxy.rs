//! Configurations of HAProxy, translated: frontends with their rules as routes, backends as upstreams, TCP as listeners of layer 4.
//!
//! Source: HAProxy's configuration manual, version 2.6.

mod backends;

mod conditions;

mod listeners;

mod rate_limit;

mod rules;

mod syntax;

mod values;

use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use super::nginx::Directive;
use super::route::Route;
use super::rows::Rows;
use super::rows::maps::Maps;
use super::rows::value_maps::ValueMaps;
use super::servers::Translation;
use super::toml::Keys;
use super::{ImportError, ImportNote, Imported, Notes};

/// Whether a text is a configuration of HAProxy, judged by its sections.
pub fn is_haproxy(text: &str) -> bool {
    syntax::is_one(text)
}

/// Translates a configuration of HAProxy. What has no counterpart is reported, with what HAProxy would have done.
///
/// - `file`: its name, for the report.
pub fn import_haproxy(file: &str, text: &str) -> Result<Imported, ImportError> {
    let sections = syntax::parse(file, text)?;
    let mut notes = Notes::default();
    let model = Model::new(&sections, &mut notes);
    let (mut clients, mut maps) = (Maps::default(), ValueMaps::default());
    let mut head = String::new();
    let mut routes = Vec::new();
    let mut first = None;
    for section in model.sections.iter().filter(|it| it.has_clients()) {
        first.get_or_insert(section.head.line);
        if section.is_tcp {
            listeners::tcp(section, &model, &mut head, &mut notes);
            continue;
        }
        let listens = listeners::http(section, &mut head, &mut notes);
        let mut rules = rules::Rules {
            model: &model,
            maps: &mut maps,
            notes: &mut notes,
        };
        let block = rules.steps(section);
        let mut rows = Rows::of_site(&block, section.head, true, &mut notes);
        rows.in_order();
        for listen in &listens {
            for action in &rows.0 {
                for keys in action.routes(None, listen, &mut clients) {
                    routes.push(Route::new(&keys, &action.directive));
                }
            }
        }
    }
    clients.write(&mut head);
    maps.write(&mut head);
    let with_servers = model.sections.iter().filter(|it| it.has_servers());
    let upstreams = with_servers.filter_map(|it| backends::upstream(it, &mut notes));
    let upstreams: Vec<_> = upstreams.collect();

    if !head.contains("[[listen]]") {
        return Err(nothing_left(file, first.unwrap_or(1), &notes.0));
    }
    let parts = Translation {
        source: "a configuration of HAProxy",
        head,
        at: (Rc::from(file), first.unwrap_or(1)),
        routes,
        upstreams,
    };
    let imported = Imported::from_parts(file, parts, notes);
    if imported.toml.contains("[[listen]]") {
        return Ok(imported);
    }
    // Every listener was left out with what it leads to.
    Err(nothing_left(file, first.unwrap_or(1), &imported.notes))
}

/// The error of a file of which no listener is left, with the note that says why.
fn nothing_left(file: &str, line: usize, notes: &[ImportNote]) -> ImportError {
    let mut reason = "no `frontend` or `listen` has a `bind` that can be listened on".to_owned();
    let is_of_listener = |note: &&ImportNote| {
        let names = ["bind:", "server:"];
        names.iter().any(|name| note.message.starts_with(name))
    };
    let note = notes.iter().find(is_of_listener).or(notes.last());
    if let Some(note) = note {
        write!(reason, ": {}", note.message).ok();
    }
    ImportError {
        file: file.to_owned(),
        line: note.map_or(line, |note| note.line),
        reason,
    }
}

/// A section for traffic, with the lines of its `defaults` before its own.
#[derive(Debug, Clone)]
struct Section<'a> {
    head: &'a Directive,
    lines: Vec<Directive>,
    is_tcp: bool,
}

impl Section<'_> {
    fn name(&self) -> &str {
        self.head.argument(0)
    }

    fn is_frontend(&self) -> bool {
        self.head.name == "frontend"
    }

    fn is_listen(&self) -> bool {
        self.head.name == "listen"
    }

    /// Whether clients reach it.
    fn has_clients(&self) -> bool {
        self.is_frontend() || self.is_listen()
    }

    fn has_servers(&self) -> bool {
        !self.is_frontend() && self.all("server").next().is_some()
    }

    /// Whether it has a server that can be reached.
    fn is_reachable(&self) -> bool {
        backends::upstream(self, &mut Notes::default()).is_some()
    }

    fn last(&self, name: &str) -> Option<&Directive> {
        self.lines.iter().rev().find(|it| it.name == name)
    }

    fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Directive> {
        self.lines.iter().filter(move |it| it.name == name)
    }

    /// `option NAME`, unless `no option NAME` follows.
    fn option(&self, name: &str) -> Option<&Directive> {
        let is_it = |it: &&Directive| match it.name.as_str() {
            "option" => it.argument(0) == name,
            "no" => it.argument(0) == "option" && it.argument(1) == name,
            _ => false,
        };
        let last = self.lines.iter().rev().find(is_it);
        last.filter(|it| it.name == "option")
    }

    /// `timeout NAME`.
    fn timeout(&self, name: &str) -> Option<String> {
        let mut lines = self.lines.iter().rev();
        let line = lines.find(|it| it.name == "timeout" && it.argument(0) == name)?;
        values::time(line.argument(1))
    }
}

/// All sections.
struct Model<'a> {
    sections: Vec<Section<'a>>,
    lists: rules::Lists<'a>,
}

impl<'a> Model<'a> {
    fn new(all: &'a [Directive], notes: &mut Notes) -> Self {
        let mut defaults: &[Directive] = &[];
        let bases = Bases::of_sections(all);
        let mut model = Self {
            sections: Vec::new(),
            lists: rules::Lists::new(),
        };
        for section in all {
            match section.name.as_str() {
                "defaults" => {
                    report(section, notes);
                    defaults = &section.block;
                }
                "frontend" | "backend" | "listen" => {
                    report(section, notes);
                    let named = values::after(section, "from").and_then(|from| {
                        let mut all = all.iter().filter(|it| it.name == "defaults");
                        all.find(|it| it.argument(0) == from)
                    });
                    let defaults = named.map_or(defaults, |it| &it.block);
                    let mut lines = [defaults, &section.block].concat();
                    for line in &mut lines {
                        bases.complete(line);
                    }
                    let mode = lines.iter().rev().find(|it| it.name == "mode");
                    let is_tcp = mode.is_none_or(|it| it.argument(0) == "tcp");
                    model.sections.push(Section {
                        head: section,
                        lines,
                        is_tcp,
                    });
                }
                "userlist" => _ = model.lists.insert(section.argument(0), section),
                "global" => report(section, notes),
                _ => notes.add(
                    section,
                    "left out: there is no counterpart for this section of HAProxy",
                ),
            }
        }
        model
    }

    /// The backend, or `listen`, of that name.
    fn backend(&self, name: &str) -> Option<Section<'a>> {
        let mut all = self.sections.iter();
        let found = all.find(|it| !it.is_frontend() && it.name() == name);
        found.cloned()
    }

    /// Whether servers of a section learn the address of the client: by its own option, or that of a frontend.
    fn forwards_client(&self, section: &Section<'_>) -> bool {
        let all = self.sections.iter().filter(|it| it.has_clients());
        section.option("forwardfor").is_some()
            || all.into_iter().any(|it| it.option("forwardfor").is_some())
    }

    /// Names of users with the hashes of their passwords, as `basic_auth` has them.
    fn users(&self, list: &str, notes: &mut Notes) -> Option<Keys> {
        let list = self.lists.get(list)?;
        let mut users = Keys::default();
        for user in list.all("user") {
            match values::after(user, "password") {
                Some(hash) if hash.starts_with('$') => users.text(user.argument(0), hash),
                _ => notes.add(
                    user,
                    "left out: a plain-text password; hash it, for example with `openssl passwd -6`",
                ),
            }
        }
        Some(users)
    }
}

/// The folders of `global` in which relative files of certificates are.
#[derive(Debug, Default)]
struct Bases<'a> {
    certificates: Option<&'a str>,
    authorities: Option<&'a str>,
}

impl<'a> Bases<'a> {
    fn of_sections(all: &'a [Directive]) -> Self {
        let globals = all.iter().filter(|it| it.name == "global");
        let mut bases = Self::default();
        for line in globals.flat_map(|it| &it.block) {
            match line.name.as_str() {
                "crt-base" => bases.certificates = Some(line.argument(0)),
                "ca-base" => bases.authorities = Some(line.argument(0)),
                _ => {}
            }
        }
        bases
    }

    /// Writes the folders before the relative files of a `bind` or a server.
    fn complete(&self, line: &mut Directive) {
        if !["bind", "server", "default-server"].contains(&line.name.as_str()) {
            return;
        }
        for at in 1..line.arguments.len() {
            let base = match line.arguments[at - 1].as_str() {
                "crt" => self.certificates,
                "ca-file" => self.authorities,
                _ => None,
            };
            let file = &mut line.arguments[at];
            if let Some(base) = base.filter(|_| !file.starts_with(['/', '@'])) {
                *file = Path::new(base).join(&*file).display().to_string();
            }
        }
    }
}

/// Notes a line that nothing is made of, with what HAProxy would have done.
fn left_out(line: &Directive, would: &str, notes: &mut Notes) {
    notes.add(line, format!("left out; HAProxy would have {would}"));
}

/// Lines that the translation reads.
const READ: [&str; 21] = [
    "mode",
    "bind",
    "acl",
    "use_backend",
    "default_backend",
    "server",
    "default-server",
    "balance",
    "cookie",
    "http-request",
    "http-response",
    "http-after-response",
    "http-check",
    "redirect",
    "retries",
    "compression",
    "tcp-request",
    "stick-table",
    "stick",
    "errorfile",
    "maxconn",
];

/// Options that are read, or that say what plimsoll does anyway.
const OPTIONS: [&str; 20] = [
    "httpchk",
    "forwardfor",
    "httplog",
    "tcplog",
    "dontlognull",
    "dontlog-normal",
    "log-health-checks",
    "log-separate-errors",
    "http-server-close",
    "http-keep-alive",
    "httpclose",
    "forceclose",
    "redispatch",
    "abortonclose",
    "tcpka",
    "clitcpka",
    "srvtcpka",
    "tcp-check",
    "prefer-last-server",
    "contstats",
];

/// Lines that change nothing for clients and servers.
const HARMLESS: [&str; 18] = [
    "log-tag",
    "description",
    "user",
    "group",
    "chroot",
    "daemon",
    "pidfile",
    "nbproc",
    "nbthread",
    "cpu-map",
    "node",
    "stats",
    "tune.",
    "ssl-default-",
    "maxconn",
    "ca-base",
    "crt-base",
    "hard-stop-after",
];

/// Reports lines of a section that are not read.
fn report(section: &Directive, notes: &mut Notes) {
    for line in &section.block {
        let name = line.name.as_str();
        match name {
            "option" | "no" => {
                let option = if name == "no" {
                    line.argument(1)
                } else {
                    line.argument(0)
                };
                if name == "option" && !OPTIONS.contains(&option) {
                    left_out(line, &format!("had the option `{option}`"), notes);
                }
            }
            "timeout" => {
                let known = [
                    "connect",
                    "client",
                    "server",
                    "check",
                    "queue",
                    "http-request",
                    "http-keep-alive",
                    "tunnel",
                    "client-fin",
                    "server-fin",
                    "tarpit",
                ];
                if !known.contains(&line.argument(0)) {
                    left_out(line, "had this timeout", notes);
                }
            }
            "stick-table" if rate_limit::counts_rates_only(line) => {}
            "stick-table" | "stick" => left_out(
                line,
                "kept clients in a table: `sticky` and `balance = \"ring_hash\"` keep them at a server, `rate_limit` counts requests",
                notes,
            ),
            "errorfile" => left_out(
                line,
                "sent this file, a whole response, for its status: write its content into a file for `error_pages`",
                notes,
            ),
            "tcp-request" => {
                // They wait for the name that clients of TLS request, which is read anyway.
                let waits = ["inspect-delay", "content"];
                if !waits.contains(&line.argument(0)) {
                    left_out(line, "done this with connections", notes);
                }
            }
            "log-format" | "log-format-sd" | "error-log-format" => left_out(
                line,
                "written its log so: `format` of a `[log]` has places",
                notes,
            ),
            // What it names is noted where it stands.
            "log" if line.argument(0) == "global" => {}
            "stats" if section.name != "global" => {
                let mut same = section.block.iter().filter(|it| it.name == "stats");
                if same.next().is_some_and(|first| first.line == line.line) {
                    left_out(
                        line,
                        "served a page of statistics: `[admin]` has one, and metrics",
                        notes,
                    );
                }
            }
            "log" => left_out(
                line,
                "sent its log there: a `[log]` writes to a file or the standard output",
                notes,
            ),
            _ if READ.contains(&name) => {}
            _ if HARMLESS.iter().any(|it| name.starts_with(it)) => {}
            _ => notes.add(
                line,
                format!("left out: there is no counterpart for `{name}` of HAProxy"),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
