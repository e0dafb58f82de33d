//! How often something may be done by one source. Pure: the time is an argument.

mod attempts;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_monitor::time::Timestamp;

pub(crate) use crate::limits::attempts::{Account, Attempts};

/// Names that are counted; the oldest is forgotten for another one.
pub(crate) const MOST: usize = 10_000;

/// Attempts of each name since a date.
pub(crate) type Counts = HashMap<String, (Timestamp, u32)>;

/// The name by which a client is counted: its address, or its network of 64 bits in IPv6, within which it may choose any.
pub(crate) fn source(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

/// The network that a provider gives a site at most, of 48 bits in IPv6 (RFC 6177); another name than that of a
/// [source](source).
pub(crate) fn site(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}/48")
        }
    }
}

/// How long to wait if one more would be above the limit; counts nothing.
pub(crate) fn wait(
    counts: &Counts,
    name: &str,
    (most, window): (u32, Duration),
    now: Timestamp,
) -> Option<Duration> {
    let (since, count) = counts.get(name)?;
    let is_over = now < *since || now.since(*since) >= window;
    (!is_over && *count >= most).then(|| window.saturating_sub(now.since(*since)))
}

/// Counts one more; how long to wait if that is above the limit.
pub(crate) fn add(
    counts: &mut Counts,
    name: &str,
    (most, window): (u32, Duration),
    now: Timestamp,
) -> Option<Duration> {
    if !counts.contains_key(name) && counts.len() >= MOST {
        counts.retain(|_, (since, _)| now.since(*since) < window && *since <= now);
        if counts.len() >= MOST {
            let oldest = counts.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                counts.remove(&oldest);
            }
        }
    }
    let entry = counts.entry(name.to_owned()).or_insert((now, 0));
    // A clock that steps back starts a new window.
    if now < entry.0 || now.since(entry.0) >= window {
        *entry = (now, 0);
    }
    entry.1 = entry.1.saturating_add(1);
    (entry.1 > most).then(|| window.saturating_sub(now.since(entry.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_by_address_and_by_network() {
        let of = |text: &str| source(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
        let of = |text: &str| site(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
        assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:2:2::7"));
    }
}
