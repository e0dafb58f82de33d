//! Scenarios on worker threads: what starts, what is dropped, what is interrupted.

#![expect(clippy::float_cmp, reason = "counts are whole numbers")]

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::scenario::executor::{
    ConstantArrivalRate, ConstantVus, PerVuIterations, SharedIterations,
};
use plimsoll_load::scenario::{
    Abort, Claims, Contains, Executor, Iteration, IterationEnd, LocalFuture, MetricId, MetricKind,
    Registry, Scenario, ScenarioError, ScenarioHooks, ScenarioRun, Sink, Sinks, TestProgress,
    UserError, UserId, VirtualUsers, WorkerState, Workload, Workloads, run_scenarios,
};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

/// The kinds of iterations.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    /// It counts itself.
    Count,
    /// It never ends.
    Hang,
    /// Nothing else runs on its worker for more than two seconds.
    Block,
    /// It aborts the run when it is the tenth.
    Abort,
    /// Its virtual user cannot be made.
    Refuse,
}

struct Jobs {
    job: Job,
    iterations: MetricId,
}

struct Users {
    job: Job,
    iterations: MetricId,
    state: WorkerState,
}

struct User {
    job: Job,
    iterations: MetricId,
    state: WorkerState,
    made: Cell<u64>,
}

impl Workloads for Jobs {
    fn on_worker(&self, state: WorkerState) -> Result<Rc<dyn VirtualUsers>, UserError> {
        Ok(Rc::new(Users {
            job: self.job,
            iterations: self.iterations,
            state,
        }))
    }
}

impl VirtualUsers for Users {
    fn create(&self, user: UserId) -> LocalFuture<'_, Result<Box<dyn Workload>, UserError>> {
        Box::pin(async move {
            if self.job == Job::Refuse && user.in_test == 3 {
                return Err("no third one".into());
            }
            let user: Box<dyn Workload> = Box::new(User {
                job: self.job,
                iterations: self.iterations,
                state: self.state.clone(),
                made: Cell::new(0),
            });
            Ok(user)
        })
    }
}

impl Workload for User {
    fn iterate(&mut self, iteration: Iteration) -> LocalFuture<'_, IterationEnd> {
        Box::pin(async move {
            assert_eq!(iteration.of_user, self.made.get());
            self.made.set(self.made.get() + 1);
            if self.job == Job::Hang {
                pending::<()>().await;
            }
            if self.job == Job::Block {
                let end = SystemClock.now() + Duration::from_millis(2200);
                while SystemClock.now() < end {
                    std::thread::park_timeout(end.saturating_duration_since(SystemClock.now()));
                }
            }
            if self.job == Job::Abort && iteration.in_scenario == 9 {
                self.state.abort.abort("ten are enough");
                pending::<()>().await;
            }
            let at = Duration::ZERO;
            self.state
                .sinks
                .borrow_mut()
                .add(self.iterations, 1.0, &[], at);
            IterationEnd::Complete
        })
    }
}

struct Outcome {
    count: f64,
    claims: Arc<Claims>,
    progress: Arc<TestProgress>,
    abort: Arc<Abort>,
    /// The cautions of the run.
    result: Result<Vec<String>, ScenarioError>,
}

fn run(executor: Executor, graceful_stop: Duration, job: Job) -> Outcome {
    run_prepared(executor, graceful_stop, job, &mut |_| true)
}

/// - `before_start`: gets how far the run is.
fn run_prepared(
    executor: Executor,
    graceful_stop: Duration,
    job: Job,
    before_start: &mut dyn FnMut(&TestProgress) -> bool,
) -> Outcome {
    let registry = Registry::default();
    let iterations = registry
        .register("iterations", MetricKind::Counter, Contains::Default)
        .unwrap();
    let claims = Arc::new(Claims::new(executor));
    let run = ScenarioRun {
        scenarios: vec![Scenario {
            name: "default".to_owned(),
            claims: Arc::clone(&claims),
            start_time: Duration::ZERO,
            graceful_stop,
        }],
        workers: 2,
        registry: registry.clone(),
        progress: Arc::new(TestProgress::new(1)),
        abort: Arc::default(),
        keeps_points: false,
        keeps_recent: false,
        latency: None,
    };
    let workloads: Arc<dyn Workloads> = Arc::new(Jobs { job, iterations });
    let mut last_tick = 0.0;
    let series = registry.metric(iterations).series;
    let count = |sinks: &Sinks| match sinks.series(series) {
        Some(Sink::Counter(count)) => *count,
        _ => 0.0,
    };
    let progress = Arc::clone(&run.progress);
    let mut has_started = false;
    let hooks = ScenarioHooks {
        before_start: &mut || {
            has_started = before_start(&progress);
            has_started
        },
        on_tick: &mut |tick| last_tick = count(tick.total),
        look: &mut || {},
    };
    let result = run_scenarios(&run, &workloads, hooks, None);
    let total = result.as_ref().map_or(0.0, |figures| count(&figures.sinks));
    if has_started && result.is_ok() {
        assert_eq!(last_tick, total, "the last tick has everything");
    }
    Outcome {
        count: total,
        claims,
        progress: run.progress,
        abort: run.abort,
        result: result.map(|figures| figures.cautions),
    }
}

#[test]
fn all_shared_iterations_are_made_once_by_users_of_both_workers() {
    let executor = SharedIterations {
        vus: 7,
        iterations: 1000,
        max_duration: Duration::from_mins(1),
    };
    let outcome = run(
        Executor::SharedIterations(executor),
        Duration::ZERO,
        Job::Count,
    );
    assert_eq!(outcome.count, 1000.0);
    assert_eq!(outcome.progress.completed(), 1000);
    assert_eq!(outcome.progress.initialised(), 7);
    assert_eq!(
        (outcome.progress.active(), outcome.progress.interrupted()),
        (0, 0)
    );
}

#[test]
fn the_run_starts_once_its_caller_is_prepared() {
    let executor = Executor::SharedIterations(SharedIterations {
        vus: 3,
        iterations: 9,
        max_duration: Duration::from_mins(1),
    });
    for (is_prepared, expected) in [(true, 9.0), (false, 0.0)] {
        let mut seen = Vec::new();
        let outcome = run_prepared(
            executor.clone(),
            Duration::ZERO,
            Job::Count,
            &mut |progress| {
                let is_started = progress.start().is_some();
                seen.push((progress.initialised(), progress.completed(), is_started));
                is_prepared
            },
        );
        // All virtual users exist, and none has begun.
        assert_eq!(seen, [(3, 0, false)]);
        assert_eq!(outcome.count, expected);
        assert_eq!(outcome.progress.start().is_some(), is_prepared);
        assert!(outcome.result.is_ok());
    }
    // Without its virtual users there is nothing to be prepared for.
    let outcome = run_prepared(executor, Duration::ZERO, Job::Refuse, &mut |_| {
        panic!("not called")
    });
    assert_eq!(outcome.result.unwrap_err().to_string(), "no third one");
}

#[test]
fn each_user_makes_its_own_iterations() {
    let executor = PerVuIterations {
        vus: 5,
        iterations: 4,
        max_duration: Duration::from_mins(1),
    };
    let outcome = run(
        Executor::PerVuIterations(executor),
        Duration::ZERO,
        Job::Count,
    );
    assert_eq!(outcome.count, 20.0);
}

#[test]
fn iterations_that_hang_are_interrupted_behind_the_graceful_stop() {
    let executor = ConstantVus {
        vus: 3,
        duration: Duration::from_millis(20),
    };
    let stop = Duration::from_millis(30);
    let outcome = run(Executor::ConstantVus(executor), stop, Job::Hang);
    assert_eq!(outcome.count, 0.0);
    assert_eq!(outcome.progress.interrupted(), 3);
    let cautions = outcome.result.unwrap();
    let expected = "3 iterations were under way when the run ended";
    assert!(cautions[0].starts_with(expected), "{cautions:?}");
}

#[test]
fn a_worker_that_stood_still_is_a_caution() {
    let executor = PerVuIterations {
        vus: 1,
        iterations: 1,
        max_duration: Duration::from_mins(1),
    };
    let outcome = run(
        Executor::PerVuIterations(executor),
        Duration::ZERO,
        Job::Block,
    );
    let cautions = outcome.result.unwrap();
    let has_caution = |text: &str| cautions.iter().any(|caution| caution.contains(text));
    assert!(has_caution("the generator stood still for"), "{cautions:?}");
    assert!(!has_caution("under way"), "{cautions:?}");
}

#[test]
fn arrivals_without_a_free_user_are_dropped_and_users_are_added() {
    let executor = ConstantArrivalRate {
        rate: 500,
        time_unit: Duration::from_secs(1),
        duration: Duration::from_millis(200),
        pre_allocated_vus: 1,
        most_vus: 4,
    };
    let outcome = run(
        Executor::ConstantArrivalRate(executor),
        Duration::ZERO,
        Job::Hang,
    );
    assert_eq!(outcome.claims.started() + outcome.claims.dropped(), 100);
    assert_eq!(outcome.claims.started(), outcome.progress.interrupted());
    let expected = format!("{} iterations were dropped", outcome.claims.dropped());
    let cautions = outcome.result.unwrap();
    assert!(cautions[1].starts_with(&expected), "{cautions:?}");
    assert!(outcome.progress.initialised() > 1, "{:?}", outcome.progress);
    assert!(
        outcome.progress.initialised() <= 4,
        "{:?}",
        outcome.progress
    );
}

#[test]
fn a_user_aborts_the_run_of_all() {
    let executor = ConstantVus {
        vus: 4,
        duration: Duration::from_hours(1),
    };
    let outcome = run(
        Executor::ConstantVus(executor),
        Duration::from_mins(1),
        Job::Abort,
    );
    assert_eq!(outcome.abort.reason().as_deref(), Some("ten are enough"));
    assert!(outcome.result.is_ok());
    assert!(outcome.progress.interrupted() >= 1);
}

#[test]
fn a_user_that_cannot_be_made_ends_the_run_before_its_start() {
    let executor = ConstantVus {
        vus: 4,
        duration: Duration::from_hours(1),
    };
    let outcome = run(Executor::ConstantVus(executor), Duration::ZERO, Job::Refuse);
    assert_eq!(outcome.result.unwrap_err().to_string(), "no third one");
    assert!(outcome.progress.start().is_none());
}
