//! Mocks over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod imports;

mod mock;

mod replies;

mod serving;
