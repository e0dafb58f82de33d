//! Method descriptors of a client: from files, or from the server's reflection.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use plimsoll_formats::grpc::{Descriptors, Method, MethodName, Reflection};

use super::Connection;
use super::call::{Outcome, exchange};
use crate::user::UserState;

/// Time limit of one reflection request: the default of connecting.
const REFLECTION: Duration = Duration::from_mins(1);

/// The health service, which every client can call (grpc/health/v1/health.proto).
static HEALTH: LazyLock<Descriptors> = LazyLock::new(|| {
    let text = "syntax = 'proto3'; package grpc.health.v1;
        message HealthCheckRequest { string service = 1; }
        message HealthCheckResponse {
          enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
          ServingStatus status = 1;
        }
        service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }";
    Descriptors::parse("health.proto", text).expect("the text is valid")
});

/// Descriptors in the order in which they came.
#[derive(Default)]
pub(crate) struct Described(RefCell<Vec<Descriptors>>);

impl Described {
    /// Compiles `.proto` files; virtual users that load the same files share the result.
    pub(crate) fn load(
        &self,
        user: &UserState,
        imports: &[String],
        files: &[String],
    ) -> Result<Descriptors, String> {
        let known = Arc::clone(&user.shared.files);
        let folders = imports.to_vec();
        let found = user.shared.files.described(imports, files, || {
            let places = move |name: &str| known.proto_places(&folders, name);
            Descriptors::compile_named(files, places).map_err(|error| error.to_string())
        })?;
        self.0.borrow_mut().push(found.clone());
        Ok(found)
    }

    /// Reads a descriptor set, as `protoc --descriptor_set_out` writes it.
    pub(crate) fn load_set(&self, user: &UserState, path: &str) -> Result<Descriptors, String> {
        let key = [path.to_owned()];
        let found = user.shared.files.described(&[], &key, || {
            let bytes = user.shared.files.open(path);
            let bytes = bytes.map_err(|error| error.to_string())?;
            Descriptors::decode(&bytes).map_err(|error| format!("{path} {error}"))
        })?;
        self.0.borrow_mut().push(found.clone());
        Ok(found)
    }

    fn find(&self, name: &MethodName) -> Option<Method> {
        let known = self.0.borrow();
        known.iter().find_map(|it| it.method(name).ok())
    }

    /// The method, after the server was queried for it if the client does that.
    pub(super) async fn method(
        &self,
        connection: &Rc<Connection>,
        name: &MethodName,
    ) -> Result<Method, String> {
        if let Some(method) = self.find(name) {
            return Ok(method);
        }
        if name.service() == "grpc.health.v1.Health"
            && let Ok(method) = HEALTH.method(name)
        {
            return Ok(method);
        }
        if let Some(metadata) = &connection.reflects {
            let learnt = reflect(connection, name.service(), metadata).await?;
            self.0.borrow_mut().push(learnt);
            if let Some(method) = self.find(name) {
                return Ok(method);
            }
        }
        Err(self.unknown(name))
    }

    /// Fails if the method is not known and no reflection can find it.
    pub(super) fn check(&self, connection: &Connection, name: &MethodName) -> Result<(), String> {
        if connection.reflects.is_some() || self.find(name).is_some() {
            return Ok(());
        }
        Err(self.unknown(name))
    }

    fn unknown(&self, name: &MethodName) -> String {
        let known = self.0.borrow();
        let hint = known.iter().find_map(|it| it.method(name).err());
        let hint = hint.map_or_else(
            || "call client.load() first, or connect with `reflect: true`".to_owned(),
            |unknown| unknown.hint(),
        );
        format!("method \"/{name}\" not found in file descriptors: {hint}")
    }
}

/// Learns about a service from the server, by either version of the reflection service.
async fn reflect(
    connection: &Rc<Connection>,
    service: &str,
    metadata: &[(String, String)],
) -> Result<Descriptors, String> {
    let mut problem = String::new();
    for reflection in Reflection::SERVICES {
        let path = format!("/{reflection}/{}", Reflection::METHOD);
        let mut learning = Reflection::new(service);
        let learnt = loop {
            let Some(question) = learning.next_request() else {
                break learning.finish().map_err(|error| error.to_string());
            };
            let asking = exchange(connection, &path, &question, metadata, REFLECTION);
            let outcome = match asking.await {
                Ok(Outcome {
                    status,
                    message,
                    messages,
                    ..
                }) if status.is_ok() => messages.into_iter().next().ok_or(message),
                Ok(outcome) => Err(format!("{}: {}", outcome.status.name(), outcome.message)),
                Err(message) => Err(message),
            };
            let answered = outcome
                .and_then(|message| learning.answer(&message).map_err(|error| error.to_string()));
            if let Err(message) = answered {
                break Err(message);
            }
        };
        match learnt {
            Ok(learnt) => return Ok(learnt),
            Err(message) => problem = message,
        }
    }
    Err(format!(
        "the server's reflection failed for {service}: {problem}"
    ))
}
