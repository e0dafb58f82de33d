//! Shared resources of hostile clients: connections, permits to send, time.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Bounds;
use super::door::{Door, Speaks};
use super::tally::Tally;
use crate::Stream;

/// Interval at which waiting clients check whether the attack is over.
const STEP: Duration = Duration::from_millis(20);

/// Leave to send that was not used is kept for so long.
const KEPT: Duration = Duration::from_millis(100);

/// The bounds of one attack, kept for all of its clients.
pub(super) struct Ground<'a> {
    pub(super) door: Arc<Door>,
    pub(super) tally: Tally,
    bounds: Bounds,
    begun: Instant,
    /// Leave that was given or has lapsed, in units.
    gone: Cell<f64>,
    given: Cell<u64>,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        door: Arc<Door>,
        bounds: Bounds,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self {
            door,
            tally: Tally::default(),
            bounds: bounds.capped(),
            begun: SystemClock.now(),
            gone: Cell::new(0.0),
            given: Cell::new(0),
            stop,
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    pub(super) fn goes_on(&self) -> bool {
        !(self.stop)()
            && self.given.get() < self.bounds.count
            && SystemClock.now() < self.begun + self.bounds.duration
    }

    /// Waits for leave to send and returns for how much of `most`; `None` if it is over.
    pub(super) async fn leave(&self, most: u32) -> Option<u32> {
        loop {
            if !self.goes_on() {
                return None;
            }
            let rate = f64::from(self.bounds.rate);
            let elapsed = SystemClock.now().saturating_duration_since(self.begun);
            let due = elapsed.as_secs_f64() * rate;
            let kept = (KEPT.as_secs_f64() * rate).max(1.0);
            self.gone.set(self.gone.get().max(due - kept));
            let left = self.bounds.count - self.given.get();
            let free = (due - self.gone.get()).floor();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is from 0 to the rate"
            )]
            let given = u64::from(most.min(free as u32)).min(left);
            if given > 0 {
                self.gone.set(self.gone.get() + given as f64);
                self.given.set(self.given.get() + given);
                return u32::try_from(given).ok();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Whether it still goes on after `time`.
    pub(super) async fn rest(&self, time: Duration) -> bool {
        let until = SystemClock.now() + time;
        while self.goes_on() && SystemClock.now() < until {
            let left = until.saturating_duration_since(SystemClock.now());
            tokio::time::sleep(left.min(STEP)).await;
        }
        self.goes_on()
    }

    /// Completes when it is over.
    pub(super) async fn end(&self) {
        while self.goes_on() {
            tokio::time::sleep(STEP).await;
        }
    }

    /// Opens a connection when there is leave to; `None` if it is over or was refused.
    pub(super) async fn open(&self, speaks: Speaks, receive_buffer: Option<u32>) -> Option<Stream> {
        self.leave(1).await?;
        if let Ok(stream) = self.door.open(speaks, receive_buffer).await {
            self.tally.connected();
            return Some(stream);
        }
        self.tally.refused();
        self.rest(STEP).await;
        None
    }

    /// Sends `bytes`; an error if the server has ended the connection, or if it is over.
    pub(super) async fn send(
        &self,
        stream: &mut (impl AsyncWriteExt + Unpin),
        bytes: &[u8],
    ) -> io::Result<()> {
        let sending = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        tokio::select! {
            result = sending => result?,
            () = self.end() => return Err(io::ErrorKind::TimedOut.into()),
        }
        self.tally.bytes_sent(bytes.len());
        Ok(())
    }

    /// Reads into `buffer`, and no longer than for `time`: `Some(0)` if the server has ended the
    /// connection, `None` if nothing came.
    pub(super) async fn read(
        &self,
        stream: &mut (impl AsyncReadExt + Unpin),
        buffer: &mut [u8],
        time: Duration,
    ) -> Option<usize> {
        let read = tokio::select! {
            read = stream.read(buffer) => read.unwrap_or(0),
            _ = self.rest(time) => return None,
        };
        self.tally.bytes_received(read);
        Some(read)
    }
}
