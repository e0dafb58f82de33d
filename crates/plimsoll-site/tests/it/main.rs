//! Sites over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod conditions;

mod crawl;

mod files;

mod life;

mod live;

mod metrics;

mod redirects;

mod server;
