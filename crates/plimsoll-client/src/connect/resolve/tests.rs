use super::AddressFamily::{Any, Ipv4, Ipv6};
use super::*;
use crate::Endpoint;

fn resolve(resolver: &Resolver, url: &str) -> Result<Resolved, Failure> {
    let endpoint = Endpoint::parse(url).unwrap();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(resolver.resolve(&endpoint.host(), endpoint.port()))
}

fn shown(resolved: &Resolved) -> String {
    assert!(!resolved.looked_up);
    resolved
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn what_needs_no_name_server() {
    let overrides = Overrides::new(vec![
        "a.test:80:127.0.0.7,::7".parse().unwrap(),
        "192.0.2.1:80:127.0.0.8".parse().unwrap(),
    ]);
    for (family, url, expected) in [
        (Any, "http://127.0.0.1", "127.0.0.1"),
        (Any, "http://[::1]", "::1"),
        (Any, "http://localhost", "::1 127.0.0.1"),
        (Ipv4, "http://localhost", "127.0.0.1"),
        (Ipv6, "http://LOCALHOST.", "::1"),
        (Ipv4, "http://api.localhost", "127.0.0.1"),
        (Any, "http://a.test", "127.0.0.7 ::7"),
        (Ipv6, "http://a.test", "::7"),
        (Any, "http://192.0.2.1", "127.0.0.8"),
        (Any, "http://192.0.2.1:81", "192.0.2.1"),
    ] {
        let resolver = Resolver::new(family, overrides.clone());
        assert_eq!(
            shown(&resolve(&resolver, url).unwrap()),
            expected,
            "{family:?} {url}"
        );
        assert!(
            resolver.lookups.get().is_none(),
            "the system resolver was not used"
        );
    }
}

#[test]
fn an_address_of_the_other_family_is_refused() {
    let resolver = Resolver::new(Ipv6, Overrides::default());
    let failure = resolve(&resolver, "http://127.0.0.1").unwrap_err();
    assert_eq!(
        failure.to_string(),
        "name-not-found during dns: 127.0.0.1 has no IPv6 address"
    );
    assert_eq!(failure.side, Side::Config);
}

#[test]
fn only_localhost_is_local() {
    assert!(is_localhost("localhost"));
    assert!(is_localhost("a.b.LocalHost."));
    assert!(!is_localhost("notlocalhost"));
    assert!(!is_localhost("localhost.test"));
    assert!(!is_localhost("é"));
}

#[test]
fn errors_of_name_servers_are_distinguished() {
    let failure = lookup_failure("a.test", &NetError::Timeout);
    assert_eq!(failure.kind, FailureKind::Timeout);
    let failure = lookup_failure("a.test", &NetError::NoConnections);
    assert_eq!(failure.kind, FailureKind::NameNotFound);
    assert!(failure.cause.unwrap().contains("`a.test`"));
}

/// A name with an IPv4 address in the hosts file has no IPv6 address that a name server could know.
#[test]
fn a_name_of_the_hosts_file_is_not_looked_up() {
    const HOSTS: &str = "127.0.0.1 localhost\n192.0.2.7\tDB.test db # 192.0.2.9 other.test\n\
                         2001:db8::7 both.test\n192.0.2.8 both.test both.test\nnonsense x\n";
    for (family, url, expected) in [
        (Any, "http://db.test", "192.0.2.7"),
        (Any, "http://DB.", "192.0.2.7"),
        (Any, "http://both.test", "2001:db8::7 192.0.2.8"),
        (Ipv4, "http://both.test", "192.0.2.8"),
    ] {
        let resolver = Resolver::new(family, Overrides::default());
        resolver.hosts.set(HOSTS.to_owned()).unwrap();
        assert_eq!(shown(&resolve(&resolver, url).unwrap()), expected, "{url}");
        assert!(
            resolver.lookups.get().is_none(),
            "no name server was used for {url}"
        );
    }
    assert!(hosts::listed(HOSTS, "other.test").is_empty());
    assert!(hosts::listed(HOSTS, "x").is_empty());
}
