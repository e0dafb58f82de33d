//! The client that means well: one connection, a request every so often.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_model::{Clock, Failure, HealthyFigures, Phase};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{HeadError, Limits};

use super::door::{Door, Speaks};
use super::unspoken::Unspoken;
use crate::{Http1, ReadBuffer, Request, Stream};

/// From one request to the next.
const INTERVAL: Duration = Duration::from_millis(10);

/// Timeout of one exchange.
const PATIENCE: Duration = Duration::from_secs(5);

/// A response from this status on does not count as being served.
const SERVER_ERROR: u16 = 500;

pub(super) struct Healthy<'a> {
    door: &'a Door,
    figures: HealthyFigures,
    connection: Option<Http1<Stream>>,
    buffer: ReadBuffer,
}

/// One request and its response; what was wrong, if it was not served.
pub(super) async fn try_once(door: &Door) -> Result<(), Unspoken> {
    let mut healthy = Healthy::new(door);
    let request = healthy.request()?;
    match healthy.exchange(&request).await {
        Ok(status) if status < SERVER_ERROR => Ok(()),
        Ok(status) => Err(Unspoken::Status(status)),
        Err(failure) => Err(Unspoken::Failure(failure)),
    }
}

impl<'a> Healthy<'a> {
    pub(super) fn new(door: &'a Door) -> Self {
        Self {
            door,
            figures: HealthyFigures::default(),
            connection: None,
            buffer: ReadBuffer::new(),
        }
    }

    /// Makes requests until it is over.
    pub(super) async fn run(mut self, is_over: &AtomicBool) -> HealthyFigures {
        let Ok(request) = self.request() else {
            return self.figures;
        };
        // A request that is late because of the one before has waited since it was due.
        let mut due = SystemClock.now();
        while !is_over.load(Ordering::Relaxed) {
            tokio::time::sleep_until(due.into()).await;
            let outcome = self.exchange(&request).await;
            let took = SystemClock.now().saturating_duration_since(due);
            match outcome {
                Ok(status) if status < SERVER_ERROR => {
                    self.figures.served += 1;
                    self.figures.latency.record(took);
                }
                Ok(status) => {
                    self.figures.server_errors += 1;
                    let first = &mut self.figures.first_failure;
                    first.get_or_insert_with(|| format!("status {status}"));
                }
                Err(failure) => {
                    self.connection = None;
                    *self.figures.failures.entry(failure.kind).or_default() += 1;
                    let first = &mut self.figures.first_failure;
                    first.get_or_insert_with(|| failure.to_string());
                }
            }
            due += INTERVAL;
        }
        self.figures
    }

    fn request(&self) -> Result<Request, HeadError> {
        let endpoint = self.door.endpoint();
        let (target, host) = (endpoint.path_and_query(), endpoint.authority());
        Request::encode("GET", target, host, &[], None)
    }

    async fn exchange(&mut self, request: &Request) -> Result<u16, Failure> {
        let mut connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            let stream = self.door.open(Speaks::Http1, None).await;
            let stream =
                stream.map_err(|error: io::Error| Failure::from_io(Phase::Connect, &error))?;
            Http1::new(stream, Limits::default(), SystemClock.now())
        };
        let begun = SystemClock.now();
        let completed = connection
            .exchange(
                request,
                begun,
                begun + PATIENCE,
                &self.buffer,
                &mut (),
                &SystemClock,
            )
            .await
            .map_err(|incomplete| incomplete.failure)?;
        if completed.reusable {
            self.connection = Some(connection);
        }
        Ok(completed.status)
    }
}
