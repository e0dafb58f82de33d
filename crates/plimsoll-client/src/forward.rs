//! Forwarded exchanges: a request streamed to a server, a response streamed back, over pooled connections.
//!
//! ```ignore
//! let pool = Pool::new(Connector::new(plan), PoolOptions::default());
//! let lease = pool.acquire(&endpoint).await?;
//! let mut exchange = lease.begin(&Head::new("POST", "/orders?id=1", &fields), body)?;
//! let head = loop {
//!     let head = exchange.head().await?;
//!     if !head.is_interim() {
//!         break head;
//!     }
//! };
//! while let Some(frame) = exchange.frame().await {
//!     let frame = frame?; // data, then trailers
//! }
//! ```
//!
//! - [`Pool::acquire`] waits for a connection within the caps of [`PoolOptions`], opening one where it may. A caller that
//!   forwards to the same endpoint again and again keeps its [`Destination`], which saves the lookup.
//! - [`Lease::begin`] writes the head. A request body is any [`http_body::Body`]; the polls of the exchange pull it while
//!   the response is read, so no task is spawned for it. A body that fails resets the request, and never ends it cleanly.
//! - [`Exchange::poll_head`] returns interim responses and then the final one; 101, and 2xx to CONNECT, are final, and
//!   [`Exchange::upgrade`] then returns the byte stream. [`Exchange::poll_frame`] returns content and then trailers;
//!   [`Exchange::into_response_body`] makes a [`http_body::Body`] of the rest.
//! - Nothing is read ahead of the caller: HTTP/1 is read one buffer at a time, over HTTP/2 the server gets credit for
//!   content that the caller has taken. Memory is bounded by [`PoolOptions::stream_window`] for each exchange.
//! - Dropping an exchange cancels it: the HTTP/1 connection is closed, the HTTP/2 stream reset.
//! - A failure says in [`Failure::retry`](plimsoll_model::Failure::retry) whether the request may be sent again:
//!   `safe` for any request, `if-reused` for idempotent ones ([`may_retry`]). [`Exchange::into_untouched_body`] returns a
//!   body of which nothing was read.
//!
//! Deadlines are the caller's: it drops the exchange. HTTP/2 needs a runtime with local tasks
//! ([`tokio::runtime::LocalRuntime`], or a `LocalSet`), since each of its connections has one task; HTTP/1 needs none.
//! HTTP/3 is quinn's and the `h3` crate's; its window is [`QuicOptions::stream_window`](crate::QuicOptions), it has no
//! upgrades, and 0-RTT should be off, since a rejected early request fails without a retry that is safe.
//! Nothing here retries, follows redirects or decodes content.

mod head;

mod response_head;

mod hops;

mod pool;

mod lease;

mod exchange;

mod upload;

mod http1;

mod http2;

mod http3;

mod upgraded;

pub use self::exchange::{Exchange, ResponseBody};
pub use self::head::{FieldSource, Head, ReceivedFields, WithheldNames};
pub use self::hops::NotForwarded;
pub use self::lease::Lease;
pub use self::pool::{Destination, Pool, PoolOptions, PoolStatus, Speaks};
pub use self::response_head::{Fields, ResponseHead};
pub use self::upgraded::Upgraded;

use plimsoll_model::{Failure, Phase, Retry};

/// Whether a request that failed may be sent again: if the server cannot have seen it, or, for an idempotent one
/// (RFC 9110, section 9.2.2), if the server had closed an idle connection.
pub fn may_retry(failure: &Failure, is_idempotent: bool) -> bool {
    match failure.retry {
        Retry::Safe => true,
        Retry::IfReused => is_idempotent,
        Retry::Never => false,
    }
}

/// The failure with the verdict that follows from what the connection carried before.
fn resolved(failure: Failure, is_reused: bool) -> Failure {
    // Who has sent part of a response has acted on the request, whatever the code of its reset says.
    let is_answered = failure.phase == Phase::Receive;
    if is_answered || (failure.retry == Retry::IfReused && !is_reused) {
        return failure.retry(Retry::Never);
    }
    failure
}
