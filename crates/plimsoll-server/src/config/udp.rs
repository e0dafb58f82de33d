//! `udp` in a `[[listen]]`: what answers datagrams.

use std::sync::Arc;

use crate::actions::EchoHandler;
use crate::config::document::{Table, Value};
use crate::layer4::{DatagramHandler, MakeDatagramHandler};
use crate::worker::context::WorkerContext;

/// Whether datagrams are to be sent back.
pub(super) fn is_echo(value: &Value<'_>) -> bool {
    let value = value.to_toml();
    value.get("echo").is_some()
}

/// Compiles the table; there is only `echo`.
pub(super) fn compile(mut table: Table<'_>) -> Option<Arc<MakeDatagramHandler>> {
    let echo = table.table("echo");
    if echo.is_none() && !table.was_given("echo") {
        table.missing("echo", "udp = { echo = {} } sends every datagram back");
    }
    table.finish();
    echo?.finish();
    Some(Arc::new(|_: &WorkerContext| {
        Box::new(EchoHandler) as Box<dyn DatagramHandler>
    }))
}
