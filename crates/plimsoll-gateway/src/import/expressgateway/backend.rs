//! A backend of a listener.

use plimsoll_model::document::{Table, as_text};

use super::super::toml::Keys;
use super::values::{report, required, text};

/// A backend as it is written.
pub(super) struct Backend {
    pub(super) address: String,
    pub(super) protocol: Protocol,
    pub(super) weight: u64,
    /// `tls` of the upstream.
    pub(super) tls: Keys,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Http1,
    Http2,
    Http3,
}

impl Protocol {
    pub(super) const fn scheme(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http1 | Self::Http2 => "http",
            Self::Http3 => "https",
        }
    }

    pub(super) const fn key(self) -> Option<&'static str> {
        match self {
            Self::Tcp => None,
            Self::Http1 => Some("http1"),
            Self::Http2 => Some("http2"),
            Self::Http3 => Some("http3"),
        }
    }
}

/// Reads a backend; `None` if something is wrong with it, which is reported.
///
/// - `is_raw`: of a listener that is not HTTP.
pub(super) fn backend(mut table: Table<'_>, is_raw: bool) -> Option<Backend> {
    let address = required(&mut table, "address", "HOST:PORT", text);
    let protocol = match table.take_value("protocol") {
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
    let weight = table.take_value("weight");
    if let Some(value) = &weight {
        value.note("has an effect here: there it is ignored");
    }
    let weight = weight.map_or(Some(1), |it| it.whole(0..=1000));
    let mut tls = Keys::default();
    let verifies = table.boolean("tls_verify_peer").unwrap_or(true);
    let ca = table.take_value("tls_ca_path");
    if !verifies {
        tls.set("insecure", "true");
        report(ca.as_ref(), "left out: `tls_verify_peer` is false");
    } else if let Some(ca) = ca.as_ref().and_then(as_text) {
        tls.text("ca", ca);
    }
    let host = table.take_value("tls_verify_hostname");
    if let Some(host) = host.as_ref().and_then(as_text) {
        tls.text("server_name", host);
    }
    table.finish();
    let protocol = if is_raw { Protocol::Tcp } else { protocol? };
    Some(Backend {
        address: address?,
        protocol,
        weight: weight?,
        tls,
    })
}
