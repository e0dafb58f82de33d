//! The parameters that an application behind FastCGI or uwsgi gets with a request: those of CGI (RFC 3875, section 4.1).

use std::fmt::Write as _;

use plimsoll_client::forward::FieldSource;
use plimsoll_server::{Request, Scheme, Template};

use super::fastcgi::FastCgiPlan;
use super::uwsgi::UwsgiPlan;

/// How requests of a route become those of an application.
#[derive(Debug, Clone)]
pub(crate) enum ApplicationPlan {
    FastCgi(FastCgiPlan),
    Uwsgi(UwsgiPlan),
}

impl ApplicationPlan {
    /// Whether path and query, as the route has changed them, lead to something that is run.
    pub(super) fn has_script(&self, target: &str) -> bool {
        match self {
            Self::FastCgi(plan) => plan.has_script(target),
            Self::Uwsgi(_) => true,
        }
    }

    /// The modifiers of uwsgi's packets.
    pub(super) fn modifiers(&self) -> [u8; 2] {
        match self {
            Self::FastCgi(_) => [0, 0],
            Self::Uwsgi(plan) => plan.modifiers,
        }
    }

    /// The parameters of a request.
    ///
    /// - `target`: path and query as the route has changed them.
    /// - `stripped`: the prefix that the route has taken from the path.
    pub(super) fn parameters<'a>(
        &'a self,
        request: &'a Request<'a>,
        target: &'a str,
        stripped: Option<&str>,
    ) -> CgiParameters<'a> {
        let (own, replacements) = match self {
            Self::FastCgi(plan) => (plan.own(target), &plan.parameters),
            Self::Uwsgi(plan) => (UwsgiPlan::own(target, stripped), &plan.parameters),
        };
        CgiParameters {
            own,
            replacements,
            request,
            query: target.split_once('?').map_or("", |(_, query)| query),
        }
    }
}

/// Bytes of content of unknown length that are read before a request is sent, where the route has no limits: applications learn the
/// length first.
pub(crate) const BUFFERED_BYTES: u64 = 1 << 20;

/// The parameters of one request.
pub(super) struct CgiParameters<'a> {
    /// What depends on the protocol, such as the names of scripts and paths.
    own: Vec<(&'static str, String)>,
    /// In place of the parameters of their names, and beside them.
    replacements: &'a [(String, Template)],
    request: &'a Request<'a>,
    query: &'a str,
}

impl CgiParameters<'_> {
    fn is_replaced(&self, name: &str) -> bool {
        let mut replacements = self.replacements.iter();
        replacements.any(|(other, _)| other == name)
    }
}

impl FieldSource for CgiParameters<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let Self {
            own,
            replacements,
            request,
            query,
        } = self;
        let mut text = String::new();
        let mut put = |name: &str, value: &str| {
            if !self.is_replaced(name) {
                visit(name.as_bytes(), value.as_bytes());
            }
        };
        put("SERVER_PROTOCOL", request.version.name());
        put("REQUEST_METHOD", request.method);
        let sent = match request.query {
            Some(query) => format!("{}?{query}", request.path),
            None => request.path.to_owned(),
        };
        put("REQUEST_URI", &sent);
        put("QUERY_STRING", query);
        for (name, value) in own {
            put(name, value);
        }
        let (scheme, is_https) = match request.scheme {
            Scheme::Http => ("http", false),
            Scheme::Https => ("https", true),
        };
        put("REQUEST_SCHEME", scheme);
        if is_https {
            put("HTTPS", "on");
        }
        put("SERVER_NAME", request.host());
        let local = request.connection().local;
        for (address, port, end) in [
            ("REMOTE_ADDR", "REMOTE_PORT", request.peer),
            ("SERVER_ADDR", "SERVER_PORT", local),
        ] {
            text.clear();
            // Writing to a text does not fail.
            write!(text, "{}", end.ip().to_canonical()).ok();
            put(address, &text);
            text.clear();
            write!(text, "{}", end.port()).ok();
            put(port, &text);
        }
        let mut filled = Vec::new();
        for (name, template) in *replacements {
            filled.clear();
            template.fill(request, &mut filled);
            visit(name.as_bytes(), &filled);
        }
    }
}
