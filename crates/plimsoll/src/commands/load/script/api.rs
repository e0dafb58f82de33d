//! The server of k6's REST API (`load --address`).
//!
//! Web pages may not change a run: any page can have the browser of its reader send requests to the loopback.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt as _, Limited};
use plimsoll_k6::RunControl;
use plimsoll_server::{
    Action, Answer, Counters, Engine, EnginePlan, ListenerPlan, Request, Response, ResponseBody,
    Serves, WorkerContext,
};

use crate::problem::Problem;

/// Bytes of a request's content: data of `setup()` may be long.
const MOST_CONTENT: usize = 16 << 20;

/// A server that listens until it is dropped.
#[derive(Debug)]
pub(super) struct Api {
    address: SocketAddr,
    control: RunControl,
    _engine: Engine,
}

impl Api {
    pub(super) fn listen(address: &str) -> Result<Self, Problem> {
        let wrong = |message: String| Problem::with("--address", message);
        let mut found = address
            .to_socket_addrs()
            .map_err(|error| wrong(format!("`{address}`: {error}")))?;
        let found = found
            .next()
            .ok_or_else(|| wrong(format!("`{address}` has no address")))?;
        let control = RunControl::default();
        let shared = control.clone();
        let make = move |_: &WorkerContext| {
            Rc::new(Respond {
                control: shared.clone(),
            }) as Rc<dyn Action>
        };
        let listener = ListenerPlan::new(found, Serves::clear(Arc::new(make)));
        let plan = EnginePlan {
            threads: 1,
            ..EnginePlan::new(vec![listener])
        };
        let engine = Engine::start(&plan, Arc::<Counters>::default())
            .map_err(|error| Problem::caused_by(&error).about("--address"))?;
        let address = engine.addresses().first().copied().unwrap_or(found);
        Ok(Self {
            address,
            control,
            _engine: engine,
        })
    }

    /// The address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Of the run that it is about.
    pub(super) fn control(&self) -> RunControl {
        self.control.clone()
    }
}

struct Respond {
    control: RunControl,
}

impl Action for Respond {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let is_change = request.method != "GET" && request.method != "HEAD";
        if is_change && request.header("origin").is_some() {
            let text = "web pages may not change a run\n";
            return Answer::now(Response::text(StatusCode::FORBIDDEN, text));
        }
        let control = self.control.clone();
        let (method, path) = (request.method.to_owned(), request.path.to_owned());
        let body = request.take_body();
        Answer::later(async move {
            let Ok(content) = Limited::new(body, MOST_CONTENT).collect().await else {
                let text = "the content is too long, or it is not complete\n";
                return Response::text(StatusCode::BAD_REQUEST, text);
            };
            let response = control.respond(&method, &path, &content.to_bytes());
            let status =
                StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let kind = HeaderValue::from_static(response.content_type);
            Response::new(status)
                .with_field(CONTENT_TYPE, kind)
                .with_body(ResponseBody::Bytes(response.body.into()))
        })
    }
}
