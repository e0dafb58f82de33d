//! Modules of `blackbox_exporter`: a file such as `blackbox.yml`, whose modules are probes of `/probe`.
//!
//! A module becomes a definition of ours without its target, so that it is compiled, bounded and judged as every monitor is.
//! What cannot be carried over faithfully is a problem of the file: a module never passes where the original fails.
//!
//! Source: `CONFIGURATION.md` of `blackbox_exporter` 0.28.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use plimsoll_formats::yaml::{Content, Node};
use plimsoll_model::document::ConfigProblem;
use regex::Regex;
use toml::{Table, Value};

use crate::config::Warning;
use crate::yaml;
use crate::yaml::block::Block;
use crate::yaml::findings::Findings;

/// Modules by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Modules(BTreeMap<String, Module>);

/// A module: a definition of a monitor without its target.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// The kind, such as `http`.
    kind: &'static str,
    /// The key of the target within the kind's table.
    target: &'static str,
    /// Before a target without a scheme.
    scheme: &'static str,
    /// The kind's table.
    settings: Table,
    /// Further keys of the definition.
    rest: Table,
}

impl Modules {
    /// The module of a name.
    pub fn get(&self, name: &str) -> Option<&Module> {
        self.0.get(name)
    }

    /// The names of all modules.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Reads a file; fails with all its problems.
    ///
    /// - `directory`: that paths in it are relative to.
    pub(crate) fn load(
        path: &Path,
        directory: &Path,
    ) -> Result<(Self, Vec<Warning>), Vec<ConfigProblem>> {
        let text = fs::read_to_string(path).map_err(|error| {
            vec![ConfigProblem {
                line: 1,
                column: 1,
                key: String::new(),
                message: format!("cannot be read: {error}"),
                hint: None,
            }]
        })?;
        Self::parse(&text, directory)
    }

    fn parse(text: &str, directory: &Path) -> Result<(Self, Vec<Warning>), Vec<ConfigProblem>> {
        let node = yaml::parse(text).map_err(|problem| vec![problem])?;
        let findings = Rc::<RefCell<Findings>>::default();
        let mut modules = Self::default();
        if let Some(root) = Block::from_node(&node, "", &findings) {
            let found = root.block("modules");
            if found.is_none() {
                root.wrong("modules", "is missing", Some("write the modules below it"));
            }
            for (name, block) in found.iter().flat_map(named) {
                if let Some(module) = Module::compile(&block, directory) {
                    modules.0.insert(name, module);
                }
            }
            root.refuse_unknown();
        }
        let (problems, warnings) = findings.take().into_report(&[]);
        if problems.is_empty() {
            Ok((modules, warnings))
        } else {
            Err(problems)
        }
    }
}

/// The maps of a map with their names.
fn named(block: &Block) -> Vec<(String, Block)> {
    let names = block.entries().iter().map(|(name, _)| name.clone());
    let children = block.children().into_iter();
    names
        .zip(children)
        .filter_map(|(name, child)| Some((name, child?)))
        .collect()
}

impl Module {
    fn new(kind: &'static str, target: &'static str) -> Self {
        Self {
            kind,
            target,
            scheme: "",
            settings: Table::new(),
            rest: Table::new(),
        }
    }

    /// The definition for a target.
    pub fn definition(&self, target: &str) -> Table {
        let target = if self.scheme.is_empty() || target.contains("://") {
            target.to_owned()
        } else {
            format!("{}://{target}", self.scheme)
        };
        let mut settings = self.settings.clone();
        settings.insert(self.target.to_owned(), target.into());
        let mut definition = self.rest.clone();
        definition.insert(self.kind.to_owned(), Value::Table(settings));
        definition
    }

    /// Whether its results have the phases of HTTP.
    pub fn is_http(&self) -> bool {
        self.kind == "http"
    }

    fn compile(block: &Block, directory: &Path) -> Option<Self> {
        let prober = block.text("prober");
        let timeout = block.duration("timeout");
        let of = |key| block.block_or_empty(key);
        let mut module = match prober.as_deref() {
            Some("http") => http(&of("http"), directory),
            Some("tcp") => tcp(&of("tcp"), directory),
            Some("dns") => dns(&of("dns")),
            Some("icmp") => icmp(&of("icmp")),
            Some("grpc") => grpc(&of("grpc"), directory),
            Some("websocket") => websocket(&of("websocket"), directory),
            Some(other) => {
                let hint = "write http, tcp, dns, icmp, grpc or websocket";
                block.wrong("prober", &format!("`{other}` is not supported"), Some(hint));
                return None;
            }
            None => {
                block.wrong("prober", "is missing", Some("write one such as http"));
                return None;
            }
        };
        // Blocks of other probers have no effect there either.
        for other in ["http", "tcp", "dns", "icmp", "grpc", "unix", "websocket"] {
            if prober.as_deref() != Some(other) && block.node(other).is_some() {
                block.warn(other, "has no effect with this `prober`");
            }
        }
        block.refuse_unknown();
        if let Some(timeout) = timeout {
            let timeout = format!("{}ms", timeout.as_millis());
            module.rest.insert("timeout".to_owned(), timeout.into());
        }
        Some(module)
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.settings.insert(key.to_owned(), value.into());
    }

    fn expect(&mut self, conditions: Vec<String>) {
        let conditions = conditions.into_iter().map(Value::String).collect();
        self.rest
            .insert("expect".to_owned(), Value::Array(conditions));
    }
}

fn http(block: &Block, directory: &Path) -> Module {
    let mut module = Module::new("http", "url");
    module.scheme = "http";
    if let Some(method) = block.text("method").filter(|method| !method.is_empty()) {
        module.set("method", method);
    }
    if let Some(body) = block.text("body") {
        module.set("body", body);
    }
    let mut fields: Table = Table::new();
    for (name, value) in block.texts("headers") {
        fields.insert(name, value.into());
    }
    if !fields.is_empty() {
        module.set("headers", fields);
    }
    let follows = block.boolean("follow_redirects").unwrap_or(true)
        && !block.boolean("no_follow_redirects").unwrap_or(false);
    module.set("redirects", if follows { 10 } else { 0 });
    credentials(block, directory, &mut module);
    reach(block, directory, &mut module);
    if let Some(proxy) = block.text("proxy_url").filter(|proxy| !proxy.is_empty()) {
        module.set("proxy", proxy);
    }
    if block.boolean("enable_http3").unwrap_or(false) {
        block.wrong("enable_http3", "is not supported", Some("remove it"));
    }
    block.boolean("enable_http2");
    let versions = texts(block, "valid_http_versions");
    let is_11 = |version: &String| version == "HTTP/1.1";
    if !versions.is_empty() && !versions.iter().any(is_11) {
        if versions.iter().any(|version| version.starts_with("HTTP/2")) {
            module.set("http2", true);
        } else {
            let hint = "HTTP/1.1 and HTTP/2.0 are spoken; name one of them";
            block.wrong("valid_http_versions", "cannot be met", Some(hint));
        }
    }
    for key in [
        "compression",
        "body_size_limit",
        "skip_resolve_phase_with_proxy",
    ] {
        if block.node(key).is_some() {
            block.warn(
                key,
                "has no effect: bodies are decoded, and read up to a limit of 1 MiB",
            );
        }
    }
    refuse(
        block,
        &[
            ("body_file", "write the content as `body`"),
            ("oauth2", "write a token as `bearer_token`"),
            ("proxy_from_environment", "write its URL as `proxy_url`"),
            ("no_proxy", "write a module without `proxy_url` for these"),
            (
                "proxy_connect_header",
                "write user and password into `proxy_url`",
            ),
            ("http_headers", "write `headers`"),
            (
                "fail_if_body_json_matches_cel",
                "write a monitor with `body.json(PATH)` in `expect`",
            ),
            (
                "fail_if_body_json_not_matches_cel",
                "write a monitor with `body.json(PATH)` in `expect`",
            ),
        ],
    );
    let conditions = conditions(block);
    module.expect(conditions);
    block.refuse_unknown();
    module
}

/// What a response must be.
fn conditions(block: &Block) -> Vec<String> {
    let mut all = Vec::new();
    let codes: Vec<i64> = block
        .list("valid_status_codes")
        .iter()
        .filter_map(|node| {
            if let Content::Number(text) = &node.content {
                text.parse().ok()
            } else {
                block.wrong_at(node, "valid_status_codes", "must be numbers", None);
                None
            }
        })
        .collect();
    match codes.as_slice() {
        [] => all.extend(["status >= 200".to_owned(), "status <= 299".to_owned()]),
        [one] => all.push(format!("status == {one}")),
        several => {
            let parts = several.iter().map(|code| format!("status == {code}"));
            all.push(format!("any({})", parts.collect::<Vec<_>>().join(", ")));
        }
    }
    if block.boolean("fail_if_ssl").unwrap_or(false) {
        all.push("tls == 0s".to_owned());
    }
    if block.boolean("fail_if_not_ssl").unwrap_or(false) {
        all.push("tls > 0s".to_owned());
    }
    for key in [
        "fail_if_body_matches_regexp",
        "fail_if_body_not_matches_regexp",
    ] {
        let is_negated = key == "fail_if_body_matches_regexp";
        for expression in texts(block, key) {
            if let Some(quoted) = expression_of(block, key, &expression) {
                let matches = format!("body matches {quoted}");
                all.push(if is_negated {
                    format!("not({matches})")
                } else {
                    matches
                });
            }
        }
    }
    for key in ["fail_if_header_matches", "fail_if_header_not_matches"] {
        for rule in block.blocks(key) {
            let (header, expression) = (rule.text("header"), rule.text("regexp"));
            let may_miss = rule.boolean("allow_missing").unwrap_or(false);
            rule.refuse_unknown();
            let (Some(header), Some(expression)) = (header, expression) else {
                rule.wrong("", "needs `header` and `regexp`", None);
                continue;
            };
            let Some(quoted) = expression_of(&rule, "regexp", &expression) else {
                continue;
            };
            let subject = format!("header.{}", header.to_ascii_lowercase());
            let matches = format!("{subject} matches {quoted}");
            if key == "fail_if_header_matches" {
                all.push(format!("not({matches})"));
                if !may_miss {
                    all.push(format!("{subject} exists"));
                }
            } else if may_miss {
                all.push(format!("any(not({subject} exists), {matches})"));
            } else {
                all.push(matches);
            }
        }
    }
    all
}

/// A regular expression of Go within a condition; a problem if it is none here.
fn expression_of(block: &Block, key: &str, expression: &str) -> Option<String> {
    if let Err(error) = Regex::new(expression) {
        let message = format!("`{expression}` is not a regular expression: {error}");
        block.wrong(key, &message, None);
        return None;
    }
    let quote = ['\'', '"']
        .into_iter()
        .find(|quote| !expression.contains(*quote));
    let Some(quote) = quote.filter(|_| !expression.ends_with('\\')) else {
        let hint = "write `.` for one of the quotes";
        block.wrong(key, "has both kinds of quotes", Some(hint));
        return None;
    };
    Some(format!("{quote}{expression}{quote}"))
}

fn credentials(block: &Block, directory: &Path, module: &mut Module) {
    if let Some(basic) = block.block("basic_auth") {
        let user = basic.text("username").unwrap_or_default();
        let password = secret(&basic, "password", "password_file", directory);
        refuse(&basic, &[("username_file", "write the name as `username`")]);
        basic.refuse_unknown();
        module.set("basic", format!("{user}:{}", password.unwrap_or_default()));
    }
    if let Some(token) = secret(block, "bearer_token", "bearer_token_file", directory) {
        module.set("bearer", token);
    }
    if let Some(authorization) = block.block("authorization") {
        let kind = authorization.text("type");
        let token = secret(&authorization, "credentials", "credentials_file", directory);
        authorization.refuse_unknown();
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            let hint = "write the field `Authorization` in `headers`";
            authorization.wrong("type", "is not Bearer", Some(hint));
        }
        module.set("bearer", token.unwrap_or_default());
    }
}

/// A secret, or the content of its file.
fn secret(
    block: &Block,
    key: &'static str,
    file: &'static str,
    directory: &Path,
) -> Option<String> {
    if let Some(text) = block.text(key) {
        return Some(text);
    }
    let path = directory.join(block.text(file)?);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text.trim().to_owned()),
        Err(error) => {
            block.wrong(file, &format!("cannot be read: {error}"), None);
            None
        }
    }
}

/// How a target is reached.
fn reach(block: &Block, directory: &Path, module: &mut Module) {
    let falls_back = block.boolean("ip_protocol_fallback").unwrap_or(true);
    let preferred = block.text("preferred_ip_protocol").unwrap_or_default();
    if !["", "ip4", "ip6"].contains(&preferred.as_str()) {
        let message =
            format!("`{preferred}` is not ip4 or ip6; blackbox_exporter takes it for ip4");
        block.warn("preferred_ip_protocol", message);
    }
    // Otherwise both are tried, the faster first.
    if !falls_back {
        match preferred.as_str() {
            "" => {}
            "ip6" => module.set("family", "ipv6"),
            _ => module.set("family", "ipv4"),
        }
    }
    let Some(tls) = block.block("tls_config") else {
        return;
    };
    let is_insecure = tls.boolean("insecure_skip_verify").unwrap_or(false);
    if is_insecure {
        module.set("insecure", true);
    }
    for (theirs, ours) in [
        ("ca_file", "ca"),
        ("cert_file", "cert"),
        ("key_file", "key"),
    ] {
        // Nothing is verified beside `insecure`.
        if let Some(path) = tls.text(theirs).filter(|_| !(is_insecure && ours == "ca")) {
            module.set(ours, directory.join(path).display().to_string());
        }
    }
    if let Some(name) = tls.text("server_name") {
        module.set("server_name", name);
    }
    refuse(
        &tls,
        &[
            ("ca", "write it to a file, and its path as `ca_file`"),
            ("cert", "write it to a file, and its path as `cert_file`"),
            ("key", "write it to a file, and its path as `key_file`"),
            ("min_version", "TLS 1.2 and later are spoken; remove it"),
            ("max_version", "TLS 1.2 and later are spoken; remove it"),
        ],
    );
    tls.refuse_unknown();
}

fn tcp(block: &Block, directory: &Path) -> Module {
    let is_tls = block.boolean("tls").unwrap_or(false);
    let steps: Vec<Table> = block.blocks("query_response").iter().map(step).collect();
    refuse(
        block,
        &[(
            "source_ip_address",
            "check from a machine with that address, by an agent",
        )],
    );
    let mut module = Module::new("tcp", "to");
    if is_tls {
        module.set("tls", true);
    }
    if !steps.is_empty() {
        let steps = steps.into_iter().map(Value::Table).collect();
        module.set("talk", Value::Array(steps));
    }
    reach(block, directory, &mut module);
    block.refuse_unknown();
    module
}

fn step(block: &Block) -> Table {
    let mut step = Table::new();
    if let Some(expression) = block.text("expect") {
        if let Err(error) = Regex::new(&expression) {
            block.wrong(
                "expect",
                &format!("is not a regular expression: {error}"),
                None,
            );
        }
        step.insert("expect".to_owned(), expression.into());
    }
    if let Some(send) = block.text("send") {
        step.insert("send".to_owned(), format!("{send}\n").into());
    }
    if block.boolean("starttls").unwrap_or(false) {
        step.insert("starttls".to_owned(), true.into());
    }
    if block.node("labels").is_some() {
        block.warn(
            "labels",
            "has no effect: there is no metric `probe_expect_info`",
        );
    }
    refuse(
        block,
        &[("expect_bytes", "write a regular expression as `expect`")],
    );
    block.refuse_unknown();
    step
}

fn dns(block: &Block) -> Module {
    let mut module = Module::new("dns", "server");
    match block.text("query_name") {
        Some(name) => module.set("name", name),
        None => block.wrong(
            "query_name",
            "is missing",
            Some("write the name to look up"),
        ),
    }
    match block.text("query_type").as_deref() {
        Some("ANY") | None => {
            let hint = "write one such as A: servers need not answer ANY (RFC 8482)";
            block.wrong(
                "query_type",
                "ANY, the default, is not supported",
                Some(hint),
            );
        }
        Some(kind) => module.set("type", kind),
    }
    let codes = texts(block, "valid_rcodes");
    if codes.iter().any(|code| code != "NOERROR") {
        let hint = "only NOERROR is up here";
        block.wrong("valid_rcodes", "is not supported", Some(hint));
    }
    let only_in = block.text("query_class").is_none_or(|class| class == "IN");
    if !only_in {
        block.wrong(
            "query_class",
            "is not supported",
            Some("remove it: IN is meant"),
        );
    }
    // Whatever a datagram cannot hold is fetched by TCP.
    block.text("transport_protocol");
    if !block.boolean("recursion_desired").unwrap_or(true) {
        block.wrong("recursion_desired", "is not supported", Some("remove it"));
    }
    let hint = "write a monitor with `dns`, whose records are its body, and `expect`";
    refuse(
        block,
        &[
            ("validate_answer_rrs", hint),
            ("validate_authority_rrs", hint),
            ("validate_additional_rrs", hint),
            ("dns_over_tls", "remove it"),
            (
                "source_ip_address",
                "check from a machine with that address, by an agent",
            ),
        ],
    );
    block.text("preferred_ip_protocol");
    block.boolean("ip_protocol_fallback");
    block.refuse_unknown();
    module
}

fn icmp(block: &Block) -> Module {
    let mut module = Module::new("icmp", "to");
    reach(block, Path::new(""), &mut module);
    for key in ["ttl", "payload_size", "dont_fragment"] {
        if block.node(key).is_some() {
            block.warn(key, "has no effect");
        }
    }
    refuse(
        block,
        &[(
            "source_ip_address",
            "check from a machine with that address, by an agent",
        )],
    );
    block.refuse_unknown();
    module
}

fn grpc(block: &Block, directory: &Path) -> Module {
    let mut module = Module::new("grpc", "url");
    let is_tls = block.boolean("tls").unwrap_or(false);
    module.scheme = if is_tls { "grpcs" } else { "grpc" };
    if let Some(service) = block.text("service").filter(|service| !service.is_empty()) {
        module.set("service", service);
    }
    let mut fields = Table::new();
    if let Some(metadata) = block.block("metadata") {
        for (name, node) in metadata.entries() {
            match first_text(node) {
                Some(text) => {
                    fields.insert(name.clone(), text.into());
                }
                None => metadata.wrong(name, "must be a list of one text", None),
            }
        }
    }
    if !fields.is_empty() {
        module.set("headers", fields);
    }
    reach(block, directory, &mut module);
    block.refuse_unknown();
    module
}

fn websocket(block: &Block, directory: &Path) -> Module {
    let mut module = Module::new("websocket", "url");
    module.scheme = "ws";
    reach(block, directory, &mut module);
    refuse(
        block,
        &[
            (
                "query_response",
                "write a monitor with `websocket` and `send`",
            ),
            (
                "http_config",
                "write a monitor with `websocket` and `headers`",
            ),
        ],
    );
    block.refuse_unknown();
    module
}

/// The texts of a list.
fn texts(block: &Block, key: &'static str) -> Vec<String> {
    let all = block.list(key).into_iter();
    let texts = all.filter_map(|node| {
        let text = text_of(&node);
        if text.is_none() {
            block.wrong_at(&node, key, "must be a text", None);
        }
        text
    });
    texts.collect()
}

fn text_of(node: &Node) -> Option<String> {
    match &node.content {
        Content::Text(text) | Content::Number(text) => Some(text.clone()),
        _ => None,
    }
}

fn first_text(node: &Node) -> Option<String> {
    match &node.content {
        Content::List(items) if items.len() == 1 => text_of(&items[0]),
        _ => text_of(node),
    }
}

/// Notes keys that a module may not have here, with what to do.
fn refuse(block: &Block, keys: &[(&'static str, &'static str)]) {
    for (key, hint) in keys {
        let is_off = block
            .node(key)
            .is_none_or(|node| matches!(node.content, Content::Bool(false)));
        if !is_off {
            block.wrong(key, "is not supported", Some(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Table {
        let text = format!(
            "modules:\n  m:\n{}",
            text.replace('\n', "\n    ").trim_end()
        );
        match Modules::parse(&text, Path::new("/etc/blackbox")) {
            Ok((modules, _)) => modules.get("m").unwrap().definition("example.org:99"),
            Err(problems) => panic!("{problems:#?} in {text}"),
        }
    }

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn modules_are_definitions_without_a_target() {
        for (given, expected) in [
            (
                "\nprober: http",
                "expect = [\"status >= 200\", \"status <= 299\"]\n[http]\nurl = \"http://example.org:99\"\nredirects = 10\n",
            ),
            (
                "\nprober: http\ntimeout: 5s\nhttp:\n  method: POST\n  valid_status_codes: [200, 204]\n  follow_redirects: false\n  fail_if_not_ssl: true\n  headers: {X-A: b}\n  body: '{}'\n  basic_auth: {username: u, password: p}\n  fail_if_body_not_matches_regexp: ['it.s up']\n  fail_if_header_matches: [{header: Server, regexp: IIS, allow_missing: true}]\n  tls_config: {insecure_skip_verify: true}",
                "timeout = \"5000ms\"\nexpect = [\"any(status == 200, status == 204)\", \"tls > 0s\", \"body matches 'it.s up'\", \"not(header.server matches 'IIS')\"]\n[http]\nurl = \"http://example.org:99\"\nmethod = \"POST\"\nbody = \"{}\"\nredirects = 0\nbasic = \"u:p\"\ninsecure = true\nheaders = { X-A = \"b\" }\n",
            ),
            (
                "\nprober: tcp\ntcp:\n  tls: true\n  query_response:\n  - expect: '^SSH-2.0-'\n  - send: QUIT",
                "[tcp]\nto = \"example.org:99\"\ntls = true\ntalk = [{ expect = \"^SSH-2.0-\" }, { send = \"QUIT\\n\" }]\n",
            ),
            (
                "\nprober: dns\ndns:\n  query_name: a.example\n  query_type: MX",
                "[dns]\nserver = \"example.org:99\"\nname = \"a.example\"\ntype = \"MX\"\n",
            ),
            (
                "\nprober: icmp\nicmp: {preferred_ip_protocol: ip4, ip_protocol_fallback: false}",
                "[icmp]\nto = \"example.org:99\"\nfamily = \"ipv4\"\n",
            ),
            (
                "\nprober: grpc\ngrpc: {service: s, tls: true, tls_config: {ca_file: ca.pem, server_name: x}}",
                "[grpc]\nurl = \"grpcs://example.org:99\"\nservice = \"s\"\nca = \"/etc/blackbox/ca.pem\"\nserver_name = \"x\"\n",
            ),
        ] {
            assert_eq!(module(given), table(expected), "{given}");
        }
    }

    #[test]
    fn what_is_not_carried_over_is_named_with_its_place_and_a_way_out() {
        let text = "modules:\n  a:\n    prober: http\n    http:\n      oauth2: {}\n      valid_status_code: [200]\n  b:\n    prober: htp\n  c:\n    prober: dns\n    dns: {query_name: x}\nmodule: 1\n";
        let problems = Modules::parse(text, Path::new("")).unwrap_err();
        let found: Vec<_> = problems
            .iter()
            .map(|it| (it.line, it.key.as_str(), it.hint.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                (5, "modules.a.http.oauth2", true),
                (6, "modules.a.http.valid_status_code", true),
                (8, "modules.b.prober", true),
                (11, "modules.c.dns.query_type", true),
                (12, "module", true),
            ]
        );
    }
}
