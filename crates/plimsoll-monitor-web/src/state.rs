//! The state that all handlers share.

use std::sync::Arc;

use plimsoll_monitor::engine::Handle;
use plimsoll_wire::SystemClock;

use crate::limits::Attempts;
use crate::oidc::Providers;
use crate::page::{Pages, Sessions};

/// State that handlers share.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) handle: Handle,
    pub(crate) clock: SystemClock,
    pub(crate) pages: Arc<Pages>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) providers: Arc<Providers>,
}

impl Api {
    pub(crate) fn new(handle: Handle, pages: Arc<Pages>) -> Self {
        Self {
            handle,
            clock: SystemClock,
            pages,
            sessions: Arc::default(),
            attempts: Arc::default(),
            providers: Arc::default(),
        }
    }
}
