//! The pace of a connection that carries several exchanges at a time, all in one task.
//!
//! Each place for an exchange follows the same rules as a connection of HTTP/1; only the waiting is
//! done for all of them together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use tokio::time::Sleep;

use crate::worker::pace::{ClosedPacer, Finished, Gate, OpenRow, Start, Step};

/// Paces the places of one connection.
#[derive(Debug)]
pub(crate) enum StreamPacer {
    Closed(ClosedStreams),
    Open(OpenStreams),
}

impl StreamPacer {
    /// - `places`: the pacer of each place.
    pub(crate) fn closed(gate: Rc<Gate>, places: Vec<ClosedPacer>) -> Self {
        Self::Closed(ClosedStreams {
            ready: VecDeque::with_capacity(places.len()),
            waiting: BinaryHeap::with_capacity(places.len()),
            places,
            gate,
            sleep: None,
            in_play: 0,
            ended: 0,
        })
    }

    pub(crate) fn open(row: OpenRow, streams: usize) -> Self {
        Self::Open(OpenStreams {
            row,
            overdue: VecDeque::with_capacity(streams),
        })
    }

    /// The gate that says when there are no more exchanges.
    pub(crate) fn gate(&self) -> &Gate {
        match self {
            Self::Closed(pacer) => &pacer.gate,
            Self::Open(pacer) => pacer.row.gate(),
        }
    }

    /// Brings a place into play.
    pub(crate) fn add(&mut self, place: u32, now: Instant) {
        match self {
            Self::Closed(pacer) => {
                pacer.in_play += 1;
                pacer.ready.push_back((place, now, None));
            }
            Self::Open(pacer) => pacer.free(place, now),
        }
    }

    /// The exchange of a place came to its end.
    #[inline]
    pub(crate) fn free(&mut self, place: u32, last: Finished) {
        match self {
            Self::Closed(pacer) => pacer.ready.push_back((place, last.done, Some(last))),
            Self::Open(pacer) => pacer.free(place, last.done),
        }
    }

    /// The next place that may begin an exchange; `None` once no free place ever will.
    #[inline]
    pub(crate) fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<Option<(u32, Start)>> {
        match self {
            Self::Closed(pacer) => pacer.poll_start(context),
            Self::Open(pacer) => pacer.poll_start(context),
        }
    }
}

/// A closed loop: each place follows its own last exchange.
#[derive(Debug)]
pub(crate) struct ClosedStreams {
    gate: Rc<Gate>,
    places: Vec<ClosedPacer>,
    /// Places to be polled, with the present as they know it.
    ready: VecDeque<(u32, Instant, Option<Finished>)>,
    /// Places that pause, by when they are to be polled again.
    waiting: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Made when a place first pauses.
    sleep: Option<Pin<Box<Sleep>>>,
    in_play: usize,
    ended: usize,
}

impl ClosedStreams {
    fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<Option<(u32, Start)>> {
        loop {
            while let Some((place, now, last)) = self.ready.pop_front() {
                match self.places[place as usize].step(now, last) {
                    Step::Start(start) => return Poll::Ready(Some((place, start))),
                    Step::Wait(until) => self.waiting.push(Reverse((until, place))),
                    Step::End => self.ended += 1,
                }
            }
            if self.gate.is_stopping() {
                self.ended += self.waiting.len();
                self.waiting.clear();
            }
            if self.ended == self.in_play {
                return Poll::Ready(None);
            }
            let Some(&Reverse((next, _))) = self.waiting.peek() else {
                return Poll::Pending;
            };
            if !self.poll_passed(next, context) {
                return Poll::Pending;
            }
            let now = SystemClock.now().max(next);
            while let Some(&Reverse((at, place))) = self.waiting.peek()
                && at <= now
            {
                self.waiting.pop();
                self.ready.push_back((place, now, None));
            }
        }
    }

    /// Whether `moment` has passed; the task is woken when it does, or when the run is stopped.
    fn poll_passed(&mut self, moment: Instant, context: &mut Context<'_>) -> bool {
        let gate = &self.gate;
        let sleep = self.sleep.get_or_insert_with(|| {
            gate.wake_on_stop(context.waker().clone());
            Box::pin(tokio::time::sleep_until(moment.into()))
        });
        if sleep.deadline().into_std() != moment {
            sleep.as_mut().reset(moment.into());
        }
        sleep.as_mut().poll(context).is_ready()
    }
}

/// An open loop: free places wait for the schedule that all connections of the worker share.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    row: OpenRow,
    overdue: VecDeque<(u32, Start)>,
}

impl OpenStreams {
    fn free(&mut self, place: u32, now: Instant) {
        if let Some(start) = self.row.free(place, now) {
            self.overdue.push_back((place, start));
        }
    }

    fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<Option<(u32, Start)>> {
        match self.overdue.pop_front() {
            Some(overdue) => Poll::Ready(Some(overdue)),
            None => self.row.poll_start(context),
        }
    }
}
