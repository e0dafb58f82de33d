//! The parameters that an application behind FastCGI or uwsgi gets with a request: those of CGI (RFC 3875, section 4.1).

use std::fmt::Write as _;

use plimsoll_client::forward::FieldSource;
use plimsoll_server::{Request, Scheme, Template};

use super::fastcgi::FastCgiPlan;
use super::fields::push_address;
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
        stripped: Option<&'a str>,
    ) -> CgiParameters<'a> {
        CgiParameters {
            plan: self,
            request,
            target,
            stripped,
        }
    }

    /// Those that the configuration has, in place of others of their names and beside them.
    fn replacements(&self) -> &[(String, Template)] {
        match self {
            Self::FastCgi(plan) => &plan.parameters,
            Self::Uwsgi(plan) => &plan.parameters,
        }
    }
}

/// Bytes of content of unknown length that are read before a request is sent, where the route has no limits: applications learn the
/// length first.
pub(crate) const BUFFERED_BYTES: u64 = 1 << 20;

/// The parameters of one request.
pub(super) struct CgiParameters<'a> {
    plan: &'a ApplicationPlan,
    request: &'a Request<'a>,
    target: &'a str,
    stripped: Option<&'a str>,
}

impl FieldSource for CgiParameters<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let Self {
            plan,
            request,
            target,
            stripped,
        } = *self;
        let replacements = plan.replacements();
        let mut put = |name: &str, value: &str| {
            if !replacements.iter().any(|(other, _)| other == name) {
                visit(name.as_bytes(), value.as_bytes());
            }
        };
        put("SERVER_PROTOCOL", request.version.name());
        put("REQUEST_METHOD", request.method);
        let mut text = String::with_capacity(128);
        if let Some(sent) = request.sent_target() {
            text.push_str(&sent);
        } else {
            text.push_str(request.path);
            if let Some(query) = request.query {
                text.push('?');
                text.push_str(query);
            }
        }
        // Programs that find their pages by it get what the client sees.
        put("REQUEST_URI", &text);
        let query = target.split_once('?').map_or("", |(_, query)| query);
        put("QUERY_STRING", query);
        match plan {
            ApplicationPlan::FastCgi(plan) => plan.each_own(target, &mut text, &mut put),
            ApplicationPlan::Uwsgi(_) => UwsgiPlan::each_own(target, stripped, &mut put),
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
            push_address(&mut text, end.ip().to_canonical());
            put(address, &text);
            text.clear();
            // Writing to a text does not fail.
            write!(text, "{}", end.port()).ok();
            put(port, &text);
        }
        let mut filled = Vec::new();
        for (name, template) in replacements {
            filled.clear();
            template.fill(request, &mut filled);
            visit(name.as_bytes(), &filled);
        }
    }
}
