//! One worker: a thread, a runtime, its share of the connections.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use plimsoll_client::{Connector, ReadBuffer};
use plimsoll_model::Clock;
use plimsoll_wire::{Alarm, SystemClock, cores, cpu_time, timer_slack};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use crate::Ramp;
use crate::coalescing::Coalescing;
use crate::collector::Published;
use crate::events::EventStream;
use crate::pace::{ClosedPacer, Gate, OpenPacer, Pacer, StreamPacer};
use crate::plain::{PlainUser, Shared};
use crate::plan::{Pacing, RunPlan, Spacing};
use crate::progress::{Interrupt, Progress, ProgressReport};
use crate::quic::{QuicConnection, QuicUser};
use crate::recorder::Interval;
use crate::run::RunError;
use crate::schedule::{
    BurstArrivals, EvenArrivals, JitteredArrivals, PoissonArrivals, Schedule, Share,
};
use crate::source::SharedSource;
use crate::streams::StreamsUser;
use crate::user::{Recorder, live};
use crate::websocket::WebSocketUser;

/// How often a worker looks up from its connections.
const BEAT: Duration = Duration::from_millis(20);

/// How often it hands over what it counted.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// What a worker thread is given.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) plan: RunPlan,
    pub(crate) share: Share,
    pub(crate) progress: Arc<Progress>,
    pub(crate) interrupt: Arc<Interrupt>,
    /// Gets a message once the worker can start.
    pub(crate) ready: SyncSender<()>,
    /// Gets the moment at which the run starts.
    pub(crate) go: Receiver<Instant>,
    pub(crate) publish: SyncSender<Published>,
    /// Intervals that were merged and may be filled again.
    pub(crate) spares: Receiver<Box<Interval>>,
}

/// What a worker says of itself at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    /// When it began nothing more.
    pub(crate) stopped: Instant,
    /// Share of one core that it used in the measured window, in percent.
    pub(crate) cpu_percent: f64,
    /// The fewest streams that a server allows at a time, where that is fewer than configured.
    pub(crate) stream_limit: Option<usize>,
    /// Responses behind which more bytes came than they announce.
    pub(crate) surplus: u64,
}

/// Runs one worker to its end on the calling thread.
pub(crate) fn work(setup: Setup) -> Result<Report, RunError> {
    if let Some(core) = setup.plan.cores.get(setup.share.index as usize) {
        cores::pin_thread(*core).map_err(RunError::Pin)?;
    }
    let mut builder = Builder::new_current_thread();
    builder.enable_all();
    let may_coalesce = Coalescing::is_for(&setup.plan) && timer_slack::give_up_on_this_thread();
    let coalescing = may_coalesce.then(Arc::<Coalescing>::default);
    if let Some(coalescing) = coalescing.clone() {
        builder.on_thread_park(move || coalescing.sleep());
    }
    let runtime = builder
        .build_local(LocalOptions::default())
        .map_err(RunError::Runtime)?;
    if setup.ready.send(()).is_err() {
        return Err(RunError::Stopped);
    }
    let run_start = setup.go.recv().map_err(|_| RunError::Stopped)?;
    runtime.block_on(Worker::new(setup, run_start, coalescing).drive())
}

struct Worker {
    plan: Rc<RunPlan>,
    share: Share,
    interrupt: Arc<Interrupt>,
    publish: SyncSender<Published>,
    spares: Receiver<Box<Interval>>,
    gate: Rc<Gate>,
    open: Option<Rc<OpenPacer>>,
    recorder: Rc<Recorder>,
    /// Where wake-ups are coalesced.
    coalescing: Option<Arc<Coalescing>>,
    window_start: Instant,
    /// Moment and processor time at the start of the measured window.
    window_mark: Option<(Instant, Duration)>,
    /// The same when it began nothing more.
    stop_mark: Option<(Instant, Duration)>,
    published: u32,
    /// What was handed over so far.
    handed_over: ProgressReport,
    /// Whether nothing more was begun when it last handed over.
    is_in_grace: bool,
}

impl Worker {
    fn new(setup: Setup, run_start: Instant, coalescing: Option<Arc<Coalescing>>) -> Self {
        let plan = Rc::new(setup.plan);
        let share = setup.share;
        let window_start = run_start + plan.warm_up;
        let end = plan.stop.duration.map(|duration| window_start + duration);
        let budget = plan.stop.requests.map(|requests| part(requests, share));
        let gate = Rc::new(Gate::new(run_start, window_start, end, budget));
        let open = open_pacer(&plan, share, &gate);
        let interval = Interval::new(plan.expectations.conditions().len(), open.is_some());
        let recorder = Recorder::new(
            Box::new(interval),
            setup.progress,
            plan.fail_statuses.clone(),
            window_start,
            end,
            &plan.names,
        );
        Self {
            recorder: Rc::new(recorder),
            interrupt: setup.interrupt,
            publish: setup.publish,
            spares: setup.spares,
            window_mark: None,
            stop_mark: None,
            published: 0,
            handed_over: ProgressReport::default(),
            is_in_grace: false,
            plan,
            share,
            gate,
            open,
            coalescing,
            window_start,
        }
    }

    async fn drive(mut self) -> Result<Report, RunError> {
        let mut alarm = Alarm::new().map_err(RunError::Runtime)?;
        let mut tasks = self.start_users();
        let start = self.gate.run_start();
        let mut beat = start + BEAT;
        let mut publish_at = start + PUBLISH_EVERY;
        loop {
            tokio::select! {
                biased;
                beaten = alarm.until(beat, SystemClock.now()) => {
                    beaten.map_err(RunError::Runtime)?;
                    let now = SystemClock.now();
                    self.recorder.interval().record_lag(now - beat);
                    self.publish_progress();
                    self.mark(now);
                    let stops_now = self.stop_mark.is_none() && self.must_stop(now);
                    if stops_now {
                        self.stop(now);
                    }
                    if self.must_give_up(now) {
                        break;
                    }
                    // The last second is handed over with what is still under way.
                    if now >= publish_at && !stops_now {
                        self.hand_over(now, false);
                        publish_at += PUBLISH_EVERY;
                    }
                    while beat <= now {
                        beat += BEAT;
                    }
                }
                ended = tasks.join_next() => match ended {
                    None => break,
                    Some(Ok(result)) => result.map_err(RunError::Runtime)?,
                    Some(Err(error)) => return Err(RunError::Panicked(error.to_string())),
                },
            }
        }
        // Users that are still under way are aborted by being dropped.
        drop(tasks);
        if self.plan.http3.is_some() {
            // QUIC says good-bye from tasks of its own.
            tokio::task::yield_now().await;
        }
        let now = SystemClock.now();
        self.mark(now);
        self.stop(now);
        self.count_missed();
        self.hand_over(now, true);
        Ok(self.report())
    }

    fn start_users(&self) -> JoinSet<std::io::Result<()>> {
        let mut tasks = JoinSet::new();
        let plan = &self.plan;
        let shared = Rc::new(Shared {
            plan: Rc::clone(plan),
            connector: Connector::new(Arc::clone(&plan.connect)),
            buffer: ReadBuffer::new(),
            source: Rc::new(SharedSource::new(plan, self.share)),
        });
        let ramp = match &plan.pacing {
            Pacing::Closed { ramp, .. } => ramp.clone().map(Rc::new),
            Pacing::Open { .. } => None,
        };
        let connections = connections_of(plan.connections, self.share);
        for seat in 0..connections {
            // Numbered across workers, so that a ramp grows on all of them alike.
            let index = seat * self.share.of as usize + self.share.index as usize;
            if let Some(http2) = &plan.http2 {
                let first = index * plan.streams();
                let events = (first..first + plan.streams()).map(|place| self.events(place));
                let user = StreamsUser::new(
                    Rc::clone(&shared),
                    Rc::clone(&self.recorder),
                    self.stream_pacer(seat, index, ramp.as_ref()),
                    index,
                    http2.settings(&plan.limits),
                    events.collect(),
                    self.coalescing.clone(),
                );
                tasks.spawn_local(async move {
                    user.live().await;
                    Ok(())
                });
                continue;
            }
            if let Some(http3) = &plan.http3 {
                let connection = Rc::new(QuicConnection::new(
                    plan.endpoints.len(),
                    plan.seed.wrapping_add(index as u64),
                ));
                for place in 0..http3.streams as usize {
                    let connection = Rc::clone(&connection);
                    let user = QuicUser::new(
                        Rc::clone(&shared),
                        connection,
                        index * plan.streams() + place,
                        self.events(index * plan.streams() + place),
                    );
                    let pacer =
                        self.pacer(seat * plan.streams() + place, index, place, ramp.as_ref());
                    let recorder = Rc::clone(&self.recorder);
                    tasks.spawn_local(async move {
                        live(user, pacer, recorder).await;
                        Ok(())
                    });
                }
                continue;
            }
            let pacer = self.pacer(seat, index, 0, ramp.as_ref());
            let recorder = Rc::clone(&self.recorder);
            if let Some(websocket) = &plan.websocket {
                let user = WebSocketUser::new(Rc::clone(&shared), websocket.clone(), index);
                tasks.spawn_local(async move {
                    user.live(pacer, recorder).await;
                    Ok(())
                });
                continue;
            }
            let user = PlainUser::new(Rc::clone(&shared), index, self.events(index));
            tasks.spawn_local(async move {
                live(user, pacer, recorder).await;
                Ok(())
            });
        }
        if let Some(open) = self.open.clone() {
            tasks.spawn_local(async move { open.dispatch().await });
        }
        tasks
    }

    /// The pacer of one virtual user.
    ///
    /// - `seat`: its number among the users of this worker.
    /// - `index`: the number of its connection in the run.
    /// - `place`: its number among the users of its connection.
    fn pacer(&self, seat: usize, index: usize, place: usize, ramp: Option<&Rc<Ramp>>) -> Pacer {
        match (&self.plan.pacing, &self.open) {
            (Pacing::Closed { think, .. }, _) => {
                // A ramp counts connections, so all users of one join with it; their thoughts differ.
                let seed = self
                    .plan
                    .seed
                    .wrapping_add((place * self.plan.connections) as u64);
                let gate = Rc::clone(&self.gate);
                Pacer::Closed(ClosedPacer::new(gate, index, ramp.cloned(), *think, seed))
            }
            (Pacing::Open { .. }, open) => {
                let open = open.as_ref().expect("an open loop has a shared pacer");
                Pacer::Open(open.user(seat))
            }
        }
    }

    /// What a virtual user has of its stream of events, where such are opened.
    ///
    /// - `index`: its number in the run.
    fn events(&self, index: usize) -> Option<Box<EventStream>> {
        let limits = self.plan.events?;
        let (gate, recorder) = (Rc::clone(&self.gate), Rc::clone(&self.recorder));
        let seed = self.plan.seed.wrapping_add(index as u64);
        Some(Box::new(EventStream::new(limits, gate, recorder, seed)))
    }

    /// The pacer of a connection that carries several exchanges at a time in one task.
    fn stream_pacer(&self, seat: usize, index: usize, ramp: Option<&Rc<Ramp>>) -> StreamPacer {
        let plan = &self.plan;
        let streams = plan.streams();
        if let Some(open) = &self.open {
            return StreamPacer::open(open.row(seat * streams), streams);
        }
        let think = match &plan.pacing {
            Pacing::Closed { think, .. } => *think,
            Pacing::Open { .. } => None,
        };
        let place = |place| {
            // A ramp counts connections, so all places of one join with it; their thoughts differ.
            let seed = plan.seed.wrapping_add((place * plan.connections) as u64);
            let (gate, ramp) = (Rc::clone(&self.gate), ramp.cloned());
            ClosedPacer::new(gate, index, ramp, think, seed)
        };
        StreamPacer::closed(Rc::clone(&self.gate), (0..streams).map(place).collect())
    }

    /// Notes the processor time when the measured window starts.
    fn mark(&mut self, now: Instant) {
        if self.window_mark.is_none() && now >= self.window_start {
            self.window_mark = Some((now, cpu_time::of_this_thread()));
        }
    }

    fn must_stop(&self, now: Instant) -> bool {
        self.gate.end().is_some_and(|end| now >= end) || self.interrupt.is_over()
    }

    fn must_give_up(&self, now: Instant) -> bool {
        self.interrupt.is_urgent()
            || self
                .stop_mark
                .is_some_and(|(stopped, _)| now >= stopped + self.plan.grace)
    }

    fn stop(&mut self, now: Instant) {
        if self.stop_mark.is_none() {
            self.stop_mark = Some((now, cpu_time::of_this_thread()));
            self.recorder.end_window(now);
            match &self.open {
                Some(open) => open.stop(now),
                None => self.gate.stop(),
            }
        }
    }

    fn count_missed(&self) {
        if let (Some(open), Some((stopped, _))) = (&self.open, self.stop_mark) {
            self.recorder.interval().counts.missed += open.count_missed(stopped);
        }
    }

    /// Lets the sampler know what was counted until now.
    fn publish_progress(&self) {
        let mut counted = self.handed_over;
        counted.add(&self.recorder.interval());
        if let Some(open) = &self.open {
            counted.errors += open.dropped();
        }
        self.recorder.progress().report(counted);
    }

    /// Hands over what was counted since the last time.
    fn hand_over(&mut self, now: Instant, is_last: bool) {
        let spare = match self.spares.try_recv() {
            Ok(spare) => spare,
            // The collector is behind: count on, and hand over more next time.
            Err(_) if !is_last => return,
            Err(_) => Box::new(Interval::new(
                self.plan.expectations.conditions().len(),
                self.open.is_some(),
            )),
        };
        let mut interval = std::mem::replace(&mut *self.recorder.interval(), spare);
        interval.in_flight = self.recorder.in_flight();
        if is_last {
            self.recorder.hand_over_requests(&mut interval);
        }
        if let Some(open) = &self.open {
            interval.counts.dropped += open.take_dropped();
        }
        self.handed_over.add(&interval);
        self.recorder.progress().report(self.handed_over);
        self.published += 1;
        let published = Published {
            worker: self.share.index,
            at: now - self.gate.run_start(),
            is_last,
            grace: std::mem::replace(&mut self.is_in_grace, self.stop_mark.is_some()),
            interval,
        };
        // The collector only goes away when the run has failed elsewhere.
        drop(self.publish.send(published));
    }

    fn report(&self) -> Report {
        let (stopped, cpu) = self
            .stop_mark
            .unwrap_or((SystemClock.now(), cpu_time::of_this_thread()));
        let cpu_percent = self.window_mark.map_or(0.0, |(start, cpu_before)| {
            let wall = stopped.saturating_duration_since(start).as_secs_f64();
            let used = cpu.saturating_sub(cpu_before).as_secs_f64();
            if wall > 0.0 { used / wall * 100.0 } else { 0.0 }
        });
        Report {
            stopped,
            cpu_percent,
            stream_limit: self.recorder.stream_limit(),
            surplus: self.recorder.surplus_count(),
        }
    }
}

fn open_pacer(plan: &RunPlan, share: Share, gate: &Rc<Gate>) -> Option<Rc<OpenPacer>> {
    let Pacing::Open {
        profile,
        spacing,
        burst,
        jitter,
        on_full,
    } = &plan.pacing
    else {
        return None;
    };
    let spaced = |share| -> Box<dyn Schedule> {
        match spacing {
            Spacing::Even => Box::new(EvenArrivals::new(profile.clone(), share)),
            Spacing::Poisson => Box::new(PoissonArrivals::new(profile.clone(), share, plan.seed)),
        }
    };
    let mut schedule = if burst.get() == 1 {
        spaced(share)
    } else {
        let bursts = spaced(BurstArrivals::of_bursts(*burst));
        Box::new(BurstArrivals::new(bursts, *burst, share))
    };
    if !jitter.is_zero() {
        schedule = Box::new(JitteredArrivals::new(schedule, *jitter, share, plan.seed));
    }
    Some(Rc::new(OpenPacer::new(
        Rc::clone(gate),
        schedule,
        *on_full,
        match plan.http3 {
            // Each stream has a user of its own.
            Some(_) => connections_of(plan.connections, share) * plan.streams(),
            None => connections_of(plan.connections, share),
        },
        plan.http2.map(|_| plan.streams()),
    )))
}

/// The part of `total` that falls to `share`; the parts add up to the total.
fn part(total: u64, share: Share) -> u64 {
    let (index, of) = (u64::from(share.index), u64::from(share.of));
    total / of + u64::from(index < total % of)
}

fn connections_of(total: usize, share: Share) -> usize {
    let (index, of) = (share.index as usize, share.of as usize);
    total / of + usize::from(index < total % of)
}

#[cfg(test)]
mod tests;
