//! `plimsoll mock get`: what a request is answered with, without anything being served.
//!
//! The mock is started on a free port of the loopback, and gets one request, so that the response is what clients
//! get: with its templates, files, delays and faults.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{
    ConnectOptions, ConnectPlan, Connector, Endpoint, Http1, ReadBuffer, Request,
};
use plimsoll_mock::{KeptRequest, Mock, MockPlan, Shared};
use plimsoll_model::Clock as _;
use plimsoll_server::{Action, Counters, Engine, EnginePlan, ListenerPlan, Serves, WorkerContext};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{Limits, ResponseHead, ResponseSink};

use super::asking::{Asking, is_answered};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Print the response to a request, without serving; exit with 1 if no rule matches or the response is incomplete
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    asking: Asking,

    /// Explain first, rule by rule, why
    #[arg(long)]
    why: bool,
}

/// An answer has to be whole within this.
const TIMEOUT: Duration = Duration::from_mins(1);

/// No longer content is taken.
const LONGEST: u64 = 1 << 30;

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let request = args.asking.request()?;
    let plan = args.asking.plan()?;
    let explanation = plan.explain(&request.view());
    let could_not_run = |error| Problem::caused_by(&error).could_not_run();
    if args.why {
        // With an empty line behind it.
        terminal::print(&format!("{explanation}\n")).map_err(could_not_run)?;
    }
    let (answer, failure) = answer(plan, &request)?;
    if !answer.head.is_empty() {
        terminal::print(&answer.head).map_err(could_not_run)?;
        terminal::print_bytes(&answer.content).map_err(could_not_run)?;
    }
    if let Some(failure) = failure {
        let message = format!("the answer is not whole: {failure}");
        terminal::print_notes(&[Problem::new(message)]);
        return Ok(Exit::Objective);
    }
    Ok(if is_answered(&explanation) {
        Exit::Fine
    } else {
        Exit::Objective
    })
}

/// An answer as it is shown: its head in lines, an empty one behind them, and its content.
#[derive(Debug, Default)]
struct Answer {
    head: String,
    content: Vec<u8>,
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let reason = http::StatusCode::from_u16(head.status);
        let reason = reason.ok().and_then(|status| status.canonical_reason());
        self.head = format!("{} {}\n", head.status, reason.unwrap_or_default());
        for field in head.headers {
            let value = String::from_utf8_lossy(field.value);
            writeln!(self.head, "{}: {value}", field.name).expect("texts take everything");
        }
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }
}

/// What has come, and why no more has if that is not all.
fn answer(plan: MockPlan, request: &KeptRequest) -> Result<(Answer, Option<String>), Failed> {
    let engine = served(plan)?;
    let could_not_run = |error: &dyn std::error::Error| Problem::caused_by(error).could_not_run();
    let address = engine.addresses().first().copied();
    let address = address.ok_or_else(|| Problem::new("nothing listens").could_not_run())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| could_not_run(&error))?;
    let endpoint =
        Endpoint::parse(&format!("http://{address}")).map_err(|error| could_not_run(&error))?;
    let encoded = encoded(request)?;
    let connections = ConnectPlan::new(ConnectOptions::default());
    let connections = connections.map_err(|error| could_not_run(&error))?;
    runtime.block_on(async {
        let connector = Connector::new(Arc::new(connections));
        let connection = connector.connect(&endpoint, &SystemClock).await;
        let connection = connection.map_err(|error| could_not_run(&error))?;
        let limits = Limits {
            body_bytes: LONGEST,
            ..Limits::default()
        };
        let now = SystemClock.now();
        let mut http = Http1::new(connection.stream, limits, now);
        let buffer = ReadBuffer::new();
        let mut answer = Answer::default();
        let exchange = http.exchange(
            &encoded,
            now,
            now + TIMEOUT,
            &buffer,
            &mut answer,
            &SystemClock,
        );
        let failure = exchange.await.err().map(|it| it.failure.to_string());
        Ok((answer, failure))
    })
}

/// The request as it is sent.
fn encoded(request: &KeptRequest) -> Result<Request, Failed> {
    let mut host = "localhost".to_owned();
    let mut fields = Vec::new();
    for (name, value) in &request.fields {
        let value = String::from_utf8_lossy(value).into_owned();
        if name.eq_ignore_ascii_case("host") {
            host = value;
        } else {
            fields.push((name.clone(), value));
        }
    }
    let query = request.query.as_ref().map(|query| format!("?{query}"));
    let target = request.target_path.clone() + &query.unwrap_or_default();
    let content = Some(&request.body[..]).filter(|body| !body.is_empty());
    Request::encode(&request.method, &target, &host, &fields, content)
        .map_err(|error| Problem::caused_by(&error).usage())
}

/// The mock, on a port that the system chooses.
fn served(plan: MockPlan) -> Result<Engine, Failed> {
    let shared = Shared::fixed(plan);
    let make =
        move |_: &WorkerContext| Rc::new(Mock::new(Arc::clone(&shared), "/")) as Rc<dyn Action>;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = ListenerPlan::new(address, Serves::clear(Arc::new(make)));
    let plan = EnginePlan {
        threads: 1,
        ..EnginePlan::new(vec![listener])
    };
    Engine::start(&plan, Arc::<Counters>::default())
        .map_err(|error| Problem::caused_by(&error).could_not_run())
}
