//! Content that comes slowly.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;
use tokio::time::Sleep;

/// Rate at which content is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// In so many pieces over so long a time.
    Dribble(u32, Duration),
    /// So many bytes a second.
    Bandwidth(u64),
}

/// Interval of pieces at a bandwidth.
const TICK: Duration = Duration::from_millis(50);

impl Pace {
    /// Length of each piece of content with `length` bytes in all, and the delay between pieces.
    fn piece(self, length: usize) -> (usize, Duration) {
        match self {
            Self::Dribble(pieces, time) => {
                let pieces = pieces.max(1);
                (length.div_ceil(pieces as usize).max(1), time / pieces)
            }
            Self::Bandwidth(rate) => {
                let bytes = u128::from(rate) * TICK.as_millis() / 1000;
                if bytes == 0 {
                    return (
                        1,
                        Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(1),
                    );
                }
                (usize::try_from(bytes).unwrap_or(usize::MAX), TICK)
            }
        }
    }
}

/// Content at a pace.
#[derive(Debug)]
pub(crate) struct Paced {
    left: Bytes,
    piece: usize,
    interval: Duration,
    wait: Pin<Box<Sleep>>,
}

impl Paced {
    /// Must be called where there is a runtime.
    pub(crate) fn new(content: Bytes, pace: Pace) -> Self {
        let (piece, interval) = pace.piece(content.len());
        Self {
            left: content,
            piece,
            interval,
            wait: Box::pin(tokio::time::sleep(interval)),
        }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        if this.left.is_empty() {
            return Poll::Ready(None);
        }
        ready!(this.wait.as_mut().poll(cx));
        let length = this.piece.min(this.left.len());
        let piece = this.left.split_to(length);
        // From when it was due, so that lateness does not add up.
        let next = this.wait.deadline() + this.interval;
        this.wait.as_mut().reset(next);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_as_long_as_the_pace_says() {
        let ms = Duration::from_millis;
        assert_eq!(Pace::Dribble(4, ms(100)).piece(10), (3, ms(25)));
        assert_eq!(Pace::Dribble(0, ms(100)).piece(0), (1, ms(100)));
        assert_eq!(Pace::Bandwidth(65_536).piece(1 << 20), (3276, ms(50)));
        assert_eq!(Pace::Bandwidth(2).piece(10), (1, ms(500)));
    }
}
