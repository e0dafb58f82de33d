//! The option `systemTags`.

/// Which tags samples get by themselves.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct SystemTags {
    pub(crate) proto: bool,
    pub(crate) status: bool,
    pub(crate) subproto: bool,
    pub(crate) method: bool,
    pub(crate) url: bool,
    pub(crate) ip: bool,
    /// Metadata instead of tags, as in k6.
    pub(crate) vu: bool,
    pub(crate) iter: bool,
    pub(crate) name: bool,
    pub(crate) group: bool,
    pub(crate) check: bool,
    pub(crate) error: bool,
    pub(crate) error_code: bool,
    pub(crate) tls_version: bool,
    pub(crate) scenario: bool,
    pub(crate) service: bool,
    pub(crate) expected_response: bool,
}

impl SystemTags {
    pub(crate) fn from_names(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|other| other == name);
        Self {
            proto: has("proto"),
            status: has("status"),
            subproto: has("subproto"),
            method: has("method"),
            url: has("url"),
            ip: has("ip"),
            vu: has("vu"),
            iter: has("iter"),
            name: has("name"),
            group: has("group"),
            check: has("check"),
            error: has("error"),
            error_code: has("error_code"),
            tls_version: has("tls_version"),
            scenario: has("scenario"),
            service: has("service"),
            expected_response: has("expected_response"),
        }
    }
}
