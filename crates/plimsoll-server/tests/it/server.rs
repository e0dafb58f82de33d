//! An engine and a client of bare bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_server::{
    Action, Counters, Engine, EnginePlan, Limits, ListenerPlan, Respond, Response, Serves,
    WorkerContext,
};
use plimsoll_testkit::http::connect;

pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
}

pub(crate) fn plan(
    limits: Limits,
    make: impl Fn() -> Rc<dyn Action> + Send + Sync + 'static,
) -> EnginePlan {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = ListenerPlan::new(
        address,
        Serves::clear(Arc::new(move |_: &WorkerContext| make())),
    );
    EnginePlan {
        limits,
        ..EnginePlan::new(vec![listener])
    }
}

pub(crate) fn text(body: &'static str) -> Rc<dyn Action> {
    Rc::new(Respond::new(Response::text(http::StatusCode::OK, body)))
}

impl Server {
    pub(crate) fn start(plan: &EnginePlan) -> Self {
        let engine = Engine::start(plan, Arc::<Counters>::default()).unwrap();
        let address = engine.addresses()[0];
        Self { engine, address }
    }

    /// Answers everything with `hello`.
    pub(crate) fn hello() -> Self {
        Self::start(&plan(Limits::default(), || text("hello")))
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = connect(self.address);
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Everything received after `input` until the server closes, dates left out.
    pub(crate) fn talk(&self, input: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        stream.write_all(input.as_ref()).unwrap();
        read_all(&mut stream)
    }
}

/// Everything until the server closes, dates left out.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    Read::by_ref(stream)
        .take(1 << 26)
        .read_to_end(&mut bytes)
        .unwrap();
    undated(&bytes)
}

/// As much as `expected` is long, dates left out on both sides.
pub(crate) fn expect(stream: &mut TcpStream, expected: &str) {
    let mut bytes = Vec::new();
    // A date of which only the beginning came is not left out yet.
    while undated(&bytes) != expected && undated(&bytes).len() < expected.len() + "date:".len() {
        let mut byte = [0];
        assert_eq!(
            stream.read(&mut byte).unwrap(),
            1,
            "closed after {}",
            undated(&bytes)
        );
        bytes.push(byte[0]);
    }
    assert_eq!(undated(&bytes), expected);
}

pub(crate) fn undated(bytes: &[u8]) -> String {
    let mut text = String::from_utf8(bytes.to_vec()).unwrap();
    while let Some(at) = text.find("date: ") {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find("\r\n").map_or(text.len(), |end| at + end + 2);
        text.replace_range(at..end, "");
    }
    text
}
