//! Happy eyeballs: several addresses, the first connection wins (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

/// Delay before the next connection attempt starts beside the current one (RFC 8305, section 5).
pub(crate) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The addresses with their families taking turns, beginning with the family of `first` or, without
/// it, that of the first address; within a family the order stays (RFC 8305, section 4).
pub(crate) fn interleave(addresses: &mut [SocketAddr], ipv6_first: Option<bool>) {
    let Some(leader) = ipv6_first.or(addresses.first().map(SocketAddr::is_ipv6)) else {
        return;
    };
    let mut wanted = leader;
    for index in 0..addresses.len() {
        let next = addresses[index..]
            .iter()
            .position(|address| address.is_ipv6() == wanted);
        if let Some(offset) = next {
            addresses[index..=index + offset].rotate_right(1);
        }
        wanted = !wanted;
    }
}

/// Connects to `candidates` (at least one) in their order and returns the first to succeed.
///
/// The next attempt starts after [`ATTEMPT_DELAY`], or at once when one fails; those still under way
/// when one succeeds are dropped. If all fail, the error of the most telling one, with its address.
pub(crate) async fn race<T, F>(
    candidates: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> F,
) -> Result<(SocketAddr, T), (SocketAddr, io::Error)>
where
    F: Future<Output = io::Result<T>>,
{
    let attempt = |peer| {
        let connecting = connect(peer);
        async move {
            match connecting.await {
                Ok(connected) => Ok((peer, connected)),
                Err(error) => Err((peer, error)),
            }
        }
    };
    let (first, mut waiting) = candidates
        .split_first()
        .expect("a resolved host has an address");
    if waiting.is_empty() {
        return attempt(*first).await;
    }
    let mut under_way = FuturesUnordered::from_iter([attempt(*first)]);
    let mut worst: Option<(SocketAddr, io::Error)> = None;
    loop {
        tokio::select! {
            biased;
            Some(outcome) = under_way.next() => match outcome {
                Ok(winner) => return Ok(winner),
                Err(failed) => {
                    worst = Some(match worst.take() {
                        Some(earlier) if tells_more(&earlier.1, &failed.1) => earlier,
                        _ => failed,
                    });
                }
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if !waiting.is_empty() => {}
        }
        if let Some((next, rest)) = waiting.split_first() {
            under_way.push(attempt(*next));
            waiting = rest;
        } else if under_way.is_empty() {
            return Err(worst.expect("an attempt ends the loop only by failing"));
        }
    }
}

/// That this machine has no route says less than what a peer answered.
fn tells_more(earlier: &io::Error, later: &io::Error) -> bool {
    let is_local = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::HostUnreachable
        )
    };
    is_local(later) || !is_local(earlier)
}

#[cfg(test)]
mod tests;
