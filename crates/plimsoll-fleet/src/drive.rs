//! The machines over a transport, with the clock of the system: one loop each, fed by one queue.

pub(crate) mod coordinate;

mod outbox;

pub(crate) mod serve;

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use crate::message::RunNames;
use crate::order::{MOST_FILE_BYTES, OrderError, OrderFile, RunOrder};
use crate::transport::{Deliver, Delivered, FleetTransport};

/// How often a loop looks up although nothing happens.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Messages that wait to be read. One that finds no room is lost; the numbers of ticks show that.
const QUEUE: usize = 65_536;

/// Puts messages into a queue as what `wrap` makes of them.
fn into_queue<T: Send + 'static>(
    queue: &SyncSender<T>,
    wrap: impl Fn(Delivered) -> T + Send + 'static,
) -> Deliver {
    let queue = queue.clone();
    // A thread of the transport must not wait for a reader that may be waiting for it.
    Box::new(move |message| {
        let sent = queue.try_send(wrap(message));
        !matches!(sent, Err(TrySendError::Disconnected(_)))
    })
}

/// Publishes a message that is repeated anyway; drops it while the broker is unreachable, as a transport would block.
fn publish(transport: &dyn FleetTransport, subject: &str, payload: Vec<u8>) {
    if transport.is_connected() {
        drop(transport.publish(subject, payload));
    }
}

/// How long to wait for something to happen.
fn patience(next_wake: Option<Instant>, now: Instant) -> Duration {
    next_wake.map_or(LOOK_EVERY, |at| {
        at.saturating_duration_since(now).min(LOOK_EVERY)
    })
}

fn micros_since(epoch: Instant, now: Instant) -> u64 {
    let since = now.saturating_duration_since(epoch);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The files of an order, from the broker; fails if one is not that of the order.
pub fn fetch_files(
    transport: &dyn FleetTransport,
    order: &RunOrder,
) -> Result<Vec<OrderFile>, OrderError> {
    let bucket = RunNames::new(&order.run).bucket();
    let mut left = MOST_FILE_BYTES;
    let mut files = Vec::new();
    for entry in &order.files {
        if !entry.has_safe_name() {
            return Err(OrderError::FileInFolder);
        }
        let content = transport.blob(&bucket, &entry.name, left);
        let content = content.map_err(|cause| OrderError::File {
            name: entry.name.clone(),
            cause,
        })?;
        if !entry.matches(&content) {
            return Err(OrderError::OtherFile(entry.name.clone()));
        }
        left -= content.len();
        files.push(OrderFile {
            name: entry.name.clone(),
            content,
        });
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
