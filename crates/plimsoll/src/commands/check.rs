//! `plimsoll check`: one exchange, its phases and conditions; the exit code says the verdict.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{CheckPlan, Condition, Expectations, check};
use plimsoll_client::{ConnectPlan, Connector, Endpoint};
use plimsoll_model::{Checked, Protocol, Verdict, parse_duration};
use plimsoll_report::{CheckDocument, text};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::Limits;

use crate::exit::Exit;
use crate::flags::{ConnectionArgs, Problems, RequestArgs, connection_variables};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Makes one request and tells how long each phase took, what came, and whether it is as expected.
///
/// The exit code says the verdict: 0 if a complete response came and met every condition, 1 if it
/// did not or none came. Without a condition any complete response will do, whatever its status.
/// Redirects are not followed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to send the request
    #[arg(value_name = "URL")]
    url: String,

    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    judge: JudgeArgs,

    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll check https://example.org/
  plimsoll check --expect 'status == 200' --expect 'time < 300ms' https://example.org/
  plimsoll check --expect 'cert.days > 14' --expect 'body.json($.ok) == true' https://example.org/
  plimsoll check --json http://127.0.0.1:8080/ | jq .exchange.phases";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judgement")]
struct JudgeArgs {
    /// Condition on the response, repeatable: `status == 200`, `time < 300ms`, `wait < 100ms`,
    /// `body contains 'ok'`, `body.json($.ok) == true`, `header.etag exists`, `cert.days > 14`,
    /// `ip in 10.0.0.0/8`, `any(A, B)`, `not(A)`
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<String>,

    /// How long all of it may take, opening the connection included
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let (plan, connect) = compile(args, &connection_variables())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(format!("cannot start: {error}")).could_not_run())?;
    let checked = runtime.block_on(async {
        let connector = Connector::new(Arc::new(connect));
        check(&Arc::new(plan), &connector, &SystemClock).await
    });
    print(args, &checked)?;
    Ok(match checked.verdict() {
        Verdict::Met => Exit::Fine,
        Verdict::Unmet | Verdict::Failed => Exit::Objective,
    })
}

fn compile(
    args: &Args,
    variables: &[(String, String)],
) -> Result<(CheckPlan, ConnectPlan), Failed> {
    let mut problems = Problems::default();
    let compiled = plan(args, variables, &mut problems);
    problems.unless_any(compiled)
}

fn plan(
    args: &Args,
    variables: &[(String, String)],
    problems: &mut Problems,
) -> Option<(CheckPlan, ConnectPlan)> {
    let timeout = args.judge.timeout;
    let endpoint = problems.value("URL", Endpoint::parse(&args.url));
    let conditions = args
        .judge
        .expect
        .iter()
        .filter_map(|text| problems.value("--expect", Condition::parse(text)))
        .collect();
    if timeout.is_zero() {
        problems.add("--timeout", "must be more than zero");
    }
    let protocol = args.connection.version();
    let parts = args.request.parts(protocol == Protocol::Http1, problems);
    let connect = args
        .connection
        .plan(endpoint.as_slice(), timeout, variables, problems);
    let (endpoint, connect) = (endpoint?, connect?);
    let request = problems.value("request", parts.encode(&endpoint, &connect, protocol))?;
    let plan = CheckPlan {
        endpoint,
        request,
        expectations: Expectations::new(conditions),
        timeout,
        limits: Limits::default(),
    };
    Some((plan, connect))
}

fn print(args: &Args, checked: &Checked) -> Result<(), Failed> {
    let text = if args.output.json {
        CheckDocument::of(checked).to_json()
    } else {
        text::check(checked, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}
