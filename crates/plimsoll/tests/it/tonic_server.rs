//! The service of `tests/data/echo.proto`, served by tonic.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;

use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::tokio_stream::{Iter, StreamExt as _, iter};
use tonic::codegen::{Service, http};
use tonic::server::{
    ClientStreamingService, Grpc, NamedService, ServerStreamingService, StreamingService,
    UnaryService,
};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tonic_reflection::server::Builder;

/// The service and all that it imports, as `protoc` wrote them.
const SET: &[u8] = include_bytes!("../data/echo.binpb");

/// The versions of reflection that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reflection {
    Nothing,
    V1,
    V1Alpha,
}

/// A server on a port of its own, until it is dropped.
pub(crate) struct TonicServer {
    address: SocketAddr,
    calls: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl TonicServer {
    pub(crate) fn start(reflection: Reflection) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let calls = Arc::new(AtomicU64::new(0));
        let echo = Echo {
            calls: Arc::clone(&calls),
        };
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                let builder = Builder::configure().register_encoded_file_descriptor_set(SET);
                let mut router = Server::builder().add_service(echo);
                match reflection {
                    Reflection::Nothing => {}
                    Reflection::V1 => router = router.add_service(builder.build_v1().unwrap()),
                    Reflection::V1Alpha => {
                        router = router.add_service(builder.build_v1alpha().unwrap());
                    }
                }
                let stopped = async {
                    stopped.await.ok();
                };
                router
                    .serve_with_incoming_shutdown(incoming, stopped)
                    .await
                    .unwrap();
            });
        });
        Self {
            address,
            calls,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Calls of the service, those of reflection left out.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for TonicServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Line {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Repetition {
    #[prost(message, optional, tag = "1")]
    line: Option<Line>,
    #[prost(uint32, tag = "2")]
    times: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Count {
    #[prost(uint32, tag = "1")]
    lines: u32,
    #[prost(uint32, tag = "2")]
    letters: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Wanted {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

#[derive(Clone)]
struct Echo {
    calls: Arc<AtomicU64>,
}

impl NamedService for Echo {
    const NAME: &'static str = "plimsoll.test.Echo";
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
            Ok(match method.as_str() {
                "Say" => {
                    let mut grpc = Grpc::new(ProstCodec::<Line, Line>::default());
                    grpc.unary(Say, request).await
                }
                "Fail" => {
                    let mut grpc = Grpc::new(ProstCodec::<Line, Wanted>::default());
                    grpc.unary(Fail, request).await
                }
                "Repeat" => {
                    let mut grpc = Grpc::new(ProstCodec::<Line, Repetition>::default());
                    grpc.server_streaming(Repeat, request).await
                }
                "Gather" => {
                    let mut grpc = Grpc::new(ProstCodec::<Count, Line>::default());
                    grpc.client_streaming(Gather, request).await
                }
                "Chat" => {
                    let mut grpc = Grpc::new(ProstCodec::<Line, Line>::default());
                    grpc.streaming(Chat, request).await
                }
                other => Status::unimplemented(other.to_owned()).into_http(),
            })
        })
    }
}

struct Say;

impl UnaryService<Line> for Say {
    type Response = Line;
    type Future = Ready<Result<Response<Line>, Status>>;

    fn call(&mut self, request: Request<Line>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Fail;

impl UnaryService<Wanted> for Fail {
    type Response = Line;
    type Future = Ready<Result<Response<Line>, Status>>;

    fn call(&mut self, request: Request<Wanted>) -> Self::Future {
        let wanted = request.into_inner();
        ready(Err(Status::new(Code::from(wanted.code), wanted.message)))
    }
}

struct Repeat;

impl ServerStreamingService<Repetition> for Repeat {
    type Response = Line;
    type ResponseStream = Iter<std::vec::IntoIter<Result<Line, Status>>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Repetition>) -> Self::Future {
        let Repetition { line, times } = request.into_inner();
        let lines = vec![Ok(line.unwrap_or_default()); times as usize];
        ready(Ok(Response::new(iter(lines))))
    }
}

struct Gather;

impl ClientStreamingService<Line> for Gather {
    type Response = Count;
    type Future = Boxed<Result<Response<Count>, Status>>;

    fn call(&mut self, request: Request<Streaming<Line>>) -> Self::Future {
        Box::pin(async move {
            let mut count = Count::default();
            let mut lines = request.into_inner();
            while let Some(line) = lines.message().await? {
                count.lines += 1;
                count.letters += u32::try_from(line.text.len()).unwrap();
            }
            // What came is reported as a status, so that it is seen from the outside.
            let reported = format!("{} lines, {} letters", count.lines, count.letters);
            match count.lines {
                0 => Err(Status::invalid_argument(reported)),
                13 => Err(Status::out_of_range(reported)),
                _ => Ok(Response::new(count)),
            }
        })
    }
}

struct Chat;

impl StreamingService<Line> for Chat {
    type Response = Line;
    type ResponseStream =
        Pin<Box<dyn tonic::codegen::tokio_stream::Stream<Item = Result<Line, Status>> + Send>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Line>>) -> Self::Future {
        let lines = request.into_inner().map(|line| line);
        ready(Ok(Response::new(Box::pin(lines) as Self::ResponseStream)))
    }
}
