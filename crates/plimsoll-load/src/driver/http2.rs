//! The virtual users of one HTTP/2 connection: as many exchanges at a time as it carries, in one task.
//!
//! Whatever wakes the task, it does all that can be done: it takes responses, starts their places again, and
//! sends the new requests in one write. Nothing is allocated for an exchange, and the clock is read
//! once for each read and each write, however many exchanges are in it.

mod link;

mod place;

mod taking;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_client::{ConnectFailure, Driven, require_http2};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h2::Settings;

use self::link::{Connecting, Link, Open};
use self::place::StreamSlot;
use self::taking::{News, ResponseReading};
use super::{Driver, Tasks, WorkerState};
use crate::plan::Http2Plan;
use crate::worker::ConnectionSlot;
use crate::worker::back_off::BackOff;
use crate::worker::coalescing::Coalescing;
use crate::worker::pace::{Finished, StreamPacer};
use crate::workload::{HttpWorkload, Response, ResponseReader};

/// Turns before the worker's other connections get theirs.
const TURNS_PER_POLL: u32 = 32;

/// Carries exchanges over HTTP/2.
#[derive(Debug)]
pub(crate) struct Http2Driver(pub(crate) Http2Plan);

impl Driver for Http2Driver {
    fn start<W: HttpWorkload>(
        &self,
        slot: &ConnectionSlot<'_>,
        make: &dyn Fn(usize) -> W,
        tasks: &mut Tasks,
    ) {
        let shared = slot.shared();
        let plan = &shared.plan;
        let settings = self.0.settings(&plan.limits);
        let streams = settings.streams as usize;
        let first = slot.index() * streams;
        let now = SystemClock.now();
        let user = StreamsUser {
            // Each place is a virtual user, which begins at a request of its own.
            places: (first..first + streams)
                .map(|index| StreamSlot::new(make(index), now))
                .collect(),
            in_play: 0,
            under_way: 0,
            links: (plan.seed.wrapping_add(slot.index() as u64)..)
                .zip(&plan.endpoints)
                .map(|(seed, _)| Link::new(seed))
                .collect(),
            settings,
            coalescing: slot.coalescing(),
            news: News::default(),
            turn: 0,
            pacer: slot.stream_pacer(),
            shared: Rc::clone(shared),
        };
        tasks.spawn_local(async move {
            user.live().await;
            Ok(())
        });
    }
}

/// Makes the exchanges of one connection, and of those that replace it.
struct StreamsUser<W> {
    shared: Rc<WorkerState>,
    pacer: StreamPacer,
    places: Vec<StreamSlot<W>>,
    /// Places in play: one until a server has announced how many it allows.
    in_play: u32,
    under_way: usize,
    /// One per endpoint.
    links: Vec<Link>,
    settings: Settings,
    /// Sees every response.
    coalescing: Option<Arc<Coalescing>>,
    /// The results of the turn under way.
    news: News,
    turn: u64,
}

/// Exchanges that are under way when the run is over are aborted; a stream that is open was counted.
impl<W> Drop for StreamsUser<W> {
    fn drop(&mut self) {
        for place in &self.places {
            if place.is_under_way {
                self.shared.recorder.abort(&place.start);
            }
        }
    }
}

impl<W: HttpWorkload> StreamsUser<W> {
    /// Makes exchanges until the pacer has no more starts.
    async fn live(mut self) {
        self.bring_into_play(1, SystemClock.now());
        let mut is_known = !W::Reader::OUTLASTS;
        poll_fn(|context| {
            if !std::mem::replace(&mut is_known, true) {
                // Streams are left when the run is over.
                self.pacer.gate().wake_on_stop(context.waker().clone());
            }
            self.poll_live(context)
        })
        .await;
    }

    fn poll_live(&mut self, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_PER_POLL {
            self.turn += 1;
            let is_over = self.take_up(context);
            let mut progress = false;
            for endpoint in 0..self.links.len() {
                progress |= self.poll_link(endpoint, context);
            }
            if !progress {
                return if is_over && self.under_way == 0 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                };
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Has every place that may begin an exchange wait for a connection; returns whether none ever will.
    fn take_up(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            match self.pacer.poll_start(context) {
                Poll::Pending => return false,
                Poll::Ready(None) => return true,
                Poll::Ready(Some((place, start))) => {
                    self.shared.recorder.begin(&start);
                    self.under_way += 1;
                    let taken = &mut self.places[place as usize];
                    let endpoint = taken.take_up(start, self.turn);
                    self.links[endpoint].queue.push_back(place);
                }
            }
        }
    }

    /// Does all that can be done for one endpoint; returns whether that may have made room for more.
    fn poll_link(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let mut progress = self.poll_connecting(endpoint, context);
        let link = &mut self.links[endpoint];
        if let Some(retired) = link.current.take_if(|open| open.http.is_retired()) {
            if retired.http.in_flight() > 0 {
                link.retired.push(retired);
            } else {
                link.take_leave(&retired);
            }
        }
        if link.current.is_none() && link.connecting.is_none() && !link.poll_rest(context) {
            progress |= self.begin_connecting(endpoint);
        }
        self.begin_requests(endpoint);
        progress |= self.drive(endpoint, context);
        progress |= self.lose_patience(endpoint, context);
        progress |= self.spread_news(endpoint);
        progress
    }

    fn begin_connecting(&mut self, endpoint: usize) -> bool {
        let Some(place) = self.links[endpoint].queue.pop_front() else {
            return false;
        };
        self.note_waiting(place);
        let shared = Rc::clone(&self.shared);
        self.links[endpoint].connecting = Some(Connecting {
            place,
            begun: SystemClock.now(),
            attempt: Box::pin(async move {
                let endpoint = shared.endpoint(endpoint);
                let connecting = shared.connector.connect(&endpoint, &SystemClock);
                let connection = Box::pin(connecting).await?;
                match require_http2(&connection, &endpoint) {
                    Ok(()) => Ok(connection),
                    Err(failure) => Err(ConnectFailure {
                        failure,
                        phases: connection.phases,
                    }),
                }
            }),
        });
        true
    }

    fn poll_connecting(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let link = &mut self.links[endpoint];
        let Some(connecting) = &mut link.connecting else {
            return false;
        };
        let Poll::Ready(result) = connecting.attempt.as_mut().poll(context) else {
            return false;
        };
        let (place, begun) = (connecting.place, connecting.begun);
        link.connecting = None;
        let phases = match &result {
            Ok(connection) => &connection.phases,
            Err(error) => &error.phases,
        };
        self.places[place as usize].phases.add(phases);
        match result {
            Ok(connection) => {
                self.shared.recorder.connection_opened();
                let link = &mut self.links[endpoint];
                let plan = &self.shared.plan;
                link.current = Some(Open::new(connection, plan, self.settings, begun));
                link.queue.push_front(place);
            }
            Err(error) => {
                self.links[endpoint].back_off.refused(begun);
                // The place waited for the connection that failed.
                self.fail(place, &error.failure);
                while let Some(place) = self.links[endpoint].queue.pop_front() {
                    self.note_waiting(place);
                    self.fail(place, &error.failure);
                }
            }
        }
        true
    }

    /// Puts as many of the requests that wait on the connection as it takes.
    fn begin_requests(&mut self, endpoint: usize) {
        let mut now = None;
        while let link = &mut self.links[endpoint]
            && let Some(open) = &mut link.current
            && open.http.capacity() > 0
            && let Some(place) = link.queue.pop_front()
        {
            let taken = &mut self.places[place as usize];
            let start = &taken.start;
            let begun = if taken.taken_in == self.turn {
                start.started
            } else {
                *now.get_or_insert_with(|| SystemClock.now())
            };
            // A place that opened the connection, or was answered already, has this behind it.
            let is_begun = taken.phases.get(Phase::Connect).is_some() || taken.bytes_sent > 0;
            if begun > start.intended && !is_begun {
                taken.phases.set(Phase::Blocked, begun - start.intended);
            }
            let plan = &self.shared.plan;
            let deadline = start.started + plan.timeout;
            let Some(request) = taken.workload.request().0.http2() else {
                let failure = Failure::new(Phase::Send, FailureKind::Protocol)
                    .because("the request was not encoded for HTTP/2");
                self.fail(place, &failure);
                continue;
            };
            if open.http.begin(request, place, begun, deadline).is_err() {
                // It has just retired; the next turn opens another.
                self.links[endpoint].queue.push_front(place);
                return;
            }
        }
    }

    /// Writes and reads on all connections to `endpoint`.
    fn drive(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let Self {
            shared,
            places,
            links,
            coalescing,
            news,
            ..
        } = self;
        let Link {
            current,
            retired,
            back_off,
            ..
        } = &mut links[endpoint];
        let mut take = |open: &mut Open, back_off: &mut BackOff| {
            let mut taking = ResponseReading {
                endpoint,
                places,
                coalescing: coalescing.as_deref(),
                news,
                peer: open.peer,
                certificate_days: open.certificate_days,
                has_carried: false,
            };
            let http = &mut open.http;
            let driven = http.poll_drive(context, &shared.buffer, &mut taking, &SystemClock);
            if taking.has_carried {
                open.has_carried = true;
                back_off.carried();
            }
            driven
        };
        let mut progress = false;
        let mut established = None;
        let mut over = Vec::new();
        if let Some(open) = current {
            let driven = take(open, back_off);
            progress |= driven.is_ready();
            if driven == Poll::Ready(Driven::Over) {
                over.extend(current.take());
            } else if driven.is_ready() && open.http.is_established() {
                let most = open.http.capacity() + open.http.in_flight();
                if most < self.settings.streams as usize && !open.http.is_retired() {
                    shared.recorder.streams_limited(most);
                }
                established = Some(most);
            }
        }
        let drained = retired.extract_if(.., |open| {
            let driven = take(open, back_off);
            progress |= driven.is_ready();
            driven == Poll::Ready(Driven::Over) || open.http.in_flight() == 0
        });
        over.extend(drained);
        for open in &over {
            self.links[endpoint].take_leave(open);
        }
        if let Some(allowed) = established {
            let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
            if allowed.min(self.settings.streams) > self.in_play {
                self.bring_into_play(allowed, SystemClock.now());
            }
        }
        progress
    }

    /// Gives up exchanges whose time is over before there was a connection for them.
    fn lose_patience(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let timeout = self.shared.plan.timeout;
        let link = &mut self.links[endpoint];
        let Some(place) = link.queue.front().copied() else {
            return false;
        };
        let deadline = self.places[place as usize].start.started + timeout;
        let patience = link
            .patience
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        if patience.deadline().into_std() != deadline {
            patience.as_mut().reset(deadline.into());
        }
        if patience.as_mut().poll(context).is_pending() {
            return false;
        }
        link.queue.pop_front();
        self.note_waiting(place);
        let failure = Failure::new(Phase::Blocked, FailureKind::Timeout)
            .because("no stream was free on the connection");
        self.fail(place, &failure);
        true
    }

    /// Lets freed places begin anew, and requests that were not looked at be sent again.
    fn spread_news(&mut self, endpoint: usize) -> bool {
        self.give_up(endpoint);
        let News {
            answered,
            failed,
            again,
            ..
        } = &mut self.news;
        let is_any = !answered.is_empty() || !failed.is_empty() || !again.is_empty();
        self.under_way -= answered.len() + failed.len();
        for (place, finished) in answered.drain(..) {
            self.places[place as usize].is_under_way = false;
            self.pacer.free(place, finished);
        }
        for (place, mut finished) in failed.drain(..) {
            self.places[place as usize].is_under_way = false;
            let rest = self.links[endpoint].back_off.remaining(finished.done);
            finished.back_off = finished.back_off.max(rest);
            self.pacer.free(place, finished);
        }
        for (place, endpoint) in again.drain(..) {
            while self.links.len() <= endpoint {
                let seed = self.shared.plan.seed.wrapping_add(self.links.len() as u64);
                self.links.push(Link::new(seed));
            }
            self.links[endpoint].queue.push_back(place);
        }
        is_any
    }

    /// Ends the responses that are to be given up, and the streams that are left with the run.
    fn give_up(&mut self, endpoint: usize) {
        let mut given_up = std::mem::take(&mut self.news.given_up);
        let is_over = self.pacer.gate().is_stopping();
        if W::Reader::OUTLASTS && is_over {
            let places = (0_u32..).zip(&self.places);
            given_up.extend(
                places
                    .filter(|(_, place)| place.workload.reader().was_opened())
                    .map(|(token, _)| token),
            );
        }
        let link = &mut self.links[endpoint];
        for token in given_up.drain(..) {
            let mut opens = link.current.iter_mut().chain(&mut link.retired);
            let Some((open, traffic)) = opens.find_map(|open| {
                let traffic = open.http.traffic(token)?;
                Some((open, traffic))
            }) else {
                continue;
            };
            open.http.cancel(token);
            let (peer, days) = (open.peer, open.certificate_days);
            let place = &mut self.places[token as usize];
            let (finished, _) = place.conclude(Response::Dropped(traffic), peer, days);
            self.news.answered.push((token, finished));
        }
        self.news.given_up = given_up;
    }

    /// The exchange of `place` waited until now, from when it was meant to start.
    fn note_waiting(&mut self, place: u32) {
        let taken = &mut self.places[place as usize];
        let now = if taken.taken_in == self.turn {
            taken.start.started
        } else {
            SystemClock.now()
        };
        let waited = now.saturating_duration_since(taken.start.intended);
        if !waited.is_zero() {
            taken.phases.set(Phase::Blocked, waited);
        }
    }

    /// Counts an exchange that came to nothing before its request was begun.
    fn fail(&mut self, place: u32, failure: &Failure) {
        let done = SystemClock.now();
        let taken = &self.places[place as usize];
        let mut exchange = taken.exchange(None);
        exchange.done = done;
        exchange.outcome = Err(failure.clone());
        self.shared.recorder.finish(&taken.start, &exchange);
        let finished = Finished {
            done,
            back_off: Duration::ZERO,
        };
        self.news.failed.push((place, finished));
    }

    fn bring_into_play(&mut self, places: u32, now: Instant) {
        let places = places.min(self.settings.streams);
        while self.in_play < places {
            self.pacer.add(self.in_play, now);
            self.in_play += 1;
        }
    }
}
