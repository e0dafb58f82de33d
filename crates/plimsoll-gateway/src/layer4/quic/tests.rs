use std::collections::HashMap;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_testkit::{VirtualClock, peak_bytes_of};

use super::*;
use crate::layer4::flows::FlowLimits;

/// Memory of a million connections of as many clients, with their sockets: the most at any time, growth of tables included.
#[test]
fn a_million_connections_take_at_most_two_hundred_bytes_each() {
    const FLOWS: u32 = 1_000_000;
    let clock = VirtualClock::new();
    let limits = FlowLimits {
        flows: FLOWS as usize,
        flows_per_source: 1000,
        idle: Duration::from_mins(1),
    };
    let local = "192.0.2.1:443".parse().unwrap();
    let ((table, by_id, ids, sockets), peak) = peak_bytes_of(|| {
        let ids = ServerIds::default();
        let mut table = FlowTable::<Connection>::new(limits, clock.now());
        let mut by_id = HashTable::<Indexed>::new();
        // As the listener has them: a descriptor by the session.
        let mut sockets = HashMap::<SessionId, i32>::new();
        for number in 0..FLOWS {
            let [a, b, c, d] = number.to_be_bytes();
            let peer = SocketAddr::from(([10, b, c, d], 1000 + u16::from(a)));
            let shared = ids.key(&number.to_be_bytes());
            assert!(ids.enter(shared, 0));
            let connection = Connection {
                first: ids.path_key(&number.to_le_bytes(), (peer, local)),
                server: ids.path_key(&number.to_be_bytes(), (peer, local)),
                shared,
            };
            let index = table
                .insert(peer, local, 0, connection, clock.now())
                .unwrap();
            for entry in [Indexed::first(index), Indexed::server(index)] {
                let key = entry.key(&table);
                by_id.insert_unique(key.0, entry, |entry| entry.key(&table).0);
            }
            sockets.insert(table.session(index).unwrap(), 7);
        }
        (table, by_id, ids, sockets)
    });
    let each = peak / u64::from(FLOWS);
    assert!(each <= 200, "{each} bytes for each flow");
    assert_eq!(
        (table.len(), by_id.len()),
        (FLOWS as usize, 2 * FLOWS as usize)
    );
    drop((ids, sockets));
}

#[test]
fn what_may_begin_a_connection() {
    let header = |kind, length: usize| LongHeader {
        kind,
        version: 1,
        destination: &[0; 20][..length],
        source: &[],
    };
    let begins = |kind, id, length| begins(&header(kind, id), length);
    assert_eq!(begins(LongKind::Initial, 8, 1200), Ok(()));
    assert_eq!(begins(LongKind::Unknown, 8, 1200), Ok(()));
    assert_eq!(
        begins(LongKind::Initial, 7, 1200),
        Err(Dropped::ShortInitial)
    );
    assert_eq!(
        begins(LongKind::Initial, 8, 1199),
        Err(Dropped::ShortInitial)
    );
    for kind in [LongKind::Handshake, LongKind::ZeroRtt] {
        assert_eq!(begins(kind, 8, 1200), Err(Dropped::UnknownConnection));
    }
    for kind in [LongKind::Retry, LongKind::Negotiation] {
        assert_eq!(begins(kind, 8, 1200), Err(Dropped::Malformed));
    }
}
