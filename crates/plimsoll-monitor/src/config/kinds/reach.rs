//! How targets are reached: the keys that all kinds share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_client::{AddressFamily, Proxy};
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_wire::tls::{IdentityFiles, Trust};

use crate::config::file::Context;
use crate::config::kinds::{file, of_this_machine};
use crate::config::monitor::Defaults;
use crate::probe::{Reach, ReachOptions};

/// Settings by which ways to reach targets are shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::config) struct ReachKey {
    timeout: Duration,
    ca: Option<PathBuf>,
    insecure: bool,
    identity: Option<(PathBuf, Option<PathBuf>)>,
    server_name: Option<String>,
    family: AddressFamily,
    name_servers: Vec<SocketAddr>,
    alpn: &'static str,
    proxy: Option<String>,
}

/// Takes the keys about reaching a target.
pub(super) fn reach(
    table: Option<&mut Table<'_>>,
    context: &mut Context,
    settings: &Defaults,
    alpn: &'static str,
    place: &Value<'_>,
) -> Option<Reach> {
    reach_by(table, context, settings, alpn, place, None)
}

/// The same through a proxy, whose URL was checked.
pub(super) fn reach_by(
    table: Option<&mut Table<'_>>,
    context: &mut Context,
    settings: &Defaults,
    alpn: &'static str,
    place: &Value<'_>,
    proxy: Option<String>,
) -> Option<Reach> {
    let mut key = ReachKey {
        timeout: settings.timeout,
        ca: None,
        insecure: false,
        identity: None,
        server_name: None,
        family: AddressFamily::Any,
        name_servers: Vec::new(),
        alpn,
        proxy,
    };
    if let Some(table) = table {
        key.ca = file(table, context, "ca");
        key.insecure = table.boolean("insecure").unwrap_or(false);
        if key.insecure && key.ca.is_some() {
            table.wrong("`ca` has no effect beside `insecure`", None);
            return None;
        }
        let certificate = file(table, context, "cert");
        let private = file(table, context, "key");
        key.identity = certificate.map(|certificate| (certificate, private));
        key.server_name = table.text("server_name");
        if let Some(value) = table.take_value("family") {
            key.family = match as_text(&value)? {
                "ipv4" => AddressFamily::Ipv4,
                "ipv6" => AddressFamily::Ipv6,
                other => return value.wrong(format!("`{other}` is not \"ipv4\" or \"ipv6\"")),
            };
        }
        if let Some(value) = table.take_value("name_server") {
            let text = as_text(&value)?;
            let address = text
                .parse()
                .or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, 53)));
            let wrong = |_| format!("`{text}` is not an address such as 1.1.1.1 or 1.1.1.1:53");
            key.name_servers = vec![value.check(address.map_err(wrong))?];
        }
    }
    if let Some(known) = context.reaches.get(&key) {
        return Some(known.clone());
    }
    let options = ReachOptions {
        timeout: key.timeout,
        trust: trust(&key),
        identity: key
            .identity
            .clone()
            .map(|(certificate, key)| IdentityFiles { certificate, key }),
        server_name: key.server_name.clone(),
        family: key.family,
        name_servers: key.name_servers.clone(),
        filter: context.filter.clone(),
        alpn: match alpn {
            "" => Vec::new(),
            protocol => vec![protocol.as_bytes().to_vec()],
        },
        proxy: key.proxy.as_ref().and_then(|proxy| proxy.parse().ok()),
    };
    let reach = place.check(Reach::new(options))?;
    context.reaches.insert(key, reach.clone());
    Some(reach)
}

/// The URL of a proxy, as written. It resolves the names of targets itself, where plimsoll does not see the addresses,
/// so no limit on addresses holds there.
#[expect(
    clippy::option_option,
    reason = "the outer one says that there was a problem, as for all that is compiled"
)]
pub(super) fn proxy(table: &mut Table<'_>, context: &Context) -> Option<Option<String>> {
    let Some(value) = table.take_value("proxy") else {
        return Some(None);
    };
    of_this_machine(&value, context, "leads through a proxy")?;
    if context.filter.is_some() {
        let hint = "allow private addresses, or check from a place that needs no proxy";
        return value.wrong_with(
            "cannot be used where monitors may only reach public addresses",
            Some(hint.to_owned()),
        );
    }
    let text = as_text(&value)?;
    if !text.contains("://") {
        return value.wrong("must be a URL such as http://proxy.example.org:3128");
    }
    value.check(text.parse::<Proxy>())?;
    Some(Some(text.to_owned()))
}

fn trust(key: &ReachKey) -> Trust {
    match (&key.ca, key.insecure) {
        (_, true) => Trust::Anyone,
        (Some(file), false) => Trust::Only(file.clone()),
        (None, false) => Trust::PublicRoots,
    }
}
