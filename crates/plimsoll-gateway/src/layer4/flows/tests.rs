use plimsoll_model::Clock as _;
use plimsoll_testkit::VirtualClock;

use super::*;

const LIMITS: FlowLimits = FlowLimits {
    flows: 2_000_000,
    flows_per_source: 4,
    idle: Duration::from_mins(1),
};

fn peer(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    SocketAddr::from(([10, b, c, d], 1000 + u16::from(a)))
}

fn local() -> SocketAddr {
    "192.0.2.1:53".parse().unwrap()
}

#[test]
fn a_flow_is_found_by_its_addresses_and_its_session() {
    let clock = VirtualClock::new();
    let mut table = FlowTable::new(LIMITS, clock.now());
    let other: SocketAddr = SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 0, 7).into();
    let here: SocketAddr = "[2001:db8::1]:53".parse().unwrap();
    let first = table.insert(peer(1), local(), 7, (), clock.now()).unwrap();
    let second = table.insert(other, here, 8, (), clock.now()).unwrap();
    assert_eq!(table.of_path(peer(1), local()), Some(first));
    assert_eq!(table.of_path(peer(1), here), None);
    assert_eq!(table.of_path(peer(2), local()), None);
    assert_eq!(table.ends(first), Some((peer(1), local())));
    assert_eq!(table.ends(second), Some((other, here)));
    let session = table.session(first).unwrap();
    assert_eq!(table.of_session(session), Some(first));
    assert_eq!(table.remove(first).unwrap().server(), 7);
    assert_eq!(table.of_path(peer(1), local()), None);
    // The place is taken again, by a session of another number.
    let third = table.insert(peer(1), local(), 9, (), clock.now()).unwrap();
    assert_eq!((third, table.of_session(session)), (first, None));
}

#[test]
fn a_table_and_a_source_have_bounds() {
    let clock = VirtualClock::new();
    let limits = FlowLimits { flows: 6, ..LIMITS };
    let mut table = FlowTable::new(limits, clock.now());
    let mut insert = |peer: SocketAddr| table.insert(peer, local(), 0, (), clock.now());
    let of_one = |port| SocketAddr::from(([10, 0, 0, 1], port));
    let inserted: Vec<_> = (1..=4).map(|port| insert(of_one(port)).unwrap()).collect();
    assert_eq!(insert(of_one(5)), Err(Dropped::FlowsOfSource));
    insert(peer(2)).unwrap();
    insert(peer(3)).unwrap();
    assert_eq!(insert(peer(4)), Err(Dropped::Flows));
    table.remove(inserted[0]);
    table
        .insert(of_one(5), local(), 0, (), clock.now())
        .unwrap();
}

#[test]
fn a_million_flows_take_less_than_eighty_bytes_each_and_give_them_back() {
    const FLOWS: u32 = 1_000_000;
    let clock = VirtualClock::new();
    // Sixteen of these sources share a counter.
    let limits = FlowLimits {
        flows_per_source: 1000,
        ..LIMITS
    };
    let mut table = FlowTable::new(limits, clock.now());
    for number in 0..FLOWS {
        table
            .insert(peer(number), local(), 0, (), clock.now())
            .unwrap();
    }
    let slots = table.pieces.len() * PIECE * size_of::<Option<Flow<()>>>();
    // A byte of control for each place of the index.
    let index = table.by_path.allocation_size();
    assert!(slots + index < 80 * FLOWS as usize, "{slots} {index}");
    assert_eq!(table.len(), FLOWS as usize);
    // Half of them are used meanwhile.
    clock.advance(Duration::from_secs(50));
    for number in 0..FLOWS / 2 {
        let index = table.of_path(peer(number), local()).unwrap();
        table.touch(index, clock.now());
    }
    let sweep = |table: &mut FlowTable<()>, until: Instant| {
        let mut expired = Vec::new();
        while let Some(due) = table.next_sweep().filter(|due| *due <= until) {
            table.expired(due, &mut expired);
            for index in expired.drain(..) {
                table.remove(index).unwrap();
            }
        }
        table.shrink();
    };
    sweep(&mut table, clock.now() + Duration::from_secs(20));
    assert_eq!(table.len(), FLOWS as usize / 2);
    sweep(&mut table, clock.now() + Duration::from_secs(75));
    assert_eq!((table.len(), table.pieces.len()), (0, 0));
    assert!(table.by_path.allocation_size() < 64 * 1024);
    assert_eq!(table.next_sweep(), None);
    assert!(table.sources.iter().all(|count| *count == 0));
}
