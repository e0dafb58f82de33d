//! Caps, idle connections, retirement.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::forward::{Head, PoolOptions, may_retry};
use plimsoll_client::forward::{Pool, Speaks};
use plimsoll_client::{AddressFilter, ConnectOptions, Endpoint, ReadBuffer};
use plimsoll_model::{Clock as _, FailureKind, Phase, Retry};
use plimsoll_testkit::{
    HELLO, Http2Origin, NameServer, Origin, Script, Step, VirtualClock, allocations_of_this_thread,
    frames, until,
};

use super::{Chunks, Ground, Over, run_local};
use crate::connecting::connector;

#[test]
fn connections_are_capped_and_callers_wait_for_them() {
    run_local(async {
        let options = PoolOptions {
            connections: 1,
            waiting: 1,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        let destination = ground.pool.destination(&ground.endpoint);
        let first = destination.acquire().await.unwrap();
        let waiting = {
            let destination = destination.clone();
            tokio::task::spawn_local(async move { destination.acquire().await })
        };
        while destination.status().waiting == 0 {
            tokio::task::yield_now().await;
        }
        let refused = destination.acquire().await.unwrap_err().failure;
        assert_eq!(
            (refused.phase, refused.kind, refused.retry),
            (Phase::Blocked, FailureKind::ResourceLimit, Retry::Safe)
        );
        // A lease that is dropped unused gives its connection to the next caller.
        drop(first);
        let second = waiting.await.unwrap().unwrap();
        assert!(second.phases().get(Phase::Blocked).is_some());
        let mut exchange = second
            .begin(&Head::new("GET", "/hello", &()), Chunks::none())
            .unwrap();
        let waiting = {
            let destination = destination.clone();
            tokio::task::spawn_local(async move { destination.acquire().await })
        };
        exchange.final_head().await.unwrap();
        while exchange.frame().await.is_some() {}
        assert!(waiting.await.unwrap().unwrap().is_reused());
        assert_eq!(
            (destination.status().open, destination.status().idle),
            (1, 1)
        );
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn callers_are_served_in_the_order_in_which_they_came() {
    run_local(async {
        let options = PoolOptions {
            connections: 1,
            waiting: 3,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        let destination = ground.pool.destination(&ground.endpoint);
        let mut lease = destination.acquire().await.unwrap();
        let served = Rc::new(RefCell::new(Vec::new()));
        let caller = |number: usize| {
            let (destination, served) = (destination.clone(), Rc::clone(&served));
            tokio::task::spawn_local(async move {
                let lease = destination.acquire().await.map_err(|it| it.failure);
                served.borrow_mut().push(number);
                lease
            })
        };
        let mut callers = VecDeque::new();
        for number in 0..3 {
            callers.push_back(caller(number));
            while destination.status().waiting <= number {
                tokio::task::yield_now().await;
            }
        }
        for next in 3..8 {
            drop(lease);
            // The connection is free, but those that have waited for it come first, and keep their places.
            assert!(destination.acquire_now(VirtualClock::new().now()).is_none());
            let refused = destination.acquire_unused().await.unwrap_err().failure;
            assert_eq!(refused.kind, FailureKind::ResourceLimit);
            lease = callers.pop_front().unwrap().await.unwrap().unwrap();
            callers.push_back(caller(next));
            while destination.status().waiting < 3 {
                tokio::task::yield_now().await;
            }
        }
        // One that gives up in the middle, and one that was about to be served.
        callers[1].abort();
        callers[0].abort();
        drop(lease);
        let last = callers.pop_back().unwrap();
        drop(last.await.unwrap().unwrap());
        assert_eq!(*served.borrow(), [0, 1, 2, 3, 4, 7]);
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn destinations_that_nobody_uses_are_forgotten() {
    run_local(async {
        let options = PoolOptions {
            destinations: 3,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        ground.get("/hello").await.unwrap();
        let kept = ground.pool.destination(&ground.endpoint);
        for number in 0..50 {
            let other = Endpoint::parse(&format!("http://a{number}.test/")).unwrap();
            ground.pool.destination(&other);
            assert!(ground.pool.destinations() <= 4, "{number}");
        }
        // That of a caller stays, with its connection.
        assert!(Rc::ptr_eq(
            &kept,
            &ground.pool.destination(&ground.endpoint)
        ));
        assert_eq!(kept.status().idle, 1);
    });
}

#[test]
fn an_unused_connection_takes_the_place_of_an_idle_one() {
    run_local(async {
        let options = PoolOptions {
            connections: 1,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        let destination = ground.pool.destination(&ground.endpoint);
        ground.get("/hello").await.unwrap();
        assert_eq!(destination.status().idle, 1);
        let lease = destination.acquire_unused().await.unwrap();
        assert!(!lease.is_reused());
        assert_eq!(
            (destination.status().open, destination.status().idle),
            (1, 0)
        );
        until(|| ground.server.connections.get() == 2).await;
    });
}

#[test]
fn a_caller_that_gives_up_leaves_its_place_to_the_next() {
    run_local(async {
        let options = PoolOptions {
            connections: 1,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        let destination = ground.pool.destination(&ground.endpoint);
        let first = destination.acquire().await.unwrap();
        let wait = || {
            let destination = destination.clone();
            tokio::task::spawn_local(async move { destination.acquire().await.map(|_| ()) })
        };
        let (second, third) = (wait(), wait());
        while destination.status().waiting < 2 {
            tokio::task::yield_now().await;
        }
        drop(first);
        second.abort();
        third.await.unwrap().unwrap();
    });
}

#[test]
fn streams_are_capped_and_shared() {
    run_local(async {
        let options = PoolOptions {
            connections: 1,
            streams: 2,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http2, options).await;
        ground.get("/hello").await.unwrap();
        let destination = ground.pool.destination(&ground.endpoint);
        let leases = [
            destination.acquire().await.unwrap(),
            destination.acquire().await.unwrap(),
        ];
        let third = {
            let destination = destination.clone();
            tokio::task::spawn_local(async move { destination.acquire().await.map(|_| ()) })
        };
        while destination.status().waiting == 0 {
            tokio::task::yield_now().await;
        }
        drop(leases);
        third.await.unwrap().unwrap();
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn many_callers_at_once_share_one_new_connection() {
    run_local(async {
        for over in [Over::Http2, Over::Http2Tls] {
            let ground = Ground::new(over).await;
            let answers = (0..20).map(|_| ground.get("/hello"));
            for answer in futures_util::future::join_all(answers).await {
                assert_eq!(answer.unwrap().text(), "hello");
            }
            assert_eq!(ground.server.connections.get(), 1);
        }
    });
}

#[test]
fn idle_connections_end_with_their_time() {
    run_local(async {
        for over in [Over::Http1, Over::Http2] {
            for (idle_timeout, lifetime) in [
                (Duration::ZERO, Duration::from_mins(1)),
                (Duration::from_mins(1), Duration::ZERO),
            ] {
                let options = PoolOptions {
                    idle_timeout,
                    lifetime,
                    ..PoolOptions::default()
                };
                let ground = Ground::with(over, options).await;
                ground.get("/hello").await.unwrap();
                ground.pool.sweep();
                ground.get("/hello").await.unwrap();
                assert_eq!(ground.server.connections.get(), 2, "{over:?}");
            }
        }
    });
}

#[test]
fn sweeping_closes_idle_connections() {
    run_local(async {
        let options = PoolOptions {
            idle_timeout: Duration::ZERO,
            ..PoolOptions::default()
        };
        let ground = Ground::with(Over::Http1, options).await;
        let destination = ground.pool.destination(&ground.endpoint);
        ground.get("/hello").await.unwrap();
        assert_eq!(
            (destination.status().open, destination.status().idle),
            (1, 1)
        );
        ground.pool.sweep();
        assert_eq!(
            (destination.status().open, destination.status().idle),
            (0, 0)
        );
    });
}

#[test]
fn addresses_that_are_not_allowed_are_not_connected_to() {
    run_local(async {
        let origin = Origin::hello();
        let pool = Pool::new(
            connector(ConnectOptions {
                address_filter: Some(AddressFilter::public()),
                ..ConnectOptions::default()
            }),
            PoolOptions::default(),
        );
        for host in ["127.0.0.1", "localhost"] {
            let url = origin.url("/").replace("127.0.0.1", host);
            let endpoint = Endpoint::parse(&url).unwrap();
            let failure = pool.acquire(&endpoint).await.unwrap_err().failure;
            assert_eq!(
                (failure.phase, failure.kind),
                (Phase::Dns, FailureKind::Refused)
            );
        }
        assert_eq!(origin.connections(), 0);
    });
}

#[test]
fn an_exchange_on_a_kept_connection_costs_few_allocations() {
    let origin = Origin::scripted(Script::serve(HELLO));
    run_local(async {
        let options = PoolOptions {
            speaks: Speaks::Http1,
            ..PoolOptions::default()
        };
        let pool = Pool::new(connector(ConnectOptions::default()), options);
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let destination = pool.destination(&endpoint);
        let fields = [("accept", "*/*"), ("user-agent", "test")];
        let mut counts = Vec::new();
        for _ in 0..5 {
            let before = allocations_of_this_thread();
            let lease = destination.acquire().await.unwrap();
            let head = Head::new("GET", "/", &fields);
            let mut exchange = lease.begin(&head, Chunks::none()).unwrap();
            exchange.final_head().await.unwrap();
            while let Some(frame) = exchange.frame().await {
                frame.unwrap();
            }
            drop(exchange);
            counts.push(allocations_of_this_thread() - before);
        }
        // The exchange, the fields and where they end, the content.
        assert!(counts[2..].iter().all(|count| *count <= 5), "{counts:?}");
    });
}

/// Says hello once, then reads the next request and closes without a word.
fn closes_on_the_second() -> Origin {
    let script = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(HELLO.to_vec()))
        .then(Step::ReadHead);
    Origin::scripted(script)
}

#[test]
fn a_request_that_meets_a_closing_connection_is_retried_only_if_idempotent() {
    run_local(async {
        let origin = closes_on_the_second();
        let pool = Pool::new(
            connector(ConnectOptions::default()),
            PoolOptions {
                speaks: Speaks::Http1,
                ..PoolOptions::default()
            },
        );
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let exchange = async |method: &str| {
            let lease = pool.acquire(&endpoint).await.unwrap();
            let mut exchange = lease
                .begin(&Head::new(method, "/", &()), Chunks::none())
                .unwrap();
            exchange.final_head().await?;
            while let Some(frame) = exchange.frame().await {
                frame?;
            }
            Ok::<_, plimsoll_client::Incomplete>(())
        };
        exchange("GET").await.unwrap();
        let failure = exchange("GET").await.unwrap_err().failure;
        assert_eq!(failure.retry, Retry::IfReused);
        assert!(may_retry(&failure, true) && !may_retry(&failure, false));
    });
}

#[test]
fn streams_go_on_behind_goaway_and_new_ones_take_another_connection() {
    run_local(async {
        let ground = Ground::new(Over::Http2).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let body = Chunks::streamed(&["still "]).endless();
        let mut leaving = lease
            .begin(&Head::new("POST", "/leave", &()), body)
            .unwrap();
        leaving.final_head().await.unwrap();
        let frame = leaving.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "still ");
        // GOAWAY comes with the next reads at the latest.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
        assert_eq!(ground.server.connections.get(), 2);
    });
}

/// A pool of HTTP/2 connections whose clock a test moves.
fn on_virtual_time(options: PoolOptions) -> (Pool, VirtualClock) {
    let clock = VirtualClock::new();
    let options = PoolOptions {
        speaks: Speaks::Http2,
        ..options
    };
    let connector = connector(ConnectOptions::default());
    let pool = Pool::with(
        connector,
        options,
        ReadBuffer::new(),
        Rc::new(clock.clone()),
    );
    (pool, clock)
}

async fn get(pool: &Pool, endpoint: &Endpoint) {
    let lease = pool.acquire(endpoint).await.unwrap();
    let mut exchange = lease
        .begin(&Head::new("GET", "/", &()), Chunks::none())
        .unwrap();
    exchange.final_head().await.unwrap();
    while let Some(frame) = exchange.frame().await {
        frame.unwrap();
    }
}

#[test]
fn an_idle_connection_is_probed_before_it_is_used_again() {
    run_local(async {
        let origin = Http2Origin::hello();
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let (pool, clock) = on_virtual_time(PoolOptions::default());
        let destination = pool.destination(&endpoint);
        get(&pool, &endpoint).await;
        assert!(destination.acquire_now(clock.now()).is_some());
        clock.advance(PoolOptions::default().probe_after);
        // The server has to answer the probe first.
        assert!(destination.acquire_now(clock.now()).is_none());
        get(&pool, &endpoint).await;
        assert!(destination.acquire_now(clock.now()).is_some());
        assert_eq!((origin.connections(), origin.requests()), (1, 2));
    });
}

#[test]
fn a_connection_whose_server_answers_no_probe_is_replaced() {
    run_local(async {
        let hello = [
            frames::frame(1, 4, 1, b"\x88"),
            frames::frame(0, 1, 1, b"hello"),
        ]
        .concat();
        let origin = Http2Origin::builder()
            .raw(move |number| {
                let silent = Script::new()
                    .then(Step::Write(frames::settings()))
                    .then(Step::ReadBody(frames::OPENING_BYTES + 9))
                    .then(Step::Write(hello.clone()))
                    .then(Step::Swallow);
                (number == 0).then_some(silent)
            })
            .start();
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let (pool, clock) = on_virtual_time(PoolOptions {
            probe_timeout: Duration::from_millis(50),
            ..PoolOptions::default()
        });
        get(&pool, &endpoint).await;
        clock.advance(PoolOptions::default().probe_after);
        get(&pool, &endpoint).await;
        assert_eq!(origin.connections(), 2);
        assert_eq!(pool.destination(&endpoint).status().open, 1);
    });
}

#[test]
fn a_connection_is_used_no_longer_than_the_ttl_of_its_address() {
    const TTL: u32 = 60;
    run_local(async {
        let origin = Origin::scripted(Script::serve(HELLO));
        let names = NameServer::builder()
            .record("a.test", Ipv4Addr::LOCALHOST, TTL)
            .start();
        for follows_ttl in [true, false] {
            let before = origin.connections();
            let clock = VirtualClock::new();
            let connector = connector(ConnectOptions {
                name_servers: vec![names.address()],
                ..ConnectOptions::default()
            });
            let hour = Duration::from_hours(1);
            let options = PoolOptions {
                speaks: Speaks::Http1,
                idle_timeout: hour,
                lifetime: hour,
                follows_ttl,
                ..PoolOptions::default()
            };
            let pool = Pool::with(
                connector,
                options,
                ReadBuffer::new(),
                Rc::new(clock.clone()),
            );
            let url = format!("http://a.test:{}/", origin.port());
            let endpoint = Endpoint::parse(&url).unwrap();
            get(&pool, &endpoint).await;
            clock.advance(Duration::from_secs(50));
            get(&pool, &endpoint).await;
            assert_eq!(origin.connections() - before, 1);
            clock.advance(Duration::from_mins(10));
            get(&pool, &endpoint).await;
            let opened = origin.connections() - before;
            assert_eq!(opened, if follows_ttl { 2 } else { 1 });
        }
    });
}
