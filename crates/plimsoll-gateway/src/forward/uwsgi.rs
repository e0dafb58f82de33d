//! What an application behind uwsgi gets beside the parameters that every application has: those of nginx's `uwsgi_params`.

use plimsoll_server::Template;
use plimsoll_wire::http::NormalPath;

/// How requests of a route become packets of uwsgi.
#[derive(Debug, Clone, Default)]
pub(crate) struct UwsgiPlan {
    /// The plugin of the server that requests are for, and what that plugin takes for it.
    pub(crate) modifiers: [u8; 2],
    /// In place of the parameters of their names, and beside them.
    pub(crate) parameters: Vec<(String, Template)>,
}

impl UwsgiPlan {
    /// `PATH_INFO`, decoded and without `..`, and with a prefix that the route takes away `SCRIPT_NAME`, from which applications make
    /// links (PEP 3333).
    pub(super) fn each_own(target: &str, stripped: Option<&str>, put: &mut dyn FnMut(&str, &str)) {
        let path = target.split('?').next().unwrap_or_default();
        put("PATH_INFO", NormalPath::cleaned(path).text());
        if let Some(prefix) = stripped {
            put("SCRIPT_NAME", prefix.trim_end_matches('/'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_and_stripped_prefixes_are_named() {
        let own = |target, stripped| {
            let mut own = Vec::new();
            UwsgiPlan::each_own(target, stripped, &mut |name, value| {
                own.push(format!("{name}={value}"));
            });
            own
        };
        assert_eq!(own("/a%20b/c?d=/e", None), ["PATH_INFO=/a b/c"]);
        assert_eq!(own("/%2e%2e/a", None), ["PATH_INFO=/a"]);
        assert_eq!(
            own("/a b", Some("/app")),
            ["PATH_INFO=/a b", "SCRIPT_NAME=/app"]
        );
        assert_eq!(own("/", Some("/app/")), ["PATH_INFO=/", "SCRIPT_NAME=/app"]);
    }
}
