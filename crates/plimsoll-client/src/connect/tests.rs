use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::connect::plan::ConnectOptions;

#[test]
fn socks_4_takes_the_first_ipv4_address() {
    let addresses = ["[::1]:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap()];
    let chosen = |scheme, addresses: &[SocketAddr]| target_for(scheme, addresses);
    assert_eq!(chosen(ProxyScheme::Socks4, &addresses), Ok(addresses[1]));
    assert_eq!(chosen(ProxyScheme::Socks5, &addresses), Ok(addresses[0]));
    assert!(chosen(ProxyScheme::Socks4, &addresses[..1]).is_err());
}

#[test]
fn the_family_that_won_goes_first_next_time() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let open = listener.local_addr().unwrap();
    // The port of an IPv4 listener is refused, or the family unknown, on IPv6.
    let refused = SocketAddr::from((Ipv6Addr::LOCALHOST, open.port()));
    let connector = Connector::new(Arc::new(
        ConnectPlan::new(ConnectOptions::default()).unwrap(),
    ));
    let dial = |addresses| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(connector.dial(addresses))
            .unwrap()
    };
    dial(vec![open]);
    assert_eq!(connector.ipv6_won.get(), None, "there was no choice");
    dial(vec![refused, open]);
    assert_eq!(connector.ipv6_won.get(), Some(false));
}
