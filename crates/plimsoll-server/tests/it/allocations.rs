//! A steady request takes no memory: from its answer to the next one nothing is allocated.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_server::{
    Action, Answer, Counters, Limits, PathCondition, Request, RouteConditions, Routes,
};
use plimsoll_testkit::allocations_of_this_thread;

use crate::server::{Server, expect, plan, text};

/// Counts what its worker allocated since the request before.
struct Counting {
    inner: Rc<dyn Action>,
    before: Cell<u64>,
    requests: Cell<u64>,
    allocated: Arc<AtomicU64>,
}

/// Requests until everything has the room that it needs.
const WARM_UP: u64 = 20;

impl Action for Counting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let now = allocations_of_this_thread();
        if self.requests.get() > WARM_UP {
            let since = now - self.before.get();
            self.allocated.fetch_add(since, Ordering::Relaxed);
        }
        self.requests.set(self.requests.get() + 1);
        self.before.set(now);
        self.inner.handle(request)
    }
}

#[test]
fn a_steady_request_allocates_nothing() {
    let allocated = Arc::new(AtomicU64::new(0));
    let counters = Arc::<Counters>::default();
    let counted = Arc::clone(&allocated);
    let server = Server::start(&plan(Limits::default(), move || {
        let counting = Rc::new(Counting {
            inner: text("hello"),
            before: Cell::new(0),
            requests: Cell::new(0),
            allocated: Arc::clone(&counted),
        });
        let conditions = RouteConditions::of_path(PathCondition::exact("/a/b").unwrap());
        let route: Rc<dyn Action> = counting;
        Rc::new(Routes::new(vec![(conditions, counters.route("a"), route)]))
    }));
    let mut stream = server.connect();
    for _ in 0..WARM_UP + 100 {
        stream
            .write_all(b"GET /a/b?c=d HTTP/1.1\r\nhost: example.org:80\r\naccept: */*\r\n\r\n")
            .unwrap();
        expect(
            &mut stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n\r\nhello",
        );
    }
    // The date is written once a second, which may take a little memory.
    let allocated = allocated.load(Ordering::Relaxed);
    assert!(allocated <= 8, "{allocated} allocations in 100 requests");
}
