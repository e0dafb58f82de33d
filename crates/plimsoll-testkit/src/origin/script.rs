//! The script of an origin's connection, step by step.

use std::time::Duration;

use crate::logic::Logic;

/// A complete answer of 200 with the body `hello`, which keeps the connection open.
pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// The steps of one connection, in order; after the last it is closed in an orderly way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script(Vec<Step>);

impl Script {
    /// No step: the connection is closed as soon as it is accepted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers every request with [`HELLO`].
    pub fn hello() -> Self {
        Self::serve(HELLO)
    }

    /// Answers every request with `answer`.
    pub fn serve(answer: impl Into<Vec<u8>>) -> Self {
        Self::new().then(Step::Serve(answer.into()))
    }

    /// Reads one request head, then sends `answer`, then closes.
    pub fn answer_once(answer: impl Into<Vec<u8>>) -> Self {
        Self::new()
            .then(Step::ReadHead)
            .then(Step::Write(answer.into()))
    }

    /// The same script with `step` at its end.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.0
    }
}

/// One thing that an origin does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Reads up to the empty line of a request's head; ends the script if the client closes first.
    ReadHead,
    /// Reads as many bytes of a body.
    ReadBody(usize),
    /// Sends bytes.
    Write(Vec<u8>),
    /// Sends bytes in pieces of so many, each handed to the kernel by itself.
    WritePieces {
        /// All bytes.
        bytes: Vec<u8>,
        /// Of one piece; at least 1.
        size: usize,
    },
    /// Answers each further request, body included, with these bytes until the client closes.
    Serve(Vec<u8>),
    /// Answers each further request as its logic says, until the client closes.
    Reply(Logic),
    /// Reads and throws away until the client closes.
    Swallow,
    /// Does nothing until [`Origin::release`](crate::Origin::release).
    Hold,
    /// Does nothing for a while.
    Pause(Duration),
    /// Ends sending but goes on with the script.
    FinishWriting,
    /// Resets the connection (RST); ends the script.
    Reset,
}
