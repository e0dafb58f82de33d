//! One worker: a thread, a runtime, its share of the connections.

pub(crate) mod pace;

pub(crate) mod user;

pub(crate) mod back_off;

pub(crate) mod coalescing;

pub(crate) mod recorder;

pub(crate) mod thread_share;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use plimsoll_client::Connector;
use plimsoll_model::{Clock, Stalls};
use plimsoll_wire::{Alarm, SystemClock, cores, timer_slack};
use tokio::runtime::{Builder, LocalOptions};

use crate::Ramp;
use crate::driver::{Driver as _, Http1Driver, Http2Driver, Http3Driver, Tasks, WorkerState};
use crate::plan::{HttpPlan, Pacing, RunPlan, Spacing, WorkloadPlan};
use crate::run::RunError;
use crate::run::collector::Published;
use crate::run::progress::{Interrupt, Progress, ProgressReport};
use crate::schedule::{
    BurstArrivals, EvenArrivals, JitteredArrivals, PoissonArrivals, RecordedArrivals, Schedule,
    Share,
};
use crate::source::SharedSource;
use crate::worker::coalescing::Coalescing;
use crate::worker::pace::{ClosedPacer, Gate, OpenPacer, Pacer, StreamPacer};
use crate::worker::recorder::Interval;
use crate::worker::thread_share::{BusyMeter, ThreadMark, ThreadShare};
use crate::worker::user::Recorder;
use crate::workload::{EventStreams, GrpcCalls, HttpWorkload, PlainExchange, websocket};

/// How often a worker looks up from its connections.
const BEAT: Duration = Duration::from_millis(20);

/// How often it hands over what it counted.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The parameters of a worker thread.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) plan: RunPlan,
    /// Among the workers of this process.
    pub(crate) number: u32,
    /// Its part of the run, which may be one of several processes.
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

/// The final report of a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    /// When it began nothing more.
    pub(crate) stopped: Instant,
    /// What became of its thread in the measured window.
    pub(crate) thread: ThreadShare,
    /// The fewest streams that a server allows at a time, where that is fewer than configured.
    pub(crate) stream_limit: Option<usize>,
    /// Responses behind which more bytes came than they announce.
    pub(crate) surplus: u64,
}

/// Runs one worker to its end on the calling thread.
pub(crate) fn work(setup: Setup) -> Result<Report, RunError> {
    if let Some(core) = setup.plan.cores.get(setup.number as usize) {
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
    number: u32,
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
    /// At the start of the measured window.
    window_mark: Option<ThreadMark>,
    /// When it began nothing more.
    stop_mark: Option<ThreadMark>,
    /// Since it last handed over.
    busy: BusyMeter,
    stalls: Stalls,
    published: u32,
    /// Figures handed over so far.
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
            busy: BusyMeter::start(SystemClock.now()),
            stalls: Stalls::default(),
            published: 0,
            handed_over: ProgressReport::default(),
            is_in_grace: false,
            plan,
            number: setup.number,
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
        // A second belongs to the warm-up or to the window, never to both.
        let offset = first_second(self.plan.warm_up);
        let mut publish_at = start + offset;
        loop {
            tokio::select! {
                biased;
                beaten = alarm.until(beat, SystemClock.now()) => {
                    beaten.map_err(RunError::Runtime)?;
                    let now = SystemClock.now();
                    self.recorder.interval().record_lag(now - beat);
                    if self.stop_mark.is_none() && now >= self.window_start {
                        self.stalls.record(now - beat);
                    }
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
        // Users that are still under way are aborted by being dropped, and count their exchanges then.
        tasks.shutdown().await;
        if let HttpPlan::Http3(_) = self.plan.workload.http() {
            // QUIC closes connections from tasks of its own.
            tokio::task::yield_now().await;
        }
        let now = SystemClock.now();
        self.mark(now);
        self.stop(now);
        self.count_missed();
        self.hand_over(now, true);
        Ok(self.report())
    }

    fn start_users(&self) -> Tasks {
        let mut tasks = Tasks::new();
        let plan = &self.plan;
        match &plan.workload {
            WorkloadPlan::Requests(http, responses) => {
                let make = |shared: &Rc<_>, index| PlainExchange::new(shared, responses, index);
                self.start_drivers(*http, &make, &mut tasks);
            }
            WorkloadPlan::Events(http, limits) => {
                let make = |shared: &Rc<_>, index| EventStreams::new(shared, *limits, index);
                self.start_drivers(*http, &make, &mut tasks);
            }
            WorkloadPlan::Grpc(http, grpc) => {
                let make = |shared: &Rc<_>, index| GrpcCalls::new(shared, *grpc, index);
                self.start_drivers(*http, &make, &mut tasks);
            }
            WorkloadPlan::WebSocket(websocket) => {
                for slot in self.slots() {
                    websocket::start(&slot, websocket, &mut tasks);
                }
            }
        }
        if let Some(open) = self.open.clone() {
            tasks.spawn_local(async move { open.dispatch().await });
        }
        tasks
    }

    /// Starts the virtual users of a workload over one version of HTTP.
    fn start_drivers<W: HttpWorkload>(
        &self,
        http: HttpPlan,
        make: &dyn Fn(&Rc<WorkerState>, usize) -> W,
        tasks: &mut Tasks,
    ) {
        for slot in self.slots() {
            let make = |index| make(slot.shared(), index);
            match http {
                HttpPlan::Http1 => Http1Driver.start(&slot, &make, tasks),
                HttpPlan::Http2(http2) => Http2Driver(http2).start(&slot, &make, tasks),
                HttpPlan::Http3(http3) => Http3Driver(http3).start(&slot, &make, tasks),
            }
        }
    }

    /// The connections of this worker.
    fn slots(&self) -> impl Iterator<Item = ConnectionSlot<'_>> {
        let plan = &self.plan;
        let shared = Rc::new(WorkerState::new(
            plan,
            Connector::new(Arc::clone(&plan.connect)),
            SharedSource::new(plan, self.share),
            &self.gate,
            &self.recorder,
        ));
        let ramp = match &plan.pacing {
            Pacing::Closed { ramp, .. } => ramp.clone().map(Rc::new),
            Pacing::Open { .. } => None,
        };
        (0..connections_of(plan.connections, self.share)).map(move |number| ConnectionSlot {
            worker: self,
            shared: Rc::clone(&shared),
            number,
            index: user_index(number, self.share),
            ramp: ramp.clone(),
        })
    }

    /// Notes the processor time when the measured window starts.
    fn mark(&mut self, now: Instant) {
        if self.window_mark.is_none() && now >= self.window_start {
            self.window_mark = Some(ThreadMark::read(now));
        }
    }

    fn must_stop(&self, now: Instant) -> bool {
        self.gate.end().is_some_and(|end| now >= end) || self.interrupt.is_over()
    }

    fn must_give_up(&self, now: Instant) -> bool {
        self.interrupt.is_urgent()
            || self
                .stop_mark
                .is_some_and(|stopped| now >= stopped.at + self.plan.grace)
    }

    fn stop(&mut self, now: Instant) {
        if self.stop_mark.is_none() {
            self.stop_mark = Some(ThreadMark::read(now));
            self.recorder.end_window(now);
            match &self.open {
                Some(open) => open.stop(now),
                None => self.gate.stop(),
            }
        }
    }

    fn count_missed(&self) {
        if let (Some(open), Some(stopped)) = (&self.open, self.stop_mark) {
            let mut interval = self.recorder.interval();
            open.count_missed(stopped.at, |waited| interval.record_missed(waited));
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
        interval.busiest_worker_percent = self.busy.look(now);
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
            worker: self.number,
            at: now - self.gate.run_start(),
            is_last,
            grace: std::mem::replace(&mut self.is_in_grace, self.stop_mark.is_some()),
            interval,
        };
        // The collector only goes away when the run has failed elsewhere.
        drop(self.publish.send(published));
    }

    fn report(&self) -> Report {
        let stop = self
            .stop_mark
            .unwrap_or_else(|| ThreadMark::read(SystemClock.now()));
        let start = self.window_mark.unwrap_or(stop);
        Report {
            stopped: stop.at,
            thread: ThreadShare {
                stalls: self.stalls,
                ..stop.since(start)
            },
            stream_limit: self.recorder.stream_limit(),
            surplus: self.recorder.surplus_count(),
        }
    }
}

/// A connection of a worker, from which its driver takes what its virtual users share.
pub(crate) struct ConnectionSlot<'a> {
    worker: &'a Worker,
    shared: Rc<WorkerState>,
    /// Its number among those of the worker.
    number: usize,
    /// Its number in the run.
    index: usize,
    ramp: Option<Rc<Ramp>>,
}

impl ConnectionSlot<'_> {
    /// State that the virtual users of the worker share.
    pub(crate) fn shared(&self) -> &Rc<WorkerState> {
        &self.shared
    }

    /// Its number in the run.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The cause of delayed wake-ups of the worker, where they are coalesced.
    pub(crate) fn coalescing(&self) -> Option<Arc<Coalescing>> {
        self.worker.coalescing.clone()
    }

    /// The pacer of a virtual user that is a task of its own.
    ///
    /// - `place`: its number among the users of the connection.
    pub(crate) fn pacer(&self, place: usize) -> Pacer {
        match &self.worker.open {
            Some(open) => Pacer::Open(open.user(self.number * self.streams() + place)),
            None => Pacer::Closed(self.closed_pacer(place)),
        }
    }

    /// The pacer of a connection that carries several exchanges at a time in one task.
    pub(crate) fn stream_pacer(&self) -> StreamPacer {
        let streams = self.streams();
        if let Some(open) = &self.worker.open {
            return StreamPacer::open(open.row(self.number * streams), streams);
        }
        let places = (0..streams).map(|place| self.closed_pacer(place));
        StreamPacer::closed(Rc::clone(&self.worker.gate), places.collect())
    }

    fn closed_pacer(&self, place: usize) -> ClosedPacer {
        let plan = &self.worker.plan;
        let think = match &plan.pacing {
            Pacing::Closed { think, .. } => *think,
            Pacing::Open { .. } => None,
        };
        // A ramp counts connections, so all users of one join with it; their pauses differ.
        let seed = plan.seed.wrapping_add((place * plan.connections) as u64);
        let (gate, ramp) = (Rc::clone(&self.worker.gate), self.ramp.clone());
        ClosedPacer::new(gate, self.index, ramp, think, seed)
    }

    fn streams(&self) -> usize {
        self.worker.plan.streams()
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
            Spacing::Recorded(times) => Box::new(RecordedArrivals::new(Arc::clone(times), share)),
        }
    };
    let mut schedule = if burst.get() == 1 {
        spaced(share)
    } else {
        let bursts = spaced(BurstArrivals::of_bursts(*burst));
        Box::new(BurstArrivals::new(bursts, *burst, share))
    };
    if !jitter.is_zero() {
        let window_end = plan.stop.duration.map(|duration| plan.warm_up + duration);
        let ends = std::iter::once(plan.warm_up).chain(window_end).collect();
        schedule = Box::new(JitteredArrivals::new(
            schedule, *jitter, ends, share, plan.seed,
        ));
    }
    let http = plan.workload.http();
    Some(Rc::new(OpenPacer::new(
        Rc::clone(gate),
        schedule,
        *on_full,
        match http {
            // Each stream has a user of its own.
            HttpPlan::Http3(_) => connections_of(plan.connections, share) * plan.streams(),
            HttpPlan::Http1 | HttpPlan::Http2(_) => connections_of(plan.connections, share),
        },
        matches!(http, HttpPlan::Http2(_)).then(|| plan.streams()),
    )))
}

/// Length of the first second of a run: a part of one if the warm-up is no whole number of them, so that one ends
/// with it.
pub(crate) fn first_second(warm_up: Duration) -> Duration {
    match warm_up.subsec_nanos() {
        0 => PUBLISH_EVERY,
        part => Duration::from_nanos(part.into()),
    }
}

/// The part of `total` that falls to `share`; the parts add up to the total.
fn part(total: u64, share: Share) -> u64 {
    let (index, of) = (u64::from(share.index), u64::from(share.of));
    total / of + u64::from(index < total % of)
}

pub(crate) fn connections_of(total: usize, share: Share) -> usize {
    let (index, of) = (share.index as usize, share.of as usize);
    total / of + usize::from(index < total % of)
}

/// The number of a virtual user in the run. Users are numbered across workers, so that a ramp grows on all of them alike.
///
/// - `number`: among the users of its worker.
pub(crate) fn user_index(number: usize, share: Share) -> usize {
    number * share.of as usize + share.index as usize
}

#[cfg(test)]
mod tests;
