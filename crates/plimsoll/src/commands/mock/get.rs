//! `plimsoll mock get`: what a request is answered with, without anything being served.
//!
//! The mock is started on a free port of the loopback, and gets one request, so that the response is what clients
//! get: with its templates, files, delays and faults.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use plimsoll_client::forward::{Head, Pool, PoolOptions, ResponseHead, Speaks};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, Incomplete};
use plimsoll_mock::{KeptRequest, Mock, MockPlan, SharedMock};
use plimsoll_server::{Action, Counters, Engine, EnginePlan, ListenerPlan, Serves, WorkerContext};
use plimsoll_wire::h1::Limits;

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

/// A response has to be whole within this: delays of rules are seconds.
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

/// A response as it is printed: its head in lines with an empty line behind them, and its content.
#[derive(Debug, Default)]
struct Answer {
    head: String,
    content: Vec<u8>,
}

impl Answer {
    fn take_head(&mut self, head: &ResponseHead) {
        let reason = head.status.canonical_reason().unwrap_or_default();
        self.head = format!("{} {reason}\n", head.status.as_u16());
        for (name, value) in head.fields.iter() {
            let name = String::from_utf8_lossy(name);
            let value = String::from_utf8_lossy(value);
            writeln!(self.head, "{name}: {value}").expect("texts take everything");
        }
    }
}

/// The part of the response that arrived, and the failure if that is not all of it.
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
    let connections = ConnectPlan::new(ConnectOptions::default());
    let connections = connections.map_err(|error| could_not_run(&error))?;
    let options = PoolOptions {
        speaks: Speaks::Http1,
        limits: Limits {
            body_bytes: LONGEST,
            ..Limits::default()
        },
        ..PoolOptions::default()
    };
    runtime.block_on(async {
        let pool = Pool::new(Connector::new(Arc::new(connections)), options);
        let lease = pool.acquire(&endpoint).await;
        let lease = lease.map_err(|error| could_not_run(&error))?;
        let query = request.query.as_ref().map(|query| format!("?{query}"));
        let target = request.target_path.clone() + &query.unwrap_or_default();
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let host = request.fields.iter().find(|(name, _)| is_host(name));
        let host = host.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let head = Head {
            authority: Some(host.as_deref().unwrap_or("localhost")),
            ..Head::new(&request.method, &target, &request.fields)
        };
        let body = Full::new(request.body.clone());
        let exchange = lease.begin(&head, body);
        let mut exchange = exchange.map_err(|failure| Problem::caused_by(&failure).usage())?;
        let mut answer = Answer::default();
        let reading = async {
            answer.take_head(&exchange.final_head().await?);
            while let Some(frame) = exchange.frame().await {
                if let Ok(data) = frame?.into_data() {
                    answer.content.extend_from_slice(&data);
                }
            }
            Ok::<_, Incomplete>(())
        };
        let failure = match tokio::time::timeout(TIMEOUT, reading).await {
            Ok(read) => read.err().map(|incomplete| incomplete.failure.to_string()),
            Err(_) => Some(format!("it takes longer than {TIMEOUT:?}")),
        };
        Ok((answer, failure))
    })
}

/// The mock, on a port that the system chooses.
fn served(plan: MockPlan) -> Result<Engine, Failed> {
    let shared = SharedMock::fixed(plan);
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
