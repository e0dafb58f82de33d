//! gRPC clients of scripts: unary calls and streams over one HTTP/2 connection per client.

mod call;

mod described;

mod error;

mod stream;

pub(crate) use self::call::{GrpcRequest, GrpcResponse, invoke};
pub(crate) use self::described::Described;
pub(crate) use self::error::{DescribeError, GrpcError};
pub(crate) use self::stream::{GrpcEvent, GrpcStream, next};

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::Endpoint;
use plimsoll_client::forward::{Destination, Lease};
use plimsoll_model::Failure;
use url::Url;

use crate::protocol::http::{error_code, placed};
use crate::protocol::pools::CallTls;
use crate::user::UserState;

/// Bytes of a message that a client accepts by default, as in grpc-go, which k6 uses.
const MOST_RECEIVED: usize = 4 << 20;

/// The clients and streams of a virtual user, by the numbers that its script has.
#[derive(Default)]
pub(crate) struct Grpc {
    clients: RefCell<HashMap<u32, Rc<GrpcClient>>>,
    streams: RefCell<HashMap<u32, Rc<GrpcStream>>>,
    last: Cell<u32>,
}

impl Grpc {
    fn number(&self) -> u32 {
        let number = self.last.get() + 1;
        self.last.set(number);
        number
    }

    pub(crate) fn add_client(&self) -> u32 {
        let number = self.number();
        self.clients.borrow_mut().insert(number, Rc::default());
        number
    }

    pub(crate) fn client(&self, number: u32) -> Option<Rc<GrpcClient>> {
        self.clients.borrow().get(&number).cloned()
    }

    pub(crate) fn add_stream(&self, stream: GrpcStream) -> u32 {
        let number = self.number();
        self.streams.borrow_mut().insert(number, Rc::new(stream));
        number
    }

    pub(crate) fn stream(&self, number: u32) -> Option<Rc<GrpcStream>> {
        self.streams.borrow().get(&number).cloned()
    }

    fn drop_stream(&self, number: u32) {
        self.streams.borrow_mut().remove(&number);
    }

    /// Cancels all streams, as an interrupted iteration leaves them.
    pub(crate) fn clear_streams(&self) {
        self.streams.borrow_mut().clear();
    }
}

/// A `grpc.Client`.
#[derive(Default)]
pub(crate) struct GrpcClient {
    pub(crate) described: Described,
    connection: RefCell<Option<Rc<Connection>>>,
}

/// Connection settings of a client.
#[derive(Debug)]
pub(crate) struct GrpcTarget {
    /// Host and port as the script wrote them.
    pub(crate) address: String,
    pub(crate) is_plaintext: bool,
    /// Certificates of the script.
    pub(crate) tls: Option<CallTls>,
    pub(crate) timeout: Duration,
    /// Methods that were not loaded are looked up by the server's reflection, with this metadata.
    pub(crate) reflects: Option<Vec<(String, String)>>,
    pub(crate) authority: Option<String>,
    pub(crate) most_received: Option<usize>,
    pub(crate) most_sent: Option<usize>,
}

/// An open connection, and what calls over it need.
pub(crate) struct Connection {
    destination: Rc<Destination>,
    address: String,
    authority: Option<String>,
    reflects: Option<Vec<(String, String)>>,
    most_received: usize,
    most_sent: usize,
}

impl Connection {
    async fn lease(&self) -> Result<Lease, GrpcError> {
        let lease = self.destination.acquire().await;
        lease.map_err(|error| failed(&error.failure))
    }
}

/// The failure of a connection, in k6's words.
fn failed(failure: &Failure) -> GrpcError {
    GrpcError::Connection(error_code::of_failure(failure).1)
}

impl GrpcClient {
    /// Connects; a failure is thrown.
    pub(crate) async fn connect(
        &self,
        user: &Rc<UserState>,
        target: GrpcTarget,
    ) -> Result<(), GrpcError> {
        let connecting = self.connect_at_once(user, &target);
        let connected = tokio::time::timeout(target.timeout, connecting).await;
        let connection = connected.unwrap_or_else(|_| {
            Err(GrpcError::ConnectTimeout {
                address: target.address.clone(),
                timeout: target.timeout,
            })
        })?;
        self.connection.replace(Some(Rc::new(connection)));
        Ok(())
    }

    async fn connect_at_once(
        &self,
        user: &Rc<UserState>,
        target: &GrpcTarget,
    ) -> Result<Connection, GrpcError> {
        let scheme = if target.is_plaintext { "http" } else { "https" };
        let invalid = |reason: &dyn std::fmt::Display| GrpcError::Address {
            address: target.address.clone(),
            reason: reason.to_string(),
        };
        if target.address.contains("://") {
            return Err(invalid(&"it has a scheme"));
        }
        let url = Url::parse(&format!("{scheme}://{}", target.address));
        let url = url.map_err(|error| invalid(&error))?;
        let endpoint = Endpoint::try_from(&url).map_err(|error| invalid(&error))?;
        let mut authority = target.authority.clone();
        let placed = placed(user, &url, endpoint, &mut authority);
        let endpoint = placed.map_err(|(_, message)| GrpcError::Blocked(message))?;
        let pool = match &target.tls {
            Some(tls) => {
                let pool = user.worker.secured.pool(&user.shared.options, tls);
                pool.map_err(GrpcError::Tls)?
            }
            None => user.worker.calls.sibling(),
        };
        let connection = Connection {
            destination: pool.destination(&endpoint),
            address: target.address.clone(),
            authority,
            reflects: target.reflects.clone(),
            most_received: target.most_received.unwrap_or(MOST_RECEIVED),
            most_sent: target.most_sent.unwrap_or(usize::MAX),
        };
        // The lease goes back at once; the connection stays with the destination.
        connection.lease().await?;
        Ok(connection)
    }

    pub(crate) fn close(&self) {
        self.connection.take();
    }

    fn connection(&self) -> Result<Rc<Connection>, GrpcError> {
        let connection = self.connection.borrow().clone();
        connection.ok_or(GrpcError::NotConnected)
    }
}
