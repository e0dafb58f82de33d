//! `plimsoll check`: one exchange, its phases and conditions; the exit code says the verdict.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{CheckOptions, CheckPlan, Condition, Expectations, GrpcCheck, check};
use plimsoll_client::{ConnectPlan, Connector, DecodeLimits, Decoder, Endpoint};
use plimsoll_formats::grpc::Descriptors;
use plimsoll_model::{Checked, Protocol, Verdict};
use plimsoll_report::{CheckDocument, text};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::Limits;

use crate::exit::Exit;
use crate::flags::{
    ConnectionArgs, Problems, RequestArgs, ResponseArgs, Way, connection_variables, number,
};
use crate::grpc::{self, GrpcArgs, UnknownMethod, Wanted};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Make one request and report its phases, response and conditions
///
/// The exit code is the verdict: 0 if a complete response arrived and met every condition, otherwise 1.
/// Without a condition any complete response passes, whatever its status. Redirects are followed with --location.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(mut_arg("grpc", |grpc| grpc.conflicts_with("http3")))]
pub(crate) struct Args {
    /// URL to request
    #[arg(value_name = "URL")]
    url: String,

    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    response: ResponseArgs,

    #[command(flatten)]
    judge: JudgeArgs,

    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten)]
    grpc: GrpcArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll check https://example.org/
  plimsoll check --expect 'status == 200' --expect 'time < 300ms' https://example.org/
  plimsoll check --expect 'cert.days > 14' --expect 'body.json($.ok) == true' https://example.org/
  plimsoll check --grpc shop.Cart/Get -d '{\"cart\": \"a1\"}' --expect 'body.json($.items[0]) exists' http://127.0.0.1:50051
  plimsoll check -L --expect 'status == 200' http://example.org/
  plimsoll check --json http://127.0.0.1:8080/ | jq .exchange.phases";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judgement")]
struct JudgeArgs {
    /// Check the response against a condition such as `status == 200`, repeatable
    ///
    /// Others: `time < 300ms`, `wait < 100ms`, `body contains 'ok'`, `body.json($.ok) == true`, `header.etag exists`, `cert.days > 14`,
    /// `ip in 10.0.0.0/8`, `grpc.status == NOT_FOUND`, `any(A, B)`, `not(A)`
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<String>,

    /// Timeout, connection set-up included
    // As the probes of Gatus: later, the service counts as down.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "10s")]
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
pub(crate) fn run(args: &mut Args) -> Result<Exit, Failed> {
    args.connection.http2 |= args.grpc.grpc.is_some();
    let args = &*args;
    let variables = connection_variables();
    let mut compiled = compile(args, &variables, None)?;
    if let Some(unknown) = &compiled.unknown_method {
        let (connect, endpoint) = (&compiled.connect, &compiled.plan.endpoint);
        let known = grpc::reflect(connect, endpoint, &args.url, &unknown.name, &unknown.parts)?;
        compiled = compile(args, &variables, Some(&known))?;
    }
    let Compiled { plan, connect, .. } = compiled;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(format!("cannot start: {error}")).could_not_run())?;
    let options = CheckOptions {
        redirects: args
            .request
            .follows_redirects()
            .then_some(args.response.max_redirs),
        decode: args.response.compressed.then(DecodeLimits::default),
    };
    let checked = runtime.block_on(async {
        let connector = Connector::new(Arc::clone(&connect));
        check(&Arc::new(plan), options, &connector, &SystemClock).await
    });
    print(args, &checked)?;
    Ok(match checked.verdict() {
        Verdict::Met => Exit::Fine,
        Verdict::Unmet | Verdict::Failed => Exit::Objective,
    })
}

/// The check that the flags describe.
struct Compiled {
    plan: CheckPlan,
    connect: Arc<ConnectPlan>,
    /// The method to be called, as long as only its server can describe it; the plan then reaches the
    /// server and no more.
    unknown_method: Option<UnknownMethod>,
}

/// - `known`: the server's description of the method of `--grpc`, once it was fetched.
fn compile(
    args: &Args,
    variables: &[(String, String)],
    known: Option<&Descriptors>,
) -> Result<Compiled, Failed> {
    let mut problems = Problems::default();
    let compiled = plan(args, variables, known, &mut problems);
    problems.unless_any(compiled)
}

fn conditions(args: &Args, problems: &mut Problems) -> Vec<Condition> {
    let written = args.judge.expect.iter();
    let mut conditions: Vec<_> = written
        .filter_map(|text| problems.value("--expect", Condition::parse(text)))
        .collect();
    let looks_at_status = conditions.iter().any(Condition::needs_grpc);
    if args.grpc.grpc.is_none() && looks_at_status {
        problems.add("--expect", "`grpc.status` needs --grpc");
    }
    if args.grpc.grpc.is_some() && !looks_at_status {
        conditions.extend(Condition::parse("grpc.status == OK"));
    }
    conditions
}

fn plan(
    args: &Args,
    variables: &[(String, String)],
    known: Option<&Descriptors>,
    problems: &mut Problems,
) -> Option<Compiled> {
    let timeout = args.judge.timeout;
    let wanted = Wanted::compile(&args.grpc, known, problems);
    let url = match &wanted {
        Some(wanted) => problems.value("URL", grpc::url(&args.url, &wanted.name))?,
        None => args.url.clone(),
    };
    let endpoint = problems.value("URL", Endpoint::parse(&url));
    let conditions = conditions(args, problems);
    let protocol = args.connection.version();
    if args.grpc.grpc.is_some() && args.request.has_digest() {
        problems.add("--digest", "does not go with --grpc");
    }
    let closes = protocol == Protocol::Http1 && !args.request.has_digest();
    let mut parts = args.request.parts(closes, problems);
    if let Some(wanted) = &wanted {
        wanted.fill(&mut parts, problems);
    }
    if args.response.compressed {
        parts.accept_encodings(Decoder::ACCEPTED);
    }
    for (flag, is_given) in [
        ("--location", args.request.follows_redirects()),
        ("--compressed", args.response.compressed),
    ] {
        if is_given && args.grpc.grpc.is_some() {
            problems.add(flag, "does not go with --grpc");
        }
    }
    args.request.check_body(problems);
    let digest = args.request.digest(problems);
    let mut endpoints: Vec<Endpoint> = endpoint.iter().cloned().collect();
    if args.request.follows_redirects() {
        // A redirect may lead to TLS where the URL does not.
        endpoints.extend(Endpoint::parse("https://redirect.invalid/"));
    }
    let connect = args
        .connection
        .plan(&endpoints, timeout, variables, problems);
    let (endpoint, connect) = (endpoint?, connect?);
    let way = Way {
        connect: &connect,
        protocol,
    };
    let request = problems.value("request", parts.encode(&endpoint, way))?;
    let method = wanted.as_ref().and_then(Wanted::method).cloned();
    let plan = CheckPlan {
        endpoint,
        request,
        digest,
        grpc: method.map(|method| GrpcCheck {
            is_server_streaming: method.is_server_streaming(),
            to_json: Arc::new(move |message: &[u8]| Ok(method.answer_to_json(message)?)),
        }),
        expectations: Expectations::new(conditions),
        timeout,
        limits: Limits::default(),
    };
    Some(Compiled {
        plan,
        connect: Arc::new(connect),
        unknown_method: wanted
            .filter(Wanted::is_unknown)
            .map(|wanted| UnknownMethod {
                name: wanted.name,
                parts,
            }),
    })
}

fn print(args: &Args, checked: &Checked) -> Result<(), Failed> {
    let text = if args.output.json {
        CheckDocument::from_checked(checked).to_json()
    } else {
        text::check(checked, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}
