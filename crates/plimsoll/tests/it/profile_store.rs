//! Profiles fetched over TLS and handed to a store, which tonic serves.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};
use std::thread;

use plimsoll_testkit::{Authority, MaterialFiles, Origin, Script};
use prost::Message;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::plimsoll::plimsoll;

#[derive(Clone, PartialEq, Message)]
struct WriteRaw {
    #[prost(message, repeated, tag = "2")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, optional, tag = "1")]
    labels: Option<Labels>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Raw>,
}

#[derive(Clone, PartialEq, Message)]
struct Labels {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Raw {
    #[prost(bytes = "vec", tag = "1")]
    pprof: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Written {}

/// What came: the token and the request.
type Came = (Option<String>, WriteRaw);

/// The receiving end of a store, until the test ends.
#[derive(Clone)]
struct Store(Sender<Came>);

impl Store {
    fn start() -> (String, Receiver<Came>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, came) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                Server::builder()
                    .add_service(Self(sender))
                    .serve_with_incoming(TcpIncoming::from(listener))
                    .await
                    .unwrap();
            });
        });
        (url, came)
    }
}

impl NamedService for Store {
    const NAME: &'static str = "parca.profilestore.v1alpha1.ProfileStoreService";
}

impl Service<http::Request<Body>> for Store {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let store = self.clone();
        Box::pin(async move {
            if !request.uri().path().ends_with("/WriteRaw") {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let mut grpc = Grpc::new(ProstCodec::<Written, WriteRaw>::default());
            Ok(grpc.unary(store, request).await)
        })
    }
}

impl UnaryService<WriteRaw> for Store {
    type Response = Written;
    type Future = Ready<Result<Response<Written>, Status>>;

    fn call(&mut self, request: Request<WriteRaw>) -> Self::Future {
        let token = request.metadata().get("authorization");
        let token = token.map(|token| token.to_str().unwrap().to_owned());
        if token.as_deref() == Some("Bearer wrong") {
            return ready(Err(Status::unauthenticated("who are you?")));
        }
        self.0.send((token, request.into_inner())).unwrap();
        ready(Ok(Response::new(Written {})))
    }
}

/// A profile as servers take it of themselves: one sample of `main`, which is 10 ms of processor time.
fn pprof() -> Vec<u8> {
    #[derive(Clone, PartialEq, Message)]
    struct Pair {
        #[prost(int64, tag = "1")]
        one: i64,
        #[prost(int64, tag = "2")]
        other: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        locations: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        values: Vec<i64>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Line {
        #[prost(uint64, tag = "1")]
        function: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Location {
        #[prost(uint64, tag = "1")]
        id: u64,
        #[prost(message, repeated, tag = "4")]
        lines: Vec<Line>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Profile {
        #[prost(message, repeated, tag = "1")]
        types: Vec<Pair>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
        #[prost(message, repeated, tag = "4")]
        locations: Vec<Location>,
        /// Of functions: number and name.
        #[prost(message, repeated, tag = "5")]
        functions: Vec<Pair>,
        #[prost(string, repeated, tag = "6")]
        strings: Vec<String>,
        #[prost(message, optional, tag = "11")]
        period_type: Option<Pair>,
        #[prost(int64, tag = "12")]
        period: i64,
    }

    let pair = |one, other| Pair { one, other };
    let profile = Profile {
        types: vec![pair(1, 2), pair(3, 4)],
        samples: vec![Sample {
            locations: vec![1],
            values: vec![1, 10_000_000],
        }],
        locations: vec![Location {
            id: 1,
            lines: vec![Line { function: 1 }],
        }],
        functions: vec![pair(1, 5)],
        strings: ["", "samples", "count", "cpu", "nanoseconds", "main"]
            .map(str::to_owned)
            .to_vec(),
        period_type: Some(pair(3, 4)),
        period: 10_000_000,
    };
    profile.encode_to_vec()
}

#[test]
fn a_profile_is_fetched_over_tls_and_handed_to_a_store() {
    let (files, authority) = (MaterialFiles::new(), Authority::new());
    let trusted = files.write("ca.pem", &authority.pem());
    let content = pprof();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
        content.len()
    );
    let answer = [head.as_bytes(), &content].concat();
    let origin = Origin::builder()
        .tls(authority.issue(&["127.0.0.1"]).server_config())
        .script(move |_| Script::serve(answer.clone()))
        .start();
    let (store, came) = Store::start();
    let url = format!("https://{}/profile?seconds=1", origin.address());
    let output = plimsoll(&[
        "profile",
        &url,
        "-z",
        "1s",
        "--cacert",
        trusted.to_str().unwrap(),
        "-H",
        "authorization: Bearer x",
        "--push",
        &store,
        "--push-label",
        "job=shop",
        "--push-header",
        "authorization: Bearer y",
    ])
    .exits(0);
    assert!(output.stdout.contains("main"), "{output}");
    assert!(
        origin.heads()[0].contains("authorization: Bearer x"),
        "{:?}",
        origin.heads()
    );
    let (token, written) = came.try_recv().unwrap();
    assert_eq!(token.as_deref(), Some("Bearer y"));
    let series = &written.series[0];
    let labels = &series.labels.as_ref().unwrap().labels;
    let labels: Vec<_> = labels
        .iter()
        .map(|label| (label.name.as_str(), label.value.as_str()))
        .collect();
    assert_eq!(labels, [("__name__", "process_cpu"), ("job", "shop")]);
    assert!(series.samples[0].pprof.starts_with(&[0x1f, 0x8b]));

    let untrusted = plimsoll(&["profile", &url]).exits(3);
    assert!(untrusted.stderr.contains("no profile from"), "{untrusted}");
    let refused = plimsoll(&[
        "profile",
        &url,
        "-k",
        "--push",
        &store,
        "--push-header",
        "authorization: Bearer wrong",
    ])
    .exits(3);
    assert!(
        refused.stderr.contains("has not taken the profile: "),
        "{refused}"
    );
    assert!(refused.stderr.contains("who are you?"), "{refused}");
}

#[test]
fn what_a_store_cannot_be_reported_is_a_mistake() {
    insta::assert_snapshot!(plimsoll(&[
        "profile", "http://127.0.0.1:1/", "--push", "nowhere", "--push-label", "2=x", "--push-header", "x",
        "--every", "1s",
    ]), @"
    error: --push-label: `2=x` is not of the form NAME=VALUE, with a name of letters, digits and _
    error: --push-header: `x` is not of the form `Name: value`
    exit 2
    ");
}
