//! Requests to other servers. Their connections live on the thread that made them, so each goes out from one of its own.

use std::io;

use plimsoll_wire::block_on_local;
use tokio::task::JoinError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutgoingError<E> {
    /// Of the request itself.
    #[error("{0}")]
    Request(E),
    #[error(transparent)]
    Runtime(io::Error),
    #[error(transparent)]
    Thread(JoinError),
}

/// Runs a future that need not be `Send`, and waits for it.
pub(super) async fn apart<T, E, F>(
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<T, OutgoingError<E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + 'static,
{
    let done = tokio::task::spawn_blocking(move || {
        // The future is made on this thread: it need not be `Send`.
        let answered = block_on_local(async move { make().await });
        let answered = answered.map_err(OutgoingError::Runtime)?;
        answered.map_err(OutgoingError::Request)
    });
    done.await
        .unwrap_or_else(|error| Err(OutgoingError::Thread(error)))
}
