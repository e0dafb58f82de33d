//! Compose files: the labels of their services, and what Traefik is started with, as a configuration in one form.

use std::rc::Rc;

use plimsoll_formats::yaml::{Content, Node};

use super::super::Notes;
use super::super::nginx::Directive;
use super::environment::filled;

/// Parts of a label that count.
const DEEPEST: usize = 16;

/// Arguments about where configurations come from, and what Traefik writes about itself.
const SILENT: [&str; 5] = ["providers", "log", "global", "configfile", "api"];

/// What a compose file says.
#[derive(Debug, Default)]
pub(super) struct Labelled {
    pub(super) dynamic: Node,
    pub(super) fixed: Node,
}

/// Collects all labels of a compose file.
pub(super) fn labelled(file: &Rc<str>, document: &Node, notes: &mut Notes) -> Labelled {
    let mut all = Labelled::default();
    for (name, container) in document.get("services").entries() {
        let image = container.text_at("image").unwrap_or_default();
        if image.contains("traefik") {
            arguments(container.get("command"), file, &mut all.fixed, notes);
        }
        let labels = [container.get("labels"), container.at("deploy.labels")];
        let labels: Vec<_> = labels.into_iter().flat_map(pairs).collect();
        if labels.is_empty() {
            continue;
        }
        if let Some(own) = of_container(file, name, container, &labels, notes) {
            join(&mut all.dynamic, &own, file, notes);
        }
    }
    all
}

/// Labels as keys and values with their lines.
fn pairs(labels: &Node) -> Vec<(String, String, usize)> {
    let of_item = |item: &Node| {
        let text = item.text()?;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Some((key.trim().to_owned(), value.trim().to_owned(), item.line))
    };
    let of_entry = |(key, value): &(String, Node)| {
        let text = value.text().unwrap_or_default();
        (key.clone(), text.to_owned(), value.line)
    };
    match &labels.content {
        Content::List(items) => items.iter().filter_map(of_item).collect(),
        Content::Map(entries) => entries.iter().map(of_entry).collect(),
        _ => Vec::new(),
    }
}

/// The configuration of one container; `None` if Traefik does not serve it.
fn of_container(
    file: &Rc<str>,
    name: &str,
    container: &Node,
    labels: &[(String, String, usize)],
    notes: &mut Notes,
) -> Option<Node> {
    let mut own = Node::default();
    let mut is_known = false;
    let mut first = None;
    for (key, value, line) in labels {
        let is_ours = |it: &str| {
            it.get(..8)
                .is_some_and(|it| it.eq_ignore_ascii_case("traefik."))
        };
        if !is_ours(key) {
            continue;
        }
        first.get_or_insert(*line);
        let place = Directive::place(file, *line, key);
        let interpolated = |text: &str, notes: &mut Notes| {
            let (filled, unknown) = filled(text);
            for name in unknown {
                let stand_in = super::environment::stand_in(&name);
                let message = format!(
                    "`{stand_in}` stands for `${{{name}}}`, whose value is not in the file"
                );
                notes.add(&place, message);
            }
            filled
        };
        let (key, value) = (interpolated(key, notes), interpolated(value, notes));
        // No label has so many parts.
        let path: Vec<&str> = key.split('.').skip(1).take(DEEPEST).collect();
        let lower = key.to_ascii_lowercase();
        match lower.split('.').nth(1).unwrap_or_default() {
            "enable" if value.eq_ignore_ascii_case("false") => return None,
            // Which network and which instance of Traefik makes no difference.
            "enable" | "docker" | "swarm" | "tags" => {}
            "http" => {
                is_known = true;
                insert(&mut own, &path, &value, *line);
            }
            "tcp" | "udp" => {
                is_known = true;
                if matches!(lower.rsplit('.').next(), Some("rule" | "entrypoints")) {
                    notes.add(&place, "left out: write `tcp` or `udp` of a `[[listen]]`");
                }
            }
            "frontend" | "backend" | "port" | "protocol" | "weight" => {
                notes.add(&place, "left out: it is a label of Traefik 1");
            }
            _ => notes.add(&place, "left out: there is no counterpart"),
        }
    }
    let line = first?;
    let has_http = own.get("http").is_there();
    if is_known && !has_http {
        return None;
    }
    let address = Address {
        name,
        port: port(container),
        is_host: container.text_at("network_mode") == Some("host"),
    };
    let container_line = Directive::place(file, line, &format!("services.{name}"));
    if address.is_host {
        let message = "its server is taken to be at 127.0.0.1, as it has the network of its host";
        notes.add(&container_line, message);
    }
    let services = own.at("http.services").entries().to_vec();
    let mut names = Vec::new();
    for (service, node) in &services {
        if let Some(server) = address.server(node, node.line) {
            let balancer = ["http", "services", service, "loadBalancer", "servers"];
            *entry(&mut own, &balancer, line) = server;
        }
        names.push(service.clone());
    }
    if services.is_empty() {
        let usable = address.server(&Node::default(), line);
        if let Some(server) = usable {
            let balancer = ["http", "services", name, "loadBalancer", "servers"];
            *entry(&mut own, &balancer, line) = server;
        } else {
            let message =
                "the port of its server is not in the file: it is one that the image names";
            notes.add(&container_line, message);
            *entry(
                &mut own,
                &["http", "services", name, "loadBalancer", "servers"],
                line,
            ) = Node::of_line(line, Content::List(Vec::new()));
        }
        names.push(name.to_owned());
    }
    let routers = own.at("http.routers").entries().to_vec();
    if routers.is_empty() && (has_http || address.port.is_some()) {
        default_rule(&mut own, name, name, line);
        let message = format!(
            "it has no router: one for the host `{name}` stands for that of the default rule"
        );
        notes.add(&container_line, message);
    }
    for (router, node) in own.at("http.routers").entries().to_vec() {
        if !node.get("rule").is_there() {
            default_rule(&mut own, &router, name, node.line.max(line));
            let place = Directive::place(file, node.line, &format!("routers.{router}"));
            let message =
                format!("it has no rule: one for the host `{name}` stands for the default one");
            notes.add(&place, message);
        }
        if !node.get("service").is_there() {
            if let [only] = names.as_slice() {
                let path = ["http", "routers", &router, "service"];
                *entry(&mut own, &path, line) = Node::text_of_line(line, only.clone());
            } else {
                let place = Directive::place(file, node.line, &format!("routers.{router}"));
                notes.add(&place, "it names none of the services of its container");
            }
        }
    }
    Some(own)
}

fn default_rule(own: &mut Node, router: &str, name: &str, line: usize) {
    let rule = Node::text_of_line(line, format!("Host(`{name}`)"));
    *entry(own, &["http", "routers", router, "rule"], line) = rule;
}

/// Where a container is reached.
struct Address<'a> {
    name: &'a str,
    port: Option<u16>,
    is_host: bool,
}

impl Address<'_> {
    /// The list `servers` for a service of labels.
    fn server(&self, service: &Node, line: usize) -> Option<Node> {
        let server = service.at("loadBalancer.server");
        let mut one = Node::default();
        let url = if let Some(url) = server.text_at("url") {
            url.to_owned()
        } else {
            let port = server.text_at("port").map(str::to_owned);
            let port = port.or_else(|| self.port.map(|it| it.to_string()))?;
            let scheme = server.text_at("scheme").unwrap_or("http");
            let host = if self.is_host { "127.0.0.1" } else { self.name };
            format!("{scheme}://{host}:{port}")
        };
        *one.entry("url", line) = Node::text_of_line(line, url);
        if let Some(weight) = server.text_at("weight") {
            *one.entry("weight", line) = Node::text_of_line(line, weight.to_owned());
        }
        Some(Node::of_line(line, Content::List(vec![one])))
    }
}

/// The lowest port of a container that the file names.
fn port(container: &Node) -> Option<u16> {
    let of_text = |text: &str| {
        let (text, _) = filled(text);
        let inside = text.rsplit(':').next().unwrap_or_default();
        let inside = inside.split('/').next().unwrap_or_default();
        inside.split('-').next()?.trim().parse::<u16>().ok()
    };
    let exposed = container.get("expose").items().iter();
    let exposed = exposed.filter_map(|it| of_text(it.text()?));
    let published = container.get("ports").items().iter();
    let published = published.filter_map(|it| of_text(it.text().or_else(|| it.text_at("target"))?));
    exposed.chain(published).min()
}

/// Joins the configuration of a container with those before.
fn join(all: &mut Node, own: &Node, file: &Rc<str>, notes: &mut Notes) {
    for kind in ["routers", "services", "middlewares", "serversTransports"] {
        for (name, node) in own.get("http").get(kind).entries() {
            let known = all.get("http").get(kind).get(name).clone();
            if kind == "services" && known.is_there() {
                // Containers of one service are its servers.
                let mut servers = known.at("loadBalancer.servers").items().to_vec();
                servers.extend(node.at("loadBalancer.servers").items().iter().cloned());
                let path = ["http", kind, name, "loadBalancer", "servers"];
                *entry(all, &path, node.line) = Node::of_line(node.line, Content::List(servers));
                continue;
            }
            if known.is_there() {
                if shape(&known) != shape(node) {
                    let place = Directive::place(file, node.line, &format!("{kind}.{name}"));
                    let becomes = match kind {
                        "serversTransports" => "left out",
                        _ => "responds with 501",
                    };
                    let message = format!(
                        "{becomes}: another container has one of this name, and Traefik would use neither"
                    );
                    notes.add(&place, message);
                    contradict(all, kind, name, node.line);
                }
                continue;
            }
            *entry(all, &["http", kind, name], node.line) = node.clone();
        }
    }
}

/// Has routers respond with 501 that are defined in two ways, or whose middleware is.
fn contradict(all: &mut Node, kind: &str, name: &str, line: usize) {
    const TWICE: &str = "defined-twice";
    match kind {
        "routers" => {
            let path = ["http", kind, name, "middlewares"];
            *entry(all, &path, line) = Node::text_of_line(line, TWICE.to_owned());
        }
        "middlewares" => {
            let mut other = Node::default();
            *other.entry(TWICE, line) = Node::text_of_line(line, String::new());
            *entry(all, &["http", kind, name], line) = other;
        }
        _ => {}
    }
}

/// A node without its lines, to compare it.
fn shape(node: &Node) -> String {
    match &node.content {
        Content::Null => String::new(),
        Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
            format!("{:?}", node.text().unwrap_or_default())
        }
        Content::List(items) => {
            let items: Vec<_> = items.iter().map(shape).collect();
            format!("[{}]", items.join(","))
        }
        Content::Map(entries) => {
            let mut entries: Vec<_> = entries
                .iter()
                .map(|(key, node)| format!("{key:?}:{}", shape(node)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
    }
}

fn entry<'n>(node: &'n mut Node, path: &[&str], line: usize) -> &'n mut Node {
    path.iter().fold(node, |node, key| node.entry(key, line))
}

/// Sets the value at a path, whose parts may have the number of an item behind them, such as `domains[0]`.
fn insert(node: &mut Node, path: &[&str], value: &str, line: usize) {
    let Some((first, rest)) = path.split_first() else {
        // `tls=true` beside `tls.certresolver=…` says no more than that.
        if node.entries().is_empty() {
            *node = Node::text_of_line(line, value.to_owned());
        }
        return;
    };
    let number = first
        .strip_suffix(']')
        .and_then(|it| it.split_once('['))
        .and_then(|(name, number)| Some((name, number.parse::<usize>().ok()?)));
    let Some((name, number)) = number else {
        insert(node.entry(first, line), rest, value, line);
        return;
    };
    let list = node.entry(name, line);
    if !matches!(list.content, Content::List(_)) {
        list.content = Content::List(Vec::new());
    }
    if let Content::List(items) = &mut list.content {
        // Numbers follow one another.
        let at = number.min(items.len());
        if at == items.len() {
            items.push(Node::default());
        }
        if let Some(item) = items.get_mut(at) {
            insert(item, rest, value, line);
        }
    }
}

/// Arguments of Traefik such as `--entrypoints.web.address=:80`.
fn arguments(command: &Node, file: &Rc<str>, fixed: &mut Node, notes: &mut Notes) {
    let mut all = Vec::new();
    match &command.content {
        Content::Text(text) => {
            let words = text.split_whitespace();
            all.extend(words.map(|it| (it.trim_matches(['"', '\'']).to_owned(), command.line)));
        }
        Content::List(items) => {
            let texts = items.iter().filter_map(|it| Some((it.text()?, it.line)));
            all.extend(texts.map(|(text, line)| (text.trim().to_owned(), line)));
        }
        _ => {}
    }
    for (argument, line) in all {
        let Some(option) = argument.strip_prefix("--") else {
            continue;
        };
        let (key, value) = option.split_once('=').unwrap_or((option, "true"));
        let lower = key.to_ascii_lowercase();
        let is_read = ["entrypoints.", "certificatesresolvers.", "accesslog."];
        if lower == "accesslog" || is_read.iter().any(|it| lower.starts_with(it)) {
            let (value, unknown) = filled(value);
            for name in unknown {
                let place = Directive::place(file, line, &format!("--{key}"));
                let stand_in = super::environment::stand_in(&name);
                let message = format!(
                    "`{stand_in}` stands for `${{{name}}}`, whose value is not in the file"
                );
                notes.add(&place, message);
            }
            let path: Vec<&str> = key.split('.').take(DEEPEST).collect();
            insert(fixed, &path, &value, line);
        } else if !SILENT
            .iter()
            .any(|it| lower == *it || lower.starts_with(&format!("{it}.")))
        {
            let place = Directive::place(file, line, &format!("--{key}"));
            notes.add(&place, "left out");
        }
    }
}
