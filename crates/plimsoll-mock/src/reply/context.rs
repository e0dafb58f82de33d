//! Resources that the replies of one worker share: cached files, connections, scripts, timers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use plimsoll_server::{Alarms, Response};

use crate::config::files::Files;
use crate::config::ready::PreparedResponse;
use crate::proxy::record::proxied::ProxiedExchanges;
use crate::proxy::{Upstream, UpstreamPool};
use crate::script::Scripts;
use crate::streaming::websocket::Session;
use crate::worker::sharing::{Allowed, Sharing};

/// Resources of one worker, for as long as one plan is served.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(super) sharing: Sharing,
    pub(crate) files: Files,
    pub(super) scripts: Scripts,
    pub(super) alarms: Alarms,
    missing: PreparedResponse,
    /// Where exchanges with real servers are kept, if they are.
    proxied: Option<Arc<ProxiedExchanges>>,
    /// Connections to real servers.
    pools: RefCell<Vec<(Arc<Upstream>, Rc<UpstreamPool>)>>,
    /// The WebSocket that was agreed last, until the journal takes it.
    session: RefCell<Option<Arc<Session>>>,
}

impl ReplyContext {
    /// Without connections yet.
    pub(crate) fn new(
        sharing: Sharing,
        files: Files,
        scripts: Scripts,
        proxied: Option<Arc<ProxiedExchanges>>,
    ) -> Self {
        Self {
            proxied,
            files,
            scripts,
            alarms: Alarms::default(),
            missing: PreparedResponse::new(
                &sharing,
                StatusCode::NOT_FOUND,
                Vec::new(),
                Bytes::new(),
            ),
            pools: RefCell::default(),
            session: RefCell::default(),
            sharing,
        }
    }

    /// Which pages may read responses.
    pub(crate) fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Takes the WebSocket that was agreed last.
    pub(crate) fn take_session(&self) -> Option<Arc<Session>> {
        self.session.take()
    }

    pub(super) fn set_session(&self, session: Arc<Session>) {
        *self.session.borrow_mut() = Some(session);
    }

    /// Where exchanges with real servers are kept, if they are.
    pub(super) fn proxied(&self) -> Option<Arc<ProxiedExchanges>> {
        self.proxied.clone()
    }

    /// Connections of this worker to a real server.
    pub(super) fn pool(&self, upstream: &Arc<Upstream>) -> Rc<UpstreamPool> {
        let mut pools = self.pools.borrow_mut();
        let known = pools.iter().find(|(it, _)| Arc::ptr_eq(it, upstream));
        if let Some((_, pool)) = known {
            return Rc::clone(pool);
        }
        let pool = upstream.pool();
        pools.push((Arc::clone(upstream), Rc::clone(&pool)));
        pool
    }

    /// A response of one line of text.
    pub(crate) fn text(
        &self,
        status: StatusCode,
        text: impl Into<String>,
        allowed: &Allowed,
    ) -> Response {
        PreparedResponse::text(&self.sharing, status, text).response(&self.sharing, allowed)
    }

    /// A cached response, or an empty 404.
    pub(crate) fn or_missing(
        &self,
        ready: Option<&PreparedResponse>,
        allowed: &Allowed,
    ) -> Response {
        let ready = ready.unwrap_or(&self.missing);
        ready.response(&self.sharing, allowed)
    }

    /// An empty 404.
    pub(crate) fn missing(&self, allowed: &Allowed) -> Response {
        self.missing.response(&self.sharing, allowed)
    }
}
