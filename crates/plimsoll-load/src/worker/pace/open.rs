//! The open loop: starts follow a schedule, whatever the answers do.
//!
//! The worker's connections share one schedule. An idle one is handed an arrival the moment it is
//! due; one that becomes free takes the oldest that is overdue. So a backlog is only the distance
//! between the schedule and the clock: it needs no memory, and no arrival loses its intended start.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::{Alarm, SystemClock};
use tokio::sync::Notify;

use crate::plan::OnFull;
use crate::schedule::Schedule;
use crate::worker::pace::{Finished, Gate, Start};

/// The schedule of one worker, and the connections that wait for it.
#[derive(Debug)]
pub(crate) struct OpenPacer {
    gate: Rc<Gate>,
    schedule: RefCell<Box<dyn Schedule>>,
    /// The next arrival, `None` once there are no more.
    next: Cell<Option<Instant>>,
    /// Its number, from 0.
    number: Cell<u64>,
    on_full: OnFull,
    slots: Box<[UserSlot]>,
    /// Connections that wait, the longest idle first: all of them get used.
    idle: RefCell<VecDeque<usize>>,
    /// Arrivals are overdue and no connection is idle.
    is_behind: Cell<bool>,
    caught_up: Notify,
    dropped: Cell<u64>,
}

/// Where an idle connection waits for an arrival.
#[derive(Debug, Default)]
struct UserSlot {
    arrival: Cell<Option<Arrival>>,
    waker: RefCell<Option<Waker>>,
    /// Where several slots belong to one connection: its row, and the place in it.
    row: Option<(Rc<Row>, u32)>,
}

/// The slots of a connection that carries several exchanges at a time.
#[derive(Debug, Default)]
struct Row {
    /// Places that were handed an arrival.
    handed: RefCell<VecDeque<u32>>,
    waker: RefCell<Option<Waker>>,
}

/// An arrival that was admitted: it will be made, even if the run is stopped meanwhile.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    intended: Instant,
    in_window: bool,
    number: u64,
}

impl Arrival {
    /// Leave to begin it at `started`.
    ///
    /// - `lag`: how late it is although its connection was idle.
    fn start(self, started: Instant, lag: Option<Duration>) -> Start {
        Start {
            intended: self.intended,
            started,
            in_window: self.in_window,
            lag,
            request: 0,
            arrival: Some(self.number),
        }
    }
}

/// The view of a connection that carries several exchanges at a time.
#[derive(Debug)]
pub(crate) struct OpenRow {
    pacer: Rc<OpenPacer>,
    row: Rc<Row>,
    first_slot: usize,
}

/// One connection's view of the shared schedule.
#[derive(Debug)]
pub(crate) struct OpenUser {
    pacer: Rc<OpenPacer>,
    slot: usize,
}

impl OpenPacer {
    /// - `connections`: how many share the schedule.
    /// - `streams`: exchanges that each carries at a time, if it can be several.
    pub(crate) fn new(
        gate: Rc<Gate>,
        schedule: Box<dyn Schedule>,
        on_full: OnFull,
        connections: usize,
        streams: Option<usize>,
    ) -> Self {
        let places = streams.unwrap_or(1);
        let mut slots: Vec<UserSlot> = Vec::with_capacity(connections * places);
        for _ in 0..connections {
            let row = streams.map(|streams| Rc::new(Row::with_capacity(streams)));
            slots.extend((0_u32..).take(places).map(|place| UserSlot {
                row: row.clone().map(|row| (row, place)),
                ..UserSlot::default()
            }));
        }
        let pacer = Self {
            gate,
            schedule: RefCell::new(schedule),
            next: Cell::new(None),
            number: Cell::new(0),
            on_full,
            idle: RefCell::new(VecDeque::with_capacity(slots.len())),
            slots: slots.into(),
            is_behind: Cell::new(false),
            caught_up: Notify::new(),
            dropped: Cell::new(0),
        };
        pacer.next.set(pacer.next_arrival());
        pacer
    }

    /// The view of connection number `slot` of this worker.
    pub(crate) fn user(self: &Rc<Self>, slot: usize) -> OpenUser {
        OpenUser {
            pacer: Rc::clone(self),
            slot,
        }
    }

    /// The view of the connection whose slots begin with number `first_slot`.
    pub(crate) fn row(self: &Rc<Self>, first_slot: usize) -> OpenRow {
        let row = self.slots[first_slot].row.as_ref();
        OpenRow {
            pacer: Rc::clone(self),
            row: row.map_or_else(Rc::default, |(row, _)| Rc::clone(row)),
            first_slot,
        }
    }

    /// Hands out arrivals as they fall due, until there are no more.
    pub(crate) async fn dispatch(&self) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        while let Some(next) = self.next.get() {
            tokio::select! {
                waited = alarm.until(next, SystemClock.now()) => waited?,
                () = self.gate.wait_for_stop() => break,
            }
            self.hand_out(SystemClock.now());
            if self.is_behind.get() {
                tokio::select! {
                    () = self.caught_up.notified() => {}
                    () = self.gate.wait_for_stop() => break,
                }
            }
        }
        // All arrivals are made or being made: send everybody home.
        self.stop(SystemClock.now());
        Ok(())
    }

    /// Begins nothing more, except what was due by `now` and has an idle connection waiting for it.
    pub(crate) fn stop(&self, now: Instant) {
        self.hand_out(now);
        self.gate.stop();
        for slot in self.idle.borrow_mut().drain(..) {
            self.slots[slot].wake();
        }
    }

    /// Arrivals of the window given up since they were last taken.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Arrivals of the window given up so far because nothing was free.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.take()
    }

    /// Counts the arrivals of the window that were due before `now` and never begun; call it last.
    ///
    /// - `miss`: gets the time that each waited, from its intended start until `now`.
    pub(crate) fn count_missed(&self, now: Instant, mut miss: impl FnMut(Duration)) {
        let mut missed = 0;
        while let Some(arrival) = self.next.get().filter(|arrival| *arrival < now) {
            if self.gate.in_window(arrival) && missed < self.gate.budget() {
                missed += 1;
                miss(now - arrival);
            }
            self.advance();
        }
        // Some were handed to a connection which did not get to begin them.
        for arrival in self.slots.iter().filter_map(|slot| slot.arrival.take()) {
            if arrival.in_window {
                miss(now.saturating_duration_since(arrival.intended));
            }
        }
    }

    /// Goes on to the next arrival.
    fn advance(&self) {
        self.number.set(self.number.get() + 1);
        self.next.set(self.next_arrival());
    }

    fn next_arrival(&self) -> Option<Instant> {
        let offset = self.schedule.borrow_mut().next_arrival()?;
        let next = self.gate.run_start() + offset;
        let end = self.gate.end();
        end.is_none_or(|end| next < end).then_some(next)
    }

    /// Hands arrivals that are due to idle connections. Once the run stops, none: those that are left are counted as missed.
    fn hand_out(&self, now: Instant) {
        if self.gate.is_stopping() {
            return;
        }
        while let Some(intended) = self.next.get().filter(|next| *next <= now) {
            let idle = self.idle.borrow().front().copied();
            if idle.is_none() && self.on_full == OnFull::Queue {
                self.is_behind.set(true);
                return;
            }
            let Some(in_window) = self.gate.admit(intended) else {
                // The budget is used up.
                self.next.set(None);
                return;
            };
            let number = self.number.get();
            self.advance();
            if let Some(slot) = idle {
                self.idle.borrow_mut().pop_front();
                let arrival = Arrival {
                    intended,
                    in_window,
                    number,
                };
                self.slots[slot].hand(arrival);
            } else {
                self.dropped.set(self.dropped.get() + u64::from(in_window));
            }
        }
    }

    /// The oldest arrival that is late and may be made all the same.
    fn overdue(&self, now: Instant) -> Option<Instant> {
        let next = self.next.get();
        next.filter(|arrival| self.on_full == OnFull::Queue && *arrival <= now)
    }

    /// Takes the oldest overdue arrival, if there is one and it may still be begun.
    fn take_overdue(&self, now: Instant) -> Option<Arrival> {
        let intended = self.overdue(now)?;
        if self.gate.is_stopping() {
            return None;
        }
        let Some(in_window) = self.gate.admit(intended) else {
            // The budget is used up; the dispatcher ends once this connection is idle.
            self.next.set(None);
            return None;
        };
        let number = self.number.get();
        self.advance();
        Some(Arrival {
            intended,
            in_window,
            number,
        })
    }
}

impl UserSlot {
    fn hand(&self, arrival: Arrival) {
        self.arrival.set(Some(arrival));
        if let Some((row, place)) = &self.row {
            row.handed.borrow_mut().push_back(*place);
        }
        self.wake();
    }

    fn wake(&self) {
        let waker = match &self.row {
            None => &self.waker,
            Some((row, _)) => &row.waker,
        };
        if let Some(waker) = waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Row {
    fn with_capacity(streams: usize) -> Self {
        Self {
            handed: RefCell::new(VecDeque::with_capacity(streams)),
            waker: RefCell::default(),
        }
    }
}

impl OpenRow {
    pub(super) fn gate(&self) -> &Gate {
        &self.pacer.gate
    }

    /// A place became free at `now`: it takes the oldest overdue arrival, or waits for the next.
    pub(crate) fn free(&self, place: u32, now: Instant) -> Option<Start> {
        let pacer = &self.pacer;
        if let Some(arrival) = pacer.take_overdue(now) {
            return Some(arrival.start(now, None));
        }
        let slot = self.first_slot + place as usize;
        pacer.idle.borrow_mut().push_back(slot);
        if pacer.is_behind.replace(false) {
            pacer.caught_up.notify_one();
        }
        None
    }

    /// The next arrival that a free place of this connection was handed; `None` at the end.
    pub(crate) fn poll_start(&self, context: &mut Context<'_>) -> Poll<Option<(u32, Start)>> {
        let pacer = &self.pacer;
        let place = self.row.handed.borrow_mut().pop_front();
        if let Some(place) = place
            && let Some(arrival) = pacer.slots[self.first_slot + place as usize].arrival.take()
        {
            let started = SystemClock.now();
            let lag = started.saturating_duration_since(arrival.intended);
            return Poll::Ready(Some((place, arrival.start(started, Some(lag)))));
        }
        if pacer.gate.is_stopping() {
            return Poll::Ready(None);
        }
        let mut waker = self.row.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl OpenUser {
    pub(crate) async fn next(&mut self, last: Option<Finished>) -> Option<Start> {
        let pacer = &self.pacer;
        let mut now = last.map_or_else(|| SystemClock.now(), |last| last.done);
        let rest = last.map_or(Duration::ZERO, |last| last.back_off);
        if !rest.is_zero() && pacer.overdue(now).is_some() {
            // The schedule bounds the attempts that are made on time; what is late is not made in vain
            // all at once.
            tokio::select! {
                () = tokio::time::sleep_until((now + rest).into()) => {}
                () = pacer.gate.wait_for_stop() => {}
            }
            now = SystemClock.now();
        }
        if let Some(arrival) = pacer.take_overdue(now) {
            return Some(arrival.start(now, None));
        }
        let arrival = self.wait_for_arrival().await?;
        let started = SystemClock.now();
        let lag = started.saturating_duration_since(arrival.intended);
        Some(arrival.start(started, Some(lag)))
    }

    async fn wait_for_arrival(&self) -> Option<Arrival> {
        let pacer = &self.pacer;
        let slot = &pacer.slots[self.slot];
        pacer.idle.borrow_mut().push_back(self.slot);
        if pacer.is_behind.replace(false) {
            pacer.caught_up.notify_one();
        }
        poll_fn(|context| {
            if let Some(arrival) = slot.arrival.take() {
                return Poll::Ready(Some(arrival));
            }
            if pacer.gate.is_stopping() {
                return Poll::Ready(None);
            }
            *slot.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Rate;
    use plimsoll_testkit::VirtualClock;

    use super::*;
    use crate::schedule::{EvenArrivals, RateProfile, Share};

    /// 100 arrivals in a second, for two connections.
    fn pacer(start: Instant) -> Rc<OpenPacer> {
        let end = start + Duration::from_secs(1);
        let gate = Rc::new(Gate::new(start, start, Some(end), None));
        let whole = Share { index: 0, of: 1 };
        let schedule = Box::new(EvenArrivals::new(
            RateProfile::constant(Rate::new(100.0).unwrap()),
            whole,
        ));
        Rc::new(OpenPacer::new(gate, schedule, OnFull::Queue, 2, None))
    }

    /// A task of a connection may run between the stop and the dispatcher, which then finds it idle.
    #[test]
    fn arrivals_that_are_left_when_a_run_stops_are_missed_whoever_is_run_next() {
        let start = VirtualClock::new().now();
        for is_idle_after_stop in [false, true] {
            let pacer = pacer(start);
            let end = start + Duration::from_secs(1);
            pacer.idle.borrow_mut().push_back(0);
            // The worker stood still for the whole second.
            pacer.stop(end);
            if is_idle_after_stop {
                pacer.idle.borrow_mut().push_back(1);
            }
            pacer.hand_out(end);
            assert!(pacer.take_overdue(end).is_none());
            let mut missed = 0;
            let handed = pacer.slots[0].arrival.take();
            pacer.count_missed(end, |_| missed += 1);
            assert_eq!(missed + u32::from(handed.is_some()), 100);
        }
    }
}
