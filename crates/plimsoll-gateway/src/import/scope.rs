//! The directives that hold at a place of nginx's configuration, and those that are known.

use super::nginx::Directive;

/// The directives of a location and of the blocks around it.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a>(Vec<&'a [Directive]>);

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &'a [Directive]) -> Self {
        Self(vec![outer])
    }

    pub(super) fn within(&self, block: &'a [Directive]) -> Self {
        let mut levels = self.0.clone();
        levels.push(block);
        Self(levels)
    }

    /// The directive of that name that holds: the last one of the innermost block that has one.
    pub(super) fn last(&self, name: &str) -> Option<&'a Directive> {
        let mut levels = self.0.iter().rev();
        levels.find_map(|level| level.iter().rev().find(|it| it.name == name))
    }

    /// All of that name in the innermost block that has any: outer ones are not inherited then.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// All with one of these names, in the same way.
    pub(super) fn all_of(&self, names: &[&str]) -> Vec<&'a Directive> {
        let of_level = |level: &&'a [Directive]| -> Vec<&'a Directive> {
            let found = level.iter().filter(|it| names.contains(&it.name.as_str()));
            found.collect()
        };
        let mut levels = self.0.iter().rev().map(of_level);
        levels.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The scope around all servers.
    pub(super) fn outermost(&self) -> Self {
        Self(self.0.iter().take(1).copied().collect())
    }

    /// The zone of that name, which a directive around all servers defines.
    ///
    /// - `parameter`: what its name and size are behind, such as `zone=`.
    pub(super) fn zone(
        &self,
        directive: &str,
        parameter: &str,
        name: &str,
    ) -> Option<&'a Directive> {
        let mut zones = self.outermost().all(directive).into_iter();
        zones.find(|zone| {
            let given = zone.parameter(parameter);
            given.and_then(|it| it.split(':').next()) == Some(name)
        })
    }

    /// The directives of the server.
    pub(super) fn server(&self) -> &'a [Directive] {
        self.0.get(1).copied().unwrap_or_default()
    }

    /// The directive of that name in the innermost block alone.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.0.last()?.iter().rev().find(|it| it.name == name)
    }
}

/// Directives that are read here, at any level.
const READ: [&str; 62] = [
    "expires",
    "location",
    "proxy_pass",
    "grpc_pass",
    "return",
    "rewrite",
    "try_files",
    "root",
    "alias",
    "index",
    "proxy_set_header",
    "grpc_set_header",
    "proxy_hide_header",
    "add_header",
    "client_max_body_size",
    "proxy_connect_timeout",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "grpc_read_timeout",
    "send_timeout",
    "keepalive_timeout",
    "proxy_next_upstream",
    "proxy_next_upstream_tries",
    "proxy_ssl_verify",
    "proxy_ssl_trusted_certificate",
    "proxy_http_version",
    "proxy_buffering",
    "proxy_request_buffering",
    "proxy_redirect",
    "proxy_pass_request_headers",
    "proxy_ssl_server_name",
    "proxy_ssl_name",
    "grpc_ssl_name",
    "proxy_cache",
    "proxy_cache_background_update",
    "proxy_cache_bypass",
    "proxy_cache_key",
    "proxy_cache_path",
    "proxy_cache_use_stale",
    "proxy_cache_valid",
    "proxy_no_cache",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "auth_request_set",
    "allow",
    "deny",
    "satisfy",
    "internal",
    "limit_except",
    "limit_req",
    "limit_req_status",
    "limit_req_zone",
    "set",
    "if",
    "set_real_ip_from",
    "real_ip_header",
    "real_ip_recursive",
    "proxy_pass_header",
    "proxy_pass_request_body",
    "gzip",
    "reset_timedout_connection",
];

/// Beginnings of names that only tune what plimsoll decides by itself: buffers, caches of sessions, compression.
const TUNING: [&str; 12] = [
    "gzip_",
    "ssl_session_",
    "proxy_buffer",
    "proxy_cache_lock",
    "proxy_cache_methods",
    "proxy_cache_min_uses",
    "proxy_cache_revalidate",
    "proxy_busy_buffers",
    "proxy_temp_",
    "client_body_",
    "client_header_buffer",
    "large_client_header",
];

pub(super) fn is_read(name: &str) -> bool {
    READ.contains(&name) || TUNING.iter().any(|it| name.starts_with(it))
}
