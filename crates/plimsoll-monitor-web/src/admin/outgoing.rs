//! Requests to other servers. Their connections live on the thread that made them, so each goes out from one of its own.

/// Runs a future that need not be `Send`, and waits for it.
pub(super) async fn apart<T, F>(make: impl FnOnce() -> F + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    F: Future<Output = Result<T, String>>,
{
    let done = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, make())
    });
    done.await.unwrap_or_else(|error| Err(error.to_string()))
}
