//! `CONNECT` and absolute-form requests.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Plan, ProxyRequest, Stream, dial, relay};

const HEAD_LIMIT: usize = 64 * 1024;

pub(super) async fn serve(
    mut client: impl Stream,
    plan: &Plan,
    note: impl Fn(ProxyRequest),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(start) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break start + 4;
        }
        if bytes.len() > HEAD_LIMIT || client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut request_line = lines.next().unwrap_or_default().split(' ');
    let method = request_line.next().unwrap_or_default();
    let target = request_line.next().unwrap_or_default();
    let credentials = lines
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
        .map(|(_, value)| value.to_owned());
    note(ProxyRequest {
        how: method.to_owned(),
        target: target.to_owned(),
        credentials: credentials.clone(),
    });

    if let Some(answer) = &plan.answer {
        client.write_all(answer).await?;
        return client.shutdown().await;
    }
    if let Some((user, password)) = &plan.credentials
        && credentials.as_deref().and_then(decode_basic) != Some(format!("{user}:{password}"))
    {
        client
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            .await?;
        return client.shutdown().await;
    }

    let is_tunnel = method == "CONNECT";
    let authority = if is_tunnel {
        target
    } else {
        let rest = target.split_once("://").map_or("", |(_, rest)| rest);
        rest.split_once('/')
            .map_or(rest, |(authority, _)| authority)
    };
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    let Ok(mut origin) = dial(host, port).await else {
        client
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            .await?;
        return client.shutdown().await;
    };
    if is_tunnel {
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await?;
    } else {
        // Passed on as it came: an origin takes the absolute form too (RFC 9112, section 3.2.2).
        origin.write_all(&bytes).await?;
    }
    relay(client, origin).await
}

/// Base64 by hand: a test kit should not agree with the code under test by sharing its library.
fn decode_basic(value: &str) -> Option<String> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits: u32 = 0;
    let mut count = 0;
    let mut bytes = Vec::new();
    for symbol in value.strip_prefix("Basic ")?.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == symbol)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}
