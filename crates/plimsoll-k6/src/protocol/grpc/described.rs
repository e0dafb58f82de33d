//! Method descriptors of a client: from files, or from the server's reflection.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use plimsoll_formats::grpc::{Descriptors, Method, MethodName, Reflection};

use super::Connection;
use super::call::{Outcome, exchange};
use super::error::{DescribeError, GrpcError, ReflectError};
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
    ) -> Result<Descriptors, DescribeError> {
        let known = Arc::clone(&user.shared.files);
        let folders = imports.to_vec();
        let found = user.shared.files.described(imports, files, || {
            let places = move |name: &str| known.proto_places(&folders, name);
            Ok(Descriptors::compile_named(files, places)?)
        })?;
        self.0.borrow_mut().push(found.clone());
        Ok(found)
    }

    /// Reads a descriptor set, as `protoc --descriptor_set_out` writes it.
    pub(crate) fn load_set(
        &self,
        user: &UserState,
        path: &str,
    ) -> Result<Descriptors, DescribeError> {
        let key = [path.to_owned()];
        let found = user.shared.files.described(&[], &key, || {
            let bytes = user.shared.files.open(path)?;
            Descriptors::decode(&bytes).map_err(|cause| DescribeError::Set {
                path: path.to_owned(),
                cause,
            })
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
    ) -> Result<Method, GrpcError> {
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
    pub(super) fn check(
        &self,
        connection: &Connection,
        name: &MethodName,
    ) -> Result<(), GrpcError> {
        if connection.reflects.is_some() || self.find(name).is_some() {
            return Ok(());
        }
        Err(self.unknown(name))
    }

    fn unknown(&self, name: &MethodName) -> GrpcError {
        let known = self.0.borrow();
        let hint = known.iter().find_map(|it| it.method(name).err());
        let hint = hint.map_or_else(
            || "call client.load() first, or connect with `reflect: true`".to_owned(),
            |unknown| unknown.hint(),
        );
        GrpcError::UnknownMethod {
            name: name.clone(),
            hint,
        }
    }
}

/// Learns about a service from the server, by either version of the reflection service.
async fn reflect(
    connection: &Rc<Connection>,
    service: &str,
    metadata: &[(String, String)],
) -> Result<Descriptors, GrpcError> {
    let mut cause = ReflectError::NoService;
    for reflection in Reflection::SERVICES {
        match reflect_by(reflection, connection, service, metadata).await {
            Ok(learnt) => return Ok(learnt),
            Err(error) => cause = error,
        }
    }
    Err(GrpcError::Reflection {
        service: service.to_owned(),
        cause,
    })
}

/// - `reflection`: a version of the reflection service.
async fn reflect_by(
    reflection: &str,
    connection: &Rc<Connection>,
    service: &str,
    metadata: &[(String, String)],
) -> Result<Descriptors, ReflectError> {
    let path = format!("/{reflection}/{}", Reflection::METHOD);
    let mut learning = Reflection::new(service);
    while let Some(question) = learning.next_request() {
        let asking = exchange(connection, &path, &question, metadata, REFLECTION);
        let outcome = asking.await;
        let outcome = outcome.map_err(|error| ReflectError::Call(Box::new(error)))?;
        let Outcome {
            status,
            message,
            messages,
            ..
        } = outcome;
        let answer = messages.into_iter().next().filter(|_| status.is_ok());
        let answer = answer.ok_or_else(|| ReflectError::Status {
            status: status.name(),
            message,
        })?;
        learning.answer(&answer)?;
    }
    Ok(learning.finish()?)
}
