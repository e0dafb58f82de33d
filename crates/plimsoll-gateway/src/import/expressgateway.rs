//! The configuration of ExpressGateway (TOML), translated.
//!
//! Every key is translated, or reported with its line; an unknown one is an error, as it is there. Keys with no effect
//! there are reported too, since plimsoll would give them one.

mod listener;

mod passthrough;

mod backend;

mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::{ConfigProblem, Document, Table, Value, toml_string};

use self::backend::{Backend, Protocol};
use self::values::{Convert, NO_COUNTERPART, millis, number, report, report_keys, socket};
use super::toml::Keys;
use super::{ImportNote, Imported};

/// Whether a file is such a configuration, by the tables that no other one has.
pub fn is_expressgateway(text: &str) -> bool {
    let mut document = Document::parse(text);
    let root = document.root();
    let is_ours = root.has("listen") || root.has("route");
    !is_ours && (root.has("listeners") || root.has("passthrough"))
}

/// Translates a configuration of ExpressGateway.
///
/// - `file`: its name, for the notes.
///
/// Fails with every error of the file.
pub fn import_expressgateway(file: &str, text: &str) -> Result<Imported, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let mut root = document.root();
    let mut translation = Translation::default();
    let listeners = root.tables("listeners");
    let passthrough = root.table("passthrough");
    if listeners.is_empty() && passthrough.is_none() {
        root.missing("listeners", "give [[listeners]] or [passthrough]");
    }
    translation.runtime(root.table("runtime"));
    for table in listeners {
        translation.listener(table);
    }
    if let Some(table) = passthrough {
        translation.passthrough(table);
    }
    translation.observability(root.table("observability"));
    admin(root.table("admin"));
    if let Some(mut table) = root.table("security") {
        let strict = table.take_value("strict_te");
        report(
            strict.as_ref(),
            "plimsoll always rejects other transfer codings than `chunked`",
        );
        table.finish();
    }
    root.finish();
    let (problems, notes) = document.into_findings();
    if !problems.is_empty() {
        return Err(problems);
    }
    let notes = notes.into_iter().map(|note| ImportNote {
        file: file.to_owned(),
        line: note.line,
        message: note.to_string(),
    });
    Ok(Imported {
        toml: translation.into_toml(),
        notes: notes.collect(),
    })
}

/// The translated file as far as it is read.
#[derive(Default)]
struct Translation {
    top: Keys,
    limits: Keys,
    metrics: Keys,
    /// `connect_timeout` of upstreams.
    connect_timeout: Option<String>,
    listeners: Vec<Listener>,
    routes: String,
    upstreams: String,
    counts: BTreeMap<&'static str, usize>,
}

/// A `[[listen]]`.
struct Listener {
    name: String,
    address: String,
    keys: Keys,
}

const XDP: &str = "left out: plimsoll has no datapath in XDP";

impl Translation {
    /// A limit that listeners have of their own there and share here.
    fn limit(&mut self, table: &mut Table<'_>, key: &'static str, ours: &str, convert: Convert) {
        let Some(value) = table.take_value(key) else {
            return;
        };
        let Some(converted) = convert(&value) else {
            return;
        };
        match self.limits.get(ours) {
            Some(first) if first != converted => {
                value.note(format!(
                    "left out: `{ours}` of [limits] is for all listeners, and another one has {first}"
                ));
            }
            _ => self.limits.set(ours, converted),
        }
    }

    fn runtime(&mut self, table: Option<Table<'_>>) {
        let Some(mut table) = table else {
            return;
        };
        if let Some(value) = table.take_value("drain_timeout_ms")
            && let Some(drain) = millis(&value)
        {
            self.top.set("drain", drain);
        }
        if let Some(value) = table.take_value("connect_timeout_ms") {
            self.connect_timeout = millis(&value);
        }
        self.limit(
            &mut table,
            "handshake_timeout_ms",
            "handshake_timeout",
            millis,
        );
        self.limit(
            &mut table,
            "max_inflight_connections",
            "connections",
            number,
        );
        self.limit(
            &mut table,
            "per_ip_connection_cap",
            "connections_per_address",
            number,
        );
        if let Some(mut tls) = table.table("tls") {
            let only = tls.take_value("tls13_only");
            if only.as_ref().is_some_and(Value::is_true) {
                report(
                    only.as_ref(),
                    "left out: plimsoll accepts TLS 1.2 too, with ECDHE and AEAD only",
                );
            }
            tls.finish();
        }
        if let Some(mut watchdog) = table.table("watchdog") {
            self.limit(
                &mut watchdog,
                "body_progress_min_bps",
                "body_rate",
                |value| Some(format!("\"{}B\"", value.whole(0..=1 << 40)?)),
            );
            report_keys(
                &mut watchdog,
                &[
                    (
                        "header_deadline_ms",
                        "left out: it only logs there; `header_timeout` closes connections",
                    ),
                    (
                        "sweep_interval_ms",
                        "left out: plimsoll has a timer for each connection",
                    ),
                ],
            );
            watchdog.finish();
        }
        report_keys(
            &mut table,
            &[
                (
                    "readiness_settle_ms",
                    "left out: plimsoll accepts connections until its listeners close; give the balancer in front time with a hook before SIGTERM",
                ),
                ("drain_jitter_ms", NO_COUNTERPART),
                (
                    "header_underscore_policy",
                    "left out: plimsoll forwards names with `_`; remove one by `request_headers`",
                ),
                (
                    "max_keepalive_requests",
                    "left out: plimsoll does not limit the requests of a connection",
                ),
                (
                    "max_requests_per_h3_connection",
                    "left out: plimsoll keeps no state of completed HTTP/3 streams",
                ),
                ("xdp_enabled", XDP),
                ("xdp_interface", XDP),
                ("xdp_mode", XDP),
                ("xdp_new_flow_cap_per_sec_per_cpu", XDP),
            ],
        );
        table.finish();
    }

    fn observability(&mut self, table: Option<Table<'_>>) {
        let Some(mut table) = table else {
            return;
        };
        if let Some(value) = table.take_value("metrics_bind")
            && let Some(address) = socket(&value)
        {
            self.metrics.text("address", &address);
            value.note(
                "names of metrics differ: docs/up.md and docs/gateway.md have those of plimsoll",
            );
        }
        let cardinality = table.take_value("max_label_cardinality");
        report(
            cardinality.as_ref(),
            "left out: labels of plimsoll have as many values as the file has routes and servers",
        );
        table.finish();
    }

    /// Routes and upstreams of a listener: one upstream for each protocol of its backends.
    fn serve(
        &mut self,
        name: &str,
        protocol: &str,
        backends: &[Backend],
        keys: &mut Keys,
        mut proxy: Keys,
        more: &Keys,
    ) {
        let mut groups: BTreeMap<(Protocol, String), Vec<&Backend>> = BTreeMap::new();
        for backend in backends {
            let group = (backend.protocol, backend.tls.inline());
            groups.entry(group).or_default().push(backend);
        }
        let all: u64 = backends.iter().map(|it| it.weight).sum();
        let mut splits = Keys::default();
        for (number, ((kind, tls), group)) in groups.iter().enumerate() {
            let upstream = if number == 0 {
                name.to_owned()
            } else {
                format!("{name}-{}", number + 1)
            };
            let servers = group.iter().map(|backend| {
                let url = toml_string(&format!("{}://{}", kind.scheme(), backend.address));
                match backend.weight {
                    1 => url,
                    weight => format!("{{ url = {url}, weight = {weight} }}"),
                }
            });
            let servers: Vec<_> = servers.collect();
            let mut settings = Keys::default();
            settings.set("servers", format!("[{}]", servers.join(", ")));
            if let Some(protocol) = kind.key() {
                settings.text("protocol", protocol);
                settings.inherit(more);
            }
            if tls != "{  }" {
                settings.set("tls", tls.clone());
            }
            if let Some(time) = &self.connect_timeout {
                settings.set("connect_timeout", time.clone());
            }
            write!(self.upstreams, "\n[upstream.{upstream}]\n").ok();
            settings.lines(&mut self.upstreams);
            if number > 0 {
                let weight: u64 = group.iter().map(|it| it.weight).sum();
                splits.set(&upstream, (weight * 100 / all.max(1)).to_string());
            }
        }
        if matches!(protocol, "tcp" | "tls") {
            keys.text("tcp", name);
            return;
        }
        proxy.text("to", name);
        if !splits.is_empty() {
            proxy.set("split", splits.inline());
        }
        write!(
            self.routes,
            "\n[[route]]\nname = {0}\nlisten = {0}\nproxy = {1}\n",
            toml_string(name),
            proxy.inline()
        )
        .ok();
    }

    /// A name for a listener and its upstream.
    fn name_of(&mut self, protocol: &str) -> String {
        let kind = match protocol {
            "tcp" => "tcp",
            "tls" => "tls",
            "quic" => "http3",
            "h1s" => "https",
            _ => "http",
        };
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        match count {
            1 => kind.to_owned(),
            number => format!("{kind}-{number}"),
        }
    }

    fn into_toml(self) -> String {
        let mut out = String::from(
            "# Translated from ExpressGateway. The report of the translation lists what was left out.\n",
        );
        self.top.lines(&mut out);
        for listener in &self.listeners {
            write!(
                out,
                "\n[[listen]]\naddress = {}\n",
                toml_string(&listener.address)
            )
            .ok();
            let is_http = ["tcp", "quic"]
                .iter()
                .all(|key| listener.keys.get(key).is_none());
            if is_http {
                writeln!(out, "name = {}", toml_string(&listener.name)).ok();
            }
            listener.keys.lines(&mut out);
        }
        let served = self.listeners.iter().map(|it| it.name.as_str());
        let served: Vec<_> = served.collect();
        // A route of a listener that joined another one leads nowhere.
        for route in self
            .routes
            .split("\n[[route]]\n")
            .filter(|it| !it.is_empty())
        {
            let is_served = served
                .iter()
                .any(|name| route.contains(&format!("listen = {}\n", toml_string(name))));
            if is_served {
                write!(out, "\n[[route]]\n{route}").ok();
            }
        }
        out += &self.upstreams;
        for (name, keys) in [("limits", &self.limits), ("metrics", &self.metrics)] {
            if !keys.is_empty() {
                write!(out, "\n[{name}]\n").ok();
                keys.lines(&mut out);
            }
        }
        out
    }
}

fn admin(table: Option<Table<'_>>) {
    let Some(mut table) = table else {
        return;
    };
    report_keys(
        &mut table,
        &[
            (
                "api_token_hash",
                "left out: set the `token` of [admin] itself, with an `address`",
            ),
            (
                "allow_non_loopback",
                "left out: [admin] listens beyond the loopback only with a `token`",
            ),
        ],
    );
    table.finish();
}
