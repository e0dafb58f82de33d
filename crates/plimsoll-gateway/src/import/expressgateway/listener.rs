//! A listener: its address, its certificates, its limits and what it forwards to.

use plimsoll_model::document::{Table, Value, as_text, toml_string};

use super::super::toml::Keys;
use super::backend::backend;
use super::values::{
    NO_COUNTERPART, millis, number, report, report_keys, required, seconds, size, socket, text,
};
use super::{Listener, Translation};

const PROTOCOLS: &str = "\"tcp\", \"tls\", \"h1\", \"h1s\" or \"quic\"";

impl Translation {
    pub(super) fn listener(&mut self, mut table: Table<'_>) {
        let address = required(&mut table, "address", "such as \"0.0.0.0:8080\"", socket);
        let protocol = required(&mut table, "protocol", PROTOCOLS, |value| {
            let text = as_text(value)?;
            if ["tcp", "tls", "h1", "h1s", "quic"].contains(&text) {
                return Some(text.to_owned());
            }
            value.wrong(format!("must be {PROTOCOLS}"))
        });
        let drain = table.take_value("drain_timeout_ms");
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
            let age = alt
                .take_value("max_age")
                .and_then(|it| it.whole(0..=31_536_000));
            alt.finish();
            if let Some(port) = port {
                let field = format!("h3=\":{port}\"; ma={}", age.unwrap_or(3600));
                let fields = format!("{{ set = {{ alt-svc = {} }} }}", toml_string(&field));
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
                if let Some(value) = http.take_value(key)
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
            let enabled = grpc.take_value("enabled");
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
            if let Some(value) = grpc.take_value("max_deadline_seconds")
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
            "quic" if keys.get("quic").is_some() => {}
            "quic" => {
                table
                    .note("the listener also accepts HTTP/1.1 and HTTP/2, by TCP at the same port");
                keys.set("http3", "true");
            }
            _ => {}
        }
        if !has_backends && keys.get("quic").is_some() {
            self.listeners.push(Listener {
                name,
                address,
                keys,
            });
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
            raw_proxy(&mut raw, keys);
            raw.finish();
        }
        block.finish();
    }
}

/// QUIC that ends there and begins anew to one server.
fn raw_proxy(table: &mut Table<'_>, keys: &mut Keys) {
    let mut quic = Keys::default();
    if let Some(address) = required(table, "backend_addr", "an address", text) {
        quic.text("to", &format!("udp://{address}"));
    }
    if let Some(name) = required(table, "sni", "the name in the server's certificate", text) {
        quic.text("server_name", &name);
    }
    if let Some(file) = table.text("backend_ca_path") {
        quic.text("ca", &file);
    }
    if let Some(streams) = table
        .take_value("max_relay_streams")
        .and_then(|it| it.whole(1..=100_000))
    {
        quic.set("streams", streams.to_string());
    }
    report_keys(
        table,
        &[(
            "dgram_queue_cap",
            "left out: datagrams that wait are bounded in bytes, by `datagram_buffer`",
        )],
    );
    table.note("only `h3` is offered by ALPN; name other protocols by `alpn` of `quic`");
    keys.set("quic", quic.inline());
}

fn websocket_keys(mut table: Table<'_>, proxy: &mut Keys) {
    let mut websocket = Keys::default();
    let is_off = table.boolean("enabled") == Some(false);
    if let Some(value) = table.take_value("idle_timeout_seconds")
        && let Some(time) = seconds(&value)
    {
        websocket.set("idle_timeout", time);
    }
    if let Some(value) = table.take_value("max_message_size_bytes")
        && let Some(bytes) = size(&value)
    {
        websocket.set("max_message", bytes);
    }
    if let Some(value) = table.take_value("ping_rate_limit_per_window")
        && let Some(pings) = number(&value)
    {
        websocket.set("pings", pings);
    }
    let window = table.take_value("ping_rate_limit_window_seconds");
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
                "left out: WebSockets are always accepted over HTTP/3",
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
