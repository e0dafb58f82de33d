//! Streams of samples as server-sent events.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use plimsoll_model::{UnitError, parse_duration};
use plimsoll_server::{ResponseBody, StreamError};
use plimsoll_wire::sse::encoded_event;
use tokio::time::{Interval, MissedTickBehavior};

use crate::server::open_targets::OpenTargets;
use crate::server::token::BearerToken;
use crate::target_name::TargetName;

/// The interval of a stream that names none.
pub(super) const USUAL: Duration = Duration::from_millis(100);

/// The shortest and the longest interval.
const BOUNDS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_mins(1));

/// Streams at a time.
const MOST: usize = 32;

/// The streams of a worker.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Rc<Cell<usize>>,
}

/// An interval that no stream has.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntervalProblem {
    #[error("every: {0}")]
    Duration(UnitError),
    #[error("every: 10ms to 1m")]
    Bounds,
}

/// The interval that a client wants.
pub(super) fn interval(text: &str) -> Result<Duration, IntervalProblem> {
    let every = parse_duration(text).map_err(IntervalProblem::Duration)?;
    if every < BOUNDS.0 || every > BOUNDS.1 {
        return Err(IntervalProblem::Bounds);
    }
    Ok(every)
}

impl Streams {
    /// The events of a stream: one with a sample at once, and then at each interval; `None` if too many are open.
    pub(super) fn begin(
        &self,
        shared: Arc<(OpenTargets, Option<BearerToken>)>,
        targets: Vec<TargetName>,
        every: Duration,
    ) -> Option<ResponseBody> {
        if self.open.get() >= MOST {
            return None;
        }
        self.open.set(self.open.get() + 1);
        let state = State {
            shared,
            targets: targets.into(),
            every,
            ticks: None,
            number: 0,
            _place: StreamPlace(Rc::clone(&self.open)),
        };
        let events = stream::unfold(state, |mut state| async move {
            let event = state.next().await?;
            Some((Ok::<_, StreamError>(Frame::data(event)), state))
        });
        Some(ResponseBody::Stream(Box::pin(StreamBody::new(events))))
    }
}

/// The place of one stream among those that may be open; dropping it makes room.
#[derive(Debug)]
struct StreamPlace(Rc<Cell<usize>>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

struct State {
    shared: Arc<(OpenTargets, Option<BearerToken>)>,
    targets: Arc<[TargetName]>,
    every: Duration,
    ticks: Option<Interval>,
    number: u64,
    _place: StreamPlace,
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        let ticks = self.ticks.get_or_insert_with(|| {
            let mut ticks = tokio::time::interval(self.every);
            // A client that reads slowly gets fewer samples, and none of them late.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            ticks
        });
        ticks.tick().await;
        let (shared, targets) = (Arc::clone(&self.shared), Arc::clone(&self.targets));
        let sampling = tokio::task::spawn_blocking(move || shared.0.sample_or_problem(&targets));
        let document = sampling.await.ok()?;
        let content = serde_json::to_string(&document).ok()?;
        self.number += 1;
        let fields = format!("event: sample\nid: {}\n", self.number);
        Some(encoded_event(&fields, &content).into())
    }
}
