//! `--grpc`: which method is called, with which messages, and how its server describes it.

mod call;

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_client::grpc::frame;
use plimsoll_client::{ConnectPlan, Endpoint};
use plimsoll_formats::Template;
use plimsoll_formats::grpc::{Descriptors, Method, MethodName, Reflection};
use plimsoll_load::GrpcPlan;
use plimsoll_model::GrpcStatus;

pub(crate) use crate::grpc::call::Caller;

use crate::flags::{Problems, RequestParts};
use crate::problem::{Failed, Problem};

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "gRPC")]
pub(crate) struct GrpcArgs {
    /// Call this method over HTTP/2 (with load, over HTTP/3 too: --http3); -d or -D gives its message as JSON, or a list of messages for
    /// a method that takes a stream
    #[arg(long, value_name = "PACKAGE.SERVICE/METHOD",
          conflicts_with_all = ["method", "form", "content_type"])]
    pub(crate) grpc: Option<String>,

    /// `.proto` file that describes the method, or a descriptor set as `protoc --include_imports
    /// --descriptor_set_out=FILE` writes it [default: fetched from the server, by reflection]
    #[arg(long, value_name = "FILE", requires = "grpc")]
    pub(crate) proto_set: Option<PathBuf>,
}

/// A method whose description has to be fetched from the server.
#[derive(Debug)]
pub(crate) struct UnknownMethod {
    pub(crate) name: MethodName,
    /// Fields that all requests to the server carry.
    pub(crate) parts: RequestParts,
}

/// The method of `--grpc`.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) name: MethodName,
    /// `None` as long as the description is not fetched.
    method: Option<Method>,
}

impl Wanted {
    /// The method that the flags name.
    ///
    /// - `known`: the server's description of it, once it was fetched.
    pub(crate) fn compile(
        args: &GrpcArgs,
        known: Option<&Descriptors>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let text = args.grpc.as_deref()?;
        let name: MethodName = problems.value("--grpc", text.parse())?;
        let from_file;
        let descriptors = match &args.proto_set {
            None => known,
            Some(path) => {
                let decoded = Descriptors::open(path)
                    .map_err(|error| Problem::caused_by(&error))
                    .map_err(|problem| {
                        problem.about(&format!("--proto-set {}", path.display())).hint(
                            "write it with `protoc --include_imports --descriptor_set_out=FILE`",
                        )
                    });
                from_file = decoded.map_err(|problem| problems.push(problem)).ok()?;
                Some(&from_file)
            }
        };
        let Some(descriptors) = descriptors else {
            return Some(Self { name, method: None });
        };
        match descriptors.method(&name) {
            Ok(method) => Some(Self {
                name,
                method: Some(method),
            }),
            Err(unknown) => {
                problems.push(Problem::with("--grpc", &unknown).hint(unknown.hint()));
                None
            }
        }
    }

    /// Whether its description has to be fetched from the server.
    pub(crate) fn is_unknown(&self) -> bool {
        self.method.is_none()
    }

    /// The method, once it is known.
    pub(crate) fn method(&self) -> Option<&Method> {
        self.method.as_ref()
    }

    /// How its responses are judged.
    pub(crate) fn plan(&self) -> GrpcPlan {
        GrpcPlan {
            is_server_streaming: self
                .method
                .as_ref()
                .is_some_and(Method::is_server_streaming),
        }
    }

    /// Makes a call of what flags give; their body is JSON.
    pub(crate) fn fill(&self, parts: &mut RequestParts, problems: &mut Problems) {
        let json = match parts.body().map(Template::as_text) {
            None => b"{}".to_vec(),
            Some(Some(json)) => json.to_vec(),
            Some(None) => {
                problems.push(
                    Problem::with("-d", "has a place for a value that is not always the same")
                        .hint(
                            "with --grpc all exchanges carry the same messages; give it by --var",
                        ),
                );
                return;
            }
        };
        let Some(method) = &self.method else {
            parts.set_call(Vec::new());
            return;
        };
        let Some(messages) = problems.value("-d", method.messages(&json)) else {
            return;
        };
        if let Some(body) = problems.value("-d", frame(&messages)) {
            parts.set_call(body);
        }
    }
}

/// The URL of a method whose server is at `base`.
pub(crate) fn url(base: &str, method: &impl std::fmt::Display) -> Result<String, String> {
    if base.contains(['?', '#']) {
        return Err("the URL of a server of gRPC has no query and no fragment".to_owned());
    }
    Ok(format!("{}/{method}", base.trim_end_matches('/')))
}

/// Asks the server at `endpoint` about the service of `name`.
///
/// - `base`: the URL of the command line.
/// - `parts`: what all requests to it carry.
pub(crate) fn reflect(
    connect: &Arc<ConnectPlan>,
    endpoint: &Endpoint,
    base: &str,
    name: &MethodName,
    parts: &RequestParts,
) -> Result<Descriptors, Failed> {
    let problem = |message: String| {
        Problem::with("--grpc", message)
            .hint("describe the method with --proto-set FILE")
            .could_not_run()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::new(format!("cannot start a runtime: {error}")).could_not_run()
        })?;
    runtime
        .block_on(async {
            let mut caller = Caller::connect(connect, endpoint, base, parts).await?;
            let mut reflection = Reflection::new(name.service());
            let mut services = Reflection::SERVICES.iter().peekable();
            let mut service = services.next().ok_or("there is nothing to ask")?;
            while let Some(request) = reflection.next_request() {
                let method = format!("{service}/{}", Reflection::METHOD);
                let reply = caller.call(&method, &request).await;
                let reply = reply.map_err(|error| format!("reflection failed: {error}"))?;
                match (reply.status, reply.messages.as_slice()) {
                    (GrpcStatus::OK, [answer]) => {
                        reflection
                            .answer(answer)
                            .map_err(|error| Problem::caused_by(&error).message)?;
                    }
                    (GrpcStatus::OK, answers) => {
                        return Err(format!(
                            "reflection gave {} answers instead of one",
                            answers.len()
                        ));
                    }
                    (GrpcStatus::UNIMPLEMENTED, _) if services.peek().is_some() => {
                        service = services.next().unwrap_or(service);
                    }
                    (GrpcStatus::UNIMPLEMENTED, _) => {
                        return Err(
                            "the server does not describe itself (no reflection)".to_owned()
                        );
                    }
                    (status, _) => {
                        let message = reply.message.map(|message| format!(": {message}"));
                        let message = message.unwrap_or_default();
                        return Err(format!("reflection was answered with {status}{message}"));
                    }
                }
            }
            reflection
                .finish()
                .map_err(|error| Problem::caused_by(&error).message)
        })
        .map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn a_method_stands_behind_the_url_of_its_server() {
        assert_eq!(url("http://h:1", &"a.B/C").unwrap(), "http://h:1/a.B/C");
        assert_eq!(url("h/prefix/", &"a.B/C").unwrap(), "h/prefix/a.B/C");
        assert!(url("http://h/?a", &"a.B/C").is_err());
    }
}
