//! The plan of one process's workers, as the load engine takes it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{CheckPlan, Condition, Expectations};
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request};
use plimsoll_load::harness::HarnessPlan;
use plimsoll_model::LoadtestConnections;
use plimsoll_wire::h1::Limits;

/// The content of every answer.
pub(super) const BODY: &[u8] = b"ok";

/// How long checks under way at the end may still take.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The part of the harness that one process makes.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) origins: &'a [SocketAddr],
    pub(super) is_http2: bool,
    pub(super) connections: LoadtestConnections,
    pub(super) workers: usize,
    pub(super) threads: usize,
    pub(super) duration: Duration,
    pub(super) ramp: Duration,
    pub(super) timeout: Duration,
    pub(super) tick: Duration,
}

const OURS: &str = "it is made of an address and constants, which are valid";

impl Part<'_> {
    pub(super) fn plan(&self) -> HarnessPlan {
        let connect = ConnectOptions {
            timeout: Some(self.timeout),
            ..ConnectOptions::default()
        };
        HarnessPlan {
            checks: self
                .origins
                .iter()
                .map(|&origin| Arc::new(self.check(origin)))
                .collect(),
            connect: Arc::new(ConnectPlan::new(connect).expect(OURS)),
            connections: self.connections,
            workers: self.workers,
            threads: self.threads,
            duration: self.duration,
            ramp: self.ramp,
            grace: GRACE,
            tick: self.tick,
        }
    }

    fn check(&self, origin: SocketAddr) -> CheckPlan {
        let endpoint = Endpoint::parse(&format!("http://{origin}/")).expect(OURS);
        let authority = endpoint.authority();
        let request = if self.is_http2 {
            Request::encode_http2("GET", "http", authority, "/", &[], None).expect(OURS)
        } else {
            Request::encode("GET", "/", authority, &[], None).expect(OURS)
        };
        CheckPlan {
            request,
            endpoint,
            digest: None,
            grpc: None,
            expectations: Expectations::new(vec![Condition::parse("status == 200").expect(OURS)]),
            timeout: self.timeout,
            limits: Limits::default(),
        }
    }
}
