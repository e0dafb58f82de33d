//! `[passthrough]`: QUIC that is forwarded as it is.

use std::fmt::Write as _;

use plimsoll_model::document::{Table, toml_string};

use super::super::toml::Keys;
use super::values::{millis, report_keys, required, socket};
use super::{Listener, Translation};

impl Translation {
    pub(super) fn passthrough(&mut self, mut table: Table<'_>) {
        let address = required(&mut table, "bind_addr", "such as \"0.0.0.0:443\"", socket);
        let mut quic = Keys::default();
        quic.text("to", "passthrough");
        if let Some(value) = table.take_value("max_quic_connections")
            && let Some(flows) = value.whole(1..=2_000_000)
        {
            quic.set("flows", flows.to_string());
        }
        if let Some(value) = table.take_value("flow_idle_timeout_ms")
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
        let backends = table.take_value("backends").and_then(|value| {
            let elements = value.elements().into_iter();
            let urls = elements.map(|it| Some(toml_string(&format!("udp://{}", it.text()?))));
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
}
