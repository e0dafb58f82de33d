//! The configuration of ExpressGateway (TOML), translated.
//!
//! Every key is translated, or reported with its line; an unknown one is an error, as it is there. Keys with no effect
//! there are reported too, since plimsoll would give them one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use plimsoll_model::document::{ConfigProblem, Document, Table, Value, as_text};

use super::toml::{Keys, quoted};
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
        let strict = table.take("strict_te");
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

/// A backend as it is written.
struct Backend {
    address: String,
    protocol: Protocol,
    weight: u64,
    /// `tls` of the upstream.
    tls: Keys,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Protocol {
    Tcp,
    Http1,
    Http2,
    Http3,
}

impl Protocol {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http1 | Self::Http2 => "http",
            Self::Http3 => "https",
        }
    }

    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Tcp => None,
            Self::Http1 => Some("http1"),
            Self::Http2 => Some("http2"),
            Self::Http3 => Some("http3"),
        }
    }
}

const NO_COUNTERPART: &str = "left out: there is no counterpart";
const XDP: &str = "left out: plimsoll has no datapath in XDP";

/// Notes what became of a key, if it is there.
fn report(value: Option<&Value<'_>>, message: &str) {
    if let Some(value) = value {
        value.note(message);
    }
}

fn report_keys(table: &mut Table<'_>, keys: &[(&'static str, &str)]) {
    for (key, message) in keys {
        report(table.take(key).as_ref(), message);
    }
}

/// A number of milliseconds as a duration.
fn millis(value: &Value<'_>) -> Option<String> {
    let millis = value.whole(0..=86_400_000)?;
    Some(if millis.is_multiple_of(1000) {
        format!("\"{}s\"", millis / 1000)
    } else {
        format!("\"{millis}ms\"")
    })
}

fn seconds(value: &Value<'_>) -> Option<String> {
    Some(format!("\"{}s\"", value.whole(1..=31_536_000)?))
}

fn number(value: &Value<'_>) -> Option<String> {
    Some(value.whole(1..=10_000_000)?.to_string())
}

fn size(value: &Value<'_>) -> Option<String> {
    Some(format!("\"{}B\"", value.whole(1..=1 << 40)?))
}

fn socket(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let parsed = text.parse::<SocketAddr>();
    let checked = parsed.map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:8080"));
    value.check(checked)?;
    Some(text.to_owned())
}

type Convert = fn(&Value<'_>) -> Option<String>;

impl Translation {
    /// A limit that listeners have of their own there and share here.
    fn limit(&mut self, table: &mut Table<'_>, key: &'static str, ours: &str, convert: Convert) {
        let Some(value) = table.take(key) else {
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
        if let Some(value) = table.take("drain_timeout_ms")
            && let Some(drain) = millis(&value)
        {
            self.top.set("drain", drain);
        }
        if let Some(value) = table.take("connect_timeout_ms") {
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
            let only = tls.take("tls13_only");
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
        if let Some(value) = table.take("metrics_bind")
            && let Some(address) = socket(&value)
        {
            self.metrics.text("address", &address);
            value.note(
                "names of metrics differ: docs/up.md and docs/gateway.md have those of plimsoll",
            );
        }
        let cardinality = table.take("max_label_cardinality");
        report(
            cardinality.as_ref(),
            "left out: labels of plimsoll have as many values as the file has routes and servers",
        );
        table.finish();
    }

    fn passthrough(&mut self, mut table: Table<'_>) {
        let address = required(&mut table, "bind_addr", "such as \"0.0.0.0:443\"", socket);
        let mut quic = Keys::default();
        quic.text("to", "passthrough");
        if let Some(value) = table.take("max_quic_connections")
            && let Some(flows) = value.whole(1..=2_000_000)
        {
            quic.set("flows", flows.to_string());
        }
        if let Some(value) = table.take("flow_idle_timeout_ms")
            && let Some(idle) = millis(&value)
        {
            if idle == "\"0s\"" {
                value.note(
                    "left out: plimsoll always ends idle flows; after 60 seconds without this key",
                );
            } else {
                quic.set("idle_timeout", idle);
            }
        }
        let backends = table.take("backends").and_then(|value| {
            let elements = value.elements().into_iter();
            let urls = elements.map(|it| Some(quoted(&format!("udp://{}", it.text()?))));
            urls.collect::<Option<Vec<_>>>()
        });
        if backends.is_none() && !table.was_given("backends") {
            table.missing("backends", "addresses of QUIC servers");
        }
        report_keys(
            &mut table,
            &[
                (
                    "retry_secret_path",
                    "left out: plimsoll sends no Retry of its own; servers validate addresses",
                ),
                (
                    "mint_retry",
                    "left out: plimsoll sends no Retry of its own; servers validate addresses",
                ),
                (
                    "min_client_dcid_len",
                    "left out: 8 bytes, as RFC 9000 requires",
                ),
                (
                    "per_flow_backlog",
                    "left out: datagrams are sent on at once",
                ),
                (
                    "strict_source_binding",
                    "left out: a client whose address changes stays at its server; forged paths are limited",
                ),
                (
                    "audit_throttle_window_secs",
                    "left out: dropped packets are counted, not logged",
                ),
                (
                    "max_dcid_len_routed",
                    "left out: connection IDs of every length are routed",
                ),
            ],
        );
        table.finish();
        let (Some(address), Some(backends)) = (address, backends) else {
            return;
        };
        write!(
            self.upstreams,
            "\n[upstream.passthrough]\nservers = [{}]\nbalance = \"maglev\"\n",
            backends.join(", ")
        )
        .ok();
        let mut keys = Keys::default();
        keys.set("quic", quic.inline());
        self.listeners.push(Listener {
            name: "passthrough".to_owned(),
            address,
            keys,
        });
    }

    fn listener(&mut self, mut table: Table<'_>) {
        let address = required(&mut table, "address", "such as \"0.0.0.0:8080\"", socket);
        let protocol = required(&mut table, "protocol", PROTOCOLS, |value| {
            let text = as_text(value)?;
            if ["tcp", "tls", "h1", "h1s", "quic"].contains(&text) {
                return Some(text.to_owned());
            }
            value.wrong(format!("must be {PROTOCOLS}"))
        });
        let drain = table.take("drain_timeout_ms");
        report(drain.as_ref(), "left out: `drain` is for all listeners");
        report_keys(&mut table, &[("drain_jitter_ms", NO_COUNTERPART)]);
        let mut keys = Keys::default();
        let mut proxy = Keys::default();
        let mut upstream = Keys::default();
        encryption(&mut table, &mut keys);
        if let Some(mut alt) = table.table("alt_svc") {
            let port = required(&mut alt, "h3_port", "the port of HTTP/3", |it| {
                it.whole(1..=65_535).map(|it| it.to_string())
            });
            let age = alt.take("max_age").and_then(|it| it.whole(0..=31_536_000));
            alt.finish();
            if let Some(port) = port {
                let field = format!("h3=\":{port}\"; ma={}", age.unwrap_or(3600));
                let fields = format!("{{ set = {{ alt-svc = {} }} }}", quoted(&field));
                keys.set("response_headers", fields);
            }
        }
        if let Some(mut http) = table.table("http") {
            self.limit(&mut http, "header_timeout_ms", "header_timeout", millis);
            self.limit(&mut http, "body_timeout_ms", "body_timeout", millis);
            for (key, ours) in [
                ("total_timeout_ms", "timeout"),
                ("head_timeout_ms", "response_timeout"),
            ] {
                if let Some(value) = http.take(key)
                    && let Some(time) = millis(&value)
                {
                    upstream.set(ours, time);
                }
            }
            http.finish();
        }
        if let Some(table) = table.table("h2_security") {
            self.http2(table);
        }
        let websocket = table.table("websocket");
        if let Some(table) = websocket {
            websocket_keys(table, &mut proxy);
        }
        if let Some(mut grpc) = table.table("grpc") {
            let enabled = grpc.take("enabled");
            if enabled.as_ref().is_some_and(Value::is_false) {
                report(
                    enabled.as_ref(),
                    "left out: plimsoll forwards gRPC as it forwards HTTP/2",
                );
            }
            if grpc.boolean("health_synthesized").unwrap_or(true)
                && !enabled.is_some_and(|it| it.is_false())
            {
                proxy.set("grpc_health", "true");
            }
            if let Some(value) = grpc.take("max_deadline_seconds")
                && let Some(time) = seconds(&value)
            {
                proxy.set("grpc_timeout", time);
            }
            grpc.finish();
        }
        let backends: Vec<_> = table.tables("backends");
        let is_raw = matches!(protocol.as_deref(), Some("tcp" | "tls"));
        let backends: Vec<_> = backends
            .into_iter()
            .filter_map(|table| backend(table, is_raw))
            .collect();
        let (Some(address), Some(protocol)) = (address, protocol) else {
            table.finish();
            return;
        };
        let has_backends = !backends.is_empty();
        let name = self.name_of(&protocol);
        if has_backends {
            self.serve(&name, &protocol, &backends, &mut keys, proxy, &upstream);
        }
        match protocol.as_str() {
            "h1" => keys.set("http2", "false"),
            "quic" => {
                table
                    .note("the listener also accepts HTTP/1.1 and HTTP/2, by TCP at the same port");
                keys.set("http3", "true");
            }
            _ => {}
        }
        if table.was_given("quic") && !has_backends && keys.get("quic_raw").is_some() {
            table.note("left out: `raw_proxy` has no counterpart; forward QUIC without decrypting it by `quic`");
        } else if !has_backends {
            table.note("left out: a listener without backends serves nothing");
        } else {
            self.add(
                Listener {
                    name,
                    address,
                    keys,
                },
                &table,
            );
        }
        table.finish();
    }

    /// Adds a listener, or what it brings to the one at the same port.
    fn add(&mut self, listener: Listener, table: &Table<'_>) {
        let known = self.listeners.iter_mut();
        let mut same = known.filter(|it| it.address == listener.address);
        let Some(known) = same.next() else {
            self.listeners.push(listener);
            return;
        };
        table.note(format!(
            "joined with the listener `{}` at the same port; requests of both go to its backends",
            known.name
        ));
        known.keys.inherit(&listener.keys);
        if listener.keys.get("http2").is_none() && known.keys.get("tls").is_some() {
            known.keys.remove("http2");
        }
    }

    fn http2(&mut self, mut table: Table<'_>) {
        for (key, ours) in [
            ("max_pending_accept_reset_streams", "http2_resets"),
            ("max_local_error_reset_streams", "http2_provoked_resets"),
            ("max_concurrent_streams", "http2_streams"),
        ] {
            self.limit(&mut table, key, ours, number);
        }
        self.limit(&mut table, "max_header_list_size", "head", size);
        report_keys(
            &mut table,
            &[
                (
                    "max_send_buf_size",
                    "left out: a stream that its client does not read holds one window",
                ),
                (
                    "keep_alive_interval_ms",
                    "left out: `idle_timeout` closes idle connections",
                ),
                (
                    "keep_alive_timeout_ms",
                    "left out: `idle_timeout` closes idle connections",
                ),
                (
                    "initial_stream_window_size",
                    "left out: windows are set by plimsoll",
                ),
                (
                    "initial_connection_window_size",
                    "left out: windows are set by plimsoll",
                ),
            ],
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
                let url = quoted(&format!("{}://{}", kind.scheme(), backend.address));
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
            quoted(name),
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
                quoted(&listener.address)
            )
            .ok();
            let is_http = ["tcp", "quic"]
                .iter()
                .all(|key| listener.keys.get(key).is_none());
            if is_http {
                writeln!(out, "name = {}", quoted(&listener.name)).ok();
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
                .any(|name| route.contains(&format!("listen = {}\n", quoted(name))));
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

const PROTOCOLS: &str = "\"tcp\", \"tls\", \"h1\", \"h1s\" or \"quic\"";

fn text(value: &Value<'_>) -> Option<String> {
    as_text(value).map(str::to_owned)
}

/// A key that must be there.
fn required(
    table: &mut Table<'_>,
    key: &'static str,
    hint: &str,
    convert: impl FnOnce(&Value<'_>) -> Option<String>,
) -> Option<String> {
    if let Some(value) = table.take(key) {
        return convert(&value);
    }
    table.missing(key, hint);
    None
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

/// `tls` and `quic`: certificates of both become those of the listener.
fn encryption(table: &mut Table<'_>, keys: &mut Keys) {
    for key in ["tls", "quic"] {
        let Some(mut block) = table.table(key) else {
            continue;
        };
        let cert = required(&mut block, "cert_path", "a PEM file", text);
        let key = required(&mut block, "key_path", "a PEM file", text);
        if let (Some(cert), Some(key)) = (cert, key) {
            let mut pair = Keys::default();
            pair.text("cert", &cert);
            pair.text("key", &key);
            keys.set("tls", pair.inline());
        }
        report_keys(
            &mut block,
            &[
                (
                    "ticket_rotation_interval_seconds",
                    "left out: ticket keys change every six hours",
                ),
                (
                    "ticket_rotation_overlap_seconds",
                    "left out: ticket keys change every six hours",
                ),
                (
                    "retry_secret_path",
                    "left out: the key of Retry is made anew at each start",
                ),
                (
                    "max_idle_timeout_ms",
                    "left out: `idle_timeout` of [limits] is for all listeners",
                ),
                ("max_recv_udp_payload_size", NO_COUNTERPART),
            ],
        );
        if let Some(mut raw) = block.table("raw_proxy") {
            keys.set("quic_raw", "true");
            for key in [
                "backend_addr",
                "sni",
                "backend_ca_path",
                "dgram_queue_cap",
                "max_relay_streams",
            ] {
                raw.take(key);
            }
            raw.finish();
        }
        block.finish();
    }
}

fn websocket_keys(mut table: Table<'_>, proxy: &mut Keys) {
    let mut websocket = Keys::default();
    let is_off = table.boolean("enabled") == Some(false);
    if let Some(value) = table.take("idle_timeout_seconds")
        && let Some(time) = seconds(&value)
    {
        websocket.set("idle_timeout", time);
    }
    if let Some(value) = table.take("max_message_size_bytes")
        && let Some(bytes) = size(&value)
    {
        websocket.set("max_message", bytes);
    }
    if let Some(value) = table.take("ping_rate_limit_per_window")
        && let Some(pings) = number(&value)
    {
        websocket.set("pings", pings);
    }
    let window = table.take("ping_rate_limit_window_seconds");
    if window.as_ref().and_then(|it| it.whole(1..=86_400)) != Some(10) {
        report(
            window.as_ref(),
            "left out: PINGs are counted within ten seconds",
        );
    }
    report_keys(
        &mut table,
        &[
            (
                "read_frame_timeout_seconds",
                "left out: `idle_timeout` closes a WebSocket within a frame too",
            ),
            (
                "h2_extended_connect",
                "left out: WebSockets are always accepted over HTTP/2",
            ),
            (
                "h3_extended_connect",
                "left out: WebSockets over HTTP/3 are rejected",
            ),
        ],
    );
    table.finish();
    if is_off {
        proxy.set("websocket", "false");
    } else if !websocket.is_empty() {
        proxy.set("websocket", websocket.inline());
    }
}

/// - `is_raw`: of a listener that is not HTTP.
fn backend(mut table: Table<'_>, is_raw: bool) -> Option<Backend> {
    let address = required(&mut table, "address", "HOST:PORT", text);
    let protocol = match table.take("protocol") {
        None => Some(Protocol::Http1),
        Some(value) => match as_text(&value) {
            Some("tcp" | "h1") => Some(Protocol::Http1),
            Some("h2") => {
                value.note("forwarded in the clear by prior knowledge; write `https://` for servers with TLS");
                Some(Protocol::Http2)
            }
            Some("h3") => Some(Protocol::Http3),
            Some(_) => value.wrong("must be \"tcp\", \"h1\", \"h2\" or \"h3\""),
            None => None,
        },
    };
    let weight = table.take("weight");
    if let Some(value) = &weight {
        value.note("has an effect here: there it is ignored");
    }
    let weight = weight.map_or(Some(1), |it| it.whole(0..=1000));
    let mut tls = Keys::default();
    let verifies = table.boolean("tls_verify_peer").unwrap_or(true);
    let ca = table.take("tls_ca_path");
    if !verifies {
        tls.set("insecure", "true");
        report(ca.as_ref(), "left out: `tls_verify_peer` is false");
    } else if let Some(ca) = ca.as_ref().and_then(as_text) {
        tls.text("ca", ca);
    }
    let host = table.take("tls_verify_hostname");
    report(
        host.as_ref(),
        "left out: certificates are verified by the host of the URL; name the server by it",
    );
    table.finish();
    let protocol = if is_raw { Protocol::Tcp } else { protocol? };
    Some(Backend {
        address: address?,
        protocol,
        weight: weight?,
        tls,
    })
}
