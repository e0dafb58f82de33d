//! Servy and gosherve, which know no flags but these variables: started under their names or with their variables, a site is
//! served where they would, and looks like theirs to clients and to those who read metrics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use toml::{Table, Value};

use crate::exit::Exit;
use crate::flags::Preferred;
use crate::problem::{Failed, Problem};

/// The program that is stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Original {
    Servy,
    Gosherve,
}

impl Original {
    const ALL: [Self; 2] = [Self::Servy, Self::Gosherve];

    /// The one of that name.
    pub(crate) fn called(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The program's name, and what the names of its metrics begin with.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Servy => "servy",
            Self::Gosherve => "gosherve",
        }
    }

    /// The status that clients of short links get.
    pub(crate) fn redirect_status(self) -> u16 {
        match self {
            Self::Servy => 308,
            Self::Gosherve => 301,
        }
    }

    /// The `cache-control` of its files; empty for none.
    pub(crate) fn cache_control(self) -> &'static str {
        match self {
            Self::Servy => "",
            Self::Gosherve => "public, max-age=31536000, must-revalidate",
        }
    }

    fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Servy => &[
                "SERVY_REDIRECTS_URL",
                "SERVY_ASSETS_DIR",
                "SERVY_HOST",
                "SERVY_PORT",
                "SERVY_METRICS_PORT",
                "SERVY_LOG_LEVEL",
            ],
            Self::Gosherve => &[
                "GOSHERVE_REDIRECT_MAP_URL",
                "GOSHERVE_WEBROOT",
                "GOSHERVE_LOG_LEVEL",
            ],
        }
    }
}

/// The settings of the variables of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StandIn {
    pub(crate) original: Original,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) redirects: Option<String>,
    listen: SocketAddr,
    metrics: SocketAddr,
}

/// The ports of the originals.
const PORT: u16 = 8080;

const METRICS_PORT: u16 = 8081;

impl StandIn {
    /// For the one whose variables are set, if any are.
    pub(crate) fn of_environment() -> Result<Option<Self>, Failed> {
        Self::wanted(variable)
    }

    /// For `original`, whether its variables are set or not.
    pub(crate) fn for_program(original: Original) -> Result<Self, Failed> {
        Self::new(original, variable)
    }

    fn wanted(variable: impl Fn(&str) -> Option<String> + Copy) -> Result<Option<Self>, Failed> {
        let is_set = |original: &Original| {
            let mut names = original.variables().iter();
            names.any(|name| variable(name).is_some())
        };
        let set: Vec<_> = Original::ALL.into_iter().filter(is_set).collect();
        match set.as_slice() {
            [] => Ok(None),
            [original] => Self::new(*original, variable).map(Some),
            _ => {
                let message =
                    "variables of both servy and gosherve are set: one of them is stood in for";
                Err(Problem::new(message).usage())
            }
        }
    }

    fn new(original: Original, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failed> {
        match original {
            Original::Servy => Self::servy(variable),
            Original::Gosherve => {
                let everywhere = |port| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
                Ok(Self {
                    original,
                    directory: variable("GOSHERVE_WEBROOT").map(PathBuf::from),
                    redirects: variable("GOSHERVE_REDIRECT_MAP_URL"),
                    listen: everywhere(PORT),
                    metrics: everywhere(METRICS_PORT),
                })
            }
        }
    }

    fn servy(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failed> {
        let mut problems = Vec::new();
        let mut port = |name: &str, usual: u16| match variable(name) {
            None => usual,
            Some(text) => text.parse().unwrap_or_else(|_| {
                let message = format!("`{text}` is no port, such as {usual}");
                problems.push(Problem::with(name, message));
                usual
            }),
        };
        let site_port = port("SERVY_PORT", PORT);
        let metrics_port = port("SERVY_METRICS_PORT", METRICS_PORT);
        let mut host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Some(text) = variable("SERVY_HOST") {
            host = text.parse().unwrap_or_else(|_| {
                let message = format!("`{text}` is no address, such as 0.0.0.0");
                problems.push(Problem::with("SERVY_HOST", message));
                host
            });
        }
        if !problems.is_empty() {
            return Err(Failed {
                exit: Exit::Usage,
                problems,
            });
        }
        Ok(Self {
            original: Original::Servy,
            directory: variable("SERVY_ASSETS_DIR").map(PathBuf::from),
            redirects: variable("SERVY_REDIRECTS_URL"),
            listen: SocketAddr::new(host, site_port),
            metrics: SocketAddr::new(host, metrics_port),
        })
    }

    /// The keys of a packed site with what the variables say beyond them.
    ///
    /// - `keys`: of `files`, one a line.
    pub(crate) fn over(&self, keys: &str) -> String {
        let Ok(mut table) = keys.parse::<Table>() else {
            return keys.to_owned();
        };
        let mut add = |key: &str, value: Value| {
            table.entry(key).or_insert(value);
        };
        let status = i64::from(self.original.redirect_status());
        add("redirect_status", status.into());
        add("cache_control", self.original.cache_control().into());
        if let Some(url) = &self.redirects {
            table.insert("redirects".to_owned(), url.as_str().into());
        }
        table.to_string()
    }

    /// Where it listens.
    pub(crate) fn preferred(&self) -> Preferred {
        Preferred {
            listeners: None,
            listen: vec![(self.listen, None)],
            metrics: Some((self.metrics, self.original.name())),
            ..Preferred::default()
        }
    }
}

/// A variable that is empty counts as not set.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the binary, and it says so in its manual"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(set: &[(&str, &str)]) -> Result<Option<StandIn>, Failed> {
        StandIn::wanted(|name| {
            let known = set.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_say_whom_it_stands_in_for_and_where() {
        assert_eq!(wanted(&[]).unwrap(), None);
        let servy = wanted(&[
            ("SERVY_REDIRECTS_URL", "https://a.example/list"),
            ("SERVY_HOST", "::1"),
            ("SERVY_METRICS_PORT", "9100"),
        ]);
        let expected = StandIn {
            original: Original::Servy,
            directory: None,
            redirects: Some("https://a.example/list".to_owned()),
            listen: "[::1]:8080".parse().unwrap(),
            metrics: "[::1]:9100".parse().unwrap(),
        };
        assert_eq!(servy.unwrap(), Some(expected));
        let gosherve = wanted(&[("GOSHERVE_WEBROOT", "/srv/www")]).unwrap();
        let gosherve = gosherve.unwrap();
        assert_eq!(gosherve.directory, Some(PathBuf::from("/srv/www")));
        assert_eq!(gosherve.metrics, "[::]:8081".parse().unwrap());
    }

    #[test]
    fn what_is_packed_comes_first_but_for_the_list() {
        let gosherve = wanted(&[("GOSHERVE_REDIRECT_MAP_URL", "http://new.example/")]);
        let gosherve = gosherve.unwrap().unwrap();
        let keys = "redirects = [\"http://old.example/\"]\nredirect_status = 302\nlisting = true\n";
        let over: Table = gosherve.over(keys).parse().unwrap();
        assert_eq!(over["redirects"].as_str(), Some("http://new.example/"));
        assert_eq!(over["redirect_status"].as_integer(), Some(302));
        assert_eq!(over["listing"].as_bool(), Some(true));
        let expected = "public, max-age=31536000, must-revalidate";
        assert_eq!(over["cache_control"].as_str(), Some(expected));
    }

    #[test]
    fn every_mistake_is_reported_by_its_variable() {
        let failed = wanted(&[
            ("SERVY_HOST", "localhost"),
            ("SERVY_PORT", "http"),
            ("SERVY_METRICS_PORT", "65536"),
        ]);
        let problems = failed.unwrap_err().problems;
        let about: Vec<_> = problems.iter().filter_map(|it| it.about.clone()).collect();
        assert_eq!(about, ["SERVY_PORT", "SERVY_METRICS_PORT", "SERVY_HOST"]);
        let both = [("SERVY_PORT", "80"), ("GOSHERVE_LOG_LEVEL", "info")];
        assert!(wanted(&both).is_err());
    }
}
