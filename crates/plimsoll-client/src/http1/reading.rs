//! Exchanges that are reported as soon as the head of their response came, and read on from there: what
//! a stream without an end needs.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use plimsoll_model::Clock;
use plimsoll_wire::h1::ResponseSink;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Completed, Http1, Incomplete, Progress, ReadBuffer};
use crate::{Opening, Request};

/// An exchange whose response has begun.
#[derive(Debug)]
pub struct BegunExchange {
    progress: Progress,
    /// State of the decoder at that moment.
    pub opening: Opening,
    /// Set if the response was complete with its head.
    completed: Option<Completed>,
}

impl BegunExchange {
    /// Bytes sent and received until now.
    pub fn traffic(&self) -> (u64, u64) {
        (self.progress.written as u64, self.progress.received)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    /// Sends `request` and reads until the head of its response came, and what came with it.
    ///
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up; must not be earlier than that of the exchange before.
    pub async fn open<K: ResponseSink, C: Clock>(
        &mut self,
        request: &Request,
        begun: Instant,
        deadline: Instant,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Result<BegunExchange, Incomplete> {
        self.decoder.begin(request.is_head());
        let mut progress = Progress::new(begun);
        let completed = poll_fn(|context| {
            let reading =
                self.poll_reading(context, &mut progress, request, true, buffer, sink, clock);
            if let Poll::Ready(result) = reading {
                return Poll::Ready(result);
            }
            self.poll_overdue(context, &mut progress, deadline, clock)
        })
        .await?;
        let done = completed.map_or_else(|| clock.now(), |completed| completed.done);
        let stood = self.complete(&progress, done, false);
        Ok(BegunExchange {
            opening: Opening {
                status: stood.status,
                phases: stood.phases,
                done,
            },
            progress,
            completed,
        })
    }

    /// Reads the response that was opened to its end.
    ///
    /// - `request`: the same, should the response have overtaken it.
    /// - `deadline`: when to give up, if at all.
    pub async fn follow<K: ResponseSink, C: Clock>(
        &mut self,
        opened: &mut BegunExchange,
        request: &Request,
        deadline: Option<Instant>,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Result<Completed, Incomplete> {
        if let Some(completed) = opened.completed {
            return Ok(completed);
        }
        let progress = &mut opened.progress;
        let completed = poll_fn(|context| {
            let reading = self.poll_reading(context, progress, request, false, buffer, sink, clock);
            if let Poll::Ready(result) = reading {
                return Poll::Ready(result);
            }
            match deadline {
                Some(deadline) => self.poll_overdue(context, progress, deadline, clock),
                None => Poll::Pending,
            }
        })
        .await?;
        Ok(completed.expect("it is read to its end"))
    }
}
