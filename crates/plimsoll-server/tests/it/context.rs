//! The worker's services for actions: state that survives reloads, tasks that do not, the signal of a drain.

use std::cell::Cell;
use std::future::pending;
use std::io::{Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, UPGRADE};
use plimsoll_server::config::Compiler;
use plimsoll_server::{
    Action, Answer, Engine, EnginePlan, Limits, ListenerPlan, Outcome, Request, Response, Serves,
    WorkerContext,
};
use plimsoll_testkit::eventually;
use plimsoll_testkit::http::get;
use tokio::io::AsyncWriteExt;

use crate::http2;
use crate::server::{Server, expect, plan};

fn serving(make: impl Fn(&WorkerContext) -> Rc<dyn Action> + Send + Sync + 'static) -> EnginePlan {
    let mut plan = plan(Limits::default(), || unreachable!("it is replaced"));
    plan.listeners[0].serves = Serves::clear(Arc::new(make));
    plan
}

/// Answers with how many requests its state has seen.
struct Counting(Rc<Cell<u32>>);

impl Action for Counting {
    fn handle(&self, _: &Request<'_>) -> Answer {
        self.0.set(self.0.get() + 1);
        Answer::now(Response::text(StatusCode::OK, self.0.get().to_string()))
    }
}

fn counting(identity: &'static str) -> EnginePlan {
    let mut plan =
        serving(move |context| Rc::new(Counting(context.state(identity, || Cell::new(0)))));
    let second: ListenerPlan = plan.listeners[0].clone();
    plan.listeners.push(second);
    plan
}

/// The response of the listener of that number.
fn ask(engine: &Engine, plan: &EnginePlan, listener: usize) -> String {
    let address = engine.bound(plan)[listener].port().unwrap();
    get(address, "/").into_text()
}

#[test]
fn state_is_shared_by_listeners_and_survives_a_reload_that_does_not_concern_it() {
    let plan = counting("a");
    let mut engine = Engine::start(&plan, Arc::default()).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "1");
    assert_eq!(ask(&engine, &plan, 1), "2");
    engine.reload(&plan).unwrap();
    assert_eq!(ask(&engine, &plan, 1), "3");
    engine.reload(&counting("b")).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "1");
    // Nothing has used it meanwhile.
    engine.reload(&plan).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "1");
}

struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins a task of the first configuration for each request.
struct Spawning {
    first: Rc<WorkerContext>,
    running: Arc<AtomicUsize>,
}

impl Action for Spawning {
    fn handle(&self, _: &Request<'_>) -> Answer {
        let running = Running::new(&self.running);
        self.first.spawn(async move {
            let _running = running;
            pending::<()>().await;
        });
        Answer::later(async {
            tokio::task::yield_now().await;
            Response::text(StatusCode::OK, "")
        })
    }
}

#[test]
fn tasks_end_with_the_configuration_that_began_them() {
    let running = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&running);
    let plan = serving(move |context| {
        let running = Running::new(&counted);
        context.spawn(async move {
            let _running = running;
            pending::<()>().await;
        });
        Rc::new(Spawning {
            first: context.state("first", || context.clone()),
            running: Arc::clone(&counted),
        })
    });
    let mut engine = Engine::start(&plan, Arc::default()).unwrap();
    let count = || running.load(Ordering::SeqCst);
    assert_eq!(count(), 1);
    assert_eq!(ask(&engine, &plan, 0), "");
    assert_eq!(count(), 2);
    // The new one has its own, and all of the old one are over.
    engine.reload(&plan).unwrap();
    eventually(|| count() == 1);
    // The rest of the old configuration begins no task any more.
    assert_eq!(ask(&engine, &plan, 0), "");
    assert_eq!(count(), 1);
    drop(engine);
    assert_eq!(count(), 0);
}

/// Takes every connection over and waits for the end.
struct Waiting;

impl Action for Waiting {
    fn handle(&self, _: &Request<'_>) -> Answer {
        let response = Response::new(StatusCode::SWITCHING_PROTOCOLS)
            .with_field(UPGRADE, HeaderValue::from_static("waiting"));
        Answer::Now(Outcome::Upgrade(
            response,
            Box::new(|mut stream, drain| {
                Box::pin(async move {
                    assert!(drain.since().is_none());
                    drain.begun().await;
                    stream.write_all(b"bye").await.unwrap();
                    stream.shutdown().await.unwrap();
                })
            }),
        ))
    }
}

#[test]
fn a_connection_that_was_taken_over_hears_of_a_drain() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Waiting)));
    let mut stream = server.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: waiting\r\n\r\n")
        .unwrap();
    expect(
        &mut stream,
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: waiting\r\n\r\n",
    );
    let draining = std::thread::spawn(move || server.engine.drain(Duration::from_secs(20)));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "bye");
    assert_eq!(draining.join().unwrap().cut_off, 0);
}

#[test]
fn a_rate_limit_keeps_its_buckets_over_a_reload() {
    let compiler = Compiler::new(Path::new(""), &Arc::default());
    let compile = |requests: u32, body: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ body = \"{body}\" }}\n\
             rate_limit = {{ requests = {requests}, per = \"1h\" }}\n"
        );
        compiler.compile(&text).unwrap().engine
    };
    let plan = compile(1, "one");
    let mut engine = Engine::start(&plan, Arc::default()).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "one");
    drop(plan);
    let plan = compile(1, "two");
    engine.reload(&plan).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "too many requests\n");
    // Another limit has its own buckets.
    let plan = compile(2, "three");
    engine.reload(&plan).unwrap();
    assert_eq!(ask(&engine, &plan, 0), "three");
}

#[test]
fn a_tunnel_of_http2_hears_of_a_drain() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Waiting)));
    let address = server.address;
    let draining = http2::run(async {
        let mut requests = http2::connect(address).await;
        let mut request = http::Request::new(());
        *request.method_mut() = http::Method::CONNECT;
        *request.uri_mut() = "upstream:443".parse().unwrap();
        let (response, _send) = requests.send_request(request, false).unwrap();
        let mut receive = response.await.unwrap().into_body();
        let draining = std::thread::spawn(move || server.engine.drain(Duration::from_secs(20)));
        let mut received = Vec::new();
        while let Some(piece) = receive.data().await {
            received.extend_from_slice(&piece.unwrap());
        }
        assert_eq!(received, b"bye");
        draining
    });
    assert_eq!(draining.join().unwrap().cut_off, 0);
}
