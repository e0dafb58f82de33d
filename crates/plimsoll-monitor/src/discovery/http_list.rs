//! A list of monitors behind a URL.

use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_client::{AddressFilter, Endpoint};

use crate::config::HttpListPlan;
use crate::discovery::tables::of_json;
use crate::discovery::{DiscoverError, ListFuture, Listed, MonitorSource};

/// For a list, from the name lookup to its last byte.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a list.
const MOST_BYTES: u64 = 16 << 20;

/// Not modified (304): the list is the same as the last one.
const SAME: u16 = 304;

/// Fetches the list again and again.
pub(super) struct HttpList {
    endpoint: Endpoint,
    fields: Vec<(String, String)>,
    fetcher: Fetcher,
    refresh: Duration,
    /// The last list, with its entity tag.
    last: Option<(Option<String>, Listed)>,
    /// Whether the next one is fetched later.
    waits: bool,
}

impl HttpList {
    pub(super) fn new(plan: &HttpListPlan, refresh: Duration) -> Result<Self, DiscoverError> {
        let limits = FetchLimits {
            timeout: TIMEOUT,
            bytes: MOST_BYTES,
            redirects: 0,
        };
        let filter = plan.is_public_only.then(AddressFilter::public);
        let mut fields = vec![("accept".to_owned(), "application/json".to_owned())];
        let given = plan.fields.iter();
        fields.extend(given.map(|(name, value)| (name.clone(), value.expose().to_owned())));
        Ok(Self {
            endpoint: plan.endpoint.clone(),
            fields,
            fetcher: Fetcher::reaching(plan.trust.clone(), limits, filter)?,
            refresh,
            last: None,
            waits: false,
        })
    }

    async fn list(&mut self) -> Result<Listed, DiscoverError> {
        if std::mem::replace(&mut self.waits, false) {
            tokio::time::sleep(self.refresh).await;
        }
        let mut fields = self.fields.clone();
        let tag = self.last.as_ref().and_then(|(tag, _)| tag.clone());
        fields.extend(tag.map(|tag| ("if-none-match".to_owned(), tag)));
        let answer = self
            .fetcher
            .send_to("GET", &self.endpoint, fields, Bytes::new())
            .await?;
        let listed = match (answer.status, &self.last) {
            (SAME, Some((_, last))) => last.clone(),
            (200, _) => {
                let listed = of_json(&answer.content)?;
                let tag = answer.field("etag").map(std::borrow::Cow::into_owned);
                self.last = Some((tag, listed.clone()));
                listed
            }
            (status, _) => return Err(DiscoverError::Status(status)),
        };
        self.waits = true;
        Ok(listed)
    }
}

impl MonitorSource for HttpList {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}
