//! The tools that `plimsoll compare` lets load URLs, and how each is called.

use std::collections::HashSet;
use std::fmt::{self, Display};

use clap::ValueEnum;
use plimsoll_lab::compare::{Operand, Template, TemplateError};
use url::Url;

/// A tool that loads URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// plimsoll load
    Plimsoll,
    /// wrk, HTTP/1.1 only
    Wrk,
    /// oha
    Oha,
    /// h2load of nghttp2
    H2load,
}

/// How tools are called.
pub(super) struct Drivers<'a> {
    pub(super) own: &'a str,
    pub(super) http2: bool,
    pub(super) streams: u32,
    pub(super) insecure: bool,
    pub(super) at_rate: bool,
}

impl Drivers<'_> {
    /// A command with its program's name as label, or a load of a URL by each of `tools`.
    pub(super) fn operands(
        &self,
        text: &str,
        tools: &[Driver],
    ) -> Result<Vec<Operand>, BadCommand> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let of_tool = |tool: &Driver| {
                Ok(Operand {
                    label: tool.label().to_owned(),
                    command: self.load_of(text, *tool)?,
                    prepare: None,
                    url: Some(text.to_owned()),
                    observed: None,
                })
            };
            return tools.iter().map(of_tool).collect();
        }
        let command = split(text)?;
        let program = command.words()[0].rsplit('/').next().unwrap_or_default();
        Ok(vec![Operand {
            label: program.to_owned(),
            command,
            prepare: None,
            url: None,
            observed: None,
        }])
    }

    /// A load of `url` by `tool`, with one thread; a placeholder stays one.
    pub(super) fn load_of(&self, url: &str, tool: Driver) -> Result<Template, BadCommand> {
        if self.at_rate && tool != Driver::Plimsoll {
            return Err(BadCommand::Tool(tool, "does not go with --rates"));
        }
        let streams = self.streams.to_string();
        let mut words: Vec<&str> = match tool {
            Driver::Plimsoll => vec![
                self.own,
                "load",
                "--no-tui",
                "--json",
                "-z",
                "{seconds}s",
                "-c",
                "{connections}",
            ],
            Driver::Wrk if self.http2 => {
                return Err(BadCommand::Tool(tool, "does not speak HTTP/2"));
            }
            Driver::Wrk => vec!["wrk", "-t1", "-c{connections}", "-d{seconds}s", "--latency"],
            Driver::Oha => vec![
                "oha",
                "--no-tui",
                "--output-format",
                "json",
                "-z",
                "{seconds}s",
                "-c",
                "{connections}",
            ],
            Driver::H2load => vec!["h2load", "-t1", "-c{connections}", "-D{seconds}"],
        };
        match tool {
            Driver::Plimsoll | Driver::Oha if self.http2 => {
                words.extend(["--http2", "-p", &streams]);
            }
            Driver::H2load if self.http2 => words.extend(["-m", &streams]),
            Driver::H2load => words.push("--h1"),
            _ => {}
        }
        if self.insecure && matches!(tool, Driver::Plimsoll | Driver::Oha) {
            // The others accept any certificate anyway.
            words.push("--insecure");
        }
        if self.at_rate {
            words.extend(["-q", "{rate}"]);
        }
        words.push(url);
        Ok(Template::new(
            words.into_iter().map(str::to_owned).collect(),
        )?)
    }
}

impl Driver {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
            Self::H2load => "h2load",
        }
    }
}

pub(super) fn split(command: &str) -> Result<Template, BadCommand> {
    let words = shlex::split(command).ok_or_else(|| BadCommand::Quotes(command.to_owned()))?;
    Ok(Template::new(words)?)
}

/// A command line that cannot be split.
#[derive(Debug)]
pub(super) enum BadCommand {
    Quotes(String),
    Template(TemplateError),
    Tool(Driver, &'static str),
}

impl From<TemplateError> for BadCommand {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quotes(command) => write!(f, "`{command}` has a quote that is not closed"),
            Self::Template(error) => error.fmt(f),
            Self::Tool(tool, problem) => write!(f, "--driver: {} {problem}", tool.label()),
        }
    }
}

impl std::error::Error for BadCommand {}

/// Names operands that have the name of their load generator by what they load, if that differs.
pub(super) fn name_by_url(operands: &mut [Operand], driver: Driver) {
    let hosts: Vec<Option<String>> = operands
        .iter()
        .map(|operand| {
            // Without credentials, which it may have.
            let url = Url::parse(operand.url.as_deref()?).ok()?;
            let host = url.host_str()?;
            Some(match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            })
        })
        .collect();
    let distinct: HashSet<_> = hosts.iter().collect();
    if hosts.len() < 2 || distinct.len() < hosts.len() {
        return;
    }
    for (operand, host) in operands.iter_mut().zip(hosts) {
        if let Some(host) = host.filter(|_| operand.label == driver.label()) {
            operand.label = host;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drivers() -> Drivers<'static> {
        Drivers {
            own: "/bin/plimsoll",
            http2: false,
            streams: 1,
            insecure: false,
            at_rate: false,
        }
    }

    fn words(drivers: &Drivers<'_>, text: &str, tool: Driver) -> String {
        let operands = drivers.operands(text, &[tool]).unwrap();
        operands[0].command.words().join(" ")
    }

    #[test]
    fn a_url_is_loaded_by_this_program() {
        let url = &drivers()
            .operands("http://127.0.0.1:1/a b", &[Driver::Plimsoll])
            .unwrap()[0];
        assert_eq!(url.label, "plimsoll");
        assert_eq!(
            url.command.words().join("|"),
            "/bin/plimsoll|load|--no-tui|--json|-z|{seconds}s|-c|{connections}|http://127.0.0.1:1/a b"
        );
        let command = &drivers()
            .operands("/usr/bin/wrk -H 'a: b' {url}", &[Driver::Oha])
            .unwrap()[0];
        assert_eq!(command.label, "wrk");
        assert_eq!(
            command.command.words(),
            ["/usr/bin/wrk", "-H", "a: b", "{url}"]
        );
        let error = drivers().operands("wrk 'a", &[]).unwrap_err();
        assert_eq!(error.to_string(), "`wrk 'a` has a quote that is not closed");
    }

    #[test]
    fn operands_of_different_hosts_have_their_names() {
        let operands = |urls: &[&str]| {
            let all = urls.iter().flat_map(|url| {
                let tools = [Driver::Plimsoll];
                drivers().operands(url, &tools).unwrap()
            });
            let mut all: Vec<_> = all.collect();
            name_by_url(&mut all, Driver::Plimsoll);
            let labels = all.into_iter().map(|operand| operand.label);
            labels.collect::<Vec<_>>()
        };
        let named = operands(&[
            "http://127.0.0.1:1/",
            "https://a:b@example.org/c",
            "wrk {url}",
        ]);
        assert_eq!(named, ["127.0.0.1:1", "example.org", "wrk"]);
        // The same host twice says nothing.
        assert_eq!(operands(&["http://h/a", "http://h/b"]), ["plimsoll"; 2]);
        assert_eq!(operands(&["http://h/a"]), ["plimsoll"]);
    }

    #[test]
    fn each_tool_is_called_in_its_own_way() {
        let url = "https://h/";
        let tls = Drivers {
            insecure: true,
            ..drivers()
        };
        assert_eq!(
            words(&tls, url, Driver::Wrk),
            "wrk -t1 -c{connections} -d{seconds}s --latency https://h/"
        );
        assert_eq!(
            words(&tls, url, Driver::H2load),
            "h2load -t1 -c{connections} -D{seconds} --h1 https://h/"
        );
        let http2 = Drivers {
            http2: true,
            streams: 32,
            ..tls
        };
        assert!(words(&http2, url, Driver::Oha).ends_with("--http2 -p 32 --insecure https://h/"));
        assert!(words(&http2, url, Driver::H2load).ends_with("-m 32 https://h/"));
        let error = http2.load_of(url, Driver::Wrk).unwrap_err().to_string();
        assert_eq!(error, "--driver: wrk does not speak HTTP/2");
        let rates = Drivers {
            at_rate: true,
            ..drivers()
        };
        assert!(words(&rates, url, Driver::Plimsoll).ends_with("-q {rate} https://h/"));
        assert!(rates.load_of(url, Driver::Oha).is_err());
        let three = drivers()
            .operands(url, &[Driver::Plimsoll, Driver::Wrk, Driver::Oha])
            .unwrap();
        let labels: Vec<&str> = three.iter().map(|operand| operand.label.as_str()).collect();
        assert_eq!(labels, ["plimsoll", "wrk", "oha"]);
    }
}
