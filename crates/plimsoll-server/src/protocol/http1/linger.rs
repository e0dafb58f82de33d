//! The end of a connection whose client may still be sending.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use plimsoll_model::Clock;
use tokio::io::{AsyncRead, ReadBuf};

use crate::stream::Stream;
use crate::worker::ConnectionGuard;
use crate::worker::timer::Timer;

/// How long, for how much, and through how much silence the rest of what a client sends is read after the last response,
/// so that a reset does not take the response with it. Many clients read the response only once they have sent
/// everything; discarding it costs little.
const LINGER: Duration = Duration::from_secs(10);
const LINGER_BYTES: usize = 128 << 20;
const SILENCE: Duration = Duration::from_secs(2);

/// Reads what the client still sends, within bounds, so that it comes to read the response.
pub(super) async fn linger(mut stream: Stream, place: &ConnectionGuard) {
    let worker = &place.worker;
    let begun = worker.clock.now();
    let mut until = begun + SILENCE;
    let mut timer = Timer::new(until);
    let mut left = LINGER_BYTES;
    poll_fn(|cx| {
        loop {
            if timer.poll_passed(cx, until, &worker.clock).is_ready() {
                return Poll::Ready(());
            }
            let memory = &mut *worker.memory.borrow_mut();
            let mut buffer = ReadBuf::new(&mut memory.input);
            match ready!(Pin::new(&mut stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() && buffer.filled().len() < left => {
                    left -= buffer.filled().len();
                    until = (worker.clock.now() + SILENCE).min(begun + LINGER);
                }
                _ => return Poll::Ready(()),
            }
        }
    })
    .await;
}
