//! The access log: one line for each request, written by its own thread.
//!
//! Workers append lines to a queue with a bound and go on; lines that find no room are counted instead.
//! Nothing of it exists, and no clock is read for it, where no log is configured.

mod audit_line;

mod entry;

mod format;

mod line;

mod queue;

use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use crate::action::Action;
use crate::counters::Counters;
use crate::message::request::Notes;
use crate::observe::access_log::entry::Logged;
pub use crate::observe::access_log::format::LogFormat;
pub use crate::observe::access_log::line::LoggedConnection;
use crate::observe::access_log::queue::Queue;
use crate::observe::audit::AuditLine;

/// The access log; clones write to the same log.
///
/// Lines wait in its queue until [`write_to`](Self::write_to) is called, which is done once.
#[derive(Clone)]
pub struct AccessLog {
    /// Routes choose it by its name.
    name: Option<Arc<str>>,
    /// It has the requests of routes that choose none.
    is_default: bool,
    format: LogFormat,
    handle: Arc<Handle>,
}

/// Ends the queue once its last writer is gone.
struct Handle(Arc<Queue>);

/// Opens what the lines are written to: at first, and whenever it is to be opened anew.
pub type OpenLog = Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>;

impl AccessLog {
    /// - `queue_bytes`: lines that may wait to be written; more are dropped and counted.
    /// - `counters`: where that is counted.
    pub fn new(format: LogFormat, queue_bytes: usize, counters: Arc<Counters>) -> Self {
        let queue = Arc::new(Queue::new(queue_bytes, counters));
        Self {
            name: None,
            is_default: true,
            format,
            handle: Arc::new(Handle(queue)),
        }
    }

    /// The same for the routes that choose it by this name.
    ///
    /// - `is_default`: also for routes that choose no log.
    #[must_use]
    pub fn named(self, name: &str, is_default: bool) -> Self {
        Self {
            name: Some(name.into()),
            is_default,
            ..self
        }
    }

    /// Whether it has the requests of routes that choose no log.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default
    }

    /// The name that routes choose it by, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether a request is one of this log.
    fn takes(&self, noted: &Notes) -> bool {
        let chosen = noted.route.as_ref().and_then(|route| route.logs());
        match chosen {
            None => self.is_default,
            Some(chosen) => chosen.iter().any(|it| Some(it.as_str()) == self.name()),
        }
    }

    /// Starts the thread that writes.
    ///
    /// It ends by itself once every clone is gone and all is written. What cannot be written is counted.
    pub fn write_to(&self, mut open: OpenLog) -> io::Result<LogWriter> {
        let sink = open()?;
        let queue = Arc::clone(&self.handle.0);
        let writing = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || writing.write(sink, open))?;
        Ok(LogWriter { queue, thread })
    }

    /// Notes what `inner` answers; for the outermost action of a listener, which hears of refusals too.
    pub fn over(&self, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        Rc::new(Logged::new(self.clone(), inner))
    }

    /// Notes a connection or flow that is not HTTP, once it has ended.
    pub fn note_connection(&self, connection: &LoggedConnection<'_>) {
        let mut text = Vec::with_capacity(256);
        line::write_connection(&self.format.0, connection, &mut text);
        self.handle.0.push(&text);
    }

    /// Notes a change through the admin port; false if there is no room for the line.
    pub(crate) fn note_change(&self, entry: &AuditLine<'_>, time: SystemTime) -> bool {
        let mut text = Vec::with_capacity(512);
        audit_line::write(&self.format.0, entry, time, &mut text);
        self.handle.0.push(&text)
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog")
            .field("name", &self.name)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The thread that writes a log. Dropping the value leaves the thread to its work.
#[derive(Debug)]
pub struct LogWriter {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl LogWriter {
    /// Opens the log anew once what waits is written: another program has moved the file.
    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Writes what waits, and ends.
    pub fn finish(self) {
        self.queue.end();
        self.thread.join().ok();
    }
}
