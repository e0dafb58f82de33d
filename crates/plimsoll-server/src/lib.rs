//! The serving engine: listeners and the small actions that answer requests.
//!
//! An [`Engine`] is a number of workers, each a thread with its own runtime, sockets and actions;
//! what answers a request is an [`Action`]. HTTP/1 is decoded by `plimsoll_wire::h1`, HTTP/2 by the `h2`
//! crate, HTTP/3 by quinn and the `h3` crate. Limits are on by default and counted. It prints nothing and reads no file but those that a
//! configuration names; [`config`] compiles one.
//!
//! [`Origin`] is apart from it: the embedded origin of `plimsoll load`, one thread with one fixed answer.
//!
//! # The way of a reload
//!
//! 1. `plimsoll/src/commands/serving.rs`: on SIGHUP, or when a certificate has changed, the same `Compiler` compiles
//!    the file again; on a change by the admin port (`observe/admin/configuration.rs`), the file with its changes (`content/changes.rs`).
//! 2. `plimsoll-server/src/config.rs`: the new plan is made while the old one is still served, so state that all
//!    workers share (buckets of rate limits, states and journals of mocks) is found by its type and identity in
//!    `SharedStates` (`worker/states.rs`).
//! 3. `engine.rs`, `Engine::reload`: binds the sockets of new listeners, and on an error leaves everything as it
//!    was; then each worker gets `Command::Apply`.
//! 4. `engine/run.rs`, `Listeners::apply`: makes the `WorkerContext` of a new generation (`worker/context.rs`) and
//!    calls each `MakeAction`, `MakeStreamHandler` and `MakeDatagramHandler` with it. State of the worker (pools,
//!    balancers) is found by `WorkerContext::state` in the same way.
//! 5. `engine/run.rs`, `Listeners::replace`: a listener that stays gets its new action or handler; open connections
//!    use it from their next request on. Sessions of datagrams that the new handler does not keep are closed
//!    (`layer4/listener.rs`).
//! 6. Listeners that are gone accept what waits and close. Their connections are served to the end by the old
//!    action.
//! 7. `worker/context.rs`, `Tasks::end`: background tasks of the old generation end. State that nothing uses any
//!    more is dropped with its last user.
//!
//! # The way of a connection that is routed by its name
//!
//! 1. `plimsoll-server/src/engine/run.rs`, `accept`: the connection is admitted (`worker/admission.rs`) and gets its
//!    `Place` (`worker.rs`); behind a proxy, its header names both ends (`engine/proxied.rs`).
//! 2. `layer4/stream.rs`, `take`: calls `StreamHandler::inspect`, first without any bytes and again each time more
//!    has come, until it decides, 64 KiB are read, `header_timeout` is over, or the client ends.
//! 3. The handler reads name and protocols by `wire::tls::ClientHello::parse` (`wire/src/tls/client_hello.rs`), which returns
//!    nothing until the message is whole.
//! 4. `Inspection::Decided` names what serves the connection. It gets an `Accepted`: the stream from its first byte
//!    on, both addresses, the signal of a drain.
//! 5. Its future ends and closes the connection; `Place` is dropped, which counts and makes room.

mod version;

mod limits;

mod counters;

mod message;

mod place;

mod content;

mod action;

mod actions;

mod middleware;

mod route;

mod stream;

mod quic;

mod layer4;

mod worker;

mod protocol;

mod engine;

mod observe;

mod acme;

pub mod config;

mod origin;

#[cfg(any(test, feature = "contract"))]
pub mod contract;

pub use crate::acme::{
    AcmeAccount, AcmePlan, AnsweringHttpChallenge, ChallengeKind, Challenges, ExternalAccount,
    HttpChallenges, OnDemandPlan,
};
pub use crate::action::{Action, Answer, LocalFuture, MakeAction, Outcome, Refusal, TakeOver};
pub use crate::actions::{
    Delay, Echo, EchoHandler, Mount, Redirect, RedirectError, Respond, SendBody,
};
pub use crate::counters::{Counters, Cut, Figures, RouteTag, Snapshot};
pub use crate::engine::address::{Address, AddressError};
pub use crate::engine::handover::{HandedOver, RelayLinks};
pub use crate::engine::inherited::Inherited;
pub use crate::engine::listener::Transport;
pub use crate::engine::unix_socket::{UnixFile, bind_unix_socket};
pub use crate::engine::{
    BoundEngine, Drained, Engine, EngineError, EnginePlan, Http3Plan, ListenerPlan, Serves,
};
pub use crate::layer4::{
    Accepted, AcceptedQuic, Datagram, DatagramHandler, Effect, Effects, FirstBytes, Inspection,
    MakeDatagramHandler, MakeQuicHandler, MakeStreamHandler, QuicHandler, QuicPlan, ServeStream,
    SessionId, SessionMatch, StreamHandler,
};
pub use crate::limits::{FloodLimits, Http2Limits, Http3Limits, Limits};
pub use crate::message::body::{BodyError, RequestBody};
pub use crate::message::connection::{ConnectionInfo, TlsInfo};
pub use crate::message::events::{EventSource, EventStreamBody, NextEvent};
pub use crate::message::fields::FieldEdits;
pub use crate::message::file::FilePart;
pub use crate::message::interim::{InterimError, InterimSender};
pub use crate::message::request::{
    OwnedRequest, ProvedClaims, Request, Scheme, TraceNote, UpstreamNote,
};
pub use crate::message::response::{HandOver, Prepared, Response, ResponseBody, StreamError};
pub use crate::middleware::{
    Addresses, AttributeRewrite, Bandwidth, BasicAuth, CertificateRule, Coding, Compress,
    CookieRule, Cors, FieldRewrite, FieldValue, HashError, HeaderRules, InFlightLimit,
    InFlightPlan, LimitKey, Middleware, OriginPattern, Origins, OwnFields, PasswordHash, RateLimit,
    RatePlan, RequestGuard, RequestIds, SameSite, SecurityHeaders, Trace, TrustedProxies,
    Underscores, compress, compress_well, preferred_coding,
};
pub use crate::observe::access_log::{AccessLog, LogFormat, LogWriter, LoggedConnection, OpenLog};
pub use crate::observe::admin::{
    Admin, AdminApi, AdminApis, AdminMethod, AdminPage, AdminPath, AnswerAdmin, AnswerApi,
    ChangeQueue, ChangeReply, ChangeRequest, ChangeRequests, WantedChange,
};
pub use crate::observe::audit::{AuditClient, AuditLine, AuditLog, AuditOutcome, AuditSource};
pub use crate::observe::notice::{Notice, Notices, Severity};
pub use crate::origin::{Origin, OriginError, Speaks};
pub use crate::place::location::{LocationError, LocationTemplate};
pub use crate::place::{Maps, Moment, Template, UnknownPlace};
pub use crate::route::{
    FieldCondition, OnStatus, PathCondition, PathError, Pattern, PlaceCondition, RouteConditions,
    RouteIndex, RouteInput, RouteRefusal, Routes, StatusPattern, Successor, SuccessorStatus,
    SuccessorTarget,
};
pub use crate::stream::Stream;
pub use crate::version::Version;
pub use crate::worker::alarms::Alarms;
pub use crate::worker::context::WorkerContext;
pub use crate::worker::drain::{Closing, DrainSignal};
pub use crate::worker::states::SharedStates;
