//! Checks that share connections of HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};
use plimsoll_client::check::{
    CheckPlan, Checker, Condition, Expectations, Outcome, SharedConnections,
};
use plimsoll_client::{ConnectOptions, Connector, ReadBuffer, Request};
use plimsoll_model::{FailureKind, Phase, Verdict};
use plimsoll_testkit::{Http2Answer, Http2Origin, refused_address, until};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::Limits;
use plimsoll_wire::h2;

use crate::connecting::{connector, endpoint, run};

const LONG: Duration = Duration::from_secs(20);

fn plan(url: &str, timeout: Duration) -> Arc<CheckPlan> {
    let endpoint = endpoint(url);
    let request =
        Request::encode_http2("GET", "http", endpoint.authority(), "/", &[], None).unwrap();
    let conditions = ["status == 200", "body == 'hello'", "header.x-answer == yes"];
    let conditions = conditions.map(|text| Condition::parse(text).unwrap());
    Arc::new(CheckPlan {
        digest: None,
        grpc: None,
        endpoint,
        request,
        expectations: Expectations::new(conditions.to_vec()),
        timeout,
        limits: Limits::default(),
    })
}

fn sharing(plan: &Arc<CheckPlan>, most: usize) -> SharedConnections {
    SharedConnections::new(plan.endpoint.clone(), most, h2::Settings::default())
}

/// State that the checks of one worker share.
struct Worker {
    connector: Connector,
    buffer: ReadBuffer,
    shared: SharedConnections,
}

impl Worker {
    fn new(plan: &Arc<CheckPlan>, most: usize) -> Self {
        Self {
            connector: connector(ConnectOptions::default()),
            buffer: ReadBuffer::new(),
            shared: sharing(plan, most),
        }
    }

    async fn check(&self, checker: &mut Checker) -> Outcome {
        let checking = checker.check(&self.connector, &self.buffer, &SystemClock);
        checking.await
    }

    /// Does `work` while the connections are driven.
    async fn driving<T>(&self, work: impl Future<Output = T>) -> T {
        let drive = self.shared.drive(&self.buffer, &SystemClock);
        tokio::select! {
            () = drive => panic!("it is never done"),
            done = work => done,
        }
    }
}

/// `rounds` checks by each of `checkers`, at the same time.
fn all(plan: &Arc<CheckPlan>, most: usize, checkers: usize, rounds: usize) -> Vec<Outcome> {
    run(async {
        let worker = Worker::new(plan, most);
        let one = |_| async {
            let mut checker = Checker::sharing(Arc::clone(plan), worker.shared.clone());
            let mut outcomes = Vec::new();
            for _ in 0..rounds {
                outcomes.push(worker.check(&mut checker).await);
            }
            outcomes
        };
        let outcomes = worker.driving(join_all((0..checkers).map(one))).await;
        outcomes.concat()
    })
}

#[test]
fn many_checks_share_few_connections_and_wait_for_room() {
    let origin = Http2Origin::builder().max_streams(10).start();
    for most in [1, 3] {
        let before = (origin.connections(), origin.requests());
        let plan = plan(&origin.url("/"), LONG);
        let outcomes = all(&plan, most, 100, 5);
        assert_eq!(outcomes.len(), 500);
        assert!(
            outcomes
                .iter()
                .all(|outcome| outcome.verdict == Verdict::Met)
        );
        assert_eq!(origin.requests() - before.1, 500);
        assert_eq!(origin.connections() - before.0, most as u64);
        assert!(origin.most_at_a_time() <= 10);
        let opened = |outcome: &&Outcome| outcome.exchange.phases.get(Phase::Connect).is_some();
        assert_eq!(outcomes.iter().filter(opened).count(), most);
        let waited = |outcome: &&Outcome| outcome.exchange.phases.get(Phase::Blocked).is_some();
        assert!(outcomes.iter().filter(waited).count() > 50);
    }
}

#[test]
fn a_connection_that_its_server_leaves_is_replaced_without_losing_a_check() {
    let origin = Http2Origin::builder()
        .answer(|_, number| match number {
            40 => Http2Answer::GoAway,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let outcomes = all(&plan(&origin.url("/"), LONG), 1, 20, 20);
    for outcome in &outcomes {
        assert_eq!(outcome.verdict, Verdict::Met, "{outcome:?}");
    }
    assert!(origin.connections() > 3, "{}", origin.connections());
}

#[test]
fn a_check_that_is_given_up_leaves_its_room_to_others() {
    let origin = Http2Origin::builder()
        .max_streams(1)
        .answer(|_, number| match number {
            1 => Http2Answer::Hold,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let plan = plan(&origin.url("/"), LONG);
    run(async {
        let worker = Worker::new(&plan, 1);
        let new = || Checker::sharing(Arc::clone(&plan), worker.shared.clone());
        worker
            .driving(async {
                let (mut first, mut second) = (new(), new());
                let outcome = worker.check(&mut first).await;
                assert_eq!(outcome.verdict, Verdict::Met, "{outcome:?}");
                {
                    let held = Box::pin(worker.check(&mut first));
                    let seen = Box::pin(until(|| origin.requests() == 2));
                    select(held, seen).await;
                }
                for checker in [&mut second, &mut first] {
                    let outcome = worker.check(checker).await;
                    assert_eq!(outcome.verdict, Verdict::Met, "{outcome:?}");
                    assert!(outcome.reused);
                }
            })
            .await;
    });
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_check_without_an_answer_or_room_times_out_by_phase() {
    let origin = Http2Origin::builder()
        .max_streams(1)
        .answer(|_, number| match number {
            0 => Http2Answer::Content(200, b"hello".to_vec()),
            _ => Http2Answer::Hold,
        })
        .start();
    let plan = plan(&origin.url("/"), Duration::from_millis(100));
    run(async {
        let worker = Worker::new(&plan, 1);
        let new = || Checker::sharing(Arc::clone(&plan), worker.shared.clone());
        let (mut first, mut second) = (new(), new());
        let outcomes = worker.driving(async {
            worker.check(&mut first).await;
            let both = [worker.check(&mut first), worker.check(&mut second)];
            join_all(both).await
        });
        let outcomes = outcomes.await;
        let failure = |outcome: &Outcome| {
            let failure = outcome.exchange.outcome.clone().unwrap_err();
            (failure.phase, failure.kind)
        };
        let timeout = FailureKind::Timeout;
        assert_eq!(failure(&outcomes[0]), (Phase::Wait, timeout));
        // Its turn may come when the first one gives up.
        let second = failure(&outcomes[1]);
        assert_eq!(second.1, timeout);
        assert_ne!(second.0, Phase::Receive);
    });
}

#[test]
fn every_check_of_a_port_that_refuses_fails_by_name() {
    let address = refused_address();
    let outcomes = all(&plan(&format!("http://{address}/"), LONG), 2, 30, 2);
    assert_eq!(outcomes.len(), 60);
    for outcome in outcomes {
        let failure = outcome.exchange.outcome.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
        assert_eq!(failure.phase, Phase::Connect);
    }
}
