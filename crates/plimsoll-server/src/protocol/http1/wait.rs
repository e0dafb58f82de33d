//! The waits of a connection, with their limits.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_model::Clock;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Broken, Http1, MOST_CARRIED};
use crate::counters::Cut;
use crate::worker::LAST_CALL;

/// The reason of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Head,
    Request,
    Content,
    Write,
    /// The answer to a client that has sent its last byte: it may only have closed its own direction.
    Departed,
}

/// Time an answer may still take once the client has sent its last byte. Most such clients are gone; those that
/// closed only their own direction (`nc -N`) still get what comes soon.
const HALF_CLOSED: Duration = Duration::from_secs(1);

impl Http1 {
    /// Sends what the socket did not take before.
    pub(super) fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let result = self.output.poll_send(&mut self.stream, cx);
        let is_stuck = result.is_pending();
        let sent = self.output.take_progress();
        if sent > 0 || !self.is_stuck {
            self.since = self.place.worker.clock.now();
        }
        self.is_stuck = is_stuck;
        if is_stuck {
            self.write_pace.took(sent);
        } else {
            self.write_pace.rest();
        }
        match result {
            Poll::Ready(result) => Poll::Ready(result.map_err(Broken::from)),
            Poll::Pending => self.poll_wait(cx, WaitsFor::Write).map(Err),
        }
    }

    /// Ready once the client is gone, so that its answer need not be waited for any longer.
    ///
    /// Reads what comes meanwhile: requests that follow are kept up to a bound. Beyond it they are thrown away, and the
    /// connection closes after the answer.
    pub(super) fn poll_departed(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        let worker = Rc::clone(&self.place.worker);
        while !self.is_at_end {
            let memory = &mut *worker.memory.borrow_mut();
            let mut buffer = ReadBuf::new(&mut memory.input);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Broken::Io),
                Poll::Ready(Ok(())) => {}
            }
            self.since = worker.clock.now();
            let read = buffer.filled();
            self.is_at_end = read.is_empty();
            self.is_overfull |= self.carry.len() + read.len() > MOST_CARRIED;
            if self.is_overfull {
                self.carry = Vec::new();
                continue;
            }
            if self.carry.is_empty() {
                self.head_since = self.since;
            }
            self.carry.extend_from_slice(read);
        }
        self.poll_wait(cx, WaitsFor::Departed)
    }

    /// Ready when what is waited for did not come in time.
    pub(super) fn poll_wait(&mut self, cx: &mut Context<'_>, waits_for: WaitsFor) -> Poll<Broken> {
        let limits = &self.limits;
        let mut deadline = match waits_for {
            WaitsFor::Head => self.head_since + limits.header_timeout,
            WaitsFor::Request => self.since + limits.idle_timeout,
            WaitsFor::Content => self.since + limits.body_timeout,
            WaitsFor::Write => self.since + limits.write_timeout,
            WaitsFor::Departed => self.since + HALF_CLOSED,
        };
        let pace = match waits_for {
            WaitsFor::Head | WaitsFor::Request | WaitsFor::Departed => None,
            WaitsFor::Content => {
                let pace = &mut self.content_pace;
                pace.deadline(self.since, limits.body_timeout, limits.body_rate)
            }
            WaitsFor::Write => {
                let pace = &mut self.write_pace;
                pace.deadline(self.since, limits.write_timeout, limits.read_rate)
            }
        };
        let is_slow = pace.is_some_and(|pace| pace < deadline);
        deadline = pace.filter(|_| is_slow).unwrap_or(deadline);
        let worker = &self.place.worker;
        let is_idle = waits_for == WaitsFor::Request
            || (waits_for == WaitsFor::Head && self.is_fresh && self.carry.is_empty());
        if is_idle && let Some(draining) = worker.draining() {
            deadline = deadline.min(draining + LAST_CALL);
        }
        ready!(self.timer.poll_passed(cx, deadline, &worker.clock));
        Poll::Ready(match waits_for {
            WaitsFor::Head if !is_idle || worker.draining().is_none() => {
                Broken::Cut(Cut::HeaderTimeout)
            }
            // Nothing was under way, or the client is gone.
            WaitsFor::Head | WaitsFor::Request | WaitsFor::Departed => Broken::Io,
            WaitsFor::Content if is_slow => Broken::Cut(Cut::BodyRate),
            WaitsFor::Write if is_slow => Broken::Cut(Cut::ReadRate),
            WaitsFor::Content => Broken::Cut(Cut::BodyTimeout),
            WaitsFor::Write => Broken::Cut(Cut::WriteTimeout),
        })
    }
}
