//! The race in virtual time: no sockets, so the paused clock is exact.

use std::cell::RefCell;
use std::io::ErrorKind;

use tokio::time::Instant;

use super::*;

fn addresses(text: &str) -> Vec<SocketAddr> {
    text.split_whitespace()
        .map(|address| SocketAddr::new(address.parse().unwrap(), 80))
        .collect()
}

fn shown(addresses: &[SocketAddr]) -> String {
    addresses
        .iter()
        .map(|address| address.ip().to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn families_take_turns() {
    for (given, ipv6_first, expected) in [
        ("", None, ""),
        ("1.1.1.1 2.2.2.2", None, "1.1.1.1 2.2.2.2"),
        ("::1 ::2 1.1.1.1 2.2.2.2", None, "::1 1.1.1.1 ::2 2.2.2.2"),
        ("1.1.1.1 2.2.2.2 ::1", None, "1.1.1.1 ::1 2.2.2.2"),
        ("::1 ::2 1.1.1.1", Some(false), "1.1.1.1 ::1 ::2"),
        ("::1 ::2 ::3 1.1.1.1", None, "::1 1.1.1.1 ::2 ::3"),
        ("1.1.1.1 2.2.2.2", Some(true), "1.1.1.1 2.2.2.2"),
    ] {
        let mut list = addresses(given);
        interleave(&mut list, ipv6_first);
        assert_eq!(shown(&list), expected, "{given}");
    }
}

/// The outcome of an attempt, and the milliseconds after which it comes.
type Attempt = (u64, Result<(), ErrorKind>);

struct Outcome {
    result: Result<SocketAddr, (SocketAddr, ErrorKind)>,
    took: u64,
    /// When each attempt began.
    begun: Vec<u64>,
}

/// The n-th address behaves as the n-th attempt says.
fn run(attempts: &[Attempt]) -> Outcome {
    let candidates: Vec<SocketAddr> = (1..=attempts.len())
        .map(|port| SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap())))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let start = now();
        let begun = RefCell::new(Vec::new());
        let elapsed = || u64::try_from(start.elapsed().as_millis()).unwrap();
        let result = race(&candidates, |peer| {
            let (delay, outcome) = attempts[usize::from(peer.port()) - 1];
            begun.borrow_mut().push(elapsed());
            async move {
                tokio::time::sleep(Duration::from_millis(delay)).await;
                outcome.map_err(io::Error::from)
            }
        })
        .await
        .map(|(peer, ())| peer)
        .map_err(|(peer, error)| (peer, error.kind()));
        Outcome {
            result,
            took: elapsed(),
            begun: begun.into_inner(),
        }
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the paused clock of the test's runtime"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_single_address_is_simply_tried() {
    let outcome = run(&[(900, Ok(()))]);
    assert_eq!(outcome.result.unwrap().port(), 1);
    assert_eq!(outcome.took, 900);
}

#[test]
fn a_slow_attempt_gets_company_after_a_quarter_second() {
    let outcome = run(&[(5000, Ok(())), (10, Ok(()))]);
    assert_eq!(outcome.result.unwrap().port(), 2);
    assert_eq!(outcome.begun, [0, 250]);
    assert_eq!(outcome.took, 260);
}

#[test]
fn the_earlier_attempt_may_still_win() {
    let outcome = run(&[(300, Ok(())), (100, Ok(()))]);
    assert_eq!(outcome.result.unwrap().port(), 1);
    assert_eq!(outcome.took, 300);
}

#[test]
fn a_failure_starts_the_next_at_once() {
    let refused = Err(ErrorKind::ConnectionRefused);
    let outcome = run(&[(20, refused), (30, refused), (5, Ok(()))]);
    assert_eq!(outcome.result.unwrap().port(), 3);
    assert_eq!(outcome.begun, [0, 20, 50]);
    assert_eq!(outcome.took, 55);
}

#[test]
fn the_most_telling_error_is_reported() {
    let refused = Err(ErrorKind::ConnectionRefused);
    let no_route = Err(ErrorKind::NetworkUnreachable);
    for attempts in [[(1, no_route), (1, refused)], [(1, refused), (1, no_route)]] {
        let (_, kind) = run(&attempts).result.unwrap_err();
        assert_eq!(kind, ErrorKind::ConnectionRefused);
    }
}
