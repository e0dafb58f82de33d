//! Drives fibers of scripts: performs what they wait for.

use std::rc::Rc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use plimsoll_script::{Fiber, Resume, ScriptError, Step, Vm};
use tokio::time::{Instant as Alarm, sleep, sleep_until};

use crate::protocol::event_stream;
use crate::protocol::grpc;
use crate::protocol::http::{perform, perform_batch};
use crate::protocol::socket;
use crate::user::{Call, Reply, UserState};

/// Runs a fiber to its end. Dropping the future cancels it.
pub(crate) async fn drive<T: 'static>(
    vm: &Vm<UserState>,
    user: &Rc<UserState>,
    mut fiber: Fiber<UserState, T>,
) -> Result<T, ScriptError> {
    let mut running = FuturesUnordered::new();
    let mut resume = Resume::Continue;
    loop {
        let step = fiber.resume(resume);
        while let Some((id, call)) = vm.take_started() {
            let user = Rc::clone(user);
            running.push(Box::pin(async move { (id, reply_to(&user, call).await) }));
        }
        resume = match step {
            Step::Done(result) => return result,
            Step::Call(call) => {
                let mut reply = Box::pin(reply_to(user, call));
                loop {
                    tokio::select! {
                        biased;
                        reply = &mut reply => break Resume::Reply(reply),
                        Some((id, reply)) = running.next(), if !running.is_empty() => {
                            vm.complete(id, reply);
                        }
                    }
                }
            }
            Step::Idle { until } => {
                let alarm = Alarm::from_std(until.unwrap_or_else(|| vm.waiter().now()));
                tokio::select! {
                    Some((id, reply)) = running.next(), if !running.is_empty() => {
                        vm.complete(id, reply);
                    }
                    () = sleep_until(alarm), if until.is_some() => {}
                    else => {}
                }
                Resume::Continue
            }
        };
    }
}

async fn reply_to(user: &Rc<UserState>, call: Call) -> Reply {
    match call {
        Call::Sleep(duration) => {
            sleep(duration).await;
            Reply::Slept
        }
        Call::Request(request) => {
            Reply::Response(Box::new(Box::pin(perform(user, *request)).await))
        }
        Call::OpenSocket(request) => {
            Reply::SocketOpened(Box::pin(socket::open(user, *request)).await)
        }
        Call::NextEvent(id, until) => {
            Reply::SocketEvent(Box::pin(socket::next(user, id, until)).await)
        }
        Call::OpenStream(request) => {
            Reply::StreamOpened(Box::pin(event_stream::open(user, *request)).await)
        }
        Call::NextStreamEvent(id) => {
            Reply::StreamEvent(Box::pin(event_stream::next(user, id)).await)
        }
        Call::GrpcConnect(client, target) => {
            Reply::GrpcConnected(Box::pin(client.connect(user, *target)).await)
        }
        Call::GrpcInvoke(client, request) => {
            let response = Box::pin(grpc::invoke(user, &client, *request)).await;
            Reply::GrpcResponse(response.map(Box::new))
        }
        Call::GrpcNext(stream) => Reply::GrpcEvent(Box::pin(grpc::next(user, stream)).await),
        Call::Batch(requests) => Reply::Responses(Box::pin(perform_batch(user, requests)).await),
    }
}
