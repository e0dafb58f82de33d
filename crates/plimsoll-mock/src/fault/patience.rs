//! Writing to clients that may not read.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Write timeout: time a client may read nothing of what is written to it; the default of `write_timeout` in `plimsoll up`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Writes all bytes and flushes them; fails with [`io::ErrorKind::TimedOut`] if nothing is taken for `patience`.
pub(crate) async fn write_all(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = within(patience, stream.write(rest)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = rest.get(count..).unwrap_or_default();
    }
    within(patience, stream.flush()).await
}

/// Ends the writing side.
pub(crate) async fn shut_down(
    stream: &mut (impl AsyncWrite + Unpin),
    patience: Duration,
) -> io::Result<()> {
    within(patience, stream.shutdown()).await
}

async fn within<T>(
    patience: Duration,
    writing: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match timeout(patience, writing).await {
        Ok(written) => written,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut near, _far) = tokio::io::duplex(4);
            let patience = Duration::from_millis(10);
            write_all(&mut near, b"1234", patience).await.unwrap();
            let error = write_all(&mut near, b"5", patience).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
