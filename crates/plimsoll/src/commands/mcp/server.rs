//! The server of the protocol: lists of tools and resources, and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_model::Secret;
use plimsoll_model::document::nearest;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool as Listed, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use url::Url;

use super::arguments::{self, Call};
use super::bounds::Bounds;
use super::outcome;
use super::program::{self, Canceller, Progress};
use super::resources;
use super::tools::{Act, Command, TOOLS, Tool};
use crate::problem::Problem;

/// Commands that only read and check, at a time.
const MOST_AT_ONCE: usize = 4;

/// Calls that run or wait.
const MOST_CALLS: usize = 32;

/// Lists and resources are those of the program: they stay as they are while it runs.
const FRESH_MS: u64 = 3_600_000;

/// What models read first.
const INSTRUCTIONS: &str = "\
Instruments for HTTP services: check one request, run load tests, find the load line, compare URLs, check mock rules and \
configurations, read a running monitor. Measurements run one after another, so that they do not disturb each other. Requests go to \
loopback and to targets that the operator allowed; a refusal names the bound and the flag of `plimsoll mcp` that the operator can \
change. Files are read below one folder. Look up flags, conditions and keys with docs_search.";

/// The tools within their bounds.
pub(super) struct Server {
    bounds: Arc<Bounds>,
    monitor: (Url, Option<Secret>),
    measuring: Semaphore,
    others: Semaphore,
    pub(super) runs: Arc<Runs>,
}

/// The number of calls whose commands have not ended.
#[derive(Debug, Default)]
pub(super) struct Runs {
    count: AtomicUsize,
    changed: Notify,
}

/// One of them, until it is dropped.
struct RunGuard(Arc<Runs>);

impl Runs {
    /// None if there are too many.
    fn begin(runs: &Arc<Self>) -> Option<RunGuard> {
        let before = runs.count.fetch_add(1, Ordering::AcqRel);
        let guard = RunGuard(Arc::clone(runs));
        (before < MOST_CALLS).then_some(guard)
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}

impl Server {
    pub(super) fn new(bounds: Bounds, monitor: Url, token: Option<Secret>) -> Self {
        Self {
            bounds: Arc::new(bounds),
            monitor: (monitor, token),
            measuring: Semaphore::new(1),
            others: Semaphore::new(MOST_AT_ONCE),
            runs: Arc::default(),
        }
    }

    fn listed(&self, tool: &Tool) -> Listed {
        let schema = arguments::schema(tool.arguments, tool.required, &self.bounds);
        let annotations = ToolAnnotations::with_title(tool.title)
            // Load changes what it is sent to, perhaps.
            .read_only(!tool.sends)
            .destructive(false)
            .idempotent(!tool.sends)
            .open_world(tool.sends);
        let listed = Listed::new(tool.name, tool.doc, schema)
            .with_title(tool.title)
            .with_annotations(annotations);
        match tool.output_schema.map(output_schema) {
            Some(schema) => listed.with_raw_output_schema(Arc::new(schema)),
            None => listed,
        }
    }

    async fn call(
        &self,
        tool: &'static Tool,
        given: &Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let mut problems = Vec::new();
        let bounds = &self.bounds;
        let call = Call::read(tool.arguments, tool.required, given, bounds, &mut problems);
        match &tool.act {
            Act::Run(act) => {
                let command = act(&call, bounds, &mut problems);
                if !problems.is_empty() {
                    return outcome::refused(&problems);
                }
                self.run(command, context).await
            }
            _ if !problems.is_empty() => outcome::refused(&problems),
            #[cfg(feature = "monitor")]
            Act::Monitor(path) => self.ask_monitor(path(&call)).await,
            Act::Answer(answer) => CallToolResult::success(vec![ContentBlock::text(answer(&call))]),
        }
    }

    /// Runs the command of a call, and ends it with the call.
    async fn run(&self, command: Command, context: &RequestContext<RoleServer>) -> CallToolResult {
        let Command {
            program,
            measures,
            form,
        } = command;
        let Some(guard) = Runs::begin(&self.runs) else {
            let problem = Problem::new(format!("{MOST_CALLS} calls run or wait already"));
            return outcome::refused(&[problem.hint("wait for their results")]);
        };
        let turns = if measures {
            &self.measuring
        } else {
            &self.others
        };
        let cancelled = Canceller::default();
        let turn = tokio::select! {
            turn = turns.acquire() => turn,
            () = context.ct.cancelled() => return outcome::refused(&[Problem::new("cancelled")]),
        };
        let (progress, shown) = watch::channel(Progress::default());
        let expected = program.expected;
        let bounds = Arc::clone(&self.bounds);
        let flag = Arc::clone(&cancelled.0);
        let mut running = tokio::task::spawn_blocking(move || {
            let finished = program::run(&program, &bounds, &flag, &progress);
            drop(guard);
            finished
        });
        let finished = tokio::select! {
            finished = &mut running => finished,
            () = context.ct.cancelled() => {
                // Its turn ends with its process, so that the next measurement begins on a quiet machine.
                drop(cancelled);
                running.await
            }
            () = report_progress(context, shown, expected) => running.await,
        };
        drop(turn);
        match finished {
            Ok(Ok(finished)) => outcome::of_command(&finished, form),
            Ok(Err(message)) => outcome::refused(&[Problem::new(message)]),
            Err(error) => outcome::refused(&[Problem::caused_by(&error)]),
        }
    }

    #[cfg(feature = "monitor")]
    async fn ask_monitor(&self, path: String) -> CallToolResult {
        use crate::commands::monitor::ApiServer;

        let (url, token) = self.monitor.clone();
        let Some(guard) = Runs::begin(&self.runs) else {
            let problem = Problem::new(format!("{MOST_CALLS} calls run or wait already"));
            return outcome::refused(&[problem]);
        };
        let asked = tokio::task::spawn_blocking(move || {
            let answer = ApiServer::new(url, token).get(&path);
            drop(guard);
            answer
        });
        match asked.await {
            Ok(Ok(answer)) => outcome::of_answer(answer),
            Ok(Err(failed)) => outcome::refused(&failed.problems),
            Err(error) => outcome::refused(&[Problem::caused_by(&error)]),
        }
    }
}

/// Sends progress until the command has ended, if the client has requested it.
async fn report_progress(
    context: &RequestContext<RoleServer>,
    mut progress: watch::Receiver<Progress>,
    expected: Option<std::time::Duration>,
) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        let mut param = ProgressNotificationParam::new(token.clone(), now.passed.as_secs_f64());
        if let Some(expected) = expected {
            param = param.with_total(expected.as_secs_f64());
        }
        if !now.line.is_empty() {
            param = param.with_message(now.line);
        }
        // A client that is gone ends the call by itself.
        context.peer.notify_progress(param).await.ok();
    }
}

/// A schema of schemas/ as clients take it: without the identity, which some of them look up or refuse to meet twice.
fn output_schema(text: &str) -> Map<String, Value> {
    let mut schema: Map<String, Value> =
        serde_json::from_str(text).expect("a schema of this repository is a JSON object");
    schema.remove("$schema");
    schema.remove("$id");
    schema
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("plimsoll", env!("CARGO_PKG_VERSION"))
                    .with_title("plimsoll: load tests and checks of HTTP services"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(|tool| self.listed(tool));
        let listed = ListToolsResult::with_all_items(tools.collect());
        Ok(listed
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            let hint = match nearest(&request.name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("tools are {}", names.join(", ")),
            };
            let message = format!("there is no tool `{:.64}`; {hint}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let given = request.arguments.unwrap_or_default();
        Ok(self.call(tool, &given, &context).await.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = ListResourcesResult::with_all_items(resources::list());
        Ok(listed
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(content) = resources::read(&request.uri) else {
            let message = format!("there is no resource {:.200}", request.uri);
            return Err(ErrorData::resource_not_found(message, None));
        };
        let read = ReadResourceResult::new(vec![content])
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private);
        Ok(read.into())
    }
}

#[cfg(test)]
mod tests;
