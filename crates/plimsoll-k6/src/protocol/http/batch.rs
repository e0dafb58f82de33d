//! `http.batch()`: several requests at a time.

use std::collections::HashMap;
use std::rc::Rc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Semaphore;

use super::execute::perform;
use super::request::HttpRequest;
use super::response::HttpResponse;
use crate::user::UserState;

/// Several requests at a time: at most `batch` of them, and `batch_per_host` to one host.
pub(crate) async fn perform_batch(
    user: &Rc<UserState>,
    requests: Vec<HttpRequest>,
) -> Vec<HttpResponse> {
    let options = &user.shared.options;
    let limit = |number: usize| match number {
        0 => Semaphore::MAX_PERMITS,
        number => number,
    };
    let all = Semaphore::new(limit(options.batch));
    let mut hosts: HashMap<String, Semaphore> = HashMap::new();
    for request in &requests {
        let host = host_of(request);
        hosts
            .entry(host)
            .or_insert_with(|| Semaphore::new(limit(options.batch_per_host)));
    }
    let (all, hosts) = (&all, &hosts);
    let mut running: FuturesUnordered<_> = requests
        .into_iter()
        .enumerate()
        .map(|(position, request)| async move {
            // Semaphores that are never closed always give a permit.
            let _host = hosts[&host_of(&request)].acquire().await;
            let _all = all.acquire().await;
            (position, perform(user, request).await)
        })
        .collect();
    let mut responses = Vec::new();
    while let Some(response) = running.next().await {
        responses.push(response);
    }
    responses.sort_by_key(|(position, _)| *position);
    responses
        .into_iter()
        .map(|(_, response)| response)
        .collect()
}

fn host_of(request: &HttpRequest) -> String {
    request.address.host_name().to_ascii_lowercase()
}
