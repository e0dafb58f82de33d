//! Exchanges that are reported as soon as the head of their response came, and read on from there: what
//! a stream without an end needs.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind};
use plimsoll_wire::h1::ResponseSink;
use plimsoll_wire::tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Completed, Http1, Incomplete, Progress, READS_PER_POLL, ReadBuffer};
use crate::{Opening, Request};

/// An exchange whose response has begun.
#[derive(Debug)]
pub struct Opened {
    progress: Progress,
    /// How it stood then.
    pub opening: Opening,
    /// What came with the head may have been all.
    completed: Option<Completed>,
}

impl Opened {
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
    ) -> Result<Opened, Incomplete> {
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
        Ok(Opened {
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
        opened: &mut Opened,
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

    /// Ready with the complete response, or with `None` as soon as there is a head if that is enough.
    #[expect(clippy::too_many_arguments, reason = "the parts of one future")]
    fn poll_reading<K: ResponseSink, C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        request: &Request,
        is_head_enough: bool,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Poll<Result<Option<Completed>, Incomplete>> {
        if let Err(incomplete) = self.send(context, progress, request, clock) {
            return Poll::Ready(Err(incomplete));
        }
        for _ in 0..READS_PER_POLL {
            let shared = &mut *buffer.0.borrow_mut();
            let mut read = ReadBuf::new(&mut shared.memory);
            if let Err(error) = ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)) {
                let error = progress.write_error.take().unwrap_or(error);
                let failure = tls::failure(progress.timing.phase(), &error);
                return Poll::Ready(Err(progress.fail(failure, clock.now())));
            }
            let known_head = &mut shared.known_head;
            if let Some(result) = self.receive(progress, read.filled(), known_head, sink, clock) {
                return Poll::Ready(result.map(Some));
            }
            if is_head_enough && self.decoder.has_head() {
                return Poll::Ready(Ok(None));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_overdue<C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        deadline: Instant,
        clock: &C,
    ) -> Poll<Result<Option<Completed>, Incomplete>> {
        ready!(self.deadline.poll_passed(context, deadline));
        let failure = match progress.write_error.take() {
            Some(error) => tls::failure(progress.timing.phase(), &error),
            None => Failure::new(progress.timing.phase(), FailureKind::Timeout),
        };
        Poll::Ready(Err(progress.fail(failure, clock.now())))
    }
}
