//! Names of targets: `unit:postgresql`, `container:web`.

use std::fmt;
use std::str::FromStr;

/// The kinds of targets, each with its name in flags, URLs and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// A process with its descendants, by id or name.
    Pid,
    /// A unit of systemd; without a suffix a service.
    Unit,
    /// A control group, by its path.
    Cgroup,
    /// A container of Podman, Docker or a Kubernetes runtime, by name or id.
    Container,
    /// A pod of Kubernetes, by its UID or as `NAMESPACE/NAME`.
    Pod,
}

impl TargetKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Pid,
        Self::Unit,
        Self::Cgroup,
        Self::Container,
        Self::Pod,
    ];

    /// The name used in flags, URLs and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Unit => "unit",
            Self::Cgroup => "cgroup",
            Self::Container => "container",
            Self::Pod => "pod",
        }
    }

    /// The kind of that [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A target by its kind and its value, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName {
    /// The kind.
    pub kind: TargetKind,
    /// The rest; not empty.
    pub value: String,
}

/// A text that names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not of the form KIND:VALUE; kinds are {}", kinds())]
pub struct TargetNameError {
    text: String,
}

fn kinds() -> String {
    TargetKind::ALL.map(TargetKind::name).join(", ")
}

impl TargetName {
    /// The longest value, in bytes: longer than any path of a control group that systemd makes.
    pub const LONGEST: usize = 1024;

    /// The target of that kind and value; an error if the value is empty, too long or has control characters.
    pub fn new(kind: TargetKind, value: &str) -> Result<Self, TargetNameError> {
        let is_valid = !value.is_empty()
            && value.len() <= Self::LONGEST
            && !value.chars().any(char::is_control);
        if !is_valid {
            return Err(TargetNameError {
                text: format!("{}:{}", kind.name(), value.escape_default()),
            });
        }
        Ok(Self {
            kind,
            value: value.to_owned(),
        })
    }

    /// As text for people: `unit postgresql`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.kind.name(), self.value)
    }
}

impl FromStr for TargetName {
    type Err = TargetNameError;

    fn from_str(text: &str) -> Result<Self, TargetNameError> {
        let parts = text.split_once(':');
        let kind = parts.and_then(|(kind, value)| Some((TargetKind::named(kind)?, value)));
        let (kind, value) = kind.ok_or_else(|| TargetNameError {
            text: text.to_owned(),
        })?;
        Self::new(kind, value)
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.value)
    }
}

/// Targets that may be observed: all of a kind, one, or those of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPattern {
    /// The kind.
    pub kind: TargetKind,
    /// The value, with `*` for any characters.
    pub value: String,
}

impl TargetPattern {
    /// Whether it allows `target`.
    pub fn allows(&self, target: &TargetName) -> bool {
        self.kind == target.kind && matches(&self.value, &target.value)
    }

    /// The only target that it allows; `None` if it may allow several.
    pub fn only(&self) -> Option<TargetName> {
        if self.value.contains('*') {
            return None;
        }
        TargetName::new(self.kind, &self.value).ok()
    }
}

impl FromStr for TargetPattern {
    type Err = TargetNameError;

    /// `unit`, `unit:*`, `unit:web-*`, `unit:postgresql`.
    fn from_str(text: &str) -> Result<Self, TargetNameError> {
        if let Some(kind) = TargetKind::named(text) {
            let value = "*".to_owned();
            return Ok(Self { kind, value });
        }
        let TargetName { kind, value } = text.parse()?;
        Ok(Self { kind, value })
    }
}

impl fmt::Display for TargetPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.value)
    }
}

/// Whether `text` is of `pattern`, in which `*` stands for any characters. Linear in the product of both lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_kind_and_a_value() {
        for text in ["unit:postgresql", "cgroup:/a.slice/b:c", "pod:shop/web-1"] {
            assert_eq!(text.parse::<TargetName>().unwrap().to_string(), text);
        }
        for text in ["", "unit", "unit:", ":x", "service:x", "unit:a\nb"] {
            assert!(text.parse::<TargetName>().is_err(), "{text:?}");
        }
        assert_eq!(
            "host:x".parse::<TargetName>().unwrap_err().to_string(),
            "`host:x` is not of the form KIND:VALUE; kinds are pid, unit, cgroup, container, pod"
        );
    }

    #[test]
    fn patterns_allow_what_they_name_and_no_more() {
        for (pattern, target, is_allowed) in [
            ("unit", "unit:anything", true),
            ("unit", "pod:anything", false),
            ("unit:web", "unit:web", true),
            ("unit:web", "unit:web2", false),
            ("unit:web-*", "unit:web-2", true),
            ("unit:web-*", "unit:web", false),
            ("unit:*.service", "unit:a.service", true),
            ("unit:a*b*c", "unit:aXbYbZc", true),
            ("unit:a*b*c", "unit:aXc", false),
            ("unit:ab*ba", "unit:aba", false),
            ("cgroup:/a.slice/*", "cgroup:/b.slice/x", false),
        ] {
            let parsed: TargetPattern = pattern.parse().unwrap();
            let target: TargetName = target.parse().unwrap();
            assert_eq!(parsed.allows(&target), is_allowed, "{pattern} {target}");
        }
        let only = |text: &str| text.parse::<TargetPattern>().unwrap().only();
        assert_eq!(only("pod:7"), Some("pod:7".parse().unwrap()));
        assert_eq!((only("pod"), only("pod:a*")), (None, None));
    }
}
