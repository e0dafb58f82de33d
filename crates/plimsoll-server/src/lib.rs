//! The serving engine: listeners and the small actions that answer requests.
//!
//! An [`Engine`] is a number of workers, each a thread with a runtime, sockets and actions of its own;
//! what answers a request is an [`Action`]. HTTP/1 is decoded by `plimsoll_wire::h1`, HTTP/2 by the `h2`
//! crate, HTTP/3 by quinn and the `h3` crate. Limits are on by default and counted. It prints nothing and reads no file but those that a
//! configuration names; [`config`] compiles one.
//!
//! [`Origin`] is apart from it: the embedded origin of `plimsoll load`, one thread with one fixed answer.

mod action;

mod context;

mod states;

mod drain;

mod actions;

mod route;

pub mod config;

mod metrics;

mod admin;

mod connection;

mod request;

mod fields;

mod interim;

mod response;

mod file;

mod body;

mod stream;

mod layer4;

mod access_log;

mod acme;

mod limits;

mod middleware;

mod admission;

mod counters;

mod engine;

mod address;

mod unix_socket;

mod inherited;

mod listener;

mod proxied;

mod run;

mod worker;

mod timer;

mod alarms;

mod pace;

mod activity;

mod head;

mod http1;

mod http2;

mod http3;

#[cfg(any(test, feature = "contract"))]
pub mod contract;

mod origin;

mod embedded;

mod embedded_http2;

mod notice;

pub use crate::access_log::{AccessLog, LogFormat, LogWriter, OpenLog};
pub use crate::acme::{
    AcmeAccount, AcmePlan, AnsweringHttpChallenge, ChallengeKind, Challenges, ExternalAccount,
    HttpChallenges,
};
pub use crate::action::{Action, Answer, LocalFuture, MakeAction, Outcome, Refusal, TakeOver};
pub use crate::actions::{
    Delay, Echo, EchoHandler, Mount, Redirect, RedirectError, Respond, SendBody,
};
pub use crate::address::{Address, AddressError};
pub use crate::admin::{
    Admin, AdminApi, AdminApis, AdminMethod, AdminPath, AnswerAdmin, AnswerApi,
};
pub use crate::alarms::Alarms;
pub use crate::body::{BodyError, RequestBody};
pub use crate::connection::{ConnectionInfo, TlsInfo};
pub use crate::context::WorkerContext;
pub use crate::counters::{Counters, Cut, RouteTag, Snapshot};
pub use crate::drain::DrainSignal;
pub use crate::engine::{
    Drained, Engine, EngineError, EnginePlan, Http3Plan, ListenerPlan, Serves,
};
pub use crate::fields::{FieldEdits, FieldList};
pub use crate::file::FilePart;
pub use crate::inherited::Inherited;
pub use crate::interim::{InterimError, InterimSender};
pub use crate::layer4::{
    Accepted, Datagram, DatagramHandler, Effect, Effects, FirstBytes, Inspection,
    MakeDatagramHandler, MakeStreamHandler, ServeStream, SessionId, StreamHandler,
};
pub use crate::limits::{FloodLimits, Http2Limits, Http3Limits, Limits};
pub use crate::listener::Transport;
pub use crate::metrics::{Figures, MetricsText};
pub use crate::middleware::{
    BasicAuth, Coding, Compress, Cors, HashError, HeaderRules, LimitKey, Middleware, Origins,
    PasswordHash, RateLimit, RequestIds, SecurityHeaders, Trace, compress, compress_well,
    preferred_coding,
};
pub use crate::notice::{Notice, Notices, Severity};
pub use crate::origin::{Origin, OriginError, Speaks};
pub use crate::request::{OwnedRequest, Request, Scheme, Version};
pub use crate::response::{Prepared, Response, ResponseBody, StreamError};
pub use crate::route::{
    Asked, FieldCondition, PathCondition, PathError, Pattern, RouteConditions, RouteIndex,
    RouteRefusal, Routes,
};
pub use crate::states::SharedStates;
pub use crate::stream::Stream;
