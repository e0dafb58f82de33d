//! The cache settings of a route.

use std::sync::Arc;

use plimsoll_server::{Request, Template};

use super::entry::Staleness;
use super::lifetimes::Lifetimes;
use super::store::Store;

/// Cache settings of a route.
#[derive(Debug, Clone)]
pub(crate) struct CachePlan {
    pub(crate) store: Arc<Store>,
    /// Bytes of content of one response.
    pub(crate) most_content: usize,
    pub(crate) staleness: Staleness,
    /// Of responses that give none.
    pub(crate) lifetimes: Arc<Lifetimes>,
    /// By which responses of a URL differ, beside the fields that `Vary` names.
    pub(crate) key: Option<Arc<Template>>,
    /// Requests that are forwarded past the cache.
    pub(crate) skip: Exceptions,
    /// Requests that are forwarded, and whose responses are stored.
    pub(crate) bypass: Exceptions,
    /// Requests whose responses are not stored.
    pub(crate) no_store: Exceptions,
}

/// Texts with places; requests for which one of them is neither empty nor `0` are excepted.
#[derive(Debug, Clone)]
pub(crate) struct Exceptions(pub(crate) Arc<[Template]>);

impl Exceptions {
    pub(super) fn hold_for(&self, request: &Request<'_>) -> bool {
        let mut text = Vec::new();
        self.0.iter().any(|template| {
            text.clear();
            template.fill(request, &mut text);
            !matches!(text.as_slice(), b"" | b"0")
        })
    }
}
