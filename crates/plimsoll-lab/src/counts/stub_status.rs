//! The page of nginx's `stub_status` module, for tools whose output is unknown.

/// Number of requests that nginx has taken in, the one for this figure included.
///
/// The page's third line has three numbers: accepted, handled, requests (nginx documentation,
/// `ngx_http_stub_status_module`). `None` if `page` is not such a page.
pub fn requests(page: &str) -> Option<u64> {
    let mut lines = page.lines();
    lines.find(|line| line.trim() == "server accepts handled requests")?;
    let mut numbers = lines.next()?.split_whitespace().map(str::parse::<u64>);
    match (
        numbers.next(),
        numbers.next(),
        numbers.next(),
        numbers.next(),
    ) {
        (Some(Ok(_)), Some(Ok(_)), Some(Ok(requests)), None) => Some(requests),
        _ => None,
    }
}

/// Requests that came between two readings of the page.
///
/// Each reading is a request itself and counts itself, so the second one is taken off.
pub fn between(first: u64, second: u64) -> u64 {
    second.saturating_sub(first).saturating_sub(1)
}
