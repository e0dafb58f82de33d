//! State that the connections of one worker share. Only counters are shared between workers.

pub(crate) mod admission;

pub(crate) mod context;

pub(crate) mod states;

pub(crate) mod drain;

pub(crate) mod alarms;

pub(crate) mod timer;

use std::cell::{Cell, RefCell, RefMut};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use http::HeaderValue;
use plimsoll_wire::h1::DateLine;
use plimsoll_wire::{DatagramBuffer, SystemClock};

use crate::counters::{Counters, Cut, WorkerCounters};
use crate::limits::Limits;
use crate::worker::admission::Admission;
use crate::worker::alarms::Alarms;
use crate::worker::drain::DrainSignal;
use crate::worker::states::LocalStates;

/// How long an idle connection may still bring a request once the engine drains: one that is on its way
/// is answered instead of lost.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(1);

/// Bytes read from the kernel at a time.
const INPUT_BYTES: usize = 64 * 1024;

/// The bits of a connection's number that count: more than a worker ever sees.
const WORKER_SHIFT: u32 = 48;

#[derive(Debug)]
pub(crate) struct Worker {
    /// Its number among those of the engine, from 0 on.
    pub(crate) number: usize,
    pub(crate) clock: SystemClock,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) shared: Arc<Counters>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) limits: RefCell<Rc<Limits>>,
    pub(crate) memory: RefCell<Memory>,
    /// Made with the first datagram.
    datagrams: RefCell<Option<DatagramBuffer>>,
    pub(crate) alarms: Alarms,
    /// State that survives reloads.
    pub(crate) states: LocalStates,
    pub(crate) drain: DrainSignal,
    connections: RefCell<Connections>,
    /// Sessions of datagrams that a drain waits for.
    lingering: Cell<usize>,
    /// Number of connections.
    ids: Cell<u64>,
}

/// Memory that all connections use, one after the other: an idle one holds none.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) input: Box<[u8]>,
    pub(crate) output: Vec<u8>,
    pub(crate) date: DateLine,
    date_value: Option<HeaderValue>,
}

impl Memory {
    /// The value of `date`, as HTTP/2 sends it.
    pub(crate) fn date_value(&mut self, now: Instant, clock: SystemClock) -> HeaderValue {
        let line = self.date.at(now, &clock);
        let value = line
            .strip_prefix(b"date: ")
            .and_then(|rest| rest.strip_suffix(b"\r\n"))
            .unwrap_or(line);
        match &self.date_value {
            Some(kept) if kept.as_bytes() == value => kept.clone(),
            _ => {
                let made =
                    HeaderValue::from_bytes(value).unwrap_or_else(|_| HeaderValue::from_static(""));
                self.date_value.insert(made).clone()
            }
        }
    }
}

/// The tasks of the connections, to be woken when the engine drains.
#[derive(Debug, Default)]
struct Connections {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Worker {
    pub(crate) fn new(
        number: usize,
        limits: Limits,
        shared: Arc<Counters>,
        admission: Arc<Admission>,
    ) -> Self {
        Self {
            number,
            clock: SystemClock,
            counters: shared.worker(),
            shared,
            admission,
            limits: RefCell::new(Rc::new(limits)),
            memory: RefCell::new(Memory {
                input: vec![0; INPUT_BYTES].into_boxed_slice(),
                output: Vec::with_capacity(INPUT_BYTES),
                date: DateLine::new(),
                date_value: None,
            }),
            datagrams: RefCell::default(),
            alarms: Alarms::default(),
            states: LocalStates::default(),
            drain: DrainSignal::default(),
            connections: RefCell::default(),
            lingering: Cell::new(0),
            ids: Cell::new(0),
        }
    }

    pub(crate) fn limits(&self) -> Rc<Limits> {
        Rc::clone(&self.limits.borrow())
    }

    /// Memory for datagrams that are received.
    pub(crate) fn datagrams(&self) -> RefMut<'_, DatagramBuffer> {
        RefMut::map(self.datagrams.borrow_mut(), |buffer| {
            buffer.get_or_insert_default()
        })
    }

    /// Since when the engine drains, if it does.
    #[inline]
    pub(crate) fn draining(&self) -> Option<Instant> {
        self.drain.since()
    }

    /// Announces to every connection that this request is its last.
    pub(crate) fn drain(&self, now: Instant) {
        self.drain.begin(now);
        for waker in self.connections.borrow().wakers.iter().flatten() {
            waker.wake_by_ref();
        }
    }

    /// Those of a worker are counted; the number of the worker makes them differ from those of the others.
    fn next_id(&self) -> u64 {
        let count = self.ids.get();
        self.ids.set(count + 1);
        (self.number as u64) << WORKER_SHIFT | count
    }

    /// Connections that are open, and sessions that are waited for.
    pub(crate) fn open(&self) -> usize {
        let connections = self.connections.borrow();
        connections.wakers.len() - connections.free.len() + self.lingering.get()
    }

    /// A listener has had so many sessions that a drain waits for, and has so many now.
    pub(crate) fn linger(&self, before: usize, now: usize) {
        self.lingering.set(self.lingering.get() + now - before);
    }
}

/// A connection's place: gives back what it held when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    pub(crate) worker: Rc<Worker>,
    address: IpAddr,
    number: usize,
    id: u64,
}

impl ConnectionGuard {
    /// For a connection that was admitted.
    pub(crate) fn new(worker: Rc<Worker>, address: IpAddr) -> Self {
        worker.counters.accepted();
        let id = worker.next_id();
        let number = {
            let mut connections = worker.connections.borrow_mut();
            connections.free.pop().unwrap_or_else(|| {
                connections.wakers.push(None);
                connections.wakers.len() - 1
            })
        };
        Self {
            worker,
            address,
            number,
            id,
        }
    }

    /// Counts the connection as one of `address` from now on, if that one may have it.
    pub(crate) fn moved(&mut self, address: IpAddr) -> Result<(), Cut> {
        let most = self.worker.limits().connections_per_address;
        self.worker.admission.moved(self.address, address, most)?;
        self.address = address;
        Ok(())
    }

    /// A number that no other connection of the engine has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Wakes the task of the connection.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &self.worker.connections.borrow().wakers[self.number] {
            waker.wake_by_ref();
        }
    }

    /// Has the task of the connection woken when the engine drains.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut connections = self.worker.connections.borrow_mut();
        let watched = &mut connections.wakers[self.number];
        match watched {
            Some(watched) => watched.clone_from(waker),
            None => *watched = Some(waker.clone()),
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.worker.counters.panicked();
        }
        self.worker.counters.closed();
        self.worker.admission.leave(self.address);
        let mut connections = self.worker.connections.borrow_mut();
        connections.wakers[self.number] = None;
        connections.free.push(self.number);
    }
}
